"""`vpnrouter explain`: exit codes, the tree, JSON, and one line for each wrong question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vpnrouter.cli.app import run

CONFIGS = Path(__file__).parents[2] / "configs"
MESH = (str(CONFIGS / "core.yaml"), str(CONFIGS / "edge.yaml"))


def explain(*arguments: str) -> int:
    """Run the command."""
    return run(["explain", *arguments])


def test_a_tree_with_places(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each step however long, with file and line."""
    assert explain(*MESH, "--at", "edge/blue", "--topic", "orders/1") == 0
    out = capsys.readouterr().out
    assert "✓ bridge from-blue takes it to core/yellow" in out
    assert f"subscription orders/> {CONFIGS / 'edge.yaml'}:27" in out


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything, for programs."""
    subscriber = "core/yellow=weather/+@1"
    arguments = ("--at", "edge/blue", "--topic", "weather/x", "--subscriber", subscriber)
    assert explain(*MESH, *arguments, "--property", "a=b", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["arrivals"]] == ["subscriber-1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "edge/blue"), "--at ROUTER/VPN and --topic say what is asked"),
        (("--at", "blue", "--topic", "t"), "blue is not of the form ROUTER/VPN"),
        (("--at", "edge/red", "--topic", "t"), "router edge has no message VPN red"),
        (("--at", "edge/blue", "--topic", "a/#"), "a topic published by MQTT has no + or #"),
        (("--at", "edge/blue", "--topic", "t", "--mode", "x"), "the mode is one of"),
        (("--trace", "12"), "12 is no trace id"),
        (("--trace", "1" * 32), "--trace needs the trace files"),
    ],
)
def test_wrong_questions(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """Exit code 2 and one line."""
    assert explain(*MESH, *arguments) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert said in caught.err
    assert caught.err.count("\n") == 1


def test_a_configuration_that_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What `check` would say, and exit code 2."""
    path = tmp_path / "bad.yaml"
    path.write_text("router: {name: x}\nnonsense: 1\n", encoding="utf-8")
    assert explain(str(path), "--at", "x/v", "--topic", "t") == 2
    assert f"{path}:2:1" in capsys.readouterr().err


def test_no_configuration_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The way out is named."""
    assert explain("--at", "edge/blue", "--topic", "t") == 2
    assert "give their CONFIG files, or --url" in capsys.readouterr().err


def test_an_unknown_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit code 1 and one line."""
    assert explain("--trace", "1" * 32, str(tmp_path)) == 1
    err = capsys.readouterr().err
    assert f"no row of trace {'1' * 32} in 0 trace files" in err
    assert err.count("\n") == 1

"""`vpnrouter completion`, and what its scripts ask the command for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vpnrouter
from vpnrouter.cli import _completion, app
from vpnrouter.cli._show_rows import What


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It asks the command by the variable that the command knows."""
    assert app.run(["completion", shell]) == 0
    assert f"{app.COMPLETION}=complete_{shell}" in capsys.readouterr().out


def completed(monkeypatch: pytest.MonkeyPatch, capsys: Any, line: str) -> list[str]:
    """What bash gets for a line that ends where the cursor is."""
    words = line.split(" ")
    monkeypatch.setattr("vpnrouter.cli._completion.PATIENCE_S", 60.0)
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv(app.COMPLETION, "complete_bash")
    assert app.run([]) == 0
    found: list[str] = capsys.readouterr().out.split()
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vpnrouter su", ["sub"]),
        ("vpnrouter show br", ["bridges"]),
        ("vpnrouter show bridges to-", ["to-a", "to-b"]),
        ("vpnrouter show queues --msg-vpn bl", ["blue"]),
        ("vpnrouter bridge dis", ["disable"]),
        ("vpnrouter pub t x --qo", ["--qos"]),
    ],
)
def test_commands_options_and_names(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, line: str, expected: list[str]
) -> None:
    """Only the command that the line names is loaded, and it knows its options and names."""
    assert completed(monkeypatch, capsys, line) == expected


def test_in_bash(served: Any, tmp_path: Path) -> None:
    """A real bash evaluates the script and completes a name of the router."""
    bash = shutil.which("bash")
    assert bash is not None
    program = "from vpnrouter.cli.app import main; main()"
    command = tmp_path / "vpnrouter"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n')
    command.chmod(0o755)
    asks = (
        'eval "$(vpnrouter completion bash)"; COMP_WORDS=(vpnrouter show queues o); COMP_CWORD=3;'
        ' _vpnrouter_completion vpnrouter; echo "${COMPREPLY[@]}"'
    )
    found = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(vpnrouter.__file__).parents[1]),
        "VPNROUTER_URL": served.url,
    }
    done = subprocess.run([bash, "-c", asks], capture_output=True, text=True, env=found, check=True)
    assert done.stdout == "orders\n"


def context(**given: Any) -> Any:
    """A command line of which these options are there."""
    return SimpleNamespace(params=given)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are not about how long anybody waits."""
    monkeypatch.setattr(_completion, "PATIENCE_S", 120.0)


def test_names_of_the_router(served: Any) -> None:
    """Of several routers the first one gives the names; events have none to offer."""
    given = {"url": [served.url, "http://127.0.0.1:1"]}
    assert _completion.names(What.BRIDGES, given, "to-a") == ["to-a"]
    assert _completion.names(What.EVENTS, given, "") == []


def test_each_option_asks_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an option is completed with is of its kind; `show` asks for what it is to show."""
    asked: list[Any] = []
    monkeypatch.setattr(_completion, "names", lambda *given: asked.append(given) or [])
    for ask in (
        _completion.bridge_names,
        _completion.client_names,
        _completion.queue_names,
    ):
        ask(context(url="u"), "x")
    _completion.vpn_names(context(url="u"), "x")
    _completion.names_to_show(context(what="bridges"), "x")
    assert _completion.names_to_show(context(url="u"), "") == []
    assert [given[0] for given in asked] == [
        *(What.BRIDGES, What.CLIENTS, What.QUEUES, What.VPNS),
        What.BRIDGES,
    ]
    assert {given[2] for given in asked} == {"x"}


def test_what_a_shell_would_evaluate(recorded: Any) -> None:
    """Clients name themselves: what is not harmless in every shell is not offered."""
    names = ["a$(touch x)", 'a";b', "a b", "a\\", "a`x`", "a-1/é", "a.ok-1"]
    rows = [{"clientName": name, "msgVpnName": "v"} for name in names]
    recorded.answers["/vpnrouter/v1/clients"] = rows
    found = _completion.names(What.CLIENTS, {"url": recorded.url}, "a")
    assert found == ["a.ok-1"]


@pytest.mark.parametrize(
    "given", [{"url": "http://127.0.0.1:1"}, {"url": "no url"}, {"user": "ann"}]
)
def test_silence(given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Without an answer, and where a password would be asked for, nothing is offered and nothing said."""
    assert _completion.bridge_names(context(**given), "") == []
    assert capsys.readouterr() == ("", "")

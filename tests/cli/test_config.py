"""`vpnrouter config`: what an overlay changes, and without it."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path

import pytest
import yaml

from vpnrouter.cli.app import run

FILE = """\
router: {{name: edge, data_dir: {data}}}
msg_vpns:
  blue:
    max_subscription_count: 1000
    client_usernames:
      bob: {{password: secret}}
    queues:
      old: {{permission: consume}}
      orders: {{max_msg_spool_usage: 5}}
      from.dots: {{}}
"""
OVERLAY = """\
msg_vpns:
  blue:
    max_subscription_count: 2000
    client_usernames:
      bob: {password: other}
    queues:
      old: null
      gone: null
      orders: {max_msg_spool_usage: 5}
      new: {permission: delete}
"""
NAMES = [
    "msg_vpns.blue.max_subscription_count",
    "msg_vpns.blue.client_usernames.bob.password",
    "msg_vpns.blue.queues.old",
    "msg_vpns.blue.queues.new",
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A configuration and its overlay, in the directory of the command."""
    monkeypatch.chdir(tmp_path)
    config, overlay = Path("edge.yaml"), Path("data/overlay.yaml")
    overlay.parent.mkdir()
    config.write_text(FILE.format(data="data"))
    overlay.write_text(OVERLAY)
    return config, overlay


@pytest.mark.usefixtures("files")
def test_what_differs_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With both places; not what the file says as well, nor what it no longer has. No secret is shown."""
    assert run(["config", "show", "edge.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"data/overlay.yaml:3: {NAMES[0]}: 2000, not 1000 (edge.yaml:4)",
        f"data/overlay.yaml:5: {NAMES[1]}: another secret (edge.yaml:6)",
        f'data/overlay.yaml:7: {NAMES[2]}: removed, was {{"permission": "consume"}} (edge.yaml:8)',
        f'data/overlay.yaml:10: {NAMES[3]}: {{"permission": "delete"}} (new)',
    ]
    assert run(["config", "show", "edge.yaml", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [".".join(row["path"]) for row in rows] == NAMES
    assert [row["removed"] for row in rows] == [False, False, True, False]
    assert rows[0]["before"] == 1000
    assert rows[0]["overlay"] == {"file": "data/overlay.yaml", "line": 3}
    assert rows[3]["file"] is None
    assert "secret" not in json.dumps(rows)


@pytest.mark.parametrize("secrets", [False, True])
@pytest.mark.usefixtures("files")
def test_the_document_in_force(capsys: pytest.CaptureFixture[str], *, secrets: bool) -> None:
    """As YAML that is a configuration again; its secrets only where they are asked for."""
    more = ["--with-secrets"] if secrets else []
    assert run(["config", "show", "edge.yaml", "--document", *more]) == 0
    out = capsys.readouterr().out
    blue = yaml.safe_load(out)["msg_vpns"]["blue"]
    assert blue["max_subscription_count"] == 2000
    assert set(blue["queues"]) == {"orders", "from.dots", "new"}
    assert blue["client_usernames"]["bob"]["password"] == ("other" if secrets else "***")


def test_written_anew_and_forgotten(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has the changes then, and nothing lies over it."""
    config, overlay = files
    run(["config", "show", "edge.yaml", "--document", "--with-secrets"])
    before = capsys.readouterr().out
    config.write_text(before)
    assert run(["config", "show", "edge.yaml"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "edge.yaml: data/overlay.yaml changes nothing\n")
    assert run(["config", "forget", "edge.yaml", "--yes"]) == 0
    assert not overlay.exists()
    run(["config", "show", "edge.yaml", "--document", "--with-secrets"])
    assert capsys.readouterr().out == before


FORGOTTEN = {
    "one": ([NAMES[0]], NAMES[1:]),
    "a removed object": ([NAMES[2]], [NAMES[0], NAMES[1], NAMES[3]]),
    "all below": (["msg_vpns.blue.queues"], NAMES[:2]),
    "several": ([NAMES[3], NAMES[1]], [NAMES[0], NAMES[2]]),
    "everything by its place": (["msg_vpns"], []),
    "everything": ([], []),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_changes_are_forgotten(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """Those that are named, or all; the file of the rest is its owner's alone."""
    config, overlay = files
    places, left = FORGOTTEN[case]
    text = config.read_text()
    assert run(["config", "forget", "edge.yaml", *places, "--yes"]) == 0
    assert "SIGHUP puts it into force" in capsys.readouterr().err
    assert run(["config", "show", "edge.yaml", "--json"]) == 0
    assert [".".join(row["path"]) for row in json.loads(capsys.readouterr().out)] == left
    assert config.read_text() == text
    if overlay.exists():
        assert stat.S_IMODE(overlay.stat().st_mode) == 0o600
    assert [path.name for path in overlay.parent.iterdir()] == ["overlay.yaml"] * overlay.exists()


REFUSED = {
    "no such place": (
        ["msg_vpns.blue.queues.gone"],
        "y\n",
        2,
        "changes nothing at msg_vpns.blue.queues.gone",
    ),
    "part of a name": (["msg_vpns.blue.queues.ol"], "y\n", 2, "changes nothing at"),
    "no": ([], "n\n", 1, "nothing was changed"),
    "nobody": ([], "", 2, "give --yes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_forgotten(
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    case: str,
) -> None:
    """Without an answer, or for a place that is none."""
    places, answer, code, told = REFUSED[case]
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert run(["config", "forget", "edge.yaml", *places]) == code
    assert told in " ".join(capsys.readouterr().err.split())
    assert files[1].read_text() == OVERLAY


def test_what_the_rest_needs_stays(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration would be refused without it: nothing is written, and the problem is told."""
    _, overlay = files
    overlay.write_text(
        "msg_vpns:\n  blue:\n    client_profiles: {fast: {}}\n"
        "    client_usernames: {bob: {client_profile: fast}}\n"
    )
    text = overlay.read_text()
    assert run(["config", "forget", "edge.yaml", "msg_vpns.blue.client_profiles", "--yes"]) == 2
    assert "fast" in capsys.readouterr().err
    assert overlay.read_text() == text
    assert [path.name for path in overlay.parent.iterdir()] == ["overlay.yaml"]


@pytest.mark.parametrize("command", ["show", "forget"])
def test_without_an_overlay(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A line on stderr, and a file that is refused is told as by check."""
    config, overlay = files
    overlay.unlink()
    assert run(["config", command, "edge.yaml"]) == 0
    assert capsys.readouterr() == ("", "edge.yaml: nothing lies over it\n")
    config.write_text("router: {name: edge}\nzzz: 1\n")
    assert run(["config", command, "edge.yaml"]) == 2
    assert "edge.yaml:2:1: unknown key zzz" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_secrets_are_for_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of changes never has any."""
    assert run(["config", "show", "edge.yaml", "--with-secrets"]) == 2
    assert "--with-secrets is for --document" in capsys.readouterr().err

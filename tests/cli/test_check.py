"""`vpnrouter check`."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vpnrouter.cli.check import command

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"
EDGE, CORE = str(CONFIGS / "edge.yaml"), str(CONFIGS / "core.yaml")

application = typer.Typer()
application.command()(command)


def check(*arguments: str) -> tuple[int, str, str]:
    """Run the command; exit code, stdout, stderr."""
    done = CliRunner().invoke(application, arguments, catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def test_accepted() -> None:
    """ReceivedPositions files give a line each on stdout, warnings on stderr, and exit code 0."""
    code, out, err = check(EDGE, CORE)
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith(f"{EDGE}: ok: router edge, 3 listeners, 1 message VPN, 0 bridges")
    assert second.startswith(f"{CORE}: ok: router core, 3 listeners, 1 message VPN, 1 bridge")
    assert all(": warning: " in line for line in err.splitlines())


def test_refused(tmp_path: Path) -> None:
    """One refused file among others gives exit code 2, its errors on stderr, a word on stdout."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("router: {name: r}\nzzz: 1\nyyy: 1\n")
    code, out, err = check(EDGE, str(bad))
    assert code == 2
    assert out.splitlines()[0].startswith(f"{EDGE}: ok")
    assert out.splitlines()[1] == f"{bad}: refused: 2 errors, 1 warning"
    assert f"{bad}:2:1: unknown key zzz" in err
    assert f"{bad}:3:1: unknown key yyy" in err


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("is_missing", [True, False])
def test_sdk_that_is_missing(
    enabled: bool, is_missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router that is to send spans would not start without it: that is told, at its place."""
    config = tmp_path / "edge.yaml"
    config.write_text(
        "router: {name: edge}\nlisteners: [{protocol: http, bind: '127.0.0.1:0'}]\n"
        f"trace: {{directory: t, otlp: {{enabled: {str(enabled).lower()}}}}}\n"
    )
    if is_missing:
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    code, out, err = check(str(config))
    assert code == 0
    told = f"{config}:3:29: warning: on this machine a router would not start: trace.otlp needs"
    assert (told in err) == (enabled and is_missing)
    assert ("1 warning" in out) == (enabled and is_missing)


def test_routers_of_one_name(tmp_path: Path) -> None:
    """Two good files that do not fit together are refused."""
    other = tmp_path / "edge.yaml"
    shutil.copy(EDGE, other)
    code, out, err = check(EDGE, str(other))
    assert code == 2
    assert out.splitlines()[1].startswith(f"{other}: refused: router edge, ")
    assert f"{other}:3:9: router.name: another router has the name edge at {EDGE}:3:9" in err


def test_notes_do_not_refuse(tmp_path: Path) -> None:
    """A remote that no file describes is a note: counted, printed, accepted."""
    core = tmp_path / "core.yaml"
    shutil.copy(CORE, core)
    code, out, err = check(str(core))
    assert code == 0
    assert out.startswith(f"{core}: ok: router core, ")
    assert out.rstrip().endswith(", 1 note")
    assert ": note: msg_vpns.yellow.bridges.from-blue.remote_msg_vpns[0]: unknown: " in err
    code, out, _ = check("--json", str(core))
    assert code == 0
    (row,) = json.loads(out)
    assert row["accepted"] is True
    (note,) = [one for one in row["problems"] if one["severity"] == "note"]
    assert set(note) == {"severity", "file", "line", "column", "message"}
    assert note["line"] == 29


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is a refused configuration like any other."""
    code, out, err = check(str(tmp_path / "no.yaml"))
    assert code == 2
    assert out == f"{tmp_path}/no.yaml: refused: 1 error\n"
    assert err == f"{tmp_path}/no.yaml:1:1: cannot read: No such file or directory\n"


@pytest.mark.parametrize("accepted", [True, False])
def test_json(tmp_path: Path, accepted: bool) -> None:
    """--json gives everything on stdout, for programs, with the same exit code."""
    path = tmp_path / "c.yaml"
    path.write_text("router: {name: r}\n" + ("" if accepted else "zzz: 1\n"))
    code, out, err = check("--json", str(path))
    assert code == (0 if accepted else 2)
    assert err == ""
    (row,) = json.loads(out)
    assert row["file"] == str(path)
    assert row["accepted"] is accepted
    assert row["router"] == ("r" if accepted else None)
    assert [one for one in row["problems"] if one["severity"] == "error"] == (
        []
        if accepted
        else [
            {
                "severity": "error",
                "file": str(path),
                "line": 2,
                "column": 1,
                "message": "unknown key zzz; known keys are bridging, guaranteed_msging, listeners, logging,"
                " management, msg_vpns, router, trace",
            }
        ]
    )


def test_overlay(tmp_path: Path) -> None:
    """What the management API changed is checked with the file, told in the summary, and can be left out."""
    path, data = tmp_path / "c.yaml", tmp_path / "data"
    path.write_text(f"router: {{name: r, data_dir: {data}}}\nmsg_vpns: {{blue: {{}}}}\n")
    assert (
        check(str(path))[1]
        == f"{path}: ok: router r, 0 listeners, 1 message VPN, 0 bridges, 1 warning\n"
    )
    data.mkdir()
    overlay = data / "overlay.yaml"
    overlay.write_text("msg_vpns: {green: {}}\n")
    code, out, _ = check(str(path))
    assert code == 0
    assert out == (
        f"{path}: ok: router r, 0 listeners, 2 message VPNs, 0 bridges, with {overlay}, 1 warning\n"
    )
    assert json.loads(check("--json", str(path))[1])[0]["overlay"] == str(overlay)
    overlay.write_text("msg_vpns: {green: {zzz: 1}}\n")
    code, out, err = check(str(path))
    assert code == 2
    assert out == f"{path}: refused: with {overlay}, 2 errors, 1 warning\n"
    assert f"{overlay}:1:20: unknown key zzz in msg_vpns.green" in err
    assert "--no-overlay" in err
    code, out, err = check("--no-overlay", str(path))
    assert code == 0
    assert str(overlay) not in err
    assert str(overlay) not in out


def test_what_fits_not_together_because_of_an_overlay(tmp_path: Path) -> None:
    """A problem of the mesh that stands in an overlay is told with its file."""
    other, data = tmp_path / "other.yaml", tmp_path / "data"
    data.mkdir()
    other.write_text(f"router: {{name: other, data_dir: {data}}}\n")
    overlay = data / "overlay.yaml"
    overlay.write_text("router: {name: edge}\n")
    code, out, err = check(EDGE, str(other))
    assert code == 2
    assert out.splitlines()[1].startswith(f"{other}: refused: router edge, ")
    assert f"{overlay}:1:16: router.name: another router has the name edge at {EDGE}:3:9" in err

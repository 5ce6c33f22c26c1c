"""`vpnrouter apply`: all routers, or none."""

import io
import json
from typing import Any

import pytest

from vpnrouter.cli.app import run


def test_applied(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """The routers are what the file says, and a second time nothing is left to do."""
    assert run(["apply", mesh.path, "--yes", "--prune"]) == 0
    assert list(mesh.edge.document["msg_vpns"]) == ["blue", "new"]
    err = capfd.readouterr().err.splitlines()
    assert err[-3:] == ["edge: grow", "edge: trim", "applied"]
    assert run(["apply", mesh.path, "--yes", "--prune", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"applied": True, "done": []}


def test_taken_back(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """When one router refuses, the others return to what they were."""
    mesh.write(new="new", both=True)
    mesh.core.refuses = "new"
    assert run(["apply", mesh.path, "--yes", "--json"]) == 1
    told = capfd.readouterr()
    assert json.loads(told.out)["returned"] == ["core", "edge"]
    assert "vpnrouter: core: the address is in use\n" in told.err
    assert "vpnrouter: back to what it was: core, edge\n" in told.err
    assert list(mesh.edge.document["msg_vpns"]) == ["blue", "old"]


def test_nothing_is_applied_that_would_be_refused(
    mesh: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is known before the first step."""
    mesh.write(new="refused")
    assert run(["apply", mesh.path, "--yes"]) == 1
    assert capfd.readouterr().err.endswith("vpnrouter: nothing was changed\n")
    assert len(mesh.edge.history) == 1


@pytest.mark.parametrize(("said", "code"), [("", 2), ("y\n", 0), ("yes\ny\n", 0), ("n\n", 1)])
def test_somebody_has_to_agree(
    said: str, code: int, mesh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --yes and without a terminal a line on stdin is the answer (`yes | …`); nothing there is wrong use."""
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert run(["apply", mesh.path]) == code
    assert (len(mesh.edge.history) == 1) == (code > 0)


def test_whoever_says_no(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changes."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert run(["apply", mesh.path]) == 1
    assert len(mesh.edge.history) == 1

"""`vpnrouter drift`: are the routers what the mesh file says?"""

import json
from typing import Any

import pytest

from vpnrouter.cli.app import run


def test_no_drift(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 0."""
    mesh.write(new="old")
    assert run(["drift", mesh.path]) == 0
    assert capfd.readouterr().out == "edge: as the file says\ncore: as the file says\n"


def test_drift(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and what differs."""
    assert run(["drift", mesh.path, "--json"]) == 1
    edge, _ = json.loads(capfd.readouterr().out)
    assert edge["changes"][0]["text"] == "msg_vpns.new: added"


def test_a_router_that_is_away_hides_nothing(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """The others are compared all the same."""
    mesh.write(new="old")
    mesh.edge.away = True
    assert run(["drift", mesh.path]) == 1
    told = capfd.readouterr()
    assert told.err == "vpnrouter: edge: cannot connect to edge\n"
    assert told.out == "core: as the file says\n"

"""`vpnrouter show topology`, against applications that are really served."""

import json
import socket
from types import ModuleType
from typing import Any

import pytest

from vpnrouter.cli import app


def test_of_one_router(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """All message VPNs with their bridges; a name chooses bridges, a VPN chooses both."""
    assert app.run(["show", "topology"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"router here at {served.url}\n")
    assert "empty" in said
    assert "◄╌╌" in said
    assert app.run(["show", "topology", "to-a", "--msg-vpn", "blue", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["msgVpnName"] for row in found["routers"][0]["msgVpns"]] == ["blue"]
    assert [edge["bridgeName"] for edge in found["edges"]] == ["to-a"]


def test_one_of_two_does_not_answer(
    served: Any, standing: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other is drawn, and the exit code is 1; a single one is an error."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        away = f"http://127.0.0.1:{server.getsockname()[1]}"
    assert app.run(["show", "topology", "--url", served.url, "--url", away]) == 1
    out, err = capsys.readouterr()
    assert "router here" in out
    assert f"router {away}\n└── cannot connect to {away}" in out
    assert err == ""
    assert app.run(["show", "topology", "--url", away]) == 1
    assert "cannot connect" in capsys.readouterr().err

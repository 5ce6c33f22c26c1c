"""`vpnrouter client disconnect`."""

from typing import Any

import pytest

from vpnrouter.cli import app


@pytest.fixture(autouse=True)
def clients(recorded: Any) -> None:
    """Three clients."""
    recorded.answers["/vpnrouter/v1/clients"] = [
        {"clientName": "a/b,c", "msgVpnName": "blue"},
        {"clientName": "twice", "msgVpnName": "blue"},
        {"clientName": "twice", "msgVpnName": "red"},
    ]


def test_disconnected(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The VPN is found by the name, which is encoded by itself."""
    assert app.run(["client", "disconnect", "a/b,c"]) == 0
    path = "/SEMP/v2/action/msgVpns/blue/clients/a%2Fb%2Cc/disconnect"
    assert recorded.changes() == [("PUT", path, {})]
    assert capsys.readouterr().out == "client a/b,c in message VPN blue is disconnected\n"


def test_of_which_msg_vpn(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that two have wants the VPN; with it nothing is looked up."""
    assert app.run(["client", "disconnect", "twice"]) == 1
    assert "--msg-vpn says which" in capsys.readouterr().err
    assert app.run(["client", "disconnect", "nope"]) == 1
    assert "there is no client nope" in capsys.readouterr().err
    recorded.asked.clear()
    assert app.run(["client", "disconnect", "twice", "--msg-vpn", "red"]) == 0
    path = "/SEMP/v2/action/msgVpns/red/clients/twice/disconnect"
    assert recorded.asked == [("PUT", path, {})]

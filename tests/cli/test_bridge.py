"""`vpnrouter bridge`: what is asked of the router, and what is said."""

from typing import Any

import pytest

from vpnrouter.cli import app

BRIDGES = [
    {"bridgeName": "x,y", "msgVpnName": "a/b"},
    {"bridgeName": "twice", "msgVpnName": "a/b"},
    {"bridgeName": "twice", "msgVpnName": "blue"},
]


@pytest.fixture(autouse=True)
def bridges(recorded: Any) -> None:
    """Three bridges."""
    recorded.answers["/vpnrouter/v1/bridges"] = BRIDGES
    recorded.answers["/SEMP/v2/monitor/msgVpns/blue"] = {"msgVpnName": "blue"}


@pytest.mark.parametrize(
    ("verb", "path", "said"),
    [
        ("enable", "/vpnrouter/v1{}/enable", "is enabled"),
        ("disable", "/vpnrouter/v1{}/disable", "is disabled"),
        ("pause", "/vpnrouter/v1{}/pause", "is paused"),
        ("resume", "/vpnrouter/v1{}/resume", "goes on"),
        ("reconnect", "/SEMP/v2/action{}/disconnect", "connects again"),
    ],
)
def test_what_is_asked(
    recorded: Any, verb: str, path: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The path with each name encoded by itself; one line says what was done."""
    assert app.run(["bridge", verb, "x,y"]) == 0
    place = "/msgVpns/a%2Fb/bridges/x%2Cy,auto"
    assert recorded.changes() == [("PUT", path.format(place), {})]
    assert capsys.readouterr().out == f"bridge x,y in message VPN a/b {said}\n"


def test_of_which_msg_vpn(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that two message VPNs have wants the VPN; one that nobody has is told with those there are."""
    assert app.run(["bridge", "disable", "twice"]) == 1
    assert "a/b, blue each have a bridge twice; --msg-vpn says which" in capsys.readouterr().err
    assert app.run(["bridge", "disable", "nope"]) == 1
    assert "there is no bridge nope; there are: x,y, twice" in capsys.readouterr().err
    assert recorded.changes() == []
    assert app.run(["bridge", "disable", "twice", "--msg-vpn", "blue"]) == 0
    assert recorded.changes()[0][1] == "/vpnrouter/v1/msgVpns/blue/bridges/twice,auto/disable"


def test_refused(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What the router says is told in one line, and nothing is said to be done."""
    recorded.refusal = "read-only"
    assert app.run(["bridge", "enable", "x,y"]) == 1
    assert capsys.readouterr() == ("", f"vpnrouter: {recorded.url}: read-only\n")

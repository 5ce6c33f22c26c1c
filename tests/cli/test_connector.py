"""`vpnrouter connector`: what is asked of the router, and what is said."""

from typing import Any

import pytest

from vpnrouter.cli import app

CONNECTORS = [
    {"connectorName": "there", "msgVpnName": "a/b"},
    {"connectorName": "twice", "msgVpnName": "a/b"},
    {"connectorName": "twice", "msgVpnName": "blue"},
]
DONE = {
    "enable": "is enabled",
    "disable": "is disabled",
    "pause": "is paused",
    "resume": "goes on",
    "reconnect": "connects again",
}


@pytest.fixture(autouse=True)
def connectors(recorded: Any) -> None:
    """Three connectors."""
    recorded.answers["/vpnrouter/v1/connectors"] = CONNECTORS
    recorded.answers["/SEMP/v2/monitor/msgVpns/blue"] = {"msgVpnName": "blue"}


@pytest.mark.parametrize("verb", DONE)
@pytest.mark.parametrize("link", ["", "in/1"])
def test_what_is_asked(
    recorded: Any, verb: str, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The path with each name encoded by itself; one line says what was done."""
    assert app.run(["connector", verb, "there", *(["--link", link] if link else [])]) == 0
    below = "/links/in%2F1" if link else ""
    path = f"/vpnrouter/v1/msgVpns/a%2Fb/connectors/there{below}/{verb}"
    assert recorded.changes() == [("PUT", path, {})]
    which = f"link {link} of connector there" if link else "connector there"
    assert capsys.readouterr().out == f"{which} in message VPN a/b {DONE[verb]}\n"


def test_of_which_msg_vpn(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that two message VPNs have wants the VPN; one that nobody has is told with those there are."""
    assert app.run(["connector", "pause", "twice"]) == 1
    assert "a/b, blue each have a connector twice; --msg-vpn says which" in capsys.readouterr().err
    assert app.run(["connector", "pause", "nope"]) == 1
    assert "there is no connector nope; there are: there, twice" in capsys.readouterr().err
    assert recorded.changes() == []
    assert app.run(["connector", "pause", "twice", "--msg-vpn", "blue"]) == 0
    assert recorded.changes()[0][1] == "/vpnrouter/v1/msgVpns/blue/connectors/twice/pause"


def test_refused(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What the router says is told in one line, and nothing is said to be done."""
    recorded.refusal = "link nope in connector there in msgVpn a/b"
    assert app.run(["connector", "pause", "there", "--link", "nope"]) == 1
    assert capsys.readouterr() == ("", f"vpnrouter: {recorded.url}: {recorded.refusal}\n")

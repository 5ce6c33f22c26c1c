from typing import Any

import pytest

from vpnrouter.tui.router_state import once, other_end


def end(vpn: str, name: str, remote: tuple[str, str], outbound: str = "") -> dict[str, Any]:
    """A bridge's row, as far as its ends are concerned."""
    return {
        "msgVpnName": vpn,
        "bridgeName": name,
        "remoteRouterName": remote[0],
        "remoteMsgVpnName": remote[1],
        "outboundBridgeName": outbound,
    }


def test_two_bridges_on_one_connection() -> None:
    """Each is the other end of the other, though the names differ."""
    ours = end("blue", "from-core", ("core", "yellow"), "to-edge")
    theirs = end("yellow", "to-edge", ("edge", "blue"), "from-core")
    bridges = {"edge": [ours], "core": [theirs]}
    assert other_end(ours, "edge", bridges) is theirs
    assert other_end(theirs, "core", bridges) is ours
    assert once([("edge", ours), ("core", theirs)]) == [("edge", ours, theirs)]


def test_one_way_bridge_is_a_client_there() -> None:
    """Under the name of its client; it is listed once, by the router that has it configured."""
    ours = end("blue", "b", ("core", "yellow"))
    shown = end("yellow", "#bridge/edge/blue/b", ("edge", "blue"))
    assert other_end(ours, "edge", {"edge": [ours], "core": [shown]}) is shown
    assert once([("core", shown), ("edge", ours)]) == [("edge", ours, shown)]


@pytest.mark.parametrize(
    "change",
    [{"remoteMsgVpnName": ""}, {"remoteRouterName": "other"}, {"remoteMsgVpnName": "red"}],
)
def test_no_other_end(change: dict[str, str]) -> None:
    """While it is not connected, or its remote is not among the routers looked at."""
    ours = end("blue", "b", ("core", "yellow"), "c") | change
    theirs = end("yellow", "c", ("edge", "blue"), "b")
    assert other_end(ours, "edge", {"core": [theirs]}) is None
    assert len(once([("edge", ours), ("core", theirs)])) == 2


def test_namesakes_are_told_apart() -> None:
    """A bridge of the same name that leads elsewhere is not the other end."""
    ours = end("blue", "b", ("core", "yellow"), "c")
    elsewhere = end("yellow", "c", ("third", "blue"), "b")
    assert other_end(ours, "edge", {"core": [elsewhere]}) is None

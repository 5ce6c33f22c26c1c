"""Bridges as directions between message VPNs."""

from typing import Any

from vpnrouter.cli._topology import Edge, Place, RouterView, edges_of


def bridge(name: str, **changes: Any) -> dict[str, Any]:
    """A bridge row of message VPN yellow that receives from edge/blue by queue to-core."""
    remote = {
        "remoteMsgVpnName": "blue",
        "remoteMsgVpnLocation": "192.0.2.1:55555",
        "connectOrder": 1,
        "enabled": True,
        "up": True,
        "queueBinding": "to-core",
    }
    row = {
        "bridgeName": name,
        "msgVpnName": "yellow",
        "health": "up",
        "inboundState": "ready-in-sync",
        "outboundState": "not-applicable",
        "inboundFailureReason": "",
        "remoteRouterName": "edge",
        "remoteMsgVpnName": "blue",
        "localQueueName": "",
        "rxMsgRate": 12,
        "dataRxMsgCount": 34,
        "remotes": [remote],
    }
    return row | changes


def queue(msg_vpn: str, name: str, count: int) -> dict[str, Any]:
    """A queue row."""
    return {"msgVpnName": msg_vpn, "queueName": name, "msgCount": count}


def one(*routers: RouterView) -> Edge:
    """The only edge."""
    (edge,) = edges_of(routers)
    return edge


def test_from_remote_to_local() -> None:
    """Messages go from the remote to where the bridge is; the backlog is that of the remote's queue."""
    core = RouterView("core", "u", bridges=[bridge("b")], queues=[queue("yellow", "to-core", 9)])
    edge = one(core, RouterView("edge", "v", queues=[queue("blue", "to-core", 1_234)]))
    assert (edge.source, edge.target) == (Place("edge", "blue"), Place("core", "yellow"))
    assert (edge.backlog, edge.rate, edge.queue) == (1_234, 12, "to-core")
    assert one(core).backlog == -1, "the router with that queue was not asked"
    assert edge.as_json()["from"] == {"routerName": "edge", "msgVpnName": "blue"}


def test_a_bridge_that_never_was_up() -> None:
    """Its remote is known by its address: the first that it would try."""
    remotes = [
        bridge("b")["remotes"][0] | {"up": False, "connectOrder": 2},
        {
            "remoteMsgVpnName": "green",
            "remoteMsgVpnLocation": "h:1",
            "connectOrder": 1,
            "enabled": True,
            "up": False,
        },
    ]
    row = bridge("b", remoteRouterName="", remoteMsgVpnName="", remotes=remotes, health="down")
    edge = one(RouterView("core", "u", bridges=[row]))
    assert str(edge.source) == "at h:1/green"
    none = bridge("b", remoteRouterName="", remoteMsgVpnName="", remotes=[])
    assert str(one(RouterView("core", "u", bridges=[none])).source) == "at ?/?"


def test_a_parking_lot() -> None:
    """Messages that wait here are counted apart."""
    row = bridge("b", localQueueName="#parking")
    edge = one(RouterView("core", "u", bridges=[row], queues=[queue("yellow", "#parking", 3)]))
    assert edge.parked == 3


def test_a_half_that_only_sends() -> None:
    """It brings nothing here; the router at the other end tells of it."""
    row = bridge("b", inboundState="not-applicable", outboundState="ready")
    assert edges_of([RouterView("core", "u", bridges=[row])]) == []

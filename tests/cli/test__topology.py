"""Bridges as directions between message VPNs."""

import io
import json
import socket
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.cli._topology import Edge, Place, RouterView, draw, edges_of


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


VPN = {"msgVpnName": "blue", "msgVpnConnections": 1, "subscriptionCount": 2, "state": "up"}


def drawn(*routers: RouterView) -> list[str]:
    """The lines."""
    file = io.StringIO()
    draw(file, routers)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_both_ends() -> None:
    """A bridge is drawn where it brings messages and where it takes them from."""
    queues = [{"msgVpnName": "blue", "queueName": "to-core", "msgCount": 1_234}]
    edge = RouterView("edge", "http://e", [VPN], (), queues)
    core = RouterView(
        "core",
        "http://c",
        [VPN | {"msgVpnName": "yellow"}],
        [bridge("from-edge", outboundState="ready", rxMsgRate=1_200)],
    )
    what = (
        "bridge from-edge, ready-in-sync, both ways, 1,200 messages/s, queue to-core: 1,234 waiting"
    )
    assert drawn(edge, core) == [
        "router edge at http://e",
        "└── blue  1 client, 2 subscriptions",
        f"    └── ──► core/yellow  {what}",
        "router core at http://c",
        "└── yellow  1 client, 2 subscriptions",
        f"    └── ◄── edge/blue  {what}",
    ]


def test_broken() -> None:
    """What is down has a broken arrow and says why; a router that does not answer too."""
    row = bridge(
        "from-edge",
        health="down",
        inboundState="not-ready-connecting",
        outboundState="not-applicable",
        inboundFailureReason="refused",
        rxMsgRate=0,
    )
    core = RouterView("core", "http://c", [VPN | {"msgVpnName": "yellow", "state": "down"}], [row])
    away = RouterView("http://x", "http://x", failure="cannot connect")
    lines = drawn(core, away)
    assert "0 subscriptions" not in lines[1]
    assert lines[1].endswith(", down")
    assert (
        "◄╌╌ edge/blue  bridge from-edge, not-ready-connecting, queue to-core, refused" in lines[2]
    )
    assert lines[3:] == ["router http://x", "└── cannot connect"]


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


def test_one_of_two_does_not_answer(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
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

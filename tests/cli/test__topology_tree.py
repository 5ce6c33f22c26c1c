"""The topology, drawn."""

import io
from typing import Any

from vpnrouter.cli._topology import RouterView, draw

VPN = {"msgVpnName": "blue", "msgVpnConnections": 1, "subscriptionCount": 2, "state": "up"}


def bridge(**changes: Any) -> dict[str, Any]:
    """A bridge of core/yellow that receives from edge/blue."""
    row = {
        "bridgeName": "from-edge",
        "msgVpnName": "yellow",
        "health": "up",
        "inboundState": "ready-in-sync",
        "outboundState": "ready",
        "inboundFailureReason": "",
        "remoteRouterName": "edge",
        "remoteMsgVpnName": "blue",
        "localQueueName": "",
        "rxMsgRate": 1_200,
        "dataRxMsgCount": 34,
        "remotes": [
            {
                "remoteMsgVpnName": "blue",
                "remoteMsgVpnLocation": "h:1",
                "connectOrder": 1,
                "enabled": True,
                "up": True,
                "queueBinding": "to-core",
            }
        ],
    }
    return row | changes


def drawn(*routers: RouterView) -> list[str]:
    """The lines."""
    file = io.StringIO()
    draw(file, routers)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_both_ends() -> None:
    """A bridge is drawn where it brings messages and where it takes them from."""
    queues = [{"msgVpnName": "blue", "queueName": "to-core", "msgCount": 1_234}]
    edge = RouterView("edge", "http://e", [VPN], (), queues)
    core = RouterView("core", "http://c", [VPN | {"msgVpnName": "yellow"}], [bridge()])
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

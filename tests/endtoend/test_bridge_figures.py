"""What is to be seen of each bridge, by metrics, by API and in the TUI alike: depth, drops, rate, lag, address."""

from typing import Any

import httpx
import yaml

from vpnrouter.tui.screens.bridges import _entry

SIZE = 100_000
"""Bytes of a message: ten fill the queue."""

EDGE = {
    "listeners": [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
        {"protocol": "link", "bind": "127.0.0.1:0"},
        {"protocol": "http", "bind": "127.0.0.1:0"},
    ],
    "msg_vpns": {
        "blue": {
            "authentication": {"basic": {"enabled": False}},
            "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
            "queues": {"to-core": {"subscriptions": ["orders/1"], "permission": "consume"}},
        }
    },
}


def core(port: int) -> dict[str, Any]:
    """VPN yellow whose queue holds a megabyte, and whose bridge brings orders and the weather."""
    bridge = {
        "remote_connection": {"retry_delay": 0},
        "remote_authentication": {"basic": {"client_username": "x"}},
        "remote_msg_vpns": [
            {"name": "blue", "location": f"127.0.0.1:{port}", "queue_binding": "to-core"}
        ],
        "remote_subscriptions": ["weather/>"],
    }
    return {
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "yellow"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {
            "yellow": {
                "authentication": {"basic": {"enabled": False}},
                "queues": {"orders": {"subscriptions": ["orders/>"], "max_msg_spool_usage": 1}},
                "bridges": {"from-blue": bridge},
            }
        },
    }


def metric(router: Any, bridge: str, name: str, *labels: str) -> float:
    """A sample of a bridge; -1 for none."""
    page = httpx.get(f"http://127.0.0.1:{router.port('http')}/metrics", trust_env=False).text
    for line in page.splitlines():
        if line.startswith(f"vpnrouter_bridge_{name}{{") and all(
            part in line for part in (f'bridge="{bridge}"', *labels)
        ):
            return float(line.rpartition(" ")[2])
    return -1.0


def test_what_is_seen_of_a_bridge(start: Any, paho: Any, patiently: Any) -> None:
    """While it is stalled and messages that nobody wants come over it."""
    edge = start(yaml.safe_dump(EDGE), "edge")
    near = start(yaml.safe_dump(core(edge.port("link"))), "core")
    near.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    publisher = paho(edge.port("mqtt"), "p")
    for _ in range(20):
        publisher.client.publish("orders/1", bytes(SIZE), qos=1).wait_for_publish(60)
    # Rates: nobody wants the weather there, and it comes.
    row: dict[str, Any] = {}

    def seen() -> bool:
        for number in range(20):
            publisher.publish(f"weather/{number}", b"x")
        row.update(near.bridge("from-blue"))
        return bool(
            row["inboundState"] == "stalled"
            and row["rxMsgRate"] > 0
            and row["discardedRx"].get("no-subscription-match", 0) > 20
        )

    patiently(seen, "a stalled bridge with rates and drops")
    address = f"127.0.0.1:{edge.port('link')}"
    assert row["remoteAddress"] == address
    assert row["dataRxMsgCount"] > 0
    assert metric(near, "from-blue", "info", f'remote_address="{address}"') == 1
    reason = 'reason="no-subscription-match"'
    dropped = metric(near, "from-blue", "rx_discarded_messages_total", reason)
    assert dropped >= row["discardedRx"]["no-subscription-match"]
    first = metric(near, "from-blue", "messages_total", 'direction="rx"')
    assert first >= row["dataRxMsgCount"]
    # The messages wait where the bridge takes them from: that router knows how many and how long.
    peer = "#bridge/core/yellow/from-blue"
    patiently(lambda: edge.bridge(peer)["backlogOldestMsgAgeMs"] > 100, "the backlog gets older")
    other = edge.bridge(peer)
    assert 0 < other["backlogMsgCount"] <= 20
    assert other["remoteAddress"] == "127.0.0.1"
    assert metric(edge, peer, "backlog_messages") == other["backlogMsgCount"]
    assert metric(edge, peer, "backlog_oldest_message_age_seconds") >= 0.1
    # The TUI's row is made of the same answer.
    cells = [text for text, _ in _entry(0, row).cells]
    assert cells[:3] == ["from-blue", "yellow", "stalled"]
    assert "core" not in cells[3]
    assert "edge" in cells[3]
    assert cells[4] not in {"-", "0"}

"""What a change would cost."""

from typing import Any

import pytest

from vpnrouter.config.effects import Change, describe
from vpnrouter.plan.risks import Risk, RouterState, effect_name, risks_of
from vpnrouter.settings.schema import Effect

STANDING = RouterState(
    msg_vpns=[{"msgVpnName": "blue", "msgVpnConnections": 3}],
    bridges=[
        {"msgVpnName": "blue", "bridgeName": "up", "health": "up"},
        {"msgVpnName": "blue", "bridgeName": "down", "health": "down"},
        {"msgVpnName": "blue", "bridgeName": "stalls", "health": "stalled"},
    ],
    connectors=[
        {
            "msgVpnName": "blue",
            "connectorName": name,
            "state": state,
            "links": [
                {"linkName": "t", "sourceType": "topic", "waitingMsgCount": 5, "parkedMsgCount": 1},
                {"linkName": "q", "sourceType": "queue", "waitingMsgCount": 7, "parkedMsgCount": 0},
                {
                    "linkName": "a",
                    "sourceType": "address",
                    "waitingMsgCount": 9,
                    "parkedMsgCount": 0,
                },
            ],
        }
        for name, state in (("erp", "up"), ("gone", "waiting"))
    ],
    queues=[
        {"msgVpnName": "blue", "queueName": "full", "msgCount": 1200},
        {"msgVpnName": "blue", "queueName": "empty", "msgCount": 0},
        {"msgVpnName": "green", "queueName": "full", "msgCount": 7},
    ],
)


def _told(path: list[str], effect: Effect) -> list[Risk]:
    return risks_of([{"path": path, "text": "", "effect": effect_name(effect)}], STANDING)


@pytest.mark.parametrize(
    ("path", "effect", "expected"),
    [
        (["queues", "full"], Effect.REMOVED, [Risk("loses", "1,200 messages in blue/full")]),
        (["queues", "empty"], Effect.REMOVED, []),
        (["bridges", "up"], Effect.REMOVED, [Risk("flaps", "bridge blue/up is up and goes")]),
        (["bridges", "down"], Effect.REMOVED, []),
        (
            ["bridges", "up", "remote_connection", "heartbeat_interval"],
            Effect.RECONNECT,
            [Risk("flaps", "bridge blue/up reconnects")],
        ),
        (
            ["bridges", "up", "remote_msg_vpns", "[a b]", "tls_enabled"],
            Effect.RECONNECT_IF_USED,
            [Risk("flaps", "bridge blue/up reconnects if it uses this remote")],
        ),
        (
            ["bridges", "stalls", "remote_msg_vpns", "[a b]"],
            Effect.REMOVED,
            [Risk("flaps", "bridge blue/stalls reconnects if it uses this remote")],
        ),
        (["bridges", "down", "remote_msg_vpns", "[a b]"], Effect.REMOVED, []),
        (["bridges", "down", "x"], Effect.RECONNECT, []),
        (
            ["bridging", "tls_server_cert", "ca"],
            Effect.RECONNECT,
            [Risk("flaps", "the TLS bridges and the connectors of message VPN blue reconnect")],
        ),
        (
            ["connectors", "erp", "provider", "url"],
            Effect.RECONNECT,
            [Risk("flaps", "connector blue/erp reconnects")],
        ),
        (["connectors", "gone", "provider", "url"], Effect.RECONNECT, []),
        (
            ["connectors", "erp"],
            Effect.REMOVED,
            [
                Risk("loses", "6 messages kept for connector blue/erp"),
                Risk(
                    "flaps", "connector blue/erp is up and goes, with its session at the provider"
                ),
            ],
        ),
        (
            ["connectors", "gone"],
            Effect.REMOVED,
            [Risk("loses", "6 messages kept for connector blue/gone")],
        ),
        (
            ["connectors", "erp", "links", "t"],
            Effect.REMOVED,
            [
                Risk("loses", "6 messages kept for link t of connector blue/erp"),
                Risk("flaps", "connector blue/erp reconnects"),
            ],
        ),
        (["connectors", "gone", "links", "q"], Effect.REMOVED, []),
        (["enabled"], Effect.DISCONNECT, [Risk("disconnects", "3 clients of message VPN blue")]),
        (
            ["client_usernames", "ann", "enabled"],
            Effect.DISCONNECT,
            [Risk("disconnects", "whoever is logged in to blue as ann")],
        ),
        (
            ["client_usernames", "ann"],
            Effect.REMOVED,
            [Risk("disconnects", "whoever is logged in to blue as ann")],
        ),
        (["queues", "full"], Effect.IN_PLACE, []),
        (["queues", "new"], Effect.ADDED, []),
    ],
)
def test_what_a_change_costs(path: list[str], effect: Effect, expected: list[Risk]) -> None:
    """Only what is there can be lost, and only what is up can flap."""
    assert _told(["msg_vpns", "blue", *path], effect) == expected


def test_a_message_vpn_takes_all_with_it() -> None:
    """Its clients and what is in its queues."""
    assert _told(["msg_vpns", "blue"], Effect.REMOVED) == [
        Risk("disconnects", "3 clients of message VPN blue"),
        Risk("loses", "1,200 messages in the queues of message VPN blue"),
    ]


def test_listeners() -> None:
    """Bound anew, or gone."""
    where = "[mqtt 127.0.0.1:1883]"
    assert _told(["listeners", where, "enabled"], Effect.REBIND) == [
        Risk("flaps", f"listener {where} is bound anew")
    ]
    assert _told(["listeners", where], Effect.REMOVED) == [
        Risk("flaps", f"listener {where} takes no more connections")
    ]


def test_each_risk_is_told_once() -> None:
    """Several changes of a bridge make it reconnect once."""
    changes = [
        {
            "path": ["msg_vpns", "blue", "bridges", "up", key],
            "effect": effect_name(Effect.RECONNECT),
        }
        for key in ("a", "b")
    ]
    assert risks_of(changes, STANDING) == [Risk("flaps", "bridge blue/up reconnects")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            ["bridges", "up", "paused"],
            "bridge blue/up: guaranteed messages wait in the remote queue, Direct ones are not asked for",
        ),
        (
            ["connectors", "erp", "paused"],
            "connector blue/erp: nothing crosses, and guaranteed messages are kept",
        ),
        (
            ["connectors", "erp", "links", "t", "paused"],
            "link t of connector blue/erp: nothing crosses, and guaranteed messages are kept",
        ),
    ],
)
@pytest.mark.parametrize("pauses", [True, False])
def test_paused(path: list[str], text: str, pauses: bool) -> None:
    """A pause costs what does not cross, and says where it is; the end of one costs nothing."""
    whole: Any = (*("msg_vpns", "blue"), *path)
    change = Change(whole, not pauses, pauses, Effect.IN_PLACE)
    row = {"path": list(whole), "text": describe(change), "effect": effect_name(Effect.IN_PLACE)}
    assert risks_of([row], STANDING) == ([Risk("pauses", text)] if pauses else [])

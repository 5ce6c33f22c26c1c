"""Every action of the API is told to the audit trail: who did what, and in which message VPN."""

import re
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from vpnrouter import limits
from vpnrouter.events.log import EventLog
from vpnrouter.management.application import ROUTERS
from vpnrouter.management.audit import Audit
from vpnrouter.management.collections import _operator

QUEUE = "/msgVpns/blue/queues/orders"
CLIENT = "/SEMP/v2/action/msgVpns/blue/clients/c1"
BRIDGE = "/SEMP/v2/action/msgVpns/blue/bridges/to-a,auto"
SESSIONS = "/msgVpns/blue/mqttSessions"

TOLD: dict[str, tuple[Any, str, str]] = {
    f"/SEMP/v2/action{QUEUE}/msgs/1/delete": (None, "blue", "deleted message 1 of queue orders"),
    f"/SEMP/v2/action{QUEUE}/startReplay": (None, "blue", "started a replay to queue orders"),
    f"/SEMP/v2/action{QUEUE}/cancelReplay": (None, "blue", "ended the replay to queue orders"),
    f"/SEMP/v2/action{QUEUE}/clearStats": (None, "blue", "cleared the counts of queue orders"),
    f"/vpnrouter/v1{QUEUE}/copyMsgs": (
        {"toQueueName": "dead", "msgIds": [2]},
        "blue",
        "copied 1 messages of queue orders to queue dead",
    ),
    f"/vpnrouter/v1{QUEUE}/moveMsgs": (
        {"toQueueName": "dead", "msgIds": [2, 3]},
        "blue",
        "moved 2 messages of queue orders to queue dead",
    ),
    f"/SEMP/v2/action{QUEUE}/deleteMsgs": (
        {"msgIds": [4]},
        "blue",
        "deleted 1 messages of queue orders",
    ),
    f"{CLIENT}/disconnect": (None, "blue", "disconnected client c1"),
    f"{CLIENT}/clearStats": (None, "blue", "cleared the counts of client c1"),
    f"{BRIDGE}/disconnect": (None, "blue", "dropped the connection of bridge to-a"),
    f"{BRIDGE}/clearStats": (None, "blue", "cleared the counts of bridge to-a"),
    f"{BRIDGE}/clearEvent": (
        {"eventName": "ttl-exceeded"},
        "blue",
        "cleared event ttl-exceeded of bridge to-a",
    ),
    f"/SEMP/v2/action{SESSIONS}/c2,auto/clearStats": (
        None,
        "blue",
        "cleared the counts of MQTT session c2",
    ),
    f"/vpnrouter/v1{SESSIONS}/c2,auto/delete": (None, "blue", "deleted MQTT session c2"),
    "/vpnrouter/v1/spool/backup": ({"directory": "/b"}, "", "backed up the spool to /b"),
}
"""Each action, by path: its body, and what is told."""


def operators() -> list[APIRoute]:
    """Every path that wants somebody who may change things and is no configuration."""
    found = [route for each in ROUTERS for route in each.routes if isinstance(route, APIRoute)]
    return [
        route
        for route in found
        if any(below.call is _operator for below in route.dependant.dependencies)
    ]


def test_no_action_is_left_out() -> None:
    """The table has one row for each of them, and nothing else changes something."""
    left = list(TOLD)
    for route in operators():
        fits = [path for path in left if route.path_regex.fullmatch(path)]
        assert len(fits) == 1, (route.path, fits)
        left.remove(fits[0])
    assert left == []
    others = {
        route.path
        for each in ROUTERS
        for route in each.routes
        if isinstance(route, APIRoute) and route.methods - {"GET", "HEAD"}
    } - {route.path for route in operators()}
    assert all(re.match(r"/(SEMP/v2|vpnrouter/v1)/config(/|$)", path) for path in others), others


@pytest.mark.parametrize("name", ["ann", ""])
async def test_actions_are_told(standing: Any, still: Any, name: str) -> None:
    """Once each, when it is done; what is refused is not told as done."""
    users = {name: {"password": "pw", "role": "admin"}} if name else {}
    app = standing.application(still, users)
    log = still.context.log
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    auth = (name, "pw") if name else None
    still.leave("c2")
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost:1", auth=auth, trust_env=False
    ) as client:
        for number, (path, (body, msg_vpn, what)) in enumerate(TOLD.items()):
            answer = await client.put(path, json=body)
            assert answer.status_code == 200, (path, answer.text)
            [told] = log.after(number, 9)
            user = f"user {name}" if name else "somebody on this machine"
            assert (told.name, told.text, told.msg_vpn) == (name, f"{user}: {what}", msg_vpn), path
        still.queues.refusal = "full"
        for path in (
            f"/SEMP/v2/action{QUEUE}/msgs/1/delete",
            f"/SEMP/v2/action{QUEUE}/cancelReplay",
            f"/SEMP/v2/action{QUEUE}/startReplay",
            f"/vpnrouter/v1{SESSIONS}/c2,auto/delete",
            f"{BRIDGE}/clearEvent",
        ):
            assert (await client.put(path)).status_code == 400, path
        assert log.last_event_id == len(TOLD)


def test_brute_force_does_not_fill_the_log() -> None:
    """A few denials a second are events, the others are counted with the next one."""
    log = EventLog("here", lambda: 7)
    audit = Audit(log)
    for _ in range(1_000):
        audit.denied("192.0.2.1", "wrong")
    found = log.newest(2_000)
    assert limits.EVENT_DENIALS <= len(found) <= 3 * limits.EVENT_DENIALS
    assert found[0].text == "login from 192.0.2.1 failed: wrong"

"""Actions of operators: done once, told to the audit trail, and done for nobody who may not."""

import re
from typing import Any, Final

import pytest
from fastapi.routing import APIRoute
from management_routers import WITHIN

from vpnrouter import limits
from vpnrouter.config.connector import Connector
from vpnrouter.events.log import EventLog
from vpnrouter.management.application import ROUTERS
from vpnrouter.management.audit import Audit
from vpnrouter.management.collections import _operator
from vpnrouter.management.metrics.source import OBJECTS
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.settings.kinds import CONNECTOR_LINK, SWITCHES
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.reason import ADMINISTRATIVE_ACTION

QUEUE = "/msgVpns/blue/queues/orders"
CLIENT = "/SEMP/v2/action/msgVpns/blue/clients"
BRIDGE = "/SEMP/v2/action/msgVpns/blue/bridges/to-a,auto"
SESSIONS = "/msgVpns/blue/mqttSessions"
MONITOR = "/SEMP/v2/monitor/msgVpns/blue"
USERS = {
    "rob": {"password": "right"},
    "eve": {"password": "right", "role": "admin", "msg_vpns": ["empty"]},
}

ACTIONS: dict[str, tuple[Any, str, str]] = {
    f"/SEMP/v2/action{QUEUE}/msgs/1/delete": (None, "blue", "deleted message 1 of queue orders"),
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
    f"/SEMP/v2/action{QUEUE}/startReplay": (None, "blue", "started a replay to queue orders"),
    f"/SEMP/v2/action{QUEUE}/cancelReplay": (None, "blue", "ended the replay to queue orders"),
    f"/SEMP/v2/action{QUEUE}/clearStats": (None, "blue", "cleared the counts of queue orders"),
    f"{CLIENT}/c1/clearStats": (None, "blue", "cleared the counts of client c1"),
    f"{CLIENT}/c1/disconnect": (None, "blue", "disconnected client c1"),
    f"{BRIDGE}/clearStats": (None, "blue", "cleared the counts of bridge to-a"),
    f"{BRIDGE}/clearEvent": (
        {"eventName": "ttl-exceeded"},
        "blue",
        "cleared event ttl-exceeded of bridge to-a",
    ),
    f"{BRIDGE}/disconnect": (None, "blue", "dropped the connection of bridge to-a"),
    "/vpnrouter/v1/msgVpns/blue/connectors/there/reconnect": (
        None,
        "blue",
        "reconnected connector there",
    ),
    "/vpnrouter/v1/msgVpns/blue/connectors/there/links/in/reconnect": (
        None,
        "blue",
        "reconnected connector link there/in",
    ),
    f"/SEMP/v2/action{SESSIONS}/c2,auto/clearStats": (
        None,
        "blue",
        "cleared the counts of MQTT session c2",
    ),
    f"/vpnrouter/v1{SESSIONS}/c2,auto/delete": (None, "blue", "deleted MQTT session c2"),
    "/vpnrouter/v1/spool/backup": ({"directory": "DIRECTORY"}, "", "backed up the spool to "),
}
"""Each action, by path: its body, and what is told."""

SWITCHED: Final = [
    f"/vpnrouter/v1/msgVpns/blue/{path}/{action.name}"
    for path in ("bridges/to-a,auto", "connectors/there", "connectors/there/links/in")
    for action in SWITCHES
]
"""Those that change the configuration (test_kind_actions.py)."""


@pytest.fixture(autouse=True)
def connector(here: Any) -> ConnectorRunner:
    """A connector of message VPN blue, which nobody dials."""
    nobody: Any = None
    links = {"in": {"source": {"address": "in/#"}}, "out": {"source": {"topic": "out/>"}}}
    configured = Connector.model_validate({"provider": {"url": "mqtt://h"}, "links": links})
    certificates = here.config.msg_vpns["blue"].bridging.tls_server_cert
    made = ConnectorRunner(here.router, nobody, "blue", "there", configured, certificates)
    here.have_connectors(made)
    return made


async def test_connectors(here: Any) -> None:
    """A connector is shown with its links, by its own path and among all."""
    async with here.api() as client:
        one = (await client.get(f"{MONITOR}/connectors/there")).json()
        assert one["data"]["state"] == "disabled"
        links = (await client.get(one["links"]["linksUri"])).json()["data"]
        names = [(link["linkName"], link["direction"], link["source"]) for link in links]
        assert names == [("in", "in", "in/#"), ("out", "out", "out/>")]
        (row,) = (await client.get("/vpnrouter/v1/connectors")).json()["data"]
        assert row == {**one["data"], "links": links}
        assert (await client.get(f"{MONITOR}/connectors/x")).status_code == 400


RATES: Final = ("RxMsgRate", "RxByteRate", "TxMsgRate", "TxByteRate")
CARRIED: Final = {"messages": 1, "bytes_": 10, "delivered": 2}
"""How much each count of a link grows for one more message in a sample."""


@pytest.mark.parametrize(
    ("grown", "current", "average", "out"),
    [
        pytest.param([], (0, 0, 0, 0), (0, 0, 0, 0), 0, id="no sample"),
        pytest.param([(5, 5)], (0, 0, 0, 0), (0, 0, 0, 0), 0, id="nothing to compare with"),
        pytest.param([(0, 0), (4, 0)], (4, 40, 0, 0), (4, 40, 0, 0), 0, id="in"),
        pytest.param([(0, 0), (0, 4)], (0, 0, 8, 40), (0, 0, 8, 40), 4, id="out"),
        pytest.param([(0, 0), (4, 2), (2, 0)], (2, 20, 0, 0), (3, 30, 2, 10), 0, id="average"),
        pytest.param([(0, 0), (9, 9), (-9, 9)], (0, 0, 0, 0), (0, 0, 0, 0), 9, id="anew"),
    ],
)
async def test_rates_of_connectors(
    here: Any, connector: Any, grown: Any, current: Any, average: Any, out: int
) -> None:
    """What a connector and each of its links carry, a second, from samples that are two seconds apart."""
    for at, pair in enumerate(grown):
        for link, count in zip(connector.links.values(), pair, strict=True):
            for name, each in CARRIED.items():
                setattr(link.counters, name, getattr(link.counters, name) + 2 * count * each)
        connector.sample(2 * at * SECOND_NS)
    async with here.api() as client:
        (row,) = (await client.get("/vpnrouter/v1/connectors")).json()["data"]
    assert tuple(row[f"{name[0].lower()}{name[1:]}"] for name in RATES) == current
    assert tuple(row[f"average{name}"] for name in RATES) == average
    inward, outward = row["links"]
    assert (inward["msgRate"], inward["byteRate"]) == current[:2]
    assert (inward["averageMsgRate"], inward["averageByteRate"]) == average[:2]
    # The connector begins anew with any of its counts, and a link with its own.
    assert (outward["msgRate"], outward["byteRate"]) == (out, 10 * out)


COUNTED: Final = {
    "messages": "msg_count",
    "bytes_": "byte_count",
    "delivered": "delivered_msg_count",
    "duplicates": "duplicate_msg_count",
    "returned": "returned_msg_count",
    "refused": "refused_msg_count",
    "dead_letters": "dead_letter_msg_count",
}
"""Counts of a link, and the attributes that show them."""


@pytest.mark.parametrize("name", COUNTED)
def test_metrics_of_links(here: Any, connector: Any, name: str) -> None:
    """Each count of a link is shown as itself, with its name, direction and state; to those alone who see its VPN."""
    counters = connector.links["out"].counters
    for number, each in enumerate(COUNTED):
        setattr(counters, each, 100 + number)
    counters.discarded.add("loop-detected", 7)
    inward, outward = here.context.figures.rows(CONNECTOR_LINK, lambda vpn: vpn == "blue")
    found = [
        dict(zip(OBJECTS[CONNECTOR_LINK].names, row, strict=True)) for row in (inward, outward)
    ]
    assert inward[:5] == ("blue", "there", "in", "rx", "down")
    assert outward[:5] == ("blue", "there", "out", "tx", "down")
    assert found[1][COUNTED[name]] == getattr(counters, name) > 0
    assert found[0][COUNTED[name]] == 0
    assert [row["discards"] for row in found] == [{}, {"loop-detected": 7}]
    assert list(here.context.figures.rows(CONNECTOR_LINK, lambda vpn: vpn != "blue")) == []


each_action = pytest.mark.parametrize("path", [*ACTIONS, *SWITCHED])


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
    left = [*ACTIONS, *SWITCHED]
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
async def test_actions_are_told(here: Any, stored: Any, name: str) -> None:
    """Each action is told once, when it is done; what is refused is not told as done."""
    users = {name: {"password": "pw", "role": "admin"}} if name else {}
    here.clients["c2"].lose()
    user = f"user {name}" if name else "somebody on this machine"
    async with here.api(users, auth=(name, "pw") if name else None) as client:
        for path, (body, msg_vpn, what) in ACTIONS.items():
            seen = here.log.last_event_id
            if body == {"directory": "DIRECTORY"}:
                body = {"directory": str(stored / "copy")}  # noqa: PLW2901 - where this test may write
            answer = await client.put(path, json=body)
            assert answer.status_code == 200, (path, answer.text)
            told = [one for one in here.log.after(seen, 9) if one.text.startswith(user)]
            assert [(one.name, one.msg_vpn) for one in told] == [(name, msg_vpn)], path
            assert told[0].text.startswith(f"{user}: {what}")
        seen = here.log.last_event_id
        for path in (
            f"/SEMP/v2/action{QUEUE}/msgs/1/delete",
            f"/SEMP/v2/action{QUEUE}/cancelReplay",
            f"/SEMP/v2/action{QUEUE}/startReplay?x=1",
            f"/vpnrouter/v1{SESSIONS}/c2,auto/delete",
            f"{CLIENT}/c1/disconnect",
            f"{BRIDGE}/disconnect",
            f"{BRIDGE}/clearEvent",
        ):
            body = {"replayLogName": "none"} if "startReplay" in path else None
            assert (await client.put(path.partition("?")[0], json=body)).status_code == 400, path
    assert here.log.last_event_id == seen


@each_action
async def test_who_may_not_changes_nothing(here: Any, stored: Any, path: str) -> None:
    """Nothing is done for a viewer, for whom the message VPN is hidden, by POST, or for a body with more in it."""
    body = ACTIONS[path][0] if path in ACTIONS else None
    here.clients["c2"].lose()
    seen = here.log.last_event_id
    hidden = ("NOT_FOUND", "UNAUTHORIZED")["spool" in path]
    for user, status, word in (("rob", 403, "UNAUTHORIZED"), ("eve", 400, hidden)):
        async with here.api(USERS, auth=(user, "right")) as client:
            answer = await client.put(path, json=body)
        assert answer.status_code == (403 if word == "UNAUTHORIZED" else status), answer.text
        assert answer.json()["meta"]["error"]["status"] == word
    async with here.api() as client:
        assert (await client.post(path, json=body)).status_code == 405
        answer = await client.put(path, json={"more": 1})
        assert (answer.status_code, answer.json()["meta"]["error"]["code"]) == (400, 11)
    assert here.log.last_event_id == seen
    assert len(here.ids("blue", "orders")) == 25
    assert "c2" in here.router.vpns["blue"].clients
    assert not here.clients["c1"].closed
    assert here.up("blue", "to-a")
    assert list(stored.iterdir()) == [stored / "spool"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"/SEMP/v2/action{QUEUE}/deleteMsgs", None),
        (f"/SEMP/v2/action{QUEUE}/msgs/1/delete", None),
        (f"/vpnrouter/v1{QUEUE}/copyMsgs", {"toQueueName": "dead"}),
        (f"/vpnrouter/v1{QUEUE}/moveMsgs", {"toQueueName": "dead"}),
        (f"/SEMP/v2/action{QUEUE}/startReplay", None),
        (f"/vpnrouter/v1{SESSIONS}/c2,auto/delete", None),
    ],
)
async def test_a_store_that_fails(here: Any, path: str, body: Any) -> None:
    """What the store says is passed on, and it is not the caller's fault."""
    here.clients["c2"].lose()
    here.node.store.close()
    with WITHIN():
        async with here.api() as client:
            answer = await client.put(path, json=body)
    assert answer.status_code == 503
    assert answer.json()["meta"]["error"]["description"] == "the spool is closed"


async def test_a_client_is_disconnected(here: Any) -> None:
    """The client is told why; one that is away, or is not there, cannot be disconnected."""
    async with here.api() as client:
        assert (await client.put(f"{CLIENT}/c%2F3%2Cx/disconnect")).status_code == 200
        assert here.clients["c/3,x"].reason() == ADMINISTRATIVE_ACTION
        here.clients["c1"].lose()
        error = (await client.put(f"{CLIENT}/c1/disconnect")).json()["meta"]["error"]
        assert (error["status"], error["description"]) == (
            "NOT_ALLOWED",
            "client c1 is not connected",
        )
        assert (await client.put(f"{CLIENT}/none/disconnect")).status_code == 400


async def test_counts_begin_anew(here: Any) -> None:
    """Counts of a client, a session, a queue and a bridge are 0 after clearStats."""
    here.clients["c1"].publish("nobody")
    async with here.api() as client:
        for path, names in (
            ("clients/c1", ("rxMsgCount", "rxByteCount")),
            ("queues/orders", ("spooledMsgCount", "spooledByteCount")),
            ("bridges/to-a,auto", ("loginTxMsgCount", "txByteCount")),
        ):
            before = (await client.get(f"{MONITOR}/{path}")).json()["data"]
            assert all(before[name] for name in names), before
            await client.put(f"/SEMP/v2/action/msgVpns/blue/{path}/clearStats")
            after = (await client.get(f"{MONITOR}/{path}")).json()["data"]
            assert not any(after[name] for name in names)
        here.clients["c/3,x"].publish("nobody")
        await client.put(f"/SEMP/v2/action{SESSIONS}/c%2F3,x,auto/clearStats")
        row = (await client.get(f"{MONITOR}/clients/c%2F3%2Cx")).json()["data"]
    assert (row["rxMsgCount"], row["discarded"]) == (0, {})


async def test_a_bridge_is_disconnected(here: Any) -> None:
    """The bridge of the path loses its connection, and no other one; one that is down has none to lose."""
    async with here.api() as client:
        assert (await client.put(f"{BRIDGE}/disconnect")).status_code == 200
        assert (here.up("blue", "to-a"), here.up("blue", "to-b")) == (False, True)
        odd = "/SEMP/v2/action/msgVpns/a%2Fb/bridges/x%2Cy%5Bz%5D,auto"
        error = (await client.put(f"{odd}/disconnect")).json()["meta"]["error"]
        assert (error["status"], error["description"]) == (
            "NOT_ALLOWED",
            "bridge x,y[z] is not connected",
        )
        for event in ("other", 7):
            answer = await client.put(f"{BRIDGE}/clearEvent", json={"eventName": event})
            assert answer.status_code == 400


async def test_a_session_is_deleted(here: Any) -> None:
    """The session of a client that is away is deleted, that of one who is there is not."""
    here.clients["c1"].lose()
    ours = f"/vpnrouter/v1{SESSIONS}"
    async with here.api() as client:
        assert (await client.put(f"{ours}/c1,auto/delete")).status_code == 200
        for name, status in (("c1", "NOT_FOUND"), ("c2", "NOT_ALLOWED")):
            answer = await client.put(f"{ours}/{name},auto/delete")
            assert answer.json()["meta"]["error"]["status"] == status
    assert "c1" not in here.router.vpns["blue"].clients
    assert "c2" in here.router.vpns["blue"].clients


def test_brute_force_does_not_fill_the_log() -> None:
    """A few denials a second are events, the others are counted with the next one."""
    log = EventLog("here", lambda: 7)
    audit = Audit(log)
    for _ in range(1_000):
        audit.denied("192.0.2.1", "wrong")
    found = log.newest(2_000)
    assert limits.EVENT_DENIALS <= len(found) <= 3 * limits.EVENT_DENIALS
    assert found[0].text == "login from 192.0.2.1 failed: wrong"

"""vpnrouter.core.guaranteed.endpoint: what is recorded of a traced guaranteed message, and of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import NEVER
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, REJECTED, RELEASED
from vpnrouter.core.tracing import TraceSettings
from vpnrouter.testing.memory import rows_of
from vpnrouter.trace.events import FIRST_WITHOUT_MESSAGE, MODE_NAMES

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.testing.memory import Row

TRACE = 4711


@pytest.fixture
def publish(world: SpoolWorld, spool_kit: Any) -> Any:
    """Publishes a traced message; one that is not goes before it."""

    def run(topic: str, persistent: bool = True, **fields: Any) -> None:
        for number in (0, TRACE):
            message = spool_kit.guaranteed(topic)
            message.persistent = persistent
            message.trace_low = number
            message.message_id = number
            for name, value in fields.items():
                setattr(message, name, value)
            if persistent:
                world.give(message)
            else:
                world.vpn.publish(message)
        world.commit()

    return run


def rows(world: SpoolWorld) -> list[Row]:
    """What was recorded of messages since the last call."""
    found = rows_of(world.context.recorder)
    return [row for row in found if row.context.event < FIRST_WITHOUT_MESSAGE]


@pytest.fixture
def events(world: SpoolWorld) -> Any:
    """What was recorded of messages since the last call: (event, endpoint, client, reason)."""

    def run() -> list[tuple[str, str, str, str]]:
        found = []
        for row in rows(world):
            assert (row.trace, row.message_id) == (TRACE, TRACE)
            context = row.context
            found.append((row.event, context.endpoint, context.client, context.reason))
            # A client with QoS 0 gets a Direct message, whatever it came as.
            assert (MODE_NAMES[context.mode] == "direct") == (row.event == "deliver")
        return found

    return run


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (ACCEPTED, [("acknowledge", "q", "c", "")]),
        (REJECTED, [("reject", "q", "c", "rejected"), ("discard", "q", "", "rejected")]),
        (FAILED, []),
        (RELEASED, []),
    ],
)
def test_what_a_consumer_says(
    world: SpoolWorld, publish: Any, events: Any, outcome: int, wanted: list[Any]
) -> None:
    """Taken, or refused and so discarded; what comes back is told when it is delivered again (flow.py)."""
    queue = world.endpoint("q", "a")
    flow = world.bind(queue)
    publish("a")
    assert events() == [("enqueue", "q", "", "")]
    flow.settle_all(outcome)
    assert events() == wanted


def test_dead_letters(world: SpoolWorld, publish: Any, events: Any) -> None:
    """One refused by its consumer goes to the dead message queue, where it is new."""
    world.endpoint("dead")
    flow = world.bind(world.endpoint("q", "a", dead_msg_queue="dead"))
    publish("a")
    events()
    flow.settle_all(REJECTED)
    assert sorted(events()) == [
        ("dead_letter", "q", "", "rejected"),
        ("enqueue", "dead", "", ""),
        ("reject", "q", "c", "rejected"),
    ]


def test_expiry(world: SpoolWorld, publish: Any, events: Any) -> None:
    """It outlives its time, and is given up."""
    world.endpoint("q", "a", respect_ttl_enabled=True, max_ttl=2)
    publish("a")
    events()
    world.advance(3)
    reason = "max-ttl-expired"
    assert events() == [("expire", "q", "", reason), ("discard", "q", "", reason)]


def test_refusal(world: SpoolWorld, publish: Any, events: Any) -> None:
    """Nobody keeps it, and its publisher is told."""
    world.endpoint("q", "a", max_spooled_msg_count=0, max_msg_size=1)
    publish("a", payload=b"xx")
    ((event, endpoint, _, reason),) = events()
    assert (event, endpoint) == ("reject", "q")
    assert reason


def test_demotion(world: SpoolWorld, spool_kit: Any, publish: Any, events: Any) -> None:
    """A client with QoS 0 gets a Direct message of it."""
    spool_kit.Listener(world.vpn, "l").subscribe("a")
    publish("a")
    assert [row[0] for row in events()] == ["deliver", "demote"]


def test_promotion(world: SpoolWorld, publish: Any, events: Any) -> None:
    """A queue keeps a Direct message."""
    world.endpoint("q", "a")
    publish("a", persistent=False)
    assert events() == [("promote", "q", "", ""), ("enqueue", "q", "", "")]


def test_it_is_traced_after_a_restart(world: SpoolWorld, publish: Any, events: Any) -> None:
    """The decision is kept with the message."""
    world.endpoint("q", "a")
    publish("a")
    world.restart()
    events()
    flow = world.bind(world.endpoints[0])
    world.commit()
    flow.settle_all()
    assert events() == [("acknowledge", "q", "c", "")]


# -- partitions, and what is not traced ----------------------------------------------------------


def test_partitions_are_named(world: SpoolWorld, publish: Any, spool_kit: Any) -> None:
    """Rows of a partitioned queue say in which partition the message is, all of a message the same."""
    queue = world.endpoint("q", "a", exclusive=False, partition_count=4)
    world.endpoint("plain", "a")
    flow = world.bind(queue)
    for key in "abcdefgh":
        lane = spool_kit.guaranteed("a", JMSXGroupID=key)
        publish("a", block=lane.block)
    flow.settle_all()
    by_queue: dict[str, set[int]] = {"q": set(), "plain": set()}
    for row in rows(world):
        assert row.event in ("enqueue", "acknowledge")
        by_queue[row.context.endpoint].add(row.context.partition)
    assert by_queue["plain"] == {-1}
    assert by_queue["q"] <= {0, 1, 2, 3}
    assert len(by_queue["q"]) > 1


def test_what_came_over_a_bridge_says_so(world: SpoolWorld, publish: Any) -> None:
    """Every row of a message has its path, its hops and where it first entered, after a restart too."""
    came = {
        "path": ["far/red", "near/blue"],
        "hops": 2,
        "origin_router": "far",
        "origin_vpn": "red",
        "origin_ts_ns": 7,
    }
    world.endpoint("q", "a")
    publish("a", **came)
    found = rows(world)
    world.restart()
    flow = world.bind(world.endpoints[0])
    world.commit()
    flow.settle_all(REJECTED)
    publish("nobody", **came)
    found += rows(world)
    assert {row.event for row in found} == {"enqueue", "reject", "discard"}
    for row in found:
        context = row.context
        assert (context.path, context.hops) == ("far/red>near/blue", 2)
        assert (context.origin_router, context.origin_vpn) == ("far", "red")


@pytest.mark.parametrize("traced", [False, True])
def test_rows_say_what_counters_say(spool_kit: Any, traced: bool) -> None:
    """By endpoint and reason the rows stand for as many messages as were counted, each of them once."""
    world = spool_kit.SpoolWorld(trace_terms=TraceSettings(discards=True, rejects=True))
    silent = world.endpoint("silent", "a", max_spooled_msg_count=3, reject_behavior=NEVER)
    last = world.endpoint("last", "l", max_msg_spool_usage=0)
    old = world.endpoint("old", "o", respect_ttl_enabled=True, max_ttl=1)
    world.endpoint("strict", "b", max_spooled_msg_count=1)
    number = 0
    for topic in ("a", "b", "l", "o", "none", "$queue/none"):
        for _ in range(6):
            number += 1
            message = spool_kit.guaranteed(topic)
            if traced and number % 2:
                message.trace_low = message.message_id = number
            world.give(message)
    world.commit()
    world.advance(5)
    flow = world.bind(silent)
    world.commit()
    flow.settle_all(REJECTED)
    world.commit()
    world.context.discard_rows.tell()
    discards: dict[tuple[str, str], int] = {}
    rejects: dict[tuple[str, str], int] = {}
    traces = []
    for row in rows(world):
        if row.event in ("discard", "reject"):
            found = discards if row.event == "discard" else rejects
            key = (row.context.endpoint, row.context.reason)
            found[key] = found.get(key, 0) + row.messages
            traces.append(row.trace)
    wanted = {("", "no-subscription-match"): world.vpn.discards.counts["no-subscription-match"]}
    for endpoint in (silent, last, old):
        for counter in (endpoint.counters.refused, endpoint.counters.discarded):
            for reason, count in counter.counts.items():
                wanted[endpoint.name, reason] = count
    assert discards == wanted
    assert discards["silent", "max-msg-usage-exceeded"] == 3
    assert discards["last", "last-value"] == 5
    assert discards["old", "max-ttl-expired"] == 6
    assert rejects.pop(("silent", "rejected")) == 3
    assert rejects == {
        ("strict", "503 Max message usage exceeded"): 5,
        ("", "400 Queue Not Found"): 6,
    }
    assert sum(rejects.values()) == world.vpn.rejected
    assert any(traces) is traced

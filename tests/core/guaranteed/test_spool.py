"""vpnrouter.core.guaranteed.spool: which endpoints keep a message, and which refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_settings import (
    ALWAYS,
    NEVER,
    SESSION,
    TOPIC_ENDPOINT,
    WHEN_ENABLED,
)
from vpnrouter.core.guaranteed.flow import FAILED
from vpnrouter.core.guaranteed.unit_of_work import DEMOTED, REJECTED, SPOOLED, UNMATCHED
from vpnrouter.core.message import Message

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def test_while_the_store_fails(world: SpoolWorld) -> None:
    """Nothing more is taken until the commit succeeds; what waits for it is told in order."""
    queue = world.endpoint("q", "a/#")
    world.publish("a", b"one")
    batch = world.seal()
    assert batch is not None
    world.spool.failed("no space")
    assert world.publish("a", b"two") == REJECTED
    assert world.direct("a", b"three") != ""
    world.store.commit(batch)
    world.spool.committed()
    assert world.publish("a", b"four") == SPOOLED
    world.commit()
    assert world.told.reasons() == ["", refusals.SERVICE_UNAVAILABLE, ""]
    assert queue.spooled_count == 2


@pytest.mark.parametrize("most", [1, 7, 40, 41, 79, 80, 1_000])
def test_a_commit_that_is_finished_in_parts(world: SpoolWorld, most: int) -> None:
    """Each part puts some messages into their queues, or answers some, in order; the next unit comes behind them."""
    queue = world.endpoint("q", "a/#")
    world.bind(queue)
    before = [world.publish("a", b"%d" % number) for number in range(40)]
    assert before == [SPOOLED] * 40
    batch = world.seal()
    assert batch is not None
    world.store.commit(batch)
    parts = answered = 0
    while parts == 0 or world.spool.unfinished:
        assert world.seal() is None
        world.spool.committed(most)
        world.publish("a", b"later")
        parts += 1
        answered += len(world.told.outcomes())
        assert answered == max(0, min(40, parts * most - 40))
    assert parts == -(-80 // most)
    world.commit()
    assert len(world.told.outcomes()) == parts
    assert queue.spooled_count == 40 + parts


def test_who_waits_for_nothing_is_refused_at_once(world: SpoolWorld) -> None:
    """Answers keep their order for each receipt; others need not wait for the store to work again."""
    world.endpoint("q", "a/#")
    world.publish("a", b"one")
    batch = world.seal()
    assert batch is not None
    world.spool.failed("no space")
    waits, other = world.told, type(world.told)()
    world.publish("a", b"two")
    world.told = other
    world.publish("a", b"three")
    world.publish("a", b"four")
    assert world.seal() is None
    assert (waits.heard, other.outcomes()) == ([], [REJECTED] * 2)
    world.store.commit(batch)
    world.spool.committed()
    world.commit()
    assert waits.outcomes() == [SPOOLED, REJECTED]
    assert other.heard == []


def test_what_two_queues_keep_is_known_as_one_message(world: SpoolWorld) -> None:
    """Bridges may take it from both, and where their ways meet its copies must be known by their id."""
    flows = [world.bind(world.endpoint(name, "a/#")) for name in ("q", "r")]
    world.publish("a/b", b"one")
    world.direct("a/b", b"two")
    world.commit()
    first, second = (flow.known_as for flow in flows)
    assert first == second
    assert len(set(first)) == 2
    assert 0 not in first


FULL: dict[str, dict[str, Any]] = {
    refusals.SPOOL_OVER_QUOTA: {"max_msg_spool_usage": 2},
    refusals.MAX_MESSAGE_USAGE: {"max_spooled_msg_count": 1},
    refusals.TOO_LARGE: {"max_msg_size": 1},
    refusals.LOW_PRIORITY: {"reject_low_priority_msg_enabled": True},
    refusals.QUEUE_SHUTDOWN: {"ingress_enabled": False},
}
"""Why the second message is not taken."""


def second_is_refused(world: SpoolWorld, settings: dict[str, Any]) -> tuple[int, Any, Any]:
    """Two endpoints match; the first takes nothing more. The outcome of the second message."""
    queue = world.endpoint("full", "a/#")
    other = world.endpoint("other", "a/#")
    world.publish("a", b"", priority="9")
    world.commit()
    world.settings(queue, **settings)
    outcome = world.publish("a", b"12", priority="3")
    world.commit()
    return outcome, queue, other


@pytest.mark.parametrize("reason", sorted(FULL))
def test_all_or_nothing(world: SpoolWorld, reason: str) -> None:
    """Promise ALLORNONE: nobody keeps it, and the publisher hears why."""
    outcome, queue, other = second_is_refused(world, {**FULL[reason], "reject_behavior": ALWAYS})
    assert outcome == REJECTED
    assert world.told.reasons() == ["", reason]
    assert [queue.spooled_count, other.spooled_count] == [1, 1]
    assert queue.counters.refused.counts == {refusals.DISCARD_NAMES[reason]: 1}
    assert other.counters.refused.counts == {}
    assert world.vpn.rejected == 1


@pytest.mark.parametrize("reason", sorted(set(FULL) - {refusals.LOW_PRIORITY}))
def test_never(world: SpoolWorld, reason: str) -> None:
    """The others keep theirs, and the publisher gets a plain acknowledgement."""
    outcome, queue, other = second_is_refused(world, {**FULL[reason], "reject_behavior": NEVER})
    assert outcome == SPOOLED
    assert world.told.reasons() == ["", ""]
    assert [queue.spooled_count, other.spooled_count] == [1, 2]
    assert queue.counters.refused.counts == {refusals.DISCARD_NAMES[reason]: 1}


@pytest.mark.parametrize("reason", [refusals.SPOOL_OVER_QUOTA, refusals.MAX_MESSAGE_USAGE])
def test_never_beside_one_that_rejects_over_a_bridge(world: SpoolWorld, reason: str) -> None:
    """What came over a bridge is for all or for none as soon as one endpoint rejects; else each alone."""
    queue = world.endpoint("full", "a/#")
    other = world.endpoint("other", "a/#")
    world.publish("a", b"")
    world.commit()
    world.settings(queue, **FULL[reason], reject_behavior=NEVER)
    assert world.give(over_a_bridge()) == REJECTED
    assert [queue.spooled_count, other.spooled_count] == [1, 1]
    assert queue.counters.refused.counts == {refusals.DISCARD_NAMES[reason]: 1}
    world.settings(other, reject_behavior=NEVER)
    assert world.give(over_a_bridge()) == SPOOLED
    assert [queue.spooled_count, other.spooled_count] == [1, 2]
    world.settings(other, reject_behavior=WHEN_ENABLED)
    world.settings(queue, max_spooled_msg_count=9, max_msg_spool_usage=1_000)
    assert world.give(over_a_bridge()) == SPOOLED
    assert [queue.spooled_count, other.spooled_count] == [2, 3]
    world.commit()
    assert world.told.reasons() == ["", reason, "", ""]


@pytest.mark.parametrize("reason", [refusals.TOO_LARGE, refusals.QUEUE_SHUTDOWN])
def test_what_waiting_does_not_change_holds_no_bridge(world: SpoolWorld, reason: str) -> None:
    """An endpoint that is `never` and shut down, or takes only smaller messages, discards it alone."""
    queue = world.endpoint("small", "a/#", **FULL[reason], reject_behavior=NEVER)
    other = world.endpoint("other", "a/#")
    assert world.give(over_a_bridge()) == SPOOLED
    assert [queue.spooled_count, other.spooled_count] == [0, 1]
    assert queue.counters.refused.counts == {refusals.DISCARD_NAMES[reason]: 1}


def over_a_bridge() -> Message:
    """A persistent message that crossed one bridge."""
    message = Message(b"a", b"12")
    message.persistent = True
    message.qos = 1
    message.hops = 1
    message.path = ["far/away"]
    return message


def test_low_priority_needs_a_reject(world: SpoolWorld) -> None:
    """With `never` the limit is not looked at."""
    outcome, queue, _ = second_is_refused(
        world, {**FULL[refusals.LOW_PRIORITY], "reject_behavior": NEVER}
    )
    assert (outcome, queue.spooled_count) == (SPOOLED, 2)


@pytest.mark.parametrize(
    ("behavior", "ingress", "outcome"),
    [
        (NEVER, True, SPOOLED),
        (NEVER, False, SPOOLED),
        (WHEN_ENABLED, True, REJECTED),
        (WHEN_ENABLED, False, SPOOLED),
        (ALWAYS, True, REJECTED),
        (ALWAYS, False, REJECTED),
    ],
)
def test_reject_behaviours(world: SpoolWorld, behavior: int, ingress: bool, outcome: int) -> None:
    """`always` rejects also while ingress is off, `when-queue-enabled` only while it is on."""
    found, queue, other = second_is_refused(
        world,
        {"max_spooled_msg_count": 1, "reject_behavior": behavior, "ingress_enabled": ingress},
    )
    assert found == outcome
    assert queue.spooled_count == 1
    assert other.spooled_count == (2 if outcome == SPOOLED else 1)


def test_low_priority_limit(world: SpoolWorld) -> None:
    """Above the limit 0 to 3 are refused, and messages of the default priority are not."""
    queue = world.endpoint(
        "q", "a", reject_low_priority_msg_enabled=True, reject_low_priority_msg_limit=2
    )
    outcomes = [world.publish("a", priority=text) for text in ("0", "3", "3", "", "9", "0")]
    assert outcomes == [SPOOLED, SPOOLED, REJECTED, SPOOLED, SPOOLED, REJECTED]
    world.commit()
    assert queue.spooled_count == 4


def test_what_is_on_its_way_counts(world: SpoolWorld) -> None:
    """A quota holds within one unit, and what is acknowledged makes room."""
    queue = world.endpoint("q", "a", max_msg_spool_usage=25)
    assert [world.publish("a", b"123456789") for _ in range(3)] == [SPOOLED, SPOOLED, REJECTED]
    world.commit()
    flow = world.bind(queue)
    world.commit()
    assert world.publish("a", b"123456789") == REJECTED
    flow.settle_all()
    assert world.publish("a", b"123456789") == SPOOLED
    assert queue.counters.peak_bytes == 20


def test_the_vpn_and_the_router_have_quotas(spool_kit: ModuleType) -> None:
    """Bytes of all endpoints together; a message for two counts twice."""
    for world in (spool_kit.SpoolWorld(max_msg_spool_usage=40), spool_kit.SpoolWorld(40)):
        world.endpoint("p", "a/#")
        world.endpoint("q", "a/#")
        quiet = world.endpoint("quiet", "b", reject_behavior=NEVER)
        assert world.publish("a", b"123456789") == SPOOLED
        assert world.publish("a", b"1234567890") == REJECTED
        assert world.publish("a", b"123456789") == SPOOLED
        # The endpoint says what becomes of a message for which there is no room.
        assert world.publish("b", b"123456789") == SPOOLED
        assert quiet.spooled_count == 0
        world.commit()
        assert world.told.reasons() == ["", refusals.SPOOL_OVER_QUOTA, "", ""]
        assert world.spool.usage == 40
        world.check()


def test_strings_of_other_kinds(world: SpoolWorld) -> None:
    """Each kind of endpoint has its own word for being shut down."""
    world.endpoint("t", "t", kind=TOPIC_ENDPOINT, ingress_enabled=False, reject_behavior=ALWAYS)
    world.endpoint("s", "s", kind=SESSION, ingress_enabled=False, reject_behavior=ALWAYS)
    world.publish("t")
    world.publish("s")
    world.commit()
    assert world.told.reasons() == [refusals.TOPIC_ENDPOINT_SHUTDOWN, refusals.ENDPOINT_SHUTDOWN]


def test_demotion_never_holds_the_publisher(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Promise LANDING: clients get it as Direct; who has no room loses it, and nobody waits."""
    listener = spool_kit.Listener(world.vpn, "l", 100)
    listener.subscribe("a/#")
    for _ in range(50):
        assert world.publish("a/b", b"0123456789") == DEMOTED
    world.commit()
    assert world.told.outcomes() == [DEMOTED] * 50
    assert 0 < listener.count < 10
    assert listener.outbox.discarded + listener.count == 50
    queue = world.endpoint("q", "a/b")
    assert world.publish("a/b") == SPOOLED
    assert queue.spooled_count == 1


def test_promotion_under_congestion(world: SpoolWorld) -> None:
    """Direct messages are discarded, and counted, where guaranteed ones would have to wait for them."""
    queue = world.endpoint("q", "a/#", max_spooled_msg_count=7)
    payload = bytes(limits.PROMOTION_BYTES // 3)
    answers = [world.direct("a/b", payload) for _ in range(10)]
    assert answers == ["", "", ""] + ["no-subscription-match"] * 7
    assert world.publish("a/b") == SPOOLED
    world.commit()
    assert queue.spooled_count == 4
    assert queue.counters.refused.counts == {"message-promotion-congestion": 7}
    for _ in range(3):
        assert world.direct("a/b") == ""
    assert world.direct("a/b") == "no-subscription-match"
    assert queue.counters.refused.counts["max-msg-usage-exceeded"] == 1


def test_retained_messages_go_through_the_spool(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """They are there after a restart; a refused one does not become the last of its topic."""
    queue = world.endpoint("q", "a/#", max_spooled_msg_count=2)
    for payload in (b"one", b"two", b"three"):
        message = spool_kit.guaranteed("a/b", payload)
        message.retain = True
        world.give(message)
    direct = spool_kit.guaranteed("b", b"direct", qos=0)
    direct.persistent = False
    direct.retain = True
    world.vpn.publish(direct)
    world.commit()
    assert queue.spooled_count == 2
    world.restart()
    assert len(world.vpn.retained) == 2
    found = [
        message.payload
        for message in world.vpn.retained.matching(spool_kit.parse_filter("#", 1), 0)
    ]
    assert sorted(found) == [b"direct", b"two"]
    gone = spool_kit.guaranteed("a/b", b"")
    gone.retain = True
    world.vpn.publish(gone)
    world.commit()
    world.restart()
    assert len(world.vpn.retained) == 1


def test_subscription_exceptions(world: SpoolWorld) -> None:
    """What an exception matches does not come."""
    queue = world.endpoint("q", "a/#", "!a/secret/#")
    assert world.publish("a/secret/b") == UNMATCHED
    assert world.publish("a/b") == SPOOLED
    world.commit()
    assert queue.spooled_count == 1


def test_deliver_to_one(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Endpoints keep it as ever; of those who get it as Direct, one does, in turn."""
    queue = world.endpoint("q", "a/#")
    listeners = [spool_kit.Listener(world.vpn, name) for name in "xyz"]
    for listener in listeners:
        listener.subscribe("a/#")
    for _ in range(6):
        assert world.publish("a/b", deliver_to_one="true") == SPOOLED
    world.commit()
    assert [listener.count for listener in listeners] == [2, 2, 2]
    assert queue.spooled_count == 6
    assert world.direct("a/b", deliver_to_one="true") == ""
    world.commit()
    assert sum(listener.count for listener in listeners) == 7
    assert queue.spooled_count == 7


def fill(world: SpoolWorld, count: int, first: int = 0) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%04d" % number for number in range(first, first + count)]
    for payload in payloads:
        world.publish("a/b", payload)
    world.commit()
    return payloads


def test_a_restart_flags_what_may_have_been_delivered(world: SpoolWorld) -> None:
    """What a consumer may have seen is flagged; counted tries are remembered; new messages are new."""
    queue = world.endpoint("q", "a/#")
    flow = world.bind(queue, window=2)
    fill(world, 3)
    flow.settle(b"0001", FAILED)
    world.commit()
    (queue,) = world.restart()
    fill(world, 2, first=3)
    flow = world.bind(queue)
    world.commit()
    flow.settle_all()
    # A mark may run ahead within what is there, never into what is new.
    assert [count for _, _, count in flow.sent] == [-1, 1, -1, 0, 0]

"""vpnrouter.core.guaranteed.replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS, REPLAY_LOG
from vpnrouter.core.guaranteed.replay import (
    ACTIVE,
    COMPLETE,
    FAILED,
    INITIALIZING,
    PENDING_COMPLETE,
    ReplayLog,
    parse_moment,
    parse_start,
)
from vpnrouter.errors import Refused
from vpnrouter.topics.grammar import SMF, parse_filter

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def logged(world: SpoolWorld, *filters: str, **settings: Any) -> ReplayLog:
    """A replay log."""
    endpoint = world.endpoint("log", kind=REPLAY_LOG, **settings)
    return keep(world, endpoint, *filters)


def keep(world: SpoolWorld, endpoint: Endpoint, *filters: str) -> ReplayLog:
    """Let the message VPN have a replay log."""
    log = ReplayLog(endpoint, [parse_filter(text, SMF, exceptions=True) for text in filters])
    world.spool.replay_logs["blue"] = log
    return log


def fill(world: SpoolWorld, first: int, count: int, every: float = 0) -> None:
    """Publish numbered messages, at a distance of so many seconds."""
    for number in range(first, first + count):
        world.publish("a", b"%04d" % number)
        if every:
            world.commit()
            world.advance(every)
    world.commit()


def numbers(payloads: list[bytes]) -> list[int]:
    """The numbers of messages."""
    return [int(payload) for payload in payloads]


def test_from_the_beginning(world: SpoolWorld) -> None:
    """In order, ahead of what came meanwhile; what still waits does not come twice."""
    log = logged(world)
    queue = world.endpoint("q", "a")
    flow = world.bind(queue, window=100)
    fill(world, 0, 1_000)
    assert numbers(flow.payloads()) == list(range(100))
    flow.settle_all()
    world.commit()
    flow.payloads()
    replay = log.replay_to(queue)
    assert (replay.state, queue.counters.replay_state) == (ACTIVE, ACTIVE)
    batch = world.seal()
    assert batch is not None
    for number in range(1_000, 1_100):
        world.publish("a", b"%04d" % number)
    assert 0 < replay.brought_count < 1_000, "a portion a round"
    world.store.commit(batch)
    world.spool.committed()
    got: list[int] = []
    states: list[str] = []
    if world.spool.syncing is not None:
        world.spool.committed()
    for _ in range(40):
        world.commit()
        states.append(replay.state)
        got += numbers(flow.payloads())
        flow.settle_all()
    assert got == [*range(1_000), *range(1_000, 1_100)]
    assert PENDING_COMPLETE in states
    assert replay.state == queue.counters.replay_state == COMPLETE
    assert (queue.replay, queue.ahead, log.replays) == (None, None, 0)
    assert queue.counters.replay_success_count == 1
    assert queue.spooled_count == 0


def test_what_comes_back_stays_ahead(world: SpoolWorld) -> None:
    """The old place of a replayed message is in the replay."""
    log = logged(world)
    queue = world.endpoint("q", "a")
    fill(world, 0, 3)
    flow = world.bind(queue, window=3)
    world.commit()
    flow.settle_all()
    log.replay_to(queue)
    world.commit()
    fill(world, 3, 1)
    flow.payloads()
    flow.settle_all(1)
    world.commit()
    assert numbers(flow.payloads()) == [0, 1, 2]
    flow.settle_all()
    world.commit()
    assert numbers(flow.payloads()) == [3]


@pytest.mark.parametrize(("seconds", "first"), [(0, 0), (-5, 0), (10, 10), (10.5, 11), (39, 39)])
def test_from_a_time(world: SpoolWorld, spool_kit: ModuleType, seconds: float, first: int) -> None:
    """The first message of the time or after it, found in a few steps a round."""
    log = logged(world)
    queue = world.endpoint("q", "a")
    fill(world, 0, 40, every=1)
    queue.purge()
    replay = log.replay_to(queue, from_ns=spool_kit.WALL_NS + int(seconds * spool_kit.SECOND_NS))
    assert replay.state == INITIALIZING
    world.commit()
    flow = world.bind(queue)
    world.commit()
    # Time goes on by nanoseconds here and there.
    assert numbers(flow.payloads())[0] in {first, first + (seconds == int(seconds) and seconds > 0)}
    assert replay.brought_count in {40 - first, 39 - first}


def refused(log: ReplayLog, queue: Endpoint, **where: int) -> str:
    """Why a replay cannot be started."""
    with pytest.raises(Refused) as caught:
        log.replay_to(queue, **where)
    return caught.value.reason


def test_refusals(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Each by the field's string."""
    log = logged(world)
    queue = world.endpoint("q", "a")
    shared = world.endpoint("shared", exclusive=False)
    passing = world.endpoint("passing", durable=False)
    assert refused(log, shared) == refusals.REPLAY_NON_EXCLUSIVE
    assert refused(log, passing) == refusals.REPLAY_TEMPORARY
    assert refused(log, queue, after_id=77) == refusals.REPLAY_MESSAGE
    future = world.context.wall_ns + spool_kit.SECOND_NS
    assert refused(log, queue, from_ns=future) == refusals.REPLAY_TIME
    world.publish("other")
    world.commit()
    for number in range(limits.REPLAYS):
        log.replay_to(world.endpoint(f"q{number}"))
    assert refused(log, queue) == refusals.REPLAY_RESOURCES
    log.endpoint.settings.egress_enabled = False
    assert refused(log, queue) == refusals.REPLAY_DISABLED


def test_a_time_that_was_trimmed(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """A time before the oldest message is fine only while nothing was trimmed."""
    log = logged(world, max_msg_spool_usage=100)
    queue = world.endpoint("q", "b")
    fill(world, 0, 40, every=1)
    replay = log.replay_to(queue, from_ns=spool_kit.WALL_NS)
    world.commit()
    assert (replay.state, replay.failure) == (FAILED, refusals.REPLAY_TIME)
    assert queue.counters.last_replay_failure_reason == refusals.REPLAY_TIME
    assert queue.counters.replay_failure_count == 1


def running(world: SpoolWorld, **settings: Any) -> tuple[ReplayLog, Endpoint, Any]:
    """A replay that waits for room in its queue: 3 of 10 messages were brought."""
    log = logged(world, **settings)
    queue = world.endpoint("q", "a", max_spooled_msg_count=3)
    world.publish("b")
    fill(world, 0, 3)
    queue.purge()
    for number in range(3, 10):
        queue.settings.ingress_enabled = False
        fill(world, number, 1)
    queue.settings.ingress_enabled = True
    replay = log.replay_to(queue)
    world.commit()
    assert (replay.state, replay.brought_count, queue.spooled_count) == (ACTIVE, 3, 3)
    return log, queue, replay


def test_a_replay_waits_for_room(world: SpoolWorld) -> None:
    """It goes on as the consumer takes, and looks again now and then."""
    _, queue, replay = running(world)
    world.settings(queue, max_spooled_msg_count=5)
    world.advance(1)
    assert replay.brought_count == 5
    flow = world.bind(queue, window=2)
    got = []
    for _ in range(12):
        world.commit()
        got += numbers(flow.payloads())
        flow.settle_all()
    assert got == list(range(10))
    assert replay.state == COMPLETE
    world.advance(2)


def test_a_cancelled_replay(world: SpoolWorld) -> None:
    """What it brought stays among the others."""
    _, queue, replay = running(world)
    replay.cancel()
    assert (replay.state, replay.failure) == (FAILED, refusals.REPLAY_CANCELLED)
    flow = world.bind(queue)
    world.commit()
    assert numbers(flow.payloads()) == [0, 1, 2]


def test_a_second_replay_ends_the_first(world: SpoolWorld) -> None:
    """The queue has one at a time."""
    log, queue, replay = running(world)
    second = log.replay_to(queue)
    assert replay.failure == refusals.REPLAY_STARTED
    assert (second.state, log.replays) == (ACTIVE, 1)
    queue.delete("gone")
    assert (second.failure, log.replays) == (refusals.REPLAY_CANCELLED, 0)


def test_a_log_that_changes(world: SpoolWorld) -> None:
    """A purge of the log ends the replay."""
    log, queue, replay = running(world)
    log.endpoint.purge()
    queue.wake()
    world.commit()
    assert replay.failure == refusals.REPLAY_LOG_MODIFIED


def test_a_log_that_is_shut_down(world: SpoolWorld) -> None:
    """So does its shutdown."""
    log, queue, replay = running(world)
    world.settings(log.endpoint, egress_enabled=False)
    queue.wake()
    world.commit()
    assert replay.failure == refusals.REPLAY_DISABLED


def test_a_log_that_trims_what_is_still_to_come(world: SpoolWorld) -> None:
    """The replay would have a hole, and says so."""
    _, _, replay = running(world, max_msg_spool_usage=60)
    for _ in range(20):
        world.publish("b", b"1234")
    world.advance(1)
    assert replay.failure == refusals.REPLAY_MESSAGE


def test_subscriptions_and_life_times_choose(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Only what the queue wants now, and what is not over."""
    log = logged(world)
    queue = world.endpoint("q", "a", respect_ttl_enabled=True, max_msg_size=4)
    message = spool_kit.guaranteed("a", b"old")
    message.expires_ns = world.context.now_ns + spool_kit.SECOND_NS
    world.give(message)
    world.publish("b", b"b")
    world.publish("a", b"kept")
    queue.settings.max_msg_size = 5
    world.publish("a", b"large")
    world.commit()
    queue.settings.max_msg_size = 4
    world.advance(2)
    queue.purge()
    log.replay_to(queue)
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"kept"]


def test_what_is_logged(world: SpoolWorld) -> None:
    """Every guaranteed or promoted message that was not rejected, also one that nobody wants."""
    log = logged(world)
    world.endpoint("q", "a", max_spooled_msg_count=2, reject_behavior=ALWAYS)
    for number in range(3):
        world.publish("a", b"%d" % number)
    world.publish("nobody", b"3")
    world.direct("nobody", b"4")
    world.settings(world.endpoints[1], max_spooled_msg_count=3)
    world.direct("a", b"5")
    world.direct("a", b"6")
    world.commit()
    assert [row.message.payload for row in log.endpoint.browse(0, 9)] == [b"0", b"1", b"3", b"5"]
    log.endpoint.settings.ingress_enabled = False
    world.publish("nobody")
    assert log.endpoint.spooled_count == 4


def test_topic_filter(world: SpoolWorld) -> None:
    """Subscriptions and exceptions choose; a changed filter holds from then on."""
    log = logged(world, "a/>", "!a/secret/>")
    for topic in ("a/b", "b/c", "a/secret/d", "a/b"):
        world.publish(topic, topic.encode())
    log.take_filters([])
    world.publish("b/c", b"b/c")
    world.commit()
    found = [row.message.payload for row in log.endpoint.browse(0, 9)]
    assert found == [b"a/b", b"a/b", b"b/c"]


def test_the_oldest_is_trimmed(world: SpoolWorld) -> None:
    """At its quota the log forgets; nobody is refused for it; a restart knows how far."""
    log = logged(world, max_msg_spool_usage=1_000)
    for number in range(1_000):
        world.publish("a", b"%09d" % number)
        if number % 7 == 0:
            world.commit()
            assert log.endpoint.spooled_bytes <= 1_100
    world.commit()
    assert 90 <= log.endpoint.spooled_count <= 100
    assert log.endpoint.counters.discarded.counts == {
        "replay-log-over-quota": 1_000 - log.endpoint.spooled_count
    }
    assert log.trimmed == log.endpoint.browse(0, 1)[0].msg_id - 1
    world.publish("a", b"x" * 1_001)
    assert log.endpoint.counters.refused.counts == {"max-msg-spool-usage-exceeded": 1}
    before = log.trimmed
    (endpoint,) = world.restart()
    log = keep(world, endpoint)
    assert log.trimmed == before
    # Sizes of what was there before are read back.
    for number in range(50):
        world.publish("a", b"%09d" % number)
        world.commit()
    assert 90 <= log.endpoint.spooled_count <= 100
    assert log.trimmed > before


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("2026-01-31T12:00:00Z", 1_769_860_800 * SECOND),
        ("2026-01-31t12:00:00z", 1_769_860_800 * SECOND),
        ("2026-01-31T13:30:00+01:30", 1_769_860_800 * SECOND),
        ("2026-01-31T12:00:00.25Z", 1_769_860_800 * SECOND + 250_000_000),
        ("2026-01-31T12:00:00.123456789Z", 1_769_860_800 * SECOND + 123_456_000),
        ("2026-01-31", 1_769_817_600 * SECOND),
        ("1970-01-01", 1),
        ("1811-01-01", 1),
    ],
)
def test_moments(text: str, expected_ns: int) -> None:
    """RFC 3339, of which the zone is a part; a date is its midnight in UTC."""
    assert parse_moment(text) == expected_ns
    assert parse_start(text) == (expected_ns, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31T12:00:00",
        "2026-02-30",
        "2026-01-31T25:00:00Z",
        "2026-01-31 12:00:00Z",
        "20260131",
        "2026-01-31T12:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+99:00",
        "1769860800",
        "\u0662026-01-31",
        "2026-01-31\n",
    ],
)
def test_no_moments(text: str) -> None:
    """A time that could be understood in two ways is none."""
    with pytest.raises(ValueError, match=r".+"):
        parse_moment(text)
    with pytest.raises(ValueError, match=r".+"):
        parse_start(text)


@pytest.mark.parametrize(
    "text", ["id:", "id:0", "id:-1", "id:x", f"id:{1 << 64}", "id:" + "9" * 30]
)
def test_no_messages(text: str) -> None:
    """Ids are numbers of 64 bits."""
    with pytest.raises(ValueError, match="is no message id"):
        parse_start(text)


def test_the_log_by_its_name(world: SpoolWorld) -> None:
    """A name that is not that of the log is refused; without a name the log of the message VPN serves."""
    queue = world.endpoint("q", "a")
    with pytest.raises(Refused, match=refusals.REPLAY_DISABLED):
        queue.start_replay(0, 0)
    log = world.endpoint("log", kind=REPLAY_LOG)
    world.spool.replay_logs["blue"] = ReplayLog(log)
    with pytest.raises(Refused, match=refusals.REPLAY_DISABLED):
        queue.start_replay(0, 0, "other")
    assert queue.counters.replay_start_count == 0
    first = queue.start_replay(0, 0, "log")
    assert queue.start_replay(0, 0) is queue.replay
    assert first.failure == refusals.REPLAY_STARTED

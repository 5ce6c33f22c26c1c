"""vpnrouter.core.guaranteed.schedule: expiry, delivery delay and redelivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import FAILED, RELEASED
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld

EXPIRED = "max-ttl-expired"


def timed(world: SpoolWorld, kit: ModuleType, seconds: float, payload: bytes = b"x") -> None:
    """Publish a message with a life time of its own."""
    message = kit.guaranteed("a", payload)
    if seconds:
        message.expires_ns = world.context.now_ns + int(seconds * kit.SECOND_NS)
    world.give(message)


def test_life_times(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """The earlier of the message's own and `max_ttl`; nothing expires where they are not respected."""
    own = world.endpoint("own", "a", respect_ttl_enabled=True)
    most = world.endpoint("most", "a", respect_ttl_enabled=True, max_ttl=5)
    careless = world.endpoint("careless", "a", max_ttl=5)
    for seconds in (0, 2.5, 60):
        timed(world, spool_kit, seconds)
    world.commit()
    left = []
    for seconds in (1, 3, 3, 60):
        world.advance(seconds)
        left.append([own.spooled_count, most.spooled_count, careless.spooled_count])
    assert left == [[3, 3, 3], [2, 2, 3], [2, 0, 3], [1, 0, 3]]
    assert own.counters.discarded.counts == {EXPIRED: 2}
    assert most.counters.discarded.counts == {EXPIRED: 3}
    assert own.schedule.expiring.count == 0


def test_a_dead_letter_has_no_life_time_of_its_own(
    world: SpoolWorld, spool_kit: ModuleType
) -> None:
    """What expired stays in the dead message queue, where that respects life times, too: its `max_ttl` alone counts."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True)
    dead = world.endpoint("#DEAD_MSG_QUEUE", respect_ttl_enabled=True, max_ttl=20)
    timed(world, spool_kit, 2)
    world.commit()
    left = []
    for seconds in (3, 18, 3):
        world.advance(seconds)
        left.append((queue.spooled_count, dead.spooled_count))
    assert left == [(0, 1), (0, 1), (0, 0)]
    assert queue.counters.to_dmq == {EXPIRED: 1}


def test_life_times_go_on_over_a_restart(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Both kinds count from the arrival."""
    world.endpoint("own", "a", respect_ttl_enabled=True)
    world.endpoint("most", "a", respect_ttl_enabled=True, max_ttl=20)
    timed(world, spool_kit, 10)
    timed(world, spool_kit, 0)
    world.commit()
    world.advance(8)
    own, most = world.restart()
    world.advance(4)
    assert (own.spooled_count, most.spooled_count) == (1, 1)
    own, most = world.restart()
    world.advance(9)
    assert (own.spooled_count, most.spooled_count) == (1, 0)


def test_a_consumer_keeps_what_it_has(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """A message expires in the queue, not in the consumer's hands; when it comes back it is gone."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True, max_ttl=5)
    flow = world.bind(queue, window=1)
    timed(world, spool_kit, 0, b"one")
    timed(world, spool_kit, 0, b"two")
    world.commit()
    world.advance(7)
    assert (queue.spooled_count, flow.payloads()) == (1, [b"one"])
    flow.settle(b"one", RELEASED)
    world.commit()
    assert (queue.spooled_count, flow.payloads()) == (0, [])
    timed(world, spool_kit, 0, b"three")
    world.commit()
    world.advance(4)
    flow.settle(b"three", RELEASED)
    queue.unbind(flow, counts=False)
    world.commit()
    world.advance(3)
    assert queue.spooled_count == 0


def test_expiry_is_found_at_delivery_too(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Life times that began to matter only now."""
    queue = world.endpoint("q", "a")
    for number in range(1_500):
        timed(world, spool_kit, 1, b"%d" % number)
    timed(world, spool_kit, 0, b"last")
    world.commit()
    world.advance(2)
    queue.settings.respect_ttl_enabled = True
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"last"]
    assert queue.counters.discarded.counts == {EXPIRED: 1_500}


def test_many_expire_in_bounded_portions(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """A crowd that expires in one second does not hold up a round."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True)
    for _ in range(4_500):
        timed(world, spool_kit, 1)
    world.commit()
    world.context.now_ns += 3 * spool_kit.SECOND_NS
    assert world.context.timers.run(world.context.now_ns) == 1
    assert queue.spooled_count == 2_500
    world.now_ns = world.context.now_ns
    world.advance(0)
    world.advance(1)
    assert queue.spooled_count == 0


def test_settled_messages_leave_the_life_times(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """A stream of messages with long life times leaves nothing behind."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True)
    flow = world.bind(queue)
    for _ in range(60):
        for _ in range(100):
            timed(world, spool_kit, 86_400)
        world.commit()
        flow.settle_all()
    world.commit()
    assert queue.schedule.expiring.count <= 1_300


def test_nothing_expires_while_the_store_fails(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """It is done when the store can be written again."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True)
    timed(world, spool_kit, 1)
    world.commit()
    world.spool.down = "503 Service Unavailable"
    world.now_ns += 2 * spool_kit.SECOND_NS
    world.context.now_ns = world.now_ns
    world.context.timers.run(world.now_ns)
    assert queue.spooled_count == 1
    world.spool.down = ""
    world.advance(1)
    assert queue.spooled_count == 0


def test_delivery_delay(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Seconds from the arrival until the first delivery, in order, also over a restart."""
    queue = world.endpoint("q", "a", delivery_delay=10)
    flow = world.bind(queue)
    timed(world, spool_kit, 0, b"one")
    world.commit()
    world.advance(5)
    timed(world, spool_kit, 0, b"two")
    world.commit()
    world.advance(4.9)
    assert flow.payloads() == []
    world.advance(0.1)
    assert flow.payloads() == [b"one"]
    flow.settle(b"one", RELEASED)
    world.commit()
    assert flow.payloads() == [b"one"], "the delay is for the first time"
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.advance(0)
    assert flow.payloads() == [b"one"]
    world.advance(5)
    assert flow.payloads() == [b"two"]


def test_a_delayed_message_expires(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Its life time does not wait for its delay."""
    queue = world.endpoint("q", "a", delivery_delay=10, respect_ttl_enabled=True)
    timed(world, spool_kit, 3)
    world.commit()
    world.advance(4)
    assert queue.spooled_count == 0
    assert queue.schedule.held is None or queue.schedule.held.count == 0


def test_max_redelivery_count(world: SpoolWorld) -> None:
    """So many tries after the first; then the dead message queue, also over a restart."""
    world.endpoint("q", "a", max_redelivery_count=3, dead_msg_queue="dead")
    world.endpoint("dead")
    world.publish("a", b"one")
    world.commit()
    counts = []
    for _ in range(4):
        queue, dead = world.restart()
        flow = world.bind(queue)
        world.commit()
        counts += flow.counts()
        assert dead.spooled_count == 0
        flow.settle_all(RELEASED)
        world.commit()
        flow.settle_all(FAILED)
        world.commit()
    assert counts == [0, 1, 2, 3]
    assert (queue.spooled_count, dead.spooled_count) == (0, 1)
    assert queue.counters.to_dmq == {"max-redelivery-exceeded": 1}
    assert list(world.store.scan(keys.REDELIVERIES)) == []


def test_redelivery_disabled(world: SpoolWorld) -> None:
    """One try that failed is the last; what nobody looked at is given again."""
    queue = world.endpoint("q", "a", redelivery_enabled=False)
    flow = world.bind(queue)
    world.publish("a")
    world.commit()
    flow.settle_all(RELEASED)
    world.commit()
    assert flow.counts() == [0, -1]
    flow.settle_all(FAILED)
    assert queue.spooled_count == 0
    assert queue.counters.discarded.counts == {"max-redelivery-exceeded": 1}


def test_redelivery_delay_grows(world: SpoolWorld) -> None:
    """In milliseconds, by the multiplier, up to the maximum; others pass meanwhile."""
    queue = world.endpoint(
        "q",
        "a",
        redelivery_delay_enabled=True,
        redelivery_delay_initial_interval=100,
        redelivery_delay_multiplier=300,
        redelivery_delay_max_interval=800,
    )
    flow = world.bind(queue)
    world.publish("a", b"one")
    world.commit()
    for wait_ms in (100, 300, 800, 800):
        flow.payloads()
        flow.settle(b"one", FAILED)
        world.publish("a", b"other")
        world.commit()
        assert flow.payloads() == [b"other"]
        flow.settle(b"other")
        world.advance((wait_ms - 1) / 1000)
        assert flow.payloads() == []
        world.advance(0.001)
        assert flow.payloads() == [b"one"]


def test_a_short_delay_is_not_held_up_by_a_long_one(world: SpoolWorld) -> None:
    """Whatever is due first is done first."""
    world.endpoint(
        "q",
        "a",
        respect_ttl_enabled=True,
        max_ttl=100_000,
        redelivery_delay_enabled=True,
        redelivery_delay_initial_interval=100,
    )
    (queue,) = world.endpoints
    flow = world.bind(queue)
    world.publish("a", b"one")
    world.commit()
    flow.settle(b"one", FAILED)
    world.commit()
    world.advance(0.1)
    assert flow.payloads() == [b"one", b"one"]


def test_counts_are_forgotten_with_the_message(world: SpoolWorld) -> None:
    """Nothing is left of a message that was acknowledged in the end."""
    queue = world.endpoint("q", "a")
    flow = world.bind(queue)
    world.publish("a", b"one")
    world.commit()
    flow.settle(b"one", FAILED)
    world.commit()
    assert len(list(world.store.scan(keys.REDELIVERIES))) == 1
    flow.settle(b"one")
    world.commit()
    assert list(world.store.scan(keys.REDELIVERIES)) == []
    assert queue.redeliveries == {}

"""vpnrouter.core.guaranteed.endpoint: what comes back, how often and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import FAILED, RELEASED
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


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

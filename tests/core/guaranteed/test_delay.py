"""vpnrouter.core.guaranteed.schedule: messages that wait for a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import RELEASED

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def timed(world: SpoolWorld, kit: ModuleType, seconds: float, payload: bytes = b"x") -> None:
    """Publish a message with a life time of its own."""
    message = kit.guaranteed("a", payload)
    if seconds:
        message.expires_ns = world.context.now_ns + int(seconds * kit.SECOND_NS)
    world.give(message)


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

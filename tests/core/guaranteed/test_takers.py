"""vpnrouter.core.guaranteed.spool: which endpoints a message is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, UNMATCHED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def test_point_to_point(world: SpoolWorld) -> None:
    """`$queue/NAME` goes to that queue alone, subscribed or not; where there is none it is refused."""
    queue = world.endpoint("orders", "a")
    other = world.endpoint("all", "#")
    assert world.publish("$queue/orders", b"one") == SPOOLED
    assert world.publish("$queue/gone", b"two") == REJECTED
    world.endpoint("gone")
    assert world.publish("$queue/gone", b"three") == SPOOLED
    world.commit()
    assert world.told.reasons() == ["", refusals.QUEUE_NOT_FOUND, ""]
    assert (queue.spooled_count, other.spooled_count) == (1, 0)
    assert world.direct("$queue/orders", b"promoted") == ""
    world.commit()
    assert queue.spooled_count == 2


def test_subscription_exceptions(world: SpoolWorld) -> None:
    """What an exception matches does not come."""
    queue = world.endpoint("q", "a/#", "!a/secret/#")
    assert world.publish("a/secret/b") == UNMATCHED
    assert world.publish("a/b") == SPOOLED
    world.commit()
    assert queue.spooled_count == 1

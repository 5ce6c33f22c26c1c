"""vpnrouter.core.guaranteed.unit_of_work: many messages leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.flow import FAILED
from vpnrouter.core.guaranteed.unit_of_work import SYNCED
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


def filled(world: SpoolWorld, count: int, **settings: Any) -> Endpoint:
    """A queue with numbered messages."""
    queue = world.endpoint("q", "a", **settings)
    for number in range(count):
        world.publish("a", b"%04d" % number)
    world.commit()
    return queue


@pytest.mark.parametrize(
    ("count", "settings"),
    [(21_000, {}), (100, {"delivery_delay": 9}), (100, {"respect_msg_priority_enabled": True})],
)
def test_purge(world: SpoolWorld, count: int, settings: dict[str, int]) -> None:
    """All that waits goes, in bounded portions; what consumers have, and what is on its way, stays."""
    queue = filled(world, count, **settings)
    other = world.endpoint("other", "a")
    flow = world.bind(queue, window=2)
    world.commit()
    in_hand = len(flow.unacked)
    world.publish("a", b"new")
    assert queue.purge() == count - in_hand
    assert queue.spooled_count == in_hand + 1
    assert world.vpn.spooled_bytes == queue.spooled_bytes + other.spooled_bytes
    world.spool.when_purged(world.told, 7)
    rounds = 0
    while (7, SYNCED, "") not in world.told.heard:
        batch = world.seal()
        if batch is not None:
            world.store.commit(batch)
            world.spool.committed()
        rounds += 1
    assert rounds >= (2 if count > 20_000 else 1)
    assert queue.spooled_count == in_hand + 1
    queue, other = world.restart()
    assert (queue.spooled_count, other.spooled_count) == (in_hand + 1, 1)


def test_purge_forgets_tries(world: SpoolWorld) -> None:
    """Of what is gone; not of what a consumer has."""
    queue = filled(world, 2)
    flow = world.bind(queue)
    world.commit()
    flow.window = 1
    flow.settle_all(FAILED)
    world.commit()
    assert len(flow.unacked) == 1
    assert queue.purge() == 1
    world.commit()
    assert len(queue.redeliveries) == len(list(world.store.scan(keys.REDELIVERIES))) == 1

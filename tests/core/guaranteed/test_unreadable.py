"""vpnrouter.core.guaranteed.unreadable: a damaged segment costs its own messages and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed.receipt import SPOOLED
from vpnrouter.spool import keys
from vpnrouter.spool.store import Batch

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


@pytest.mark.parametrize("selector", ["", "nothing IS NULL"])
def test_the_next_one_has_its_turn(world: SpoolWorld, selector: str) -> None:
    """What cannot be read is told and passed over; it still counts as there."""
    queue = world.endpoint("q", "a/#", exclusive=False)
    other = world.endpoint("other", "b")
    first = world.spool.ledger.next_id
    for topic, payload in (("a/1", b"lost"), ("a/2", b"next"), ("b", b"other")):
        assert world.publish(topic, payload) == SPOOLED
        world.commit()
    damage = Batch()
    damage.put(keys.bodies(first), b"no segment")
    world.store.commit(damage)
    world.spool.bodies.kept.clear()
    flow = world.bind(queue, selector=selector)
    beside = world.bind(other)
    world.commit()
    assert (flow.payloads(), beside.payloads()) == ([b"next"], [b"other"])
    assert len(world.plane.troubles) == 1
    assert "a message of q in message VPN" in world.plane.troubles[0]
    assert queue.spooled_count == 2

"""vpnrouter.core.guaranteed.endpoint: last values, endpoints that do not last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import FAILED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def test_last_value_queue(world: SpoolWorld) -> None:
    """Quota 0 keeps the newest message only, whatever its size."""
    queue = world.endpoint("q", "a", max_msg_spool_usage=0, max_spooled_msg_count=1)
    for number in range(5):
        world.publish("a", b"%d" % number)
    world.commit()
    assert queue.spooled_count == 1
    assert queue.counters.discarded.counts == {"last-value": 4}
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"4"]
    world.publish("a", b"5")
    world.commit()
    assert flow.payloads() == [b"5"]
    flow.settle(b"4", FAILED)
    world.commit()
    assert flow.payloads() == [], "what comes back is no longer the last"
    flow.settle(b"5", FAILED)
    world.commit()
    assert flow.payloads() == [b"5"]
    (queue,) = world.restart()
    world.publish("a", b"6")
    world.commit()
    assert queue.spooled_count == 1


def test_an_endpoint_that_is_not_durable(world: SpoolWorld) -> None:
    """Delivers without a mark, and is not there after a restart."""
    queue = world.endpoint("q", "a", durable=False)
    flow = world.bind(queue)
    world.publish("a", b"one")
    world.commit()
    assert flow.payloads() == [b"one"]
    assert queue.mark == 0
    world.restart()
    world.commit()
    assert len(world.spool.ledger) == 0

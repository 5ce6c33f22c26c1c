"""vpnrouter.core.guaranteed.endpoint: what raises half-way, on the pure build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed.waiting_list import DelayedIds, WaitingList
from vpnrouter.spool.ledger import IdQueue
from vpnrouter.testing.planting import ENTRY, RETURN, Planted, Planter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.guaranteed.spool_world import SpoolWorld


@pytest.mark.parametrize("phase", [ENTRY, RETURN])
@pytest.mark.parametrize(
    "function", [IdQueue._behead, IdQueue.remove, WaitingList.remove, DelayedIds.remove]
)
def test_taking_out_raises(world: SpoolWorld, function: Callable[..., object], phase: str) -> None:
    """The message that was taken out waits again, and is delivered once."""
    queue = world.endpoint("q", "a", delivery_delay=5 if function is DelayedIds.remove else 0)
    world.publish("a", b"one")
    world.commit()
    (row,) = queue.browse(0, 10)
    planter = Planter()
    planter.plant((function.__code__, phase))
    try:
        with pytest.raises(Planted):
            queue.take_out(row.msg_id)
    finally:
        planter.stop()
    assert planter.fired
    assert [each.msg_id for each in queue.browse(0, 10)] == [row.msg_id]
    flow = world.bind(queue)
    world.advance(10.0)
    world.commit()
    assert flow.payloads() == [b"one"]

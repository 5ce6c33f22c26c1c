"""vpnrouter.core.guaranteed.recover: endpoints after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def fill(world: SpoolWorld, count: int, first: int = 0) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%04d" % number for number in range(first, first + count)]
    for payload in payloads:
        world.publish("a/b", payload)
    world.commit()
    return payloads


def test_a_backlog_drains_after_a_restart(world: SpoolWorld) -> None:
    """In order, read back from the store."""
    queue = world.endpoint("q", "a/#")
    payloads = fill(world, 500)
    (queue,) = world.restart()
    flow = world.bind(queue, window=7)
    got: list[bytes] = []
    while len(got) < 500:
        world.commit()
        got += flow.payloads()
        flow.settle_all()
    assert got == payloads
    world.commit()
    assert queue.spooled_count == 0
    assert len(world.spool.ledger) == 0

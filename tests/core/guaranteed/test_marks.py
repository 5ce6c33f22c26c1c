"""vpnrouter.core.guaranteed.spool: what may have been delivered before a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import FAILED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def fill(world: SpoolWorld, count: int, first: int = 0) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%04d" % number for number in range(first, first + count)]
    for payload in payloads:
        world.publish("a/b", payload)
    world.commit()
    return payloads


def test_a_restart_flags_what_may_have_been_delivered(world: SpoolWorld) -> None:
    """What a consumer may have seen is flagged; counted tries are remembered; new messages are new."""
    queue = world.endpoint("q", "a/#")
    flow = world.bind(queue, window=2)
    fill(world, 3)
    flow.settle(b"0001", FAILED)
    world.commit()
    (queue,) = world.restart()
    fill(world, 2, first=3)
    flow = world.bind(queue)
    world.commit()
    flow.settle_all()
    # A mark may run ahead within what is there, never into what is new.
    assert [count for _, _, count in flow.sent] == [-1, 1, -1, 0, 0]

"""vpnrouter.core.guaranteed.flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.flow import PAUSED, READY, RELEASED, UNASSIGNED
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import Sink, SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint

KEYS = [f"key{number}" for number in range(40)]


def partitioned(world: SpoolWorld, count: int = 8) -> Endpoint:
    """A queue with partitions."""
    return world.endpoint("q", "a", exclusive=False, partition_count=count)


def fill(world: SpoolWorld, mark: str, keys: list[str] = KEYS) -> None:
    """A message for each key."""
    for key in keys:
        world.publish("a", f"{key}:{mark}".encode(), JMSXGroupID=key)
    world.commit()


def keys_of(payloads: list[bytes]) -> set[str]:
    """The keys of messages."""
    return {payload.decode().partition(":")[0] for payload in payloads}


def marks_of(payloads: list[bytes], key: str) -> str:
    """The marks of one key, in the order in which they came."""
    parts = [payload.decode().partition(":") for payload in payloads]
    return "".join(mark for name, _, mark in parts if name == key)


def test_a_key_has_one_consumer(world: SpoolWorld) -> None:
    """All messages of a key go to one consumer, in order; each consumer has its share."""
    queue = partitioned(world)
    flows = [world.bind(queue, name) for name in "abc"]
    world.advance(6)
    for mark in "123":
        fill(world, mark)
    got = [flow.payloads() for flow in flows]
    assert sum(len(payloads) for payloads in got) == 120
    owned = [keys_of(payloads) for payloads in got]
    assert all(owned)
    assert sum(len(keys) for keys in owned) == len(KEYS)
    for key in KEYS:
        assert sorted(marks_of(payloads, key) for payloads in got) == ["", "", "123"]
    for flow in flows:
        flow.settle_all()
    world.commit()
    assert queue.spooled_count == 0


def test_messages_without_a_key_spread(world: SpoolWorld) -> None:
    """They belong to no partition in particular; a restart finds them in the same ones."""
    queue = partitioned(world, 4)
    for number in range(40):
        world.publish("a", b"%d" % number)
    world.commit()
    assert [pool.count for pool in queue.waiting] == [10] * 4
    (queue,) = world.restart()
    assert [pool.count for pool in queue.waiting] == [10] * 4
    flow = world.bind(queue)
    world.commit()
    flow.settle_all(RELEASED)
    queue.unbind(flow, counts=False)
    assert [pool.count for pool in queue.waiting] == [10] * 4


def test_a_restart_finds_the_same_partitions(world: SpoolWorld) -> None:
    """Keys are in the store; what comes back goes to where it was."""
    queue = partitioned(world)
    fill(world, "1")
    before = [pool.count for pool in queue.waiting]
    (queue,) = world.restart()
    assert [pool.count for pool in queue.waiting] == before
    flow = world.bind(queue)
    world.commit()
    queue.unbind(flow, counts=False)
    assert [pool.count for pool in queue.waiting] == before


def rebalanced(world: SpoolWorld) -> tuple[Endpoint, Sink, Sink]:
    """A consumer with messages of every partition in hand, and a second one that came."""
    queue = partitioned(world, 4)
    first = world.bind(queue, "first")
    fill(world, "1")
    second = world.bind(queue, "second")
    fill(world, "2")
    assert (len(first.unacked), len(second.unacked)) == (80, 0), "nothing moves at once"
    world.advance(5)
    return queue, first, second


def test_rebalance(world: SpoolWorld) -> None:
    """After the delay partitions move; each is paused until the old consumer has settled it."""
    queue, first, second = rebalanced(world)
    partitions = queue.partitions
    assert partitions is not None
    assert [partitions.status(lane) for lane in range(4)] == [READY, READY, PAUSED, PAUSED]
    first.payloads()
    fill(world, "3")
    assert second.payloads() == []
    stayed = keys_of(first.payloads())
    first.settle_all()
    world.commit()
    moved = keys_of(second.payloads())
    assert moved == set(KEYS) - stayed
    fill(world, "4")
    assert keys_of(first.payloads()) == stayed
    assert keys_of(second.payloads()) == moved
    assert [partitions.status(lane) for lane in range(4)] == [READY] * 4


def test_hand_off_time(world: SpoolWorld) -> None:
    """A consumer that does not finish loses the partition; what comes back from it goes to the new one."""
    queue, first, second = rebalanced(world)
    fill(world, "3")
    world.advance(2.9)
    assert second.sent == []
    world.advance(0.1)
    moved = keys_of(second.payloads())
    assert moved
    first.settle_all(RELEASED)
    world.commit()
    later = second.payloads()
    assert keys_of(later) == moved
    assert marks_of(later, next(iter(moved))) == "12"
    assert queue.spooled_count == 120


def test_a_consumer_that_goes(world: SpoolWorld) -> None:
    """Its partitions are given away at once, also those that were to move to it or from it."""
    queue, first, second = rebalanced(world)
    partitions = queue.partitions
    assert partitions is not None
    queue.unbind(first, counts=True)
    world.commit()
    assert len(second.payloads()) == 80
    assert partitions.heirs == {}
    third = world.bind(queue, "third")
    world.advance(5)
    assert len(partitions.heirs) == 2
    queue.unbind(third, counts=True)
    assert partitions.heirs == {}
    queue.unbind(second, counts=False)
    assert [partitions.status(lane) for lane in range(4)] == [UNASSIGNED] * 4
    world.advance(10)


def test_a_consumer_that_restarts_finds_its_own(world: SpoolWorld) -> None:
    """Within the rebalance delay nothing else moves."""
    queue = partitioned(world, 4)
    first, second = world.bind(queue, "first"), world.bind(queue, "second")
    world.advance(6)
    fill(world, "1")
    mine = keys_of(first.payloads())
    queue.unbind(second, counts=False)
    again = world.bind(queue, "second")
    world.advance(6)
    for flow in (first, again):
        flow.settle_all()
    world.commit()
    first.payloads()
    again.payloads()
    fill(world, "2")
    assert mine <= keys_of(first.payloads())
    assert len(again.payloads()) > 0


def test_partitions_share_a_window_fairly(world: SpoolWorld) -> None:
    """No partition starves behind a busy one of the same consumer."""
    queue = partitioned(world, 4)
    flow = world.bind(queue, window=1)
    fill(world, "1")
    lanes = []
    for _ in range(8):
        world.commit()
        (message,) = flow.unacked.values()
        lanes.append(message.lane % 4)
        flow.settle_all()
    assert set(lanes) == {0, 1, 2, 3}


def test_no_selectors(world: SpoolWorld) -> None:
    """A consumer of partitions takes what is in them."""
    queue = partitioned(world)
    with pytest.raises(Refused, match=refusals.INVALID_SELECTOR):
        world.bind(queue, selector="a = 'b'")

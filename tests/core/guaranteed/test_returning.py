"""vpnrouter.core.guaranteed.returning: what a consumer holds when it ends goes back in slices, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.connection import Connection
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.guaranteed.returning import AT_ONCE
from vpnrouter.core.memory_account import MemoryAccount

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tests.core.guaranteed.spool_world import Sink, SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint

COUNT = 2_000


def fill(world: SpoolWorld, count: int = COUNT, first: int = 0, **more: str) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%05d" % number for number in range(first, first + count)]
    for payload in payloads:
        world.publish("a", payload, **more)
    world.commit()
    return payloads


def turn(world: SpoolWorld) -> None:
    """One slice of what is to be done, and one round of the spool."""
    world.context.jobs.step()
    world.commit()


def turns(world: SpoolWorld) -> int:
    """All that is left to be done, and how many turns that takes."""
    count = 0
    while len(world.context.jobs):
        turn(world)
        count += 1
    return count


def held(world: SpoolWorld, queue: Endpoint, count: int = COUNT, **more: str) -> Sink:
    """A consumer that holds so many messages."""
    flow = world.bind(queue, window=10_000)
    fill(world, count, **more)
    assert len(flow.unacked) == count
    world.context.work = 0
    return flow


@pytest.mark.parametrize("counts", [False, True])
def test_slices_are_bounded_and_the_next_consumer_has_all_in_order(
    world: SpoolWorld, *, counts: bool
) -> None:
    """No turn does more than it may; the next consumer is sent everything once, redelivered, before what is new."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    payloads = flow.payloads()
    queue.unbind(flow, counts=counts)
    assert world.context.work <= limits.TURN_WORK
    assert not flow.unacked
    second = world.bind(queue, window=10_000)
    fresh = fill(world, 10, COUNT)
    assert second.sent == []
    slices = 0
    while len(world.context.jobs):
        world.context.jobs.step()
        assert world.context.work < limits.TURN_WORK + 10
        world.commit()
        slices += 1
        assert (second.sent == []) == bool(queue.returning)
    assert slices >= COUNT // limits.TURN_WORK
    assert [count for _, _, count in second.sent] == [1 if counts else -1] * COUNT + [0] * 10
    assert second.payloads() == payloads + fresh
    assert not queue.returning


def test_few_messages_go_back_at_once(world: SpoolWorld) -> None:
    """Nothing is left for later turns."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue, AT_ONCE)
    queue.unbind(flow, counts=False)
    assert not queue.returning
    assert not len(world.context.jobs)


def test_few_messages_of_many_consumers_are_many(world: SpoolWorld) -> None:
    """What a turn does for consumers that end in it adds up."""
    queue = world.endpoint("q", "a", exclusive=False)
    flows = [world.bind(queue, window=AT_ONCE) for _ in range(20)]
    payloads = fill(world, AT_ONCE * 20)
    world.context.work = 0
    for flow in flows:
        queue.unbind(flow, counts=False)
    assert world.context.work <= limits.TURN_WORK + 2 * AT_ONCE
    assert queue.returning
    second = world.bind(queue, window=10_000)
    world.commit()
    turns(world)
    assert sorted(second.payloads()) == payloads


def test_a_standby_takes_over_behind_what_comes_back(world: SpoolWorld) -> None:
    """It is the active one at once, and gets what was sent before ahead of all else."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    standby = world.bind(queue, "standby", 10_000)
    fresh = fill(world, 5, COUNT)
    payloads = flow.payloads()
    queue.unbind(flow, counts=False)
    assert standby.turns == [True]
    turns(world)
    world.commit()
    assert standby.payloads() == (payloads if payloads[-5:] == fresh else payloads + fresh)


def test_other_consumers_go_on(world: SpoolWorld) -> None:
    """Who shares the queue is sent what waits while the rest comes back, and then that."""
    queue = world.endpoint("q", "a", exclusive=False)
    flow = held(world, queue)
    other = world.bind(queue, "other", 10_000)
    queue.unbind(flow, counts=False)
    fresh = fill(world, 5, COUNT)
    assert other.payloads() == fresh
    turns(world)
    assert other.payloads() == flow.payloads()


def test_partitions_keep_their_order_and_the_others_go_on(world: SpoolWorld) -> None:
    """The partitions of the one that ended wait for what comes back; those of others do not."""
    queue = world.endpoint("q", "a", exclusive=False, partition_count=2)
    first, second = (world.bind(queue, name, 10_000) for name in "ab")
    world.advance(6)
    for number in range(COUNT):
        world.publish("a", b"%05d" % number, JMSXGroupID=f"k{number % 16}")
    world.commit()
    kept, lost = second.payloads(), first.payloads()
    assert len(kept) > AT_ONCE < len(lost)
    world.context.work = 0
    queue.unbind(first, counts=False)
    for number in range(COUNT, COUNT + 16):
        world.publish("a", b"%05d" % number, JMSXGroupID=f"k{number % 16}")
    world.commit()
    early = second.payloads()
    assert {int(payload) % 16 for payload in early} == {int(payload) % 16 for payload in kept}
    turns(world)
    late = second.payloads()
    assert late == sorted(late)
    assert set(lost) < set(late)
    assert len(early) + len(late) == len(lost) + 16


def test_other_partitions_meanwhile(world: SpoolWorld) -> None:
    """A queue that gets other partitions meanwhile delivers each key in order, once."""
    queue = world.endpoint("q", "a", exclusive=False, partition_count=2)
    flow = held(world, queue, JMSXGroupID="k")
    payloads = flow.payloads()
    queue.unbind(flow, counts=False)
    turn(world)
    world.settings(queue, partition_count=5)
    second = world.bind(queue, window=10_000)
    fresh = fill(world, 5, COUNT, JMSXGroupID="k")
    turns(world)
    assert second.payloads() == payloads + fresh


def test_selectors_see_what_comes_back(world: SpoolWorld) -> None:
    """A consumer with a selector gets what matches of it once; another the rest."""
    queue = world.endpoint("q", "a", exclusive=False)
    flow = world.bind(queue, window=10_000)
    other = world.bind(queue, "red", 10_000, "colour = 'red'")
    for number in range(COUNT):
        world.publish("a", b"%05d" % number, colour="red" if number % 2 else "blue")
    world.commit()
    payloads = flow.payloads()
    assert len(payloads) > AT_ONCE
    assert other.payloads()
    world.context.work = 0
    queue.unbind(flow, counts=False)
    second = world.bind(queue, "late", 10_000, "colour = 'blue'")
    world.commit()
    turns(world)
    red, blue = other.payloads(), second.payloads()
    assert sorted(red + blue) == payloads
    assert all(int(payload) % 2 == 0 for payload in blue)
    assert blue == sorted(blue)


def test_given_up_messages_reach_the_dead_message_queue_in_order(world: SpoolWorld) -> None:
    """The last try counts in slices as at once."""
    world.endpoint("dead")
    queue = world.endpoint("q", "a", max_redelivery_count=1, dead_msg_queue="dead")
    for again in (False, True):
        flow = world.bind(queue, window=10_000)
        if not again:
            fill(world)
        world.commit()
        payloads = flow.payloads()
        world.context.work = 0
        queue.unbind(flow, counts=True)
        turns(world)
    assert queue.spooled_count == 0
    dead = world.vpn.queue("dead")
    assert dead is not None
    reader = world.bind(dead, window=10_000)
    world.commit()
    assert reader.payloads() == payloads
    reader.settle_all()
    world.commit()


ENDS: dict[str, Callable[[SpoolWorld, Endpoint], object]] = {
    "deleted": lambda _, queue: queue.delete("gone"),
    "purged": lambda _, queue: queue.purge(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("early", [False, True])
def test_what_is_emptied_meanwhile_is_empty(world: SpoolWorld, end: str, *, early: bool) -> None:
    """Deletion and purge take what is on its way back with the rest, without work for each message."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    queue.unbind(flow, counts=True)
    if not early:
        turn(world)
        assert queue.returning
    world.context.work = 0
    ENDS[end](world, queue)
    assert world.context.work < 10
    assert (queue.spooled_count, queue.counters.deleted, queue.returning) == (0, COUNT, [])
    turns(world)
    world.commit()
    assert (queue.redeliveries, len(world.spool.ledger)) == ({}, 0)


def test_deletion_takes_what_consumers_hold(world: SpoolWorld) -> None:
    """Consumers are unbound by the deletion of their queue, and no message is looked at for that."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    queue.delete("gone")
    assert (flow.ended, queue.spooled_count, queue.counters.deleted) == (["gone"], 0, COUNT)
    assert world.context.work < 10
    turns(world)


def test_a_shutdown_meanwhile(world: SpoolWorld) -> None:
    """Messages come back to a queue that is shut down, and go out when it is up again."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    payloads = flow.payloads()
    world.settings(queue, egress_enabled=False)
    assert flow.ended
    turn(world)
    world.settings(queue, egress_enabled=True)
    second = world.bind(queue, window=10_000)
    turns(world)
    assert second.payloads() == payloads


def test_the_newest_stays_in_a_queue_that_becomes_a_last_value_queue(world: SpoolWorld) -> None:
    """It is kept, also where it is on its way back."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    payloads = flow.payloads()
    queue.unbind(flow, counts=False)
    turn(world)
    world.settings(queue, max_msg_spool_usage=0)
    second = world.bind(queue)
    turns(world)
    world.commit()
    assert second.payloads() == payloads[-1:]
    assert queue.counters.discarded.total() == COUNT - 1


def test_management_sees_and_takes_what_is_on_its_way_back(world: SpoolWorld) -> None:
    """It is browsed, found, moved and deleted like what waits."""
    world.endpoint("other")
    other = world.vpn.queue("other")
    assert other is not None
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    rows = queue.browse(0, COUNT + 1)
    queue.unbind(flow, counts=False)
    assert [row.msg_id for row in queue.browse(0, COUNT + 1)] == [row.msg_id for row in rows]
    assert queue.flows == []
    assert (queue.first_held(), queue.last_held()) == (rows[0].msg_id, rows[-1].msg_id)
    assert queue.find(rows[5].msg_id) is not None
    assert queue.delete_message(rows[5].msg_id) == ""
    assert queue.move_message(rows[6].msg_id, other) == ""
    turns(world)
    second = world.bind(queue, window=10_000)
    world.commit()
    assert second.payloads() == [
        payload for payload in flow.payloads() if payload not in (b"00005", b"00006")
    ]


def test_a_crash_half_way(world: SpoolWorld) -> None:
    """After the next start all is there, in order."""
    queue = world.endpoint("q", "a")
    flow = held(world, queue)
    payloads = flow.payloads()
    queue.unbind(flow, counts=True)
    turn(world)
    assert queue.returning
    (queue,) = world.restart()
    second = world.bind(queue, window=10_000)
    world.commit()
    assert second.payloads() == payloads


class Peer(Connection):
    """A connection that counts in the account of a client username."""

    def __init__(self, world: SpoolWorld) -> None:
        super().__init__(world.context, "peer", 1_000)
        self.home = world.vpn.memory.of("user")

    def open_account(self) -> MemoryAccount | None:
        return MemoryAccount("peer", 0, self.home, self)


@pytest.mark.parametrize("evicted", [False, True])
def test_memory_is_counted_until_it_is_given_back(
    world: SpoolWorld, spool_kit: ModuleType, *, evicted: bool
) -> None:
    """It counts for the client username where the connection is gone, and for nobody in the end."""
    queue = world.endpoint("q", "a")
    peer = Peer(world)

    class Counted(spool_kit.Sink):  # type: ignore[name-defined, misc]
        """A consumer whose deliveries count for its client."""

        def owning_connection(self) -> Connection | None:
            return peer

    flow = Counted(queue, "c", 10_000)
    flow.budget = limits.UNSETTLED_BYTES
    queue.bind(flow, CONSUME, CONSUME)
    fill(world)
    memory = world.vpn.memory
    size = flow.counted
    assert memory.held == size > 0
    if evicted:
        assert peer.account is not None
        peer.account.evict()
        size = 0
    world.context.work = 0
    queue.unbind(flow, counts=False)
    peer.release_resources()
    assert (memory.held, memory.lasting, memory.unreturned) == (size, size, 0)
    assert peer.unsettled_bytes == 0
    seen = [size]
    while len(world.context.jobs):
        turn(world)
        seen.append(memory.held)
    assert seen == sorted(seen, reverse=True)
    assert evicted or len(set(seen)) > 2
    assert (memory.held, memory.lasting, memory.unreturned) == (0, 0, 0)
    assert "user" not in memory.named

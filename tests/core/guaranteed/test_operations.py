"""vpnrouter.core.guaranteed.endpoint: what management does with messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import IN_HAND, MESSAGE_NOT_FOUND
from vpnrouter.core.guaranteed.flow import FAILED
from vpnrouter.core.guaranteed.unit_of_work import UNMATCHED
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


def filled(world: SpoolWorld, count: int, **settings: Any) -> Endpoint:
    """A queue with numbered messages."""
    queue = world.endpoint("q", "a", **settings)
    for number in range(count):
        world.publish("a", b"%04d" % number)
    world.commit()
    return queue


def ids_of(queue: Endpoint) -> list[int]:
    """All ids of a queue."""
    return [row.msg_id for row in queue.browse(0, 1_000)]


def test_browse(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Page by page, in the order of ids, whatever state they are in; nothing changes."""
    queue = world.endpoint("q", "a", respect_ttl_enabled=True, max_ttl=100)
    for priority in ("9", "", "2"):
        world.publish("a", b"x" * 10, priority=priority)
    message = spool_kit.guaranteed("a", b"y", dmq_eligible="false")
    message.expires_ns = world.context.now_ns + 50 * spool_kit.SECOND_NS
    world.give(message)
    world.commit()
    flow = world.bind(queue, window=2)
    world.commit()
    flow.settle_all(FAILED)
    world.commit()
    first = queue.browse(0, 3)
    assert [row.priority for row in first] == [9, 4, 2]
    assert [row.undelivered for row in first] == [False, False, True]
    assert [row.redelivery_count for row in first] == [1, 1, 0]
    (last,) = queue.browse(first[-1].msg_id, 3)
    assert (last.topic, last.size, last.dmq_eligible) == (b"a", 2 + len(message.block), False)
    assert last.spooled_time_ns == spool_kit.WALL_NS
    assert last.expiry_time_ns == spool_kit.WALL_NS + 50 * spool_kit.SECOND_NS
    assert first[0].expiry_time_ns == spool_kit.WALL_NS + 100 * spool_kit.SECOND_NS
    assert queue.browse(last.msg_id, 3) == []
    assert queue.spooled_count == 4
    assert flow.counts() == [0, 0, 1, 1]


def test_copy_and_move(world: SpoolWorld) -> None:
    """A copy is a message of its own; a move is one step, counted at both ends."""
    queue = filled(world, 3)
    other = world.endpoint("other", max_spooled_msg_count=2)
    ids = ids_of(queue)
    assert queue.copy_message(ids[0], other) == ""
    assert queue.move_message(ids[1], other) == ""
    assert queue.move_message(ids[2], other) == refusals.MAX_MESSAGE_USAGE
    assert (queue.spooled_count, other.spooled_count) == (2, 2)
    assert queue.counters.moved == 1
    assert queue.copy_message(999, other) == queue.move_message(999, other) == MESSAGE_NOT_FOUND
    world.commit()
    queue, other = world.restart()
    flow = world.bind(other)
    world.commit()
    assert flow.payloads() == [b"0000", b"0001"]


def test_what_a_consumer_has_is_its_own(world: SpoolWorld) -> None:
    """It can be copied, but neither moved nor deleted."""
    queue = filled(world, 1)
    other = world.endpoint("other")
    flow = world.bind(queue)
    world.commit()
    (message_id,) = ids_of(queue)
    assert queue.move_message(message_id, other) == IN_HAND
    assert queue.delete_message(message_id) == IN_HAND
    assert queue.copy_message(message_id, other) == ""
    flow.settle_all()
    world.commit()
    assert (queue.spooled_count, other.spooled_count) == (0, 1)


def test_delete_one(world: SpoolWorld) -> None:
    """It is gone, whether it waits or is delayed."""
    queue = filled(world, 3, redelivery_delay_enabled=True)
    flow = world.bind(queue, window=1)
    world.commit()
    flow.window = 0
    flow.settle_all(FAILED)
    ids = ids_of(queue)
    assert [queue.delete_message(number) for number in (ids[0], ids[1], ids[1])] == [
        "",
        "",
        MESSAGE_NOT_FOUND,
    ]
    world.commit()
    assert queue.counters.deleted == 2
    (queue,) = world.restart()
    assert ids_of(queue) == [ids[2]]
    assert list(world.store.scan(keys.REDELIVERIES)) == []


def test_delete_an_endpoint(world: SpoolWorld) -> None:
    """All leaves, also what is on its way; consumers are told; nothing is routed there any more."""
    queue = filled(world, 3)
    other = world.endpoint("other", "a")
    flow = world.bind(queue, window=1)
    standby = world.bind(queue)
    world.commit()
    world.publish("a")
    world.publish("$queue/q")
    queue.delete("gone")
    queue.delete("gone")
    assert (flow.ended, standby.ended) == (["gone"], ["gone"])
    assert world.vpn.queue("q") is None
    world.commit()
    assert (queue.spooled_count, queue.counters.deleted) == (0, 5)
    assert not queue.endpoint
    assert world.publish("$queue/q") == 3
    world.publish("a")
    other.delete("gone")
    assert world.publish("a") == UNMATCHED
    world.commit()
    assert (other.spooled_count, world.spool.usage, world.vpn.egress_flows) == (0, 0, 0)
    assert len(world.spool.ledger) == 0
    assert not flow.endpoint.settle(flow, 1, 0)

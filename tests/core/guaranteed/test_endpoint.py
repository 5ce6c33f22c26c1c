"""vpnrouter.core.guaranteed.endpoint: last values, binding, purging and operations on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import IN_HAND, MESSAGE_NOT_FOUND
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, READ_ONLY, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.flow import FAILED
from vpnrouter.core.guaranteed.unit_of_work import SYNCED, UNMATCHED
from vpnrouter.errors import Refused
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


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


def refusal(world: SpoolWorld, kit: ModuleType, permission: int = CONSUME) -> str:
    """The reason for which the first endpoint refuses one more consumer."""
    queue = world.endpoints[0]
    with pytest.raises(Refused) as caught:
        queue.bind(kit.Sink(queue), permission, CONSUME)
    assert queue.counters.bind_failures[caught.value.reason] == 1
    return caught.value.reason


def test_max_bind_count(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Beyond it a bind is refused; who goes makes room."""
    queue = world.endpoint("q", max_bind_count=2)
    flow = world.bind(queue)
    world.bind(queue)
    assert refusal(world, spool_kit) == refusals.QUEUE_BINDS
    queue.unbind(flow, counts=False)
    queue.unbind(flow, counts=False)
    world.bind(queue)
    assert (queue.counters.bind_request_count, queue.counters.bind_success_count) == (4, 3)


def test_binds_to_a_topic_endpoint(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """It has its own strings."""
    queue = world.endpoint("t", kind=TOPIC_ENDPOINT, max_bind_count=0)
    assert refusal(world, spool_kit) == refusals.TOPIC_ENDPOINT_BINDS
    queue.settings.egress_enabled = False
    assert refusal(world, spool_kit) == refusals.TOPIC_ENDPOINT_SHUTDOWN
    queue.delete("gone")
    assert refusal(world, spool_kit) == refusals.UNKNOWN_TOPIC_ENDPOINT


def test_egress_disabled(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """No consumer is let in."""
    world.endpoint("q", egress_enabled=False)
    assert refusal(world, spool_kit) == refusals.QUEUE_SHUTDOWN


def test_no_flow_binds_twice(world: SpoolWorld) -> None:
    """It would count twice."""
    queue = world.endpoint("q")
    flow = world.bind(queue)
    with pytest.raises(Refused, match=refusals.ALREADY_BOUND):
        queue.bind(flow, CONSUME, CONSUME)


def test_a_permission_that_does_not_reach(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Reading is not consuming."""
    world.endpoint("q")
    assert refusal(world, spool_kit, READ_ONLY) == refusals.PERMISSION_DENIED


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

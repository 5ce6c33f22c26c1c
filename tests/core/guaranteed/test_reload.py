"""vpnrouter.core.guaranteed.endpoint: changed attributes, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.flow import RELEASED
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, UNMATCHED
from vpnrouter.core.subscriber import Subscription
from vpnrouter.topics.grammar import MQTT, parse_filter

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


def filled(world: SpoolWorld, count: int, **settings: Any) -> Endpoint:
    """A queue with numbered messages, of priorities 0 to 9 in turn."""
    queue = world.endpoint("q", "a", **settings)
    for number in range(count):
        world.publish("a", b"%05d" % number, priority=str(number % 10), JMSXGroupID=str(number % 7))
    world.commit()
    return queue


def test_egress_off(world: SpoolWorld) -> None:
    """Flows are let go, and told; what they held comes back, uncounted."""
    queue = filled(world, 3)
    flow = world.bind(queue, window=2)
    world.commit()
    world.settings(queue, egress_enabled=False)
    world.commit()
    assert flow.ended == [refusals.QUEUE_SHUTDOWN]
    assert (queue.flows, queue.waiting[0].count, flow.unacked) == ([], 3, {})
    world.settings(queue, egress_enabled=True)
    flow = world.bind(queue)
    world.commit()
    assert flow.counts() == [-1, -1, 0]


def test_quotas(world: SpoolWorld) -> None:
    """A smaller quota keeps what is there and takes nothing more."""
    queue = filled(world, 5)
    world.settings(queue, max_spooled_msg_count=2)
    assert world.publish("a") == REJECTED
    world.settings(queue, max_spooled_msg_count=0)
    assert world.publish("a") == SPOOLED
    world.commit()
    assert queue.spooled_count == 6


def test_last_value_from_now_on(world: SpoolWorld) -> None:
    """The newest stays; what a consumer has is the consumer's."""
    queue = filled(world, 10)
    flow = world.bind(queue, window=2)
    world.commit()
    world.settings(queue, max_msg_spool_usage=0)
    world.commit()
    assert queue.spooled_count == 3
    assert queue.counters.discarded.counts == {"last-value": 7}
    flow.settle_all()
    world.commit()
    assert flow.payloads() == [b"00000", b"00001", b"00009"]


def test_partitions_come_and_go(world: SpoolWorld) -> None:
    """What waits is sorted anew over several rounds; nothing is delivered meanwhile, so order holds."""
    queue = filled(world, 12_000, exclusive=False, max_delivered_unacked_msgs_per_flow=20_000)
    flow = world.bind(queue, window=0)
    world.settings(queue, partition_count=5)
    flow.window = 20_000
    assert world.seal() is None
    assert flow.sent == []
    assert len(queue.order.unsorted) == 1
    world.commit()
    payloads = flow.payloads()
    assert len(payloads) == 12_000
    for key in range(7):
        mine = [payload for payload in payloads if int(payload) % 7 == key]
        assert mine == sorted(mine)
    flow.settle_all(RELEASED)
    world.commit()
    flow.payloads()
    flow.window = 0
    flow.settle_all(RELEASED)
    world.settings(queue, partition_count=0)
    flow.window = 20_000
    world.commit()
    assert flow.payloads() == sorted(payloads)
    assert queue.partitions is None


def test_priorities_from_now_on(world: SpoolWorld) -> None:
    """What waits is sorted, and sorted back."""
    queue = filled(world, 20)
    world.settings(queue, respect_msg_priority_enabled=True)
    flow = world.bind(queue, window=3)
    world.commit()
    assert flow.payloads() == [b"00009", b"00019", b"00008"]
    world.settings(queue, respect_msg_priority_enabled=False)
    flow.settle_all(RELEASED)
    world.commit()
    assert flow.payloads() == [b"00000", b"00001", b"00002"]


def test_access(world: SpoolWorld) -> None:
    """Exclusive or not, from now on."""
    queue = filled(world, 4)
    first, second = world.bind(queue, window=1), world.bind(queue, window=1)
    world.settings(queue, exclusive=False)
    world.commit()
    assert (first.turns, second.turns) == ([True], [True])
    assert (first.payloads(), second.payloads()) == ([b"00000"], [b"00001"])
    world.settings(queue, exclusive=True)
    first.settle_all()
    second.settle_all()
    world.commit()
    assert (first.turns, second.turns) == ([True], [True, False])
    assert (first.payloads(), second.payloads()) == ([b"00002"], [])


def test_life_times_from_now_on(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """They hold for what is there too, and no longer when switched off."""
    queue = world.endpoint("q", "a")
    for seconds in (5, 50):
        message = spool_kit.guaranteed("a")
        message.expires_ns = world.context.now_ns + seconds * spool_kit.SECOND_NS
        world.give(message)
    world.publish("a")
    world.commit()
    world.settings(queue, respect_ttl_enabled=True)
    world.commit()
    world.advance(6)
    assert queue.spooled_count == 2
    world.settings(queue, max_ttl=10)
    world.advance(5)
    assert queue.spooled_count == 0
    world.publish("a")
    world.commit()
    world.settings(queue, respect_ttl_enabled=False)
    world.advance(100)
    assert queue.spooled_count == 1


def test_a_delay_that_is_over_by_now(world: SpoolWorld) -> None:
    """A shorter delay holds for what is held back."""
    queue = filled(world, 3, delivery_delay=1_000)
    flow = world.bind(queue)
    world.advance(10)
    assert flow.sent == []
    world.settings(queue, delivery_delay=5)
    world.advance(0.1)
    assert len(flow.payloads()) == 3


def test_subscriptions(world: SpoolWorld) -> None:
    """What is there stays; what comes goes by the new ones."""
    queue = filled(world, 1)
    world.vpn.unsubscribe(queue, "a")
    assert world.publish("a") == UNMATCHED
    world.vpn.subscribe(Subscription(parse_filter("b", MQTT), queue))
    assert world.publish("b") == SPOOLED
    world.commit()
    assert queue.spooled_count == 2

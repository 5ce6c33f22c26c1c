"""The numbers of queues, over a spool on disk."""

from typing import Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, QUEUE
from vpnrouter.core.guaranteed.flow import Flow
from vpnrouter.management.status.queues import (
    OTHER,
    QueueNumbers,
    by_reason,
    oldest_id,
)

TEXT = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>], max_msg_spool_usage: 3}}}}"
SECOND = 1_000_000_000


class Hand(Flow):
    """A consumer that keeps what it gets."""

    def room(self) -> int:
        return self.window - len(self.unacked)

    def send(self, message_id: int, message: Any, count: int) -> None:
        """See Flow.send."""

    def unbound(self, reason: str) -> None:
        """See Flow.unbound."""


def endpoint_of(one: Any) -> Any:
    """The queue."""
    return one.router.vpns["blue"].endpoints[QUEUE, "q"]


def test_numbers(stored: Any) -> None:
    """What is in a queue, what was, and how long the oldest message has been waiting."""
    one = stored(TEXT)
    context = one.router.context
    numbers = QueueNumbers(one.spooling.spool)
    numbers.look()
    empty = numbers.of("blue", endpoint_of(one))
    assert (empty.messages, empty.oldest_age, empty.max_size) == (0, 0.0, 3_000_000)
    one.publish("a/1")
    context.now_ns += 5 * SECOND
    numbers.look()
    one.publish("a/2")
    context.now_ns += 5 * SECOND
    shown = numbers.of("blue", endpoint_of(one))
    assert (shown.msg_vpn, shown.queue) == ("blue", "q")
    assert (shown.messages, shown.spooled, shown.acked, shown.imbalance) == (2, 2, 0, 0)
    assert shown.size > 0
    assert shown.spooled_size == shown.size
    assert shown.oldest_age == pytest.approx(10, abs=0.01)
    assert (shown.ingress_disabled, shown.egress_disabled, shown.consumers) == (0, 0, 0)


def test_oldest_of_what_consumers_have(stored: Any) -> None:
    """A message that a consumer keeps is still the oldest."""
    one = stored(TEXT)
    for number in range(3):
        one.publish(f"a/{number}")
    endpoint = endpoint_of(one)
    first = oldest_id(endpoint)
    assert first == endpoint.browse(0, 1)[0].msg_id
    flow = Hand(endpoint, "c", 2)
    endpoint.bind(flow, CONSUME, CONSUME)
    one.commit()
    assert len(flow.unacked) == 2
    assert oldest_id(endpoint) == first
    shown = QueueNumbers(one.spooling.spool).of("blue", endpoint)
    assert (shown.unacked, shown.consumers, shown.messages) == (2, 1, 3)
    endpoint.settle(flow, first, 0)
    one.commit()
    assert oldest_id(endpoint) == first + 1


def test_age_of_what_was_there_before(stored: Any) -> None:
    """After a start messages are read for their age, once each and few at a time."""
    stored(TEXT).publish("a/1")
    one = stored(TEXT)
    context = one.router.context
    assert context.steady_ns
    context.now_ns += 100 * SECOND
    numbers = QueueNumbers(one.spooling.spool)
    numbers.look()
    endpoint = endpoint_of(one)
    numbers._left = 0
    assert numbers.of("blue", endpoint).oldest_age == 0.0
    numbers.look()
    assert numbers.of("blue", endpoint).oldest_age == pytest.approx(100, abs=20)
    numbers._left = 0
    context.now_ns += 50 * SECOND
    assert numbers.of("blue", endpoint).oldest_age == pytest.approx(150, abs=20)


def test_reasons_are_a_closed_set() -> None:
    """What nobody knows is added up."""
    assert by_reason({}) == {}
    assert by_reason({"max-ttl-expired": 2}) == {"max-ttl-expired": 2}
    assert by_reason({"max-ttl-expired": 2, "topic a/b": 3, "c": 4}) == {
        "max-ttl-expired": 2,
        OTHER: 7,
    }

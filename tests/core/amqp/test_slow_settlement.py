"""A consumer that settles nothing yet is sent all that its credit and its window allow, however much that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.amqp.types import Described, Symbol
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

SIZE = 20_000
COUNT = 4 * limits.GUARANTEED_AHEAD_BYTES // SIZE
FILTER = {Symbol("s"): Described(Symbol("apache.org:selector-filter:string"), "absent IS NULL")}

Taken = Callable[[], int]


def amqp(join: Any, name: str, address: str, **source: Any) -> Taken:
    """A client of AMQP with much credit; how many messages it has been sent by now."""
    peer = join(name)
    peer.receiver(address, credit=0, **source)
    peer.credit(1, COUNT)
    return lambda: len(peer.messages())


def mqtt(router: SpooledWorld, name: str, address: str) -> Taken:
    """A client of MQTT 5 with a large receive maximum."""
    client = router.join(name, properties=Properties(receive_maximum=65_535))
    assert client.sub(address) == 1
    return lambda: len(client.messages())


CONSUMERS: dict[str, Callable[[SpooledWorld, Any], list[Taken]]] = {
    "amqp, queue": lambda router, join: [amqp(join, "a", "queue://q")],
    "amqp, queue, selector": lambda router, join: [amqp(join, "a", "queue://q", filter=FILTER)],
    "amqp, topic": lambda router, join: [amqp(join, "a", "topic://t")],
    "amqp, two of a queue": lambda router, join: [amqp(join, each, "queue://q") for each in "ab"],
    "mqtt, queue": lambda router, join: [mqtt(router, "a", "$queue/q")],
    "mqtt, topic": lambda router, join: [mqtt(router, "a", "t")],
    "mqtt, two of a queue": lambda router, join: [mqtt(router, each, "$queue/q") for each in "ab"],
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_all_is_sent_that_credit_allows(router: SpooledWorld, join: Any, name: str) -> None:
    """No settlement comes, and none is waited for: what leaves makes room."""
    router.queue("q", "t")
    takers = CONSUMERS[name](router, join)
    publisher = router.join("p")
    got = 0
    for number in range(COUNT):
        publisher.pub("t", bytes(SIZE), pid=number + 1)
        if number % 50 == 49:
            publisher.got()
    context = router.router.context
    for _ in range(40):
        got += sum(take() for take in takers)
        context.now_ns += SECOND_NS // 10
        context.timers.run(context.now_ns)
    assert got == COUNT

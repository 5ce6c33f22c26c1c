"""Bursts of acknowledged messages over a bridge that works, that is down, and whose remote is silent.

Whoever publishes is told that the message is safe: all of them arrive, once and in order, and what waited goes
on by itself.
"""

import time
from typing import Any, Final

import pytest

ACCEPTED: Final = 0x00
DRAINED_S: Final = 15.0
"""Bound from the moment that the link can be used again until all is over; some two seconds are usual."""


def edge(kit: Any, link: Any) -> Any:
    """Publishers' router: queue to-core of message VPN blue."""
    return kit.up("edge", "blue", kit.vpn(queues={"to-core": kit.queue("orders/>")}), link)


def core(kit: Any, link: Any) -> Any:
    """Consumers' router: its bridge fills queue orders of message VPN yellow."""
    yellow = kit.vpn(
        queues={"orders": kit.queue("orders/>")},
        bridges={"from-blue": kit.bridge(link.address, "blue", "to-core")},
    )
    return kit.up("core", "yellow", yellow)


@pytest.mark.slow
def test_over_a_healthy_bridge(kit: Any) -> None:
    """20,000 acknowledged in one burst are 20,000 at the other side, each once and in order."""
    link = kit.network.link()
    one = edge(kit, link)
    two = core(kit, link)
    two.bridge("from-blue", boundToQueue=True)
    consumer = kit.client(two, "c")
    consumer.client.subscribe("$queue/orders", 1)
    publisher = kit.publisher(one, "p")
    numbers = range(20_000)
    publisher.publish("orders/a", *numbers, size=64)
    assert publisher.answered(*numbers) == [ACCEPTED] * len(numbers)
    consumer.until_number(numbers[-1])
    assert consumer.numbers() == list(numbers)
    kit.holds(one, "blue", "to-core", 0)
    row = two.bridge("from-blue", guaranteedTakenMsgCount=len(numbers))
    assert (row["guaranteedDuplicateMsgCount"], row["rxImbalance"]) == (0, 0)


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_while_the_remote_is_away(kit: Any, how: str) -> None:
    """3,000 acknowledged while the other router is dead, or behind a link that swallows all without a word.

    The link is silent in the midst of traffic: what was under way on it is lost there, and in the queue here.
    """
    link = kit.network.link()
    one = edge(kit, link)
    two = core(kit, link)
    two.bridge("from-blue", boundToQueue=True)
    publisher = kit.publisher(one, "p")
    before, after = range(500), range(500, 3_500)
    if how == "killed":
        publisher.publish("orders/a", *before)
        assert publisher.answered(*before) == [ACCEPTED] * len(before)
        two.kill()
    else:
        publisher.publish("orders/a", *before)
        link.freeze()
    publisher.publish("orders/a", *after)
    assert publisher.answered(*before, *after) == [ACCEPTED] * 3_500
    assert kit.row(one, "blue", "to-core")["msgCount"] >= len(after)

    if how == "silent":
        # Both ends find out by themselves; only then do the connections really end.
        two.says("408 Heartbeat Timeout")
        one.says("408 Heartbeat Timeout")
        link.cut()
        link.heal()
    began_s = time.monotonic()
    if how == "killed":
        two = core(kit, link)
    # Nobody publishes and nobody consumes: it drains because it can.
    kit.holds(one, "blue", "to-core", 0)
    kit.holds(two, "yellow", "orders", 3_500)
    assert time.monotonic() - began_s < DRAINED_S
    consumer = kit.client(two, "c")
    consumer.client.subscribe("$queue/orders", 1)
    consumer.until_number(3_499)
    assert consumer.numbers() == list(range(3_500))
    assert two.bridge("from-blue", inboundState="ready-in-sync")["rxImbalance"] == 0

"""Consumers that are lost count as redeliveries (JMS 2.0, 3.5.9); those that end in order do not."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Released,
    TransactionalState,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld

ERROR = Error(Symbol("amqp:internal-error"), "it broke")


def _silent(router: SpooledWorld, peer: Any) -> None:
    router.advance(limits.AMQP_IDLE_S + 1)
    assert peer.closed


ENDS: dict[str, tuple[Callable[[SpooledWorld, Any], object], int]] = {
    "socket": (lambda _, peer: peer.connection.lost("gone"), 1),
    "garbage": (lambda _, peer: peer.raw(b"\x00\x00\x00\x01garbage"), 1),
    "idle": (_silent, 1),
    "close-error": (lambda _, peer: peer.say(Close(ERROR)), 1),
    "end-error": (lambda _, peer: peer.say(End(ERROR)), 1),
    "session-error": (lambda _, peer: peer.say(Detach(77, True)), 1),
    "detach-error": (lambda _, peer: peer.say(Detach(1, False, ERROR)), 1),
    "put-out": (lambda _, peer: peer.connection.put_out("by the administrator"), 1),
    "close": (lambda _, peer: peer.say(Close()), 0),
    "end": (lambda _, peer: peer.say(End()), 0),
    "close-link": (lambda _, peer: peer.say(Detach(1, True)), 0),
    "detach": (lambda _, peer: peer.say(Detach(1, False)), 0),
    "router-stops": (lambda _, peer: peer.connection.put_out("stops", stopping=True), 0),
}
"""How a consumer ends, and what that counts."""

SOURCES: dict[str, tuple[str, dict[str, object]]] = {
    "queue": ("queue://q", {}),
    "durable": ("topic://a", {"durable": 2, "expiry_policy": Symbol("never")}),
    "shared": ("topic://a", {"durable": 2, "capabilities": [Symbol("shared")]}),
}


@pytest.mark.parametrize(
    ("end", "source"),
    [
        (end, source)
        for end in ENDS
        for source in SOURCES
        # A link that is closed ends a subscription.
        if source == "queue" or end != "close-link"
    ],
)
def test_count(router: SpooledWorld, join: Any, amqp: ModuleType, end: str, source: str) -> None:
    """Each way in which a consumer may end, from each kind of source that outlives it."""
    router.queue("q")
    address, more = SOURCES[source]
    sender = join("sender")
    sender.sender(address)
    peer = join("consumer")
    peer.receiver(address, name="sub", **more)
    assert sender.sent(amqp.message(b"1")) == Accepted()
    (first,) = peer.messages()
    assert (first.header.delivery_count, first.header.first_acquirer) == (0, True)
    finish, count = ENDS[end]
    finish(router, peer)
    router.settle()
    again = join("consumer")
    again.receiver(address, name="sub", **more)
    (got,) = again.messages()
    assert got.body == b"1"
    assert (got.header.delivery_count, got.header.first_acquirer) == (count, False)


@pytest.mark.parametrize("before", ["nothing", "sent", "released", "lost"])
@pytest.mark.parametrize("later", ["nothing", "released"])
def test_router_that_was_killed(
    router: SpooledWorld, join: Any, amqp: ModuleType, before: str, later: str
) -> None:
    """What may have been sent before a restart says so by delivery-count, at which JMS looks; no bound counts it."""
    router.queue("q", max_redelivery_count=2)
    peer = join()
    peer.sender("queue://q")
    peer.sent(amqp.message(b"1"))
    if before != "nothing":
        peer.receiver("queue://q")
        (got,) = peer.messages()
    if before == "released":
        peer.settle(got, Released())
        assert len(peer.messages()) == 1
    elif before == "lost":
        peer.connection.lost("gone")
    router.settle()
    world = router.restart()
    queue = world.attract("q")
    peer = amqp.Peer(world)
    peer.join()
    peer.receiver("queue://q", credit=10)
    (again,) = peer.messages()
    if later == "released":
        peer.settle(again, Released())
        (again,) = peer.messages()
    count = int(before != "nothing")
    first = before == later == "nothing"
    assert (again.header.delivery_count, again.header.first_acquirer) == (count, first)
    (row,) = queue.browse(0, 10)
    assert row.redelivery_count == int(before == "lost")


@pytest.mark.parametrize(("most", "lives"), [(1, 2), (3, 4)])
def test_poison_goes_to_the_dead_messages(
    router: SpooledWorld, join: Any, amqp: ModuleType, most: int, lives: int
) -> None:
    """A message that ends each of its consumers is given up after max_redelivery_count."""
    dead = router.queue("dead")
    queue = router.queue("q", max_redelivery_count=most, dead_msg_queue="dead")
    sender = join("sender")
    sender.sender("queue://q")
    sender.sent(amqp.message(b"poison"))
    for life in range(lives):
        assert (queue.spooled_count, dead.spooled_count) == (1, 0)
        peer = join("consumer")
        peer.receiver("queue://q")
        (got,) = peer.messages()
        assert got.header.delivery_count == life
        peer.connection.lost("it crashed")
        router.settle()
    assert (queue.spooled_count, dead.spooled_count) == (0, 1)


@pytest.mark.parametrize(
    ("state", "settled", "left", "count"),
    [
        (Accepted(), True, 0, 0),
        (Released(), True, 1, 0),
        (None, False, 1, 1),
        # What the client has said in a transaction is undone with it.
        ("transaction", False, 1, 1),
        ("transaction", True, 1, 1),
    ],
)
def test_what_was_settled_before(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    state: Any,
    settled: bool,
    left: int,
    count: int,
) -> None:
    """Only what the consumer still held counts."""
    queue = router.queue("q")
    peer = join("consumer")
    peer.sender("queue://q")
    peer.coordinator()
    peer.sent(amqp.message(b"1"))
    peer.receiver("queue://q", credit=1)
    (got,) = peer.messages()
    if state == "transaction":
        state = TransactionalState(peer.declare(), Accepted())
    if state is not None:
        number = got.transfer.delivery_id or 0
        peer.say(Disposition(True, number, None, settled, state))
    peer.drain()
    peer.connection.lost("gone")
    router.settle()
    assert queue.spooled_count == left
    again = join("consumer")
    again.receiver("queue://q")
    assert [one.header.delivery_count for one in again.messages()] == [count] * left


def test_thousands_count(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """What goes back in slices counts too, and stays in order."""
    router.queue("q")
    sender = join("sender")
    sender.sender("queue://q")
    for number in range(500):
        sender.send(amqp.message(b"%d" % number))
    sender.drain()
    peer = join("consumer")
    peer.receiver("queue://q", credit=1_000)
    held = len(peer.messages())
    assert held == 500
    peer.connection.lost("gone")
    router.settle()
    again = join("consumer")
    again.receiver("queue://q", credit=1_000)
    found = [(one.body, one.header.delivery_count) for one in again.messages()]
    assert found == [(b"%d" % number, 1) for number in range(500)]


@pytest.mark.parametrize("protocol", ["amqp", "mqtt"])
def test_both_protocols_count_together(
    router: SpooledWorld, join: Any, amqp: ModuleType, protocol: str
) -> None:
    """A consumer that is lost over one protocol is seen over the other."""
    router.queue("q", delivery_count_enabled=True)
    sender = join("sender")
    sender.sender("queue://q")
    sender.sent(amqp.message(b"1"))
    mqtt = router.join("m")
    if protocol == "amqp":
        peer = join("consumer")
        peer.receiver("queue://q")
        assert peer.bodies() == [b"1"]
        peer.connection.lost("gone")
        mqtt.sub("$queue/q")
        (got,) = mqtt.resolved(mqtt.rest)
        assert ("JMSXDeliveryCount", "2") in (got.properties.user_properties or [])
    else:
        mqtt.sub("$queue/q")
        assert [one.payload for one in mqtt.resolved(mqtt.rest)] == [b"1"]
        mqtt.lose()
        peer = join("consumer")
        peer.receiver("queue://q")
        (again,) = peer.messages()
        assert again.header.delivery_count == 1

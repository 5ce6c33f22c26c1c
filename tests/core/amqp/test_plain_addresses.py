"""A plain address is a topic: who means a queue of that name is told so, in place of losing messages."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS, READ_ONLY
from vpnrouter.events.log import EventLog
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Detach,
    MessageProperties,
    Rejected,
    TransactionalState,
)

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

ADVICE = (
    "503 No Subscription Match: nobody subscribes to the topic a/b;"
    " the queue of that name is queue://a/b"
)

ADDRESSES = [
    ("a/b", None, ADVICE),
    ("topic://a/b", None, ""),
    ("a/b", ["topic"], ""),
    ("a/b", ["queue"], "taken"),
    ("queue://a/b", None, "taken"),
    ("a/c", None, ""),
]
"""What a client writes, and what it hears: "" where it is discarded as any message to a topic without a receiver."""


def _heard(state: object) -> str:
    if isinstance(state, Rejected):
        assert state.error is not None
        assert state.error.condition in ("amqp:not-found", "amqp:transaction:rollback")
        return str(state.error.description)
    assert state == Accepted()
    return ""


@pytest.fixture
def log(router: SpooledWorld) -> EventLog:
    """The events of the router."""
    found = EventLog("here", lambda: 1)
    router.router.context.events = found
    return found


@pytest.mark.parametrize(
    ("way", "address", "capabilities", "expected"),
    [
        (way, *row)
        for way in ("link", "relay", "transaction", "settled", "settled-transaction")
        for row in ADDRESSES
        # The address of a message has no capabilities.
        if way != "relay" or not row[1]
    ],
)
def test_each_way_to_write_it(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    log: EventLog,
    address: str,
    capabilities: list[str] | None,
    expected: str,
    way: str,
) -> None:
    """Only the plain name of a queue is refused, and the event tells of it once for a connection."""
    queue = router.queue("a/b")
    peer = join()
    message = amqp.message()
    if way == "relay":
        peer.sender(None)
        message = amqp.message(properties=MessageProperties(to=address))
    else:
        peer.sender(
            address, capabilities=None if capabilities is None else amqp.symbols(*capabilities)
        )
    heard = ""
    for _ in range(2):
        if "transaction" in way:
            peer.coordinator()
            txn_id = peer.declare()
            peer.send(message, settled="settled" in way, state=TransactionalState(txn_id))
            peer.drain()
            heard = _heard(peer.discharge(txn_id))
            peer.say(Detach(9, True))
            peer.drain()
        elif way == "settled":
            peer.send(message, settled=True)
            peer.drain()
        else:
            heard = _heard(peer.sent(message))
    refused = expected == ADVICE
    assert heard == (ADVICE if refused and way != "settled" else "")
    assert queue.spooled_count == (2 if expected == "taken" else 0)
    told = [one for one in log.newest(100) if one.kind.name == "CLIENT_CLIENT_QUEUE_NOT_NAMED"]
    assert len(told) == int(refused)


@pytest.mark.parametrize("settings", [{"permission": NO_ACCESS}, {"permission": READ_ONLY}])
def test_names_are_not_given_away(
    router: SpooledWorld, join: Any, amqp: ModuleType, log: EventLog, settings: dict[str, int]
) -> None:
    """Who may not send to the queue does not learn from this that it is there."""
    router.queue("a/b", **settings)
    peer = join()
    peer.sender("a/b")
    assert _heard(peer.sent(amqp.message())) == ""


@pytest.mark.parametrize("receiver", ["mqtt-0", "mqtt-1", "amqp", "queue"])
def test_a_topic_that_somebody_subscribes_to(
    router: SpooledWorld, join: Any, amqp: ModuleType, receiver: str
) -> None:
    """It is a topic then, and the queue of that name does not matter."""
    queue = router.queue("a/b")
    if receiver == "amqp":
        join("receiver").receiver("a/b")
    elif receiver == "queue":
        router.queue("other", "a/b")
    else:
        router.join("m").sub("a/b", int(receiver[-1]))
    peer = join()
    peer.sender("a/b")
    assert _heard(peer.sent(amqp.message())) == ""
    assert queue.spooled_count == 0


def test_mqtt_publishes_to_topics(router: SpooledWorld) -> None:
    """A topic of MQTT is one."""
    router.queue("a/b")
    mqtt = router.join("m")
    mqtt.pub("a/b")
    assert [code for _, _, code in mqtt.acks()] == [0]

"""What a consumer acknowledges and what it knows to be settled."""

import random
from typing import Any

from vpnrouter.testing.history import History, Kind
from vpnrouter.testing.mqtt_clients import Consumer
from vpnrouter.wire.mqtt.packets import Ack, Connack, Publish, Suback, Subscribe
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL


class Eager(random.Random):
    """Always draws the most."""

    def randint(self, a: int, b: int) -> int:
        """The upper end."""
        return b


def made(history: History, **options: Any) -> Consumer:
    """A consumer of endpoint q, connected and subscribed."""
    consumer = Consumer("c", history, Eager(), endpoint="q", topic_filter="orders/#", **options)
    (packet,) = consumer.opened(Connack())
    assert isinstance(packet, Subscribe)
    assert not consumer.ready
    consumer.received(Suback(packet.packet_id, [1]))
    assert consumer.ready
    return consumer


def message(number: int, packet_id: int, qos: int = 1, dup: bool = False) -> Publish:
    """A delivery."""
    return Publish(b"orders/1", f"a-{number} ..".encode(), qos, packet_id=packet_id, dup=dup)


def told(history: History) -> list[tuple[Kind, str, bool]]:
    """Kinds, messages and flags of the events."""
    return [(event.kind, event.message, event.redelivered) for event in history.events]


def test_barrier_settles() -> None:
    """Acknowledgements are known to be stored when the router answers the barrier behind them."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    consumer.received(message(2, 6))
    first, second, barrier = consumer.due()
    assert [first, second] == [Ack(PUBACK, 5), Ack(PUBACK, 6)]
    assert isinstance(barrier, Publish)
    assert (barrier.topic, barrier.qos) == (b"barrier/c", 1)
    assert not consumer.idle
    consumer.received(Ack(PUBACK, barrier.packet_id))
    assert consumer.idle
    assert told(history) == [
        (Kind.DELIVERED, "a-1", False),
        (Kind.DELIVERED, "a-2", False),
        (Kind.CONSUMED, "a-1", False),
        (Kind.CONSUMED, "a-2", False),
        (Kind.SETTLED, "a-1", False),
        (Kind.SETTLED, "a-2", False),
    ]


def test_lost_connection_settles_nothing() -> None:
    """What was acknowledged behind the last answered barrier is not known to be stored."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    *_, barrier = consumer.due()
    consumer.received(message(2, 6))
    consumer.closed()
    assert consumer.idle
    assert consumer.opened(Connack(session_present=True)) == []
    consumer.received(Ack(PUBACK, barrier.packet_id))
    consumer.received(message(1, 5, dup=True))
    assert (Kind.SETTLED, "a-1", False) not in told(history)
    assert told(history)[-1] == (Kind.DELIVERED, "a-1", True)
    assert Ack(PUBACK, 5) in consumer.due()


def test_refused_barrier_settles_nothing() -> None:
    """A barrier that the router did not take says nothing."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    *_, barrier = consumer.due()
    consumer.received(Ack(PUBACK, barrier.packet_id, 0x97))
    assert told(history)[-1] == (Kind.CONSUMED, "a-1", False)


def test_exactly_once() -> None:
    """At QoS 2 a packet that comes again is answered and not delivered; PUBREL settles."""
    history = History()
    consumer = made(history, qos=2)
    consumer.received(message(1, 5, qos=2))
    assert consumer.due() == [Ack(PUBREC, 5)]
    consumer.closed()
    consumer.opened(Connack(session_present=True))
    consumer.received(message(1, 5, qos=2, dup=True))
    assert consumer.due() == [Ack(PUBREC, 5)]
    assert not consumer.idle
    assert consumer.received(Ack(PUBREL, 5)) == [Ack(PUBCOMP, 5)]
    assert consumer.received(Ack(PUBREL, 5)) == [Ack(PUBCOMP, 5, 0x92)]
    assert consumer.idle
    consumer.received(message(2, 5, qos=2))
    assert [each for each in told(history) if each[0] is not Kind.CONSUMED] == [
        (Kind.DELIVERED, "a-1", False),
        (Kind.SETTLED, "a-1", False),
        (Kind.DELIVERED, "a-2", False),
    ]


def test_forgotten_session_is_told() -> None:
    """A durable consumer whose session is gone says so, subscribes anew and forgets the identifiers."""
    history = History()
    consumer = made(history, qos=2)
    consumer.received(message(1, 5, qos=2))
    consumer.closed()
    assert len(consumer.opened(Connack())) == 1
    assert consumer.sessions_lost == 1
    consumer.received(message(1, 5, qos=2))
    assert consumer.deliveries == 2


def test_queue_consumer_subscribes_each_time() -> None:
    """A consumer without a durable session subscribes on every connection, and loses nothing by that."""
    consumer = made(History(), durable=False)
    assert consumer.connect().clean_start
    consumer.closed()
    assert not consumer.ready
    assert len(consumer.opened(Connack())) == 1
    assert consumer.sessions_lost == 0


def test_queue_consumer_knows_what_comes_again() -> None:
    """Without a session there is no DUP over connections: a user property says that it comes again."""
    history = History()
    consumer = made(history, durable=False)
    consumer.received(message(1, 5))
    consumer.closed()
    consumer.opened(Connack())
    again = message(1, 1)
    again.properties.user_properties = [("JMSRedelivered", "true")]
    consumer.received(again)
    consumer.received(message(1, 2))
    assert told(history) == [
        (Kind.DELIVERED, "a-1", False),
        (Kind.DELIVERED, "a-1", True),
        (Kind.DELIVERED, "a-1", False),
    ]


def test_refused_subscription_is_told() -> None:
    """A subscription that the router refuses is noted."""
    history = History()
    consumer = made(history)
    consumer.received(Suback(1, [0x97]))
    assert not consumer.ready
    assert history.events[-1].note == "c: SUBACK 0x97"


def test_paused_consumer_acknowledges_nothing() -> None:
    """A paused consumer receives and holds everything."""
    consumer = made(History())
    consumer.received(message(1, 5))
    consumer.paused = True
    assert consumer.due() == []
    assert consumer.delivered == {"a-1"}
    consumer.paused = False
    assert consumer.due() == [Ack(PUBACK, 5)]

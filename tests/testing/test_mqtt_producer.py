"""What a producer sends, and sends again."""

import random
from typing import Any

from vpnrouter.testing.history import History, Kind
from vpnrouter.testing.mqtt_clients import Producer, message_of
from vpnrouter.wire.mqtt.packets import Ack, Connack, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL


def made(history: History, **options: Any) -> Producer:
    """A producer of messages for queue q, connected."""
    producer = Producer("a", history, random.Random(1), {"orders/1": ("q",)}, **options)
    assert producer.opened(Connack()) == []
    return producer


def ids(packets: list[Any]) -> list[int]:
    """Packet identifiers."""
    return [packet.packet_id for packet in packets]


def told(history: History) -> list[tuple[Kind, str]]:
    """Kinds and messages of the events."""
    return [(event.kind, event.message) for event in history.events]


def test_window_and_burst_and_limit() -> None:
    """New messages leave as far as window, burst and limit allow; the router's receive maximum counts too."""
    producer = Producer("a", History(), random.Random(1), {"t": ()}, window=9, burst=2, limit=4)
    assert producer.due() == []
    producer.opened(Connack(properties=Properties(receive_maximum=3)))
    first, second = producer.due()
    assert [message_of(each.payload) for each in (first, second)] == ["a-1", "a-2"]
    (third,) = producer.due()
    assert producer.due() == []
    assert len({*ids([first, second, third])}) == 3
    for packet in (first, second, third):
        producer.received(Ack(PUBACK, packet.packet_id))
    (fourth,) = producer.due()
    assert not producer.done
    producer.received(Ack(PUBACK, fourth.packet_id, 0x97))
    assert producer.done
    assert producer.reasons == {"a-1": 0, "a-2": 0, "a-3": 0, "a-4": 0x97}


def test_at_least_once() -> None:
    """At QoS 1 what has no answer is sent again with DUP, under its identifier, and may make a copy."""
    history = History()
    producer = made(history, burst=2)
    first, second = producer.due()
    producer.received(Ack(PUBACK, first.packet_id))
    producer.closed()
    assert producer.due() == []
    (again,) = producer.opened(Connack(session_present=True))
    assert isinstance(again, Publish)
    assert (again.packet_id, again.payload, again.dup) == (second.packet_id, second.payload, True)
    producer.received(Ack(PUBACK, second.packet_id, 0x87))
    assert told(history) == [
        (Kind.PUBLISHED, "a-1"),
        (Kind.PUBLISHED, "a-2"),
        (Kind.ACKNOWLEDGED, "a-1"),
        (Kind.RESENT, "a-2"),
        (Kind.REJECTED, "a-2"),
    ]


def test_exactly_once() -> None:
    """At QoS 2 PUBREC is the answer; each step is repeated until the next one is known, and makes no copy."""
    history = History()
    producer = made(history, qos=2, burst=3)
    first, second, third = producer.due()
    assert producer.received(Ack(PUBREC, first.packet_id)) == [Ack(PUBREL, first.packet_id)]
    assert producer.received(Ack(PUBREC, third.packet_id, 0x97)) == []
    again = producer.opened(Connack(session_present=True))
    assert again[0] == Ack(PUBREL, first.packet_id)
    assert ids(again) == ids([first, second])
    producer.received(Ack(PUBCOMP, second.packet_id))
    producer.received(Ack(PUBCOMP, first.packet_id, 0x92))
    assert producer.received(Ack(PUBREC, second.packet_id)) == [Ack(PUBREL, second.packet_id)]
    assert producer.received(Ack(PUBREC, second.packet_id)) == [Ack(PUBREL, second.packet_id)]
    producer.stopping = True
    assert not producer.done
    producer.received(Ack(PUBCOMP, second.packet_id))
    assert producer.done
    assert told(history)[3:] == [
        (Kind.ACKNOWLEDGED, "a-1"),
        (Kind.REJECTED, "a-3"),
        (Kind.REPEATED, "a-2"),
        (Kind.ACKNOWLEDGED, "a-2"),
    ]
    assert producer.received(Ack(PUBREC, 77)) == [Ack(PUBREL, 77, 0x92)]


def test_forgotten_session_is_told() -> None:
    """A router that answered once and then does not know the session has lost it."""
    producer = made(History(), burst=1)
    producer.opened(Connack())
    assert producer.sessions_lost == 0
    (packet,) = producer.due()
    producer.received(Ack(PUBACK, packet.packet_id))
    producer.opened(Connack())
    assert producer.sessions_lost == 1


def test_identifiers_wrap() -> None:
    """After 65,535 comes 1, and identifiers in flight are left out."""
    producer = made(History(), burst=2)
    producer._next_id = 65_535
    last, _ = producer.due()
    producer._next_id = 65_535
    assert ids(producer.due()) == [2, 3]
    assert last.packet_id == 65_535

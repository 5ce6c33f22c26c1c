"""The clauses of MQTT 5.0 on the exchanges of QoS 1 and 2 and on order; test_mqtt_guaranteed.py has the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld


def subscriber(router: SpooledWorld, qos: int = 2, level: int = 5) -> SpooledClient:
    """A client whose session lasts, subscribed to `a`."""
    client = router.lasting("c", level)
    assert client.sub("a", qos) == qos
    return client


def publish(router: SpooledWorld, *payloads: bytes, qos: int = 1, topic: str = "a") -> None:
    """Publish from another client."""
    client = router.join("p")
    for number, payload in enumerate(payloads, 1):
        client.pub(topic, payload, qos, number)
    router.settle()


def only(packets: list[object]) -> Publish:
    """The one message among packets."""
    (message,) = [packet for packet in packets if isinstance(packet, Publish)]
    return message


# -- packet identifiers ------------------------------------------------------------------------------


def test_pubrel_is_sent_again(router: SpooledWorld) -> None:
    """MQTT-4.4.0-1, MQTT-4.3.3-5, MQTT-4.3.3-6: PUBREL is unacknowledged until PUBCOMP, and no PUBLISH follows."""
    client = subscriber(router)
    publish(router, b"1", qos=2)
    message = only(client.got())
    client.ack(PUBREC, message.packet_id)
    assert client.got() == [Ack(PUBREL, message.packet_id)]
    for world in (router, router.restart()):
        if world is router:
            client.lose()
        client = world.lasting("c")
        assert client.rest == [Ack(PUBREL, message.packet_id)]
    client.ack(PUBCOMP, message.packet_id)
    client.world.settle()
    client.lose()
    assert client.world.lasting("c").rest == []


@pytest.mark.parametrize("level", [4, 5])
def test_qos_1_sender(router: SpooledWorld, level: int) -> None:
    """MQTT-4.3.2-2, MQTT-4.3.2-3: QoS 1 with DUP 0, and unacknowledged until PUBACK."""
    client = subscriber(router, 1, level)
    publish(router, b"1")
    message = only(client.got())
    assert (message.qos, message.dup) == (1, False)
    held = router.vpn().clients["c"].outbound.held
    assert list(held) == [message.packet_id]
    client.puback(message)
    assert held == {}


def test_qos_1_receiver_takes_the_identifier_anew(router: SpooledWorld) -> None:
    """MQTT-4.3.2-5: after PUBACK the same identifier is a new message, whatever DUP says."""
    queue = router.queue("q", "a")
    client = router.join("p")
    for dup in (False, False, True):
        client.pub("a", pid=1, dup=dup)
        assert client.acks() == [(PUBACK, 1, 0)]
    assert queue.spooled_count == 3


# -- QoS 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [4, 5])
def test_qos_2_sender(router: SpooledWorld, level: int) -> None:
    """MQTT-4.3.3-2, MQTT-4.3.3-3, MQTT-4.3.3-4: QoS 2 with DUP 0; PUBREL answers PUBREC."""
    client = subscriber(router, 2, level)
    publish(router, b"1", qos=2)
    message = only(client.got())
    assert (message.qos, message.dup) == (2, False)
    assert list(router.vpn().clients["c"].outbound.held) == [message.packet_id]
    client.ack(PUBREC, message.packet_id)
    assert client.got() == [Ack(PUBREL, message.packet_id)]


def test_qos_2_does_not_expire_once_it_was_sent(router: SpooledWorld) -> None:
    """MQTT-4.3.3-7: the exchange goes on after the message's time, over connections too."""
    client = subscriber(router, 2)
    source = router.join("p")
    source.pub("a", b"1", 2, 1, properties=Properties(message_expiry_interval=5))
    source.pub("a", b"2", 1, 2)
    first, second = client.messages()
    client.lose()
    router.advance(10)
    router.settle()
    back = router.lasting("c")
    again = [packet for packet in back.rest if isinstance(packet, Publish)]
    assert [(packet.payload, packet.packet_id, packet.dup) for packet in again] == [
        (b"1", first.packet_id, True),
        (b"2", second.packet_id, True),
    ]
    back.ack(PUBREC, first.packet_id)
    assert back.got() == [Ack(PUBREL, first.packet_id)]
    back.puback(second)
    back.ack(PUBCOMP, first.packet_id)
    router.settle()
    assert router.vpn().clients["c"].endpoint.spooled_count == 0


def test_a_refused_identifier_is_free(router: SpooledWorld) -> None:
    """MQTT-4.3.3-9: after PUBREC with 0x80 or more the same identifier is a new message."""
    queue = router.queue("q", "a", max_spooled_msg_count=1)
    client = router.lasting("p")
    client.pub("a", b"1", 2, 1)
    client.pub("a", b"2", 2, 2)
    assert client.acks() == [(PUBREC, 1, 0), (PUBREC, 2, 0x97)]
    queue.settings.max_spooled_msg_count = 0
    client.pub("a", b"3", 2, 2)
    assert client.acks() == [(PUBREC, 2, 0)]
    assert queue.spooled_count == 2


@pytest.mark.parametrize("restart", [False, True])
def test_no_duplicates_before_pubrel(router: SpooledWorld, restart: bool) -> None:
    """MQTT-4.3.3-10: a PUBLISH that comes again is answered PUBREC and not delivered again."""
    router.queue("q", "a")
    client = router.lasting("p")
    client.pub("a", b"1", 2, 1)
    assert client.acks() == [(PUBREC, 1, 0)]
    client.lose()
    world = router.restart() if restart else router
    queue = world.vpn().queue("q")
    assert queue is not None
    back = world.lasting("p")
    back.pub("a", b"1", 2, 1, dup=True)
    assert back.acks() == [(PUBREC, 1, 0)]
    assert queue.spooled_count == 1


def test_pubrel_is_answered(router: SpooledWorld) -> None:
    """MQTT-4.3.3-11, MQTT-4.3.3-12: with PUBCOMP; then the same identifier is a new message."""
    queue = router.queue("q", "a")
    client = router.lasting("p")
    for count in (1, 2):
        client.pub("a", b"1", 2, 1)
        assert client.acks() == [(PUBREC, 1, 0)]
        client.ack(PUBREL, 1)
        assert client.acks() == [(PUBCOMP, 1, 0)]
        assert queue.spooled_count == count


def test_the_exchange_goes_on_after_expiry(router: SpooledWorld) -> None:
    """MQTT-4.3.3-13: whatever became of the message, PUBREL gets its PUBCOMP."""
    client = router.lasting("p")
    client.pub("a", b"1", 2, 1, properties=Properties(message_expiry_interval=1))
    assert client.acks() == [(PUBREC, 1, 0)]
    router.advance(100)
    client.ack(PUBREL, 1)
    assert client.acks() == [(PUBCOMP, 1, 0)]


# -- order, sharing ----------------------------------------------------------------------------------


def test_messages_are_for_whoever_subscribed(router: SpooledWorld) -> None:
    """MQTT-4.5.0-1: a message is in the state of every session with a matching subscription."""
    names = ["c1", "c2", "c3"]
    for name in names:
        client = router.lasting(name)
        assert client.sub("+", 1) == 1
        client.lose()
    publish(router, b"1")
    for name in names:
        assert only(router.lasting(name).rest).payload == b"1"


@pytest.mark.parametrize("qos", [1, 2])
def test_order(router: SpooledWorld, qos: int) -> None:
    """MQTT-4.6.0-5, MQTT-4.6.0-6: messages of a topic and a QoS come as they were received, repeated ones too."""
    client = subscriber(router, qos)
    payloads = [b"%d" % number for number in range(50)]
    publish(router, *payloads, qos=qos)
    assert [message.payload for message in client.messages()] == payloads
    client.lose()
    back = router.lasting("c")
    assert [packet.payload for packet in back.rest if isinstance(packet, Publish)] == payloads


def test_shared_subscriptions(router: SpooledWorld) -> None:
    """MQTT-3.8.4-8, MQTT-4.8.2-4: each message goes to one member, at its QoS, connected or not."""
    first, second = router.lasting("c1"), router.lasting("c2")
    assert first.sub("$share/g/a", 1) == 1
    assert second.sub("$share/g/a", 2) == 2
    publish(router, b"1", b"2", b"3", b"4", qos=2)
    one, two = first.messages(), second.messages()
    assert sorted(message.payload for message in one + two) == [b"1", b"2", b"3", b"4"]
    assert {message.qos for message in one} == {1}
    assert {message.qos for message in two} == {2}


def test_shared_qos_2_stays_with_its_member(router: SpooledWorld) -> None:
    """MQTT-4.8.2-5: a delivery that has begun is completed with the same client when it is back."""
    first, second = router.lasting("c1"), router.lasting("c2")
    assert first.sub("$share/g/a", 2) == 2
    assert second.sub("$share/g/a", 2) == 2
    publish(router, b"1", b"2", qos=2)
    (message,) = first.messages()
    second.messages()
    first.lose()
    router.settle()
    assert second.got() == []
    again = only(router.lasting("c1").rest)
    assert (again.packet_id, again.dup) == (message.packet_id, True)


def test_messages_too_large_for_the_client(router: SpooledWorld) -> None:
    """MQTT-3.1.2-25: not sent, and the delivery counts as completed."""
    client = router.join("c", properties=Properties(maximum_packet_size=60))
    assert client.sub("a", 1) == 1
    publish(router, b"x" * 100, b"small")
    assert [message.payload for message in client.messages()] == [b"small"]
    endpoint = router.vpn().clients["c"].endpoint
    assert endpoint is not None
    assert endpoint.spooled_count == 1

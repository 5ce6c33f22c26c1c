"""The clauses of MQTT 5.0 on QoS 1 and 2 and on sessions that bind a server, one test each.

Clauses of 3.1.1 that say the same are covered by the parameter `level` where both protocols differ on the wire.
What binds both sides is tested in the server's role; what only a codec can break stands in
data/mqtt_packets.yaml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vpnrouter.wire.mqtt.packets import Ack, Publish, Subscribe, SubscriptionRequest, Will
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

CLAUSES = re.findall(
    r"\S+",
    """
2.2.1-4 2.2.1-5 3.1.2-4 3.1.2-5 3.1.2-6 3.1.2-23 3.1.2-25 3.2.2-2 3.2.2-3 3.2.2-9 3.2.2-11 3.2.2-12
3.3.1-1 3.3.1-3 3.3.1-8 3.3.1-9 3.3.1-10 3.3.1-11 3.3.1-12 3.3.1-13 3.3.2-5 3.3.2-6 3.3.4-1 3.3.4-2
3.3.4-3 3.3.4-4 3.3.4-5 3.3.4-7 3.3.4-9 3.3.4-10 3.8.3-3 3.8.4-3 3.8.4-8 3.9.3-2 3.10.4-2 3.10.4-3
4.1.0-1 4.1.0-2 4.3.2-1 4.3.2-2 4.3.2-3 4.3.2-4 4.3.2-5 4.3.3-1 4.3.3-2 4.3.3-3 4.3.3-4 4.3.3-5 4.3.3-6
4.3.3-7 4.3.3-8 4.3.3-9 4.3.3-10 4.3.3-11 4.3.3-12 4.3.3-13 4.4.0-1 4.5.0-1 4.6.0-5 4.6.0-6 4.8.2-4
4.8.2-5 4.9.0-1 4.9.0-2
""",
)
"""What this page has to cover."""

FOREVER = 0xFFFF_FFFF


def test_every_clause_has_a_test() -> None:
    """The docstrings here and in test_mqtt_qos.py name all of CLAUSES and nothing else."""
    found: set[str] = set()
    for path in (Path(__file__), Path(__file__).with_name("test_mqtt_qos.py")):
        found |= set(re.findall(r"MQTT-(\d[\d.]*-\d+)", path.read_text(encoding="utf-8")))
    assert found == set(CLAUSES)


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


@pytest.mark.parametrize("qos", [1, 2])
def test_unused_identifiers(router: SpooledWorld, qos: int) -> None:
    """MQTT-2.2.1-4, MQTT-4.3.2-1, MQTT-4.3.3-1: each new PUBLISH has an identifier that is not in use."""
    client = subscriber(router, qos)
    publish(router, *[b"x"] * 100, qos=qos)
    used = [message.packet_id for message in client.messages()]
    assert len(set(used)) == 100
    assert all(used)


@pytest.mark.parametrize("level", [4, 5])
def test_answers_have_the_identifier_of_what_they_answer(router: SpooledWorld, level: int) -> None:
    """MQTT-2.2.1-5."""
    client = router.join("p", level)
    client.pub("a", pid=300)
    client.pub("a", qos=2, pid=301)
    assert client.acks() == [(PUBACK, 300, 0), (PUBREC, 301, 0)]
    client.ack(PUBREL, 301)
    assert client.acks() == [(PUBCOMP, 301, 0)]


# -- sessions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [4, 5])
def test_clean_start(router: SpooledWorld, level: int) -> None:
    """MQTT-3.1.2-4, MQTT-3.2.2-2: an existing session is discarded; session present is 0."""
    client = subscriber(router, 2, level)
    client.lose()
    publish(router, b"1")
    back = router.join("c", level, clean_start=True)
    assert not back.connack.session_present
    assert back.rest == []


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("restart", [False, True])
def test_a_session_is_resumed(router: SpooledWorld, level: int, restart: bool) -> None:
    """MQTT-3.1.2-5, MQTT-3.1.2-23, MQTT-3.2.2-3, MQTT-4.1.0-2: its state is there, and CONNACK says so."""
    client = subscriber(router, 2, level)
    client.lose()
    publish(router, b"1", qos=2)
    world = router.restart() if restart else router
    back = world.lasting("c", level)
    assert back.connack.session_present
    assert only(back.rest).payload == b"1"


@pytest.mark.parametrize("level", [4, 5])
def test_a_new_session(router: SpooledWorld, level: int) -> None:
    """MQTT-3.1.2-6: where there is none, one is made."""
    client = router.lasting("new", level)
    assert not client.connack.session_present
    assert client.sub("a", 1) == 1


def test_state_stays_while_the_connection_is_open(router: SpooledWorld) -> None:
    """MQTT-4.1.0-1: nothing of it is discarded, however short the session's interval."""
    client = router.join("c", properties=Properties(session_expiry_interval=1))
    assert client.sub("a", 2) == 2
    router.advance(1_000)
    publish(router, b"1", qos=2)
    assert client.take() == [b"1"]


# -- CONNACK and maximum QoS -------------------------------------------------------------------------


def test_maximum_qos(router: SpooledWorld) -> None:
    """MQTT-3.2.2-9, MQTT-3.2.2-11, MQTT-3.2.2-12: said where it is not 2, and held."""
    from vpnrouter.core.profile import ClientProfile

    assert router.join("free").connack.properties.maximum_qos is None
    profile = ClientProfile("default", allow_guaranteed_msg_send_enabled=False)
    router.add_vpn("blue", profile=profile)
    client = router.join("c")
    assert client.connack.properties.maximum_qos == 0
    assert client.sub("a", 2) == 2
    client.pub("a")
    assert client.reason() == 0x9B
    assert router.refused("d", will=Will(b"w", b"x", qos=1)).reason_code == 0x9B


# -- PUBLISH -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_is_not_acknowledged_is_sent_again(router: SpooledWorld, level: int, qos: int) -> None:
    """MQTT-3.3.1-1, MQTT-4.4.0-1: with DUP, under its identifier, when the client is back, and only then."""
    client = subscriber(router, qos, level)
    publish(router, b"1", qos=qos)
    first = only(client.got())
    assert not first.dup
    router.advance(1_000)
    assert client.got() == []
    client.lose()
    again = only(router.lasting("c", level).rest)
    assert again.dup
    assert (again.packet_id, again.qos, again.payload) == (first.packet_id, qos, b"1")


def test_dup_is_not_passed_on(router: SpooledWorld) -> None:
    """MQTT-3.3.1-3: DUP of a delivery says whether that delivery is repeated."""
    client = subscriber(router)
    router.join("p").pub("a", dup=True)
    assert not only(client.got()).dup


@pytest.mark.parametrize("qos", [1, 2])
def test_retained_messages_of_a_new_subscription(router: SpooledWorld, qos: int) -> None:
    """MQTT-3.3.1-8, MQTT-3.3.1-9: RETAIN is 1, and with retain handling 0 it comes each time."""
    router.join("p").pub("a", qos=qos, retain=True)
    client = router.lasting("c")
    for _ in range(2):
        assert client.sub("a", 2) == 2
        message = only(client.rest)
        assert message.retain
        assert message.qos == qos


def test_retain_handling_1_and_2(router: SpooledWorld) -> None:
    """MQTT-3.3.1-10, MQTT-3.3.1-11: only with a new subscription, or never."""
    router.join("p").pub("a", retain=True)
    client = router.lasting("c")
    assert client.sub("a", 1, retain_handling=1) == 1
    assert len(client.rest) == 1
    assert client.sub("a", 1, retain_handling=1) == 1
    assert client.rest == []
    assert client.sub("+", 1, retain_handling=2) == 1
    assert client.rest == []


@pytest.mark.parametrize("wanted", [False, True])
def test_retain_as_published(router: SpooledWorld, wanted: bool) -> None:
    """MQTT-3.3.1-12, MQTT-3.3.1-13."""
    client = router.lasting("c")
    assert client.sub("a", 1, retain_as_published=wanted) == 1
    router.join("p").pub("a", retain=True)
    assert only(client.got()).retain == wanted


def test_an_expired_message_is_not_sent(router: SpooledWorld) -> None:
    """MQTT-3.3.2-5: it is deleted when its delivery has not begun in time."""
    client = subscriber(router)
    client.lose()
    router.join("p").pub("a", properties=Properties(message_expiry_interval=5))
    router.settle()
    router.advance(6)
    assert router.lasting("c").rest == []


def test_expiry_is_what_is_left(router: SpooledWorld) -> None:
    """MQTT-3.3.2-6: the interval is that received, less the time waited."""
    client = subscriber(router)
    client.lose()
    router.join("p").pub("a", properties=Properties(message_expiry_interval=50))
    router.settle()
    router.advance(20)
    assert only(router.lasting("c").rest).properties.message_expiry_interval == 30


@pytest.mark.parametrize("level", [4, 5])
def test_answers_by_qos(router: SpooledWorld, level: int) -> None:
    """MQTT-3.3.4-1, MQTT-4.3.2-4, MQTT-4.3.3-8: nothing for QoS 0, PUBACK for 1, PUBREC for 2."""
    client = router.join("p", level)
    client.pub("a", qos=0, pid=0)
    client.pub("a", qos=1, pid=1)
    client.pub("a", qos=2, pid=2)
    assert client.acks() == [(PUBACK, 1, 0), (PUBREC, 2, 0)]


def test_overlapping_subscriptions(router: SpooledWorld) -> None:
    """MQTT-3.3.4-2, MQTT-3.3.4-3, MQTT-3.3.4-4, MQTT-3.3.4-5: the highest QoS, and all identifiers in one copy."""
    client = router.lasting("c")
    for identifier, (text, qos) in enumerate([("a", 1), ("+", 2), ("#", 0)], 1):
        client.send(
            Subscribe(
                identifier,
                [SubscriptionRequest(text, qos)],
                Properties(subscription_identifiers=[identifier]),
            )
        )
    router.settle()
    client.received()
    publish(router, b"1", qos=2)
    message = only(client.got())
    assert message.qos == 2
    assert sorted(message.properties.subscription_identifiers or []) == [1, 2, 3]


# -- flow control ------------------------------------------------------------------------------------


def test_a_client_beyond_our_receive_maximum(router: SpooledWorld) -> None:
    """MQTT-3.3.4-7: a client that breaks it is disconnected with 0x93."""
    client = router.join("p")
    most = client.connack.properties.receive_maximum or 0
    for pid in range(1, most + 2):
        client.pub("a", pid=pid)
    assert client.reason() == 0x93


@pytest.mark.parametrize("qos", [1, 2])
def test_the_clients_receive_maximum(router: SpooledWorld, qos: int) -> None:
    """MQTT-3.3.4-9, MQTT-3.3.4-10, MQTT-4.9.0-1, MQTT-4.9.0-2: held for PUBLISH, and for nothing else."""
    client = router.join("c", properties=Properties(receive_maximum=2))
    assert client.sub("a", qos) == qos
    publish(router, b"1", b"2", b"3", qos=qos)
    first, _ = client.messages()
    assert client.sub("b", 1) == 1
    assert client.rest == []
    client.ack(PUBREC if qos == 2 else PUBACK, first.packet_id)
    if qos == 2:
        assert client.got() == [Ack(PUBREL, first.packet_id)]
        client.ack(PUBCOMP, first.packet_id)
    assert [message.payload for message in client.messages()] == [b"3"]
    client.send(Publish(b"a", b"4"))
    router.settle()
    # QoS 0 is not held up.
    assert only(client.received()).qos == 0


# -- SUBSCRIBE and UNSUBSCRIBE -----------------------------------------------------------------------


def test_no_local(router: SpooledWorld) -> None:
    """MQTT-3.8.3-3: the client does not get what it published itself."""
    client = router.lasting("c")
    assert client.sub("a", 2, no_local=True) == 2
    client.pub("a", pid=1)
    assert client.got() == [Ack(PUBACK, 1)]


def test_a_subscription_is_replaced(router: SpooledWorld) -> None:
    """MQTT-3.8.4-3: by one with the same filter; no message is lost by that."""
    client = subscriber(router, 2)
    client.lose()
    publish(router, b"1", qos=2)
    client = router.lasting("c")
    first = only(client.rest)
    assert client.sub("a", 1) == 1
    publish(router, b"2", qos=2)
    assert only(client.got()).qos == 1
    assert first.payload == b"1"


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
def test_the_lesser_qos(router: SpooledWorld, granted: int, published: int) -> None:
    """MQTT-3.8.4-8, MQTT-3.9.3-2: the granted QoS is said, and a delivery has no more."""
    client = router.lasting("c")
    assert client.sub("a", granted) == granted
    publish(router, b"1", qos=published)
    assert only(client.got()).qos == min(granted, published)


@pytest.mark.parametrize("qos", [1, 2])
def test_unsubscribing(router: SpooledWorld, qos: int) -> None:
    """MQTT-3.10.4-2, MQTT-3.10.4-3: nothing new is added, and what has begun is completed."""
    client = subscriber(router, qos)
    publish(router, b"1", qos=qos)
    message = only(client.got())
    assert client.unsubscribe("a") == 0
    publish(router, b"2", qos=qos)
    assert client.got() == []
    client.ack(PUBREC if qos == 2 else PUBACK, message.packet_id)
    assert client.got() == ([Ack(PUBREL, message.packet_id)] if qos == 2 else [])


# -- QoS 1 -------------------------------------------------------------------------------------------

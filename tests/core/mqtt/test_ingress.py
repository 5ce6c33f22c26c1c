"""vpnrouter.core.mqtt.qos_receiver: QoS 1 and 2 publishing, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import EventLog
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

FOREVER = Properties(session_expiry_interval=0xFFFF_FFFF)


def test_connack_offers_qos_2(router: SpooledWorld) -> None:
    """With a spool there is no maximum QoS, and a receive maximum."""
    properties = router.join("c").connack.properties
    assert properties.maximum_qos is None
    assert properties.receive_maximum == limits.RECEIVE_MAXIMUM


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("size", [1, 200, 20_000])
def test_puback_comes_after_the_sync(router: SpooledWorld, level: int, size: int) -> None:
    """PUBACK leaves when the message is synced, not before; then the queue has it (promise COMMIT)."""
    queue = router.queue("q", "a/#")
    client = router.join("p", level)
    client.pub("a/b", b"x" * size, pid=7)
    batch = router.spool.end_round()
    assert batch is not None
    assert client.received() == []
    router.store.commit(batch)
    router.spool.committed()
    assert client.received() == [Ack(PUBACK, 7)]
    assert queue.spooled_count == 1


def test_answers_come_in_order(router: SpooledWorld) -> None:
    """Whatever becomes of the messages, they are answered in their order."""
    publish = TopicRule(True, [("secret", MQTT)])
    router.add_vpn(
        "blue", acl=AclProfile("default", publish=publish), bounds=VpnLimits(max_msg_size=50)
    )
    router.queue("q", "a")
    router.queue("full", "full", max_msg_spool_usage=1)
    client = router.join("p")
    topics = ["a", "none", "secret", "full", "$queue/missing", "a", "big", "a"]
    for number, topic in enumerate(topics, 1):
        client.pub(
            topic, b"x" * (51 if topic == "big" else 5), qos=2 if number % 2 else 1, pid=number
        )
    answers = client.got()
    assert [packet.packet_id for packet in answers if isinstance(packet, Ack)] == list(range(1, 9))
    codes = [packet.reason_code for packet in answers if isinstance(packet, Ack)]
    assert codes == [0, 0, 0x87, 0x97, 0x87, 0, 0x97, 0]
    texts = [packet.properties.reason_string for packet in answers if isinstance(packet, Ack)]
    assert texts == [
        None,
        None,
        "403 Publish ACL Denied",
        "503 Spool Over Quota",
        "403 Permission Denied",
        None,
        "400 Document Is Too Large",
        None,
    ]
    publisher = router.vpn().publishers["p"]
    assert publisher.messages == 8
    # The one that nobody wanted is among the discards of the message VPN.
    assert (publisher.spooled, publisher.acl_denied, publisher.refused) == (3, 1, 4)


@pytest.mark.parametrize("topic", ["full", "secret", "$queue/missing"])
def test_an_old_publisher_is_disconnected_instead(router: SpooledWorld, topic: str) -> None:
    """MQTT 3.1.1 has no refusal; what came before is still answered (MQTT-3.3.5-2)."""
    publish = TopicRule(True, [("secret", MQTT)])
    vpn = router.add_vpn("blue", acl=AclProfile("default", publish=publish))
    router.queue("q", "a")
    router.queue("full", "full", max_msg_spool_usage=1)
    client = router.join("p", 4)
    client.pub("a", pid=1)
    client.pub(topic, pid=2)
    client.pub("a", pid=3)
    assert client.acks() == [(PUBACK, 1, 0)]
    assert client.closed
    assert vpn.nack_disconnects == 1


@pytest.mark.parametrize("wanted", [False, True])
def test_no_match_is_said_where_asked_for(router: SpooledWorld, wanted: bool) -> None:
    """The client profile decides whether PUBACK says 0x10; a success all the same."""
    profile = ClientProfile("default", reject_msg_to_sender_on_no_subscription_match_enabled=wanted)
    router.add_vpn("blue", profile=profile)
    client = router.join("p")
    client.pub("nobody", pid=1)
    client.pub("nobody", pid=2, qos=2)
    code = 0x10 if wanted else 0
    assert client.acks() == [(PUBACK, 1, code), (PUBREC, 2, code)]
    old = router.join("old", 4)
    old.pub("nobody", pid=1)
    assert old.acks() == [(PUBACK, 1, 0)]


def test_direct_receivers_get_guaranteed_messages(router: SpooledWorld) -> None:
    """A QoS 0 subscriber gets a guaranteed message as Direct; PUBACK says success."""
    watcher = router.join("w")
    assert watcher.sub("a", qos=0) == 0
    client = router.join("p")
    client.pub("a", b"1")
    assert client.acks() == [(PUBACK, 1, 0)]
    assert watcher.messages() == [Publish(b"a", b"1")]
    assert router.vpn().publishers["p"].delivered == 1


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("lasts", [False, True])
def test_qos_2_is_taken_once(router: SpooledWorld, level: int, lasts: bool) -> None:
    """A PUBLISH that comes again before its PUBREL is answered and not taken again (MQTT-4.3.3-10)."""
    queue = router.queue("q", "a")
    client = router.lasting("p", level) if lasts else router.join("p", level)
    client.pub("a", qos=2, pid=5)
    client.pub("a", qos=2, pid=5, dup=True)
    assert client.acks() == [(PUBREC, 5, 0)] * 2
    if lasts:
        client.lose()
        client = router.lasting("p", level)
        assert client.connack.session_present
    client.pub("a", qos=2, pid=5, dup=True)
    assert client.acks() == [(PUBREC, 5, 0)]
    assert queue.spooled_count == 1
    client.ack(PUBREL, 5)
    assert client.acks() == [(PUBCOMP, 5, 0)]
    client.pub("a", qos=2, pid=5)
    assert client.acks() == [(PUBREC, 5, 0)]
    assert queue.spooled_count == 2


def test_qos_2_is_taken_once_over_a_crash(router: SpooledWorld) -> None:
    """A lasting session's identifiers survive the router; a PUBREL is answered when that is synced."""
    router.queue("q", "a")
    client = router.lasting("p")
    client.pub("a", b"1", qos=2, pid=5)
    client.pub("a", b"2", qos=2, pid=6)
    assert client.acks() == [(PUBREC, 5, 0), (PUBREC, 6, 0)]
    client.ack(PUBREL, 6)
    assert client.received() == []
    assert client.acks() == [(PUBCOMP, 6, 0)]
    again = router.restart()
    again.attract("q", "a")
    back = again.lasting("p")
    assert back.connack.session_present
    back.pub("a", b"1", qos=2, pid=5, dup=True)
    assert back.acks() == [(PUBREC, 5, 0)]
    back.pub("a", b"3", qos=2, pid=6)
    assert back.acks() == [(PUBREC, 6, 0)]
    back.send(Ack(PUBREL, 5), Ack(PUBREL, 6))
    assert back.acks() == [(PUBCOMP, 5, 0), (PUBCOMP, 6, 0)]
    consumer = again.join("c")
    assert consumer.sub("$queue/q") == 1
    payloads = [packet.payload for packet in consumer.rest if isinstance(packet, Publish)]
    assert payloads == [b"1", b"2", b"3"]


def test_an_identifier_is_free_when_that_is_synced(router: SpooledWorld) -> None:
    """PUBREL, sent again on a new connection, is not answered before the first one is in the store.

    Otherwise the client could use the identifier again, the router crash and take the message for the old one.
    """
    router.queue("q", "a")
    client = router.lasting("p")
    client.pub("a", b"1", qos=2, pid=5)
    assert client.acks() == [(PUBREC, 5, 0)]
    client.ack(PUBREL, 5)
    assert router.spool.end_round() is not None
    client.lose()
    back = router.open()
    back.send(Connect("p", clean_start=False, properties=FOREVER), Ack(PUBREL, 5))
    assert [type(packet) for packet in back.received()] == [Connack]
    # The router crashes here: its successor still knows the identifier.
    again = router.restart().lasting("p")
    again.ack(PUBREL, 5)
    assert again.acks() == [(PUBCOMP, 5, 0)]
    again.ack(PUBREL, 5)
    assert again.acks() == [(PUBCOMP, 5, reason.PACKET_IDENTIFIER_NOT_FOUND)]


def test_an_unsynced_message_is_not_answered_and_comes_again(router: SpooledWorld) -> None:
    """What was not synced is lost with the router, and its publisher was not told otherwise."""
    router.queue("q", "a")
    client = router.lasting("p")
    client.pub("a", qos=2, pid=5)
    assert router.spool.end_round() is not None
    assert client.received() == []
    again = router.restart()
    queue = again.attract("q", "a")
    back = again.lasting("p")
    back.pub("a", qos=2, pid=5, dup=True)
    assert back.acks() == [(PUBREC, 5, 0)]
    assert queue.spooled_count == 1


def test_a_refused_qos_2_message_leaves_no_identifier(router: SpooledWorld) -> None:
    """PUBREC with a reason from 0x80 on ends the exchange: the same identifier is a new message."""
    queue = router.queue("q", "a", max_spooled_msg_count=1)
    client = router.lasting("p")
    client.pub("a", qos=2, pid=1)
    client.pub("a", qos=2, pid=2)
    assert client.acks() == [(PUBREC, 1, 0), (PUBREC, 2, 0x97)]
    client.ack(PUBREL, 2)
    assert client.acks() == [(PUBCOMP, 2, 0x92)]
    queue.settings.max_spooled_msg_count = 0
    client.pub("a", qos=2, pid=2)
    assert client.acks() == [(PUBREC, 2, 0)]


@pytest.mark.parametrize("qos", [1, 2])
def test_receive_maximum(router: SpooledWorld, qos: int) -> None:
    """One more message than announced is a protocol error (MQTT-3.3.4-7)."""
    client = router.join("p")
    for pid in range(1, limits.RECEIVE_MAXIMUM + 1):
        client.pub("a", qos=qos, pid=pid)
    assert not client.closed
    client.pub("a", qos=qos, pid=60_000)
    assert client.reason() == 0x93


def test_receive_maximum_begins_anew_with_each_answer(router: SpooledWorld) -> None:
    """PUBACK and PUBCOMP give back what their messages took (MQTT 5, 4.9)."""
    client = router.join("p")
    for round_ in range(3):
        for pid in range(1, limits.RECEIVE_MAXIMUM):
            client.pub("a", pid=pid)
        client.pub("a", qos=2, pid=50_000 + round_)
        router.settle()
        client.ack(PUBREL, 50_000 + round_)
        assert len(client.acks()) == limits.RECEIVE_MAXIMUM + 1
    assert not client.closed


def test_an_old_publisher_is_held_back(router: SpooledWorld) -> None:
    """3.1.1 knows no receive maximum: the client is not read on until its messages are answered."""
    queue = router.queue("q", "a")
    client = router.join("p", 4)
    count = 3 * limits.RECEIVE_MAXIMUM
    frames = b"".join(
        b"\x32\x06\x00\x01a" + pid.to_bytes(2, "big") + b"x" for pid in range(1, count + 1)
    )
    client.raw(frames)
    assert client.connection.paused
    assert queue.spooled_count == limits.RECEIVE_MAXIMUM
    client.raw(b"\xc0\x00")
    answers = client.got()
    assert [packet.packet_id for packet in answers if isinstance(packet, Ack)] == list(
        range(1, count + 1)
    )
    assert not client.connection.paused
    assert len(answers) == count + 1


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("bound", [{}, {"max_msg_size": 4}, {"max_ingress_flow_count": 0}])
def test_queues_that_a_publisher_cannot_tell_from_none(
    router: SpooledWorld, level: int, bound: dict[str, int]
) -> None:
    """To publish to a queue that is not open to a client is to it like publishing to one that is not there, again and
    again and beyond bounds; the event tells which it is.
    """
    log = EventLog("here", lambda: 1)
    told: list[str] = []
    log.listeners.append(lambda event: told.append(event.text))
    answers = []
    router.add_vpn("blue", bounds=VpnLimits(**bound))
    router.queue("secret", permission=NO_ACCESS)
    router.router.context.events = log
    for name in ("secret", "nobody"):
        for qos in (1, 2):
            client = router.join("p", level)
            for pid in range(1, 4):
                client.pub(f"$queue/{name}", b"12345", qos=qos, pid=pid)
            router.settle()
            answers.append(client.drain())
            client.lose()
    assert answers[:2] == answers[2:]
    if level == 5:
        assert all(answer.count(b"403 Permission Denied") == 3 for answer in answers)
    denials = [text.partition("client p: ")[2] for text in told if ": topic " in text]
    assert denials == [
        *["403 Permission Denied: topic $queue/secret"] * 2,
        *["400 Queue Not Found: topic $queue/nobody"] * 2,
    ]
    assert router.vpn().rejected == 6


@pytest.mark.parametrize("override", [False, True])
def test_who_may_publish_to_a_queue_learns_that_it_is_not_there(
    router: SpooledWorld, override: bool
) -> None:
    """An exception of the ACL profile that names it lets him, or an override of the permissions of all."""
    rule = TopicRule(override, [] if override else [("$queue/late", MQTT)])
    name = ClientUsername("app", guaranteed_endpoint_permission_override_enabled=override)
    router.add_vpn("blue", (name,), acl=AclProfile("default", publish=rule))
    client = router.join("p", username="app")
    client.pub("$queue/late", pid=1)
    client.pub("$queue/late", pid=2)
    answers = [packet for packet in client.got() if isinstance(packet, Ack)]
    assert [(one.reason_code, one.properties.reason_string) for one in answers] == [
        (0x90, "400 Queue Not Found")
    ] * 2

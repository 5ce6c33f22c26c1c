"""vpnrouter.core.mqtt.qos_receiver: guaranteed messages that clients publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import EventLog
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Disconnect, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint

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


def test_many_messages_hold_everybody_back(router: SpooledWorld) -> None:
    """Beyond UNIT_BYTES clients are not read until theirs are answered, whatever their protocol."""
    router.queue("q", "a")
    payload = bytes(limits.LARGE_MESSAGE_BYTES - 1)
    count = limits.UNIT_BYTES // len(payload) // 5 + 10
    clients = [router.join(f"p{number}") for number in range(5)]
    for client in clients:
        for pid in range(1, count + 1):
            client.pub("a", payload, pid=pid)
        assert client.connection.paused == (client is clients[-1])
    assert client.acks() == [(PUBACK, pid, 0) for pid in range(1, count + 1)]


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("size", [limits.LARGE_MESSAGE_BYTES, 1_000_000, 9_000_000])
def test_large_messages_do_not_make_a_commit_long(
    router: SpooledWorld, level: int, qos: int, size: int
) -> None:
    """However many clients publish them, a commit has LARGE_UNIT_BYTES and one of them; others' messages go along."""
    queue = router.queue("q", "a/#")
    router.queue("small", "s")
    each = max(2, 6_000_000 // size)
    clients = [router.join(f"p{number}", level) for number in range(5)]
    witness = router.join("witness")
    for pid in range(1, each + 1):
        for number, client in enumerate(clients):
            client.pub(f"a/{number}", pid.to_bytes(2, "big") + bytes(size - 2), qos=qos, pid=pid)
    rounds = 0
    while queue.spooled_count < each * len(clients):
        rounds += 1
        witness.pub("s", b"x", pid=rounds)
        batch = router.spool.end_round()
        assert batch is not None
        assert batch.size <= limits.LARGE_UNIT_BYTES + size + 100_000
        router.store.commit(batch)
        router.spool.committed()
        (ack,) = witness.received()
        assert isinstance(ack, Ack)
        assert ack.packet_id == rounds
        router.router.context.jobs.finish()
    assert rounds >= each * len(clients) * size // (limits.LARGE_UNIT_BYTES + size)
    for client in clients:
        assert [pid for _, pid, _ in client.acks()] == list(range(1, each + 1))
    reader = router.join("reader")
    reader.sub("$queue/q")
    found: dict[bytes, list[int]] = {}
    taken = reader.resolved(reader.rest)
    while taken:
        for message in taken:
            found.setdefault(message.topic, []).append(int.from_bytes(message.payload[:2], "big"))
        reader.puback(*taken)
        taken = reader.messages()
    assert found == {b"a/%d" % number: list(range(1, each + 1)) for number in range(5)}


def test_large_retained_messages_do_not_make_a_commit_long(router: SpooledWorld) -> None:
    """They are in the spool whatever their QoS is; the order of two on one topic stays."""
    clients = [router.join(f"p{number}") for number in range(4)]
    for turn in range(4):
        for number, client in enumerate(clients):
            client.publish(f"r/{number}", b"%d" % turn + bytes(3_000_000), retain=True)
    router.settle()
    assert 0 < router.largest <= limits.LARGE_UNIT_BYTES + 3_100_000
    reader = router.join("reader")
    reader.sub("r/#")
    kept = {message.topic: message.payload[:1] for message in reader.resolved(reader.rest)}
    assert kept == {b"r/%d" % number: b"3" for number in range(4)}


def test_large_messages_wait_for_no_store_that_is_down(router: SpooledWorld) -> None:
    """They are refused as others are; one that has gone meanwhile is not taken."""
    queue = router.queue("q", "a")
    clients = [router.join(name) for name in ("one", "two", "gone")]
    for client in clients:
        client.pub("a", bytes(limits.LARGE_UNIT_BYTES + 1))
    clients[2].lose()
    assert queue.spooled_count == 1
    batch = router.spool.end_round()
    assert batch is not None
    router.spool.failed("no space")
    router.router.context.jobs.finish()
    router.store.commit(batch)
    router.spool.committed()
    assert [code for _, _, code in clients[0].acks()] == [0]
    assert [code for _, _, code in clients[1].acks()] == [0x97]
    assert queue.spooled_count == 1


def test_a_publisher_that_is_held_back_is_not_dead(router: SpooledWorld) -> None:
    """While we do not read, its keep-alive does not run out."""
    client = router.join("p", 4, keep_alive_s=10)
    for pid in range(1, limits.RECEIVE_MAXIMUM + 1):
        client.pub("a", pid=pid)
    assert client.connection.paused
    router.advance(60)
    assert not client.closed
    router.settle()
    router.advance(60)
    assert client.closed


def test_a_publisher_that_went_is_not_answered(router: SpooledWorld) -> None:
    """Its message is taken all the same."""
    queue = router.queue("q", "a")
    client = router.join("p")
    client.pub("a")
    client.lose()
    router.settle()
    assert client.received() == []
    assert queue.spooled_count == 1


def test_properties_and_aliases(router: SpooledWorld) -> None:
    """A guaranteed message keeps its properties; topic aliases work for it."""
    consumer = router.join("c")
    assert consumer.sub("a", qos=1) == 1
    client = router.join("p")
    properties = Properties(content_type="t", user_properties=[("k", "v")], topic_alias=3)
    client.pub("a", b"1", pid=1, properties=properties)
    client.pub("", b"2", pid=2, properties=Properties(topic_alias=3))
    first, second = consumer.messages()
    assert (first.topic, second.topic) == (b"a", b"a")
    assert first.properties == Properties(content_type="t", user_properties=[("k", "v")])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x36\x06\x00\x01a\x00\x01\x00", 0x81),
        (b"\x32\x03\x00\x01a", 0x81),
        (b"\x32\x04\x00\x01a\x00", 0x81),
        (b"\x32\x06\x00\x01a\x00\x00\x00", 0x82),
        (b"\x32\x06\x00\x01+\x00\x01\x00", 0x90),
        (b"\x40\x02\x00\x00", 0x82),
        (b"\x60\x02\x00\x01", 0x81),
    ],
)
def test_what_is_forbidden(router: SpooledWorld, frame: bytes, code: int) -> None:
    """Each breach has its reason code and closes its sender."""
    client = router.join("c")
    client.raw(frame)
    assert client.reason() == code


ACROSS = ClientProfile("default", end_to_end_bridge="x")


def crossed(router: SpooledWorld, *filters: str, **settings: object) -> Endpoint:
    """A queue from which the bridge x takes, and clients whose answers wait for it."""
    router.vpn().profiles["default"] = ACROSS
    queue = router.queue("q", *filters, **settings)
    queue.remember_bridge("x")
    return queue


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize(("qos", "kind"), [(1, PUBACK), (2, PUBREC)])
def test_the_answer_waits_for_the_bridge(
    router: SpooledWorld, level: int, qos: int, kind: int
) -> None:
    """Neither PUBACK nor PUBREC before a consumer of the bridge's queue has the message."""
    crossed(router, "a")
    client = router.join("p", level)
    client.pub("a", qos=qos, pid=3)
    client.pub("none", qos=qos, pid=4)
    assert client.acks() == []
    bridge = router.join("b")
    bridge.sub("$queue/q")
    (message,) = [packet for packet in bridge.rest if isinstance(packet, Publish)]
    assert client.acks() == []
    bridge.puback(message)
    assert [(code, number) for code, number, _ in client.acks()] == [(kind, 3), (kind, 4)]


def test_complete_does_not_wait_for_another_message(router: SpooledWorld) -> None:
    """PUBCOMP is no answer to a publish: what is released is complete, whatever else is on its way."""
    crossed(router, "a")
    client = router.join("p")
    client.pub("none", qos=2, pid=1)
    assert client.acks() == [(PUBREC, 1, 0)]
    client.pub("a", qos=1, pid=2)
    client.ack(PUBREL, 1)
    assert client.acks() == [(PUBCOMP, 1, 0)]


@pytest.mark.parametrize("qos", [1, 2])
def test_what_never_comes_over(router: SpooledWorld, qos: int) -> None:
    """Deleted before the bridge had it: refused, and the identifier stands for a new message then."""
    queue = crossed(router, "a")
    client = router.lasting("p")
    client.pub("a", b"1", qos=qos, pid=3)
    client.got()
    queue.purge()
    (answer,) = client.got()
    assert isinstance(answer, Ack)
    assert (answer.packet_id, answer.reason_code) == (3, reason.IMPLEMENTATION_SPECIFIC_ERROR)
    assert answer.properties.reason_string == refusals.PUBLISH_FAILURE
    client.pub("a", b"2", qos=qos, pid=3)
    client.got()
    assert queue.spooled_count == 1
    assert queue.counters.spooled == 2


def test_an_old_publisher_is_disconnected_when_it_never_comes_over(router: SpooledWorld) -> None:
    """MQTT 3.1.1 has no refusal; what it published behind that is in the queue all the same."""
    queue = crossed(router, "a")
    client = router.join("p", 4)
    client.pub("a", b"1", pid=1)
    router.settle()
    client.pub("a", b"2", pid=2)
    queue.purge()
    assert client.got() == []
    assert client.connection.closing
    assert queue.spooled_count == 1
    assert queue.watched is not None
    assert len(queue.watched) == 0


@pytest.mark.parametrize("crash", [False, True])
def test_qos_2_waits_for_the_bridge_over_connections(router: SpooledWorld, crash: bool) -> None:
    """A client that comes back and asks again is not told before the bridge has it, nor is it taken twice."""
    crossed(router, "a")
    client = router.lasting("p")
    client.pub("a", b"once", qos=2, pid=3)
    router.settle()
    client.lose()
    world = router
    if crash:
        world = router.restart()
        world.vpn().profiles["default"] = ACROSS
        world.attract("q", "a")
    back = world.lasting("p")
    back.pub("a", b"once", qos=2, pid=3, dup=True)
    assert back.acks() == []
    bridge = world.join("b")
    bridge.sub("$queue/q")
    (message,) = [packet for packet in bridge.rest if isinstance(packet, Publish)]
    bridge.puback(message)
    assert back.acks() == [(PUBREC, 3, 0)]
    back.ack(PUBREL, 3)
    assert back.acks() == [(PUBCOMP, 3, 0)]
    queue = world.vpn().queue("q")
    assert queue is not None
    assert queue.spooled_count == 0
    back.pub("a", b"more", qos=2, pid=3)
    assert back.acks() == []
    assert queue.spooled_count == 1


def test_as_many_as_the_receive_maximum(router: SpooledWorld) -> None:
    """An old client is read no further while so many wait for the bridge, and goes on afterwards."""
    crossed(router, "a")
    client = router.join("p", 4)
    for pid in range(1, limits.RECEIVE_MAXIMUM + 11):
        client.pub("a", pid=pid)
    router.settle()
    queue = router.vpn().queue("q")
    assert queue is not None
    assert queue.spooled_count == limits.RECEIVE_MAXIMUM
    bridge = router.join("b")
    bridge.sub("$queue/q")
    bridge.puback(*[packet for packet in bridge.rest if isinstance(packet, Publish)])
    bridge.take()
    router.settle()
    bridge.take()
    assert [pid for _, pid, _ in client.acks()] == list(range(1, limits.RECEIVE_MAXIMUM + 11))


def test_ingress_flows(router: SpooledWorld) -> None:
    """A connection is one with its first guaranteed message; beyond the bound it is refused, till one ends."""
    vpn = router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=2))
    router.queue("q", "#")
    clients = [router.join(name) for name in "abc"]
    for client in clients:
        client.pub("a", qos=0, pid=0)
    assert vpn.ingress_flows == 0
    for client in clients[:2]:
        client.pub("a", pid=1)
        client.pub("a", qos=2, pid=2)
        assert client.acks() == [(PUBACK, 1, 0), (PUBREC, 2, 0)]
    late = clients[2]
    late.pub("a", pid=1)
    late.pub("a", qos=2, pid=2)
    texts = [packet.properties.reason_string for packet in late.got() if isinstance(packet, Ack)]
    assert texts == [refusals.TOO_MANY_INGRESS_FLOWS] * 2
    assert (vpn.ingress_flows, vpn.rejected, vpn.publishers["c"].refused) == (2, 2, 2)
    clients[0].lose()
    assert vpn.ingress_flows == 1
    late.pub("a", pid=1)
    late.pub("a", qos=2, pid=2)
    assert late.acks() == [(PUBACK, 1, 0), (PUBREC, 2, 0)]
    again = router.join("c")
    assert vpn.ingress_flows == 1
    again.pub("a", pid=1)
    assert again.acks() == [(PUBACK, 1, 0)]
    assert vpn.ingress_flows == 2


def test_an_old_client_beyond_the_ingress_flows(router: SpooledWorld) -> None:
    """It is disconnected, and counts for nothing."""
    vpn = router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=1))
    first, second = router.join("a", 4), router.join("b", 4)
    first.pub("a", pid=1)
    second.pub("a", pid=1)
    assert [packet.packet_id for packet in first.got() if isinstance(packet, Ack)] == [1]
    assert second.got() == []
    assert second.connection.closing
    assert vpn.ingress_flows == 1


def test_no_bound_of_ingress_flows(router: SpooledWorld) -> None:
    """0 is none."""
    router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=0))
    for name in "abc":
        client = router.join(name)
        client.pub("a", pid=1)
        assert [pid for _, pid, _ in client.acks()] == [1]


@pytest.mark.parametrize(("level", "qos"), [(5, 1), (5, 2), (4, 1), (4, 2), (3, 1)])
def test_who_waits_long_for_a_store_that_is_down_is_told(
    router: SpooledWorld, level: int, qos: int
) -> None:
    """Its connection ends with the reason; what it sent is kept when the store is well again, QoS 2 once."""
    queue = router.queue("q", "a")
    waits = router.lasting("waits", level)
    idle = router.join("idle", level)
    waits.pub("a", qos=qos, pid=7)
    batch = router.spool.end_round()
    assert batch is not None
    for _ in range(limits.SPOOL_DELAY_S):
        router.spool.failed("no space left")
        router.router.context.jobs.finish()
        assert not waits.closed
        router.advance(1)
    router.spool.failed("no space left")
    router.router.context.jobs.finish()
    assert waits.closed
    assert not idle.closed
    if level == 5:
        (told,) = waits.received()
        assert isinstance(told, Disconnect)
        assert told.reason_code == reason.QUOTA_EXCEEDED
        assert "no space left" in (told.properties.reason_string or "")
    router.store.commit(batch)
    router.spool.committed()
    if qos == 2:
        again = router.lasting("waits", level)
        again.pub("a", qos=2, pid=7, dup=True)
        assert again.acks() == [(PUBREC, 7, 0)]
    assert queue.spooled_count == 1

"""vpnrouter.core.mqtt.qos_sender: packet identifiers over connections and crashes, and the client's window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.profile import ClientProfile
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

NEVER_S = 0xFFFF_FFFF
FOREVER = Properties(session_expiry_interval=NEVER_S)


def publisher(router: SpooledWorld) -> SpooledClient:
    """A client that publishes; its answers are not looked at."""
    return router.join("publisher")


def test_options_change_with_the_subscription(router: SpooledWorld) -> None:
    """What is remembered of a topic is looked up again after SUBSCRIBE and UNSUBSCRIBE."""
    client = router.join("c")
    source = publisher(router)
    for qos in (2, 1):
        assert client.sub("a", qos) == qos
        source.pub("a", qos=2, pid=qos)
        (message,) = client.messages()
        assert message.qos == qos
    assert client.sub("#", 1, retain_as_published=True) == 1
    source.pub("a", qos=1, retain=True)
    (message,) = client.messages()
    assert message.retain
    assert client.unsubscribe("#") == 0
    source.pub("a", qos=1, retain=True, pid=9)
    (message,) = client.messages()
    assert not message.retain


def test_identifiers_of_qos_2_are_synced_before_use(router: SpooledWorld) -> None:
    """A lasting session's PUBLISH of QoS 2 leaves when its identifier is in the store."""
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    publisher(router).pub("a", qos=2)
    assert router.round()
    assert client.received() == []
    while not client.connection.outbox.size:
        known = dict(router.store.scan(keys.OUTBOUND))
        assert router.round()
    assert len(known) + len(dict(router.store.scan(keys.OUTBOUND))) >= 1
    (message,) = client.received()
    assert isinstance(message, Publish)
    number = router.vpn().clients["c"].number
    assert keys.outbound(number, message.packet_id) in dict(router.store.scan(keys.OUTBOUND))


def test_qos_2_over_a_crash(router: SpooledWorld) -> None:
    """The same identifiers mean the same messages after the router crashed: exactly once each."""
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    source = publisher(router)
    for number in (1, 2, 3):
        source.pub("a", b"%d" % number, qos=2, pid=number)
    one, two, three = client.messages()
    client.ack(PUBREC, one.packet_id)
    assert client.got() == [Ack(PUBREL, one.packet_id)]
    client.ack(PUBREC, two.packet_id)
    assert client.got() == [Ack(PUBREL, two.packet_id)]
    client.ack(PUBCOMP, two.packet_id)
    router.settle()
    again = router.restart()
    assert again.recovered == 1
    back = again.lasting("c")
    assert back.connack.session_present
    first, message = back.rest
    assert first == Ack(PUBREL, one.packet_id)
    assert isinstance(message, Publish)
    assert (message.payload, message.packet_id, message.dup) == (b"3", three.packet_id, True)
    back.ack(PUBREC, three.packet_id)
    assert back.got() == [Ack(PUBREL, three.packet_id)]
    back.send(Ack(PUBCOMP, three.packet_id), Ack(PUBCOMP, one.packet_id))
    again.settle()
    assert list(again.store.scan(keys.OUTBOUND)) == []
    fresh = publisher(again)
    fresh.pub("a", b"4", qos=2)
    (message,) = back.messages()
    assert not message.dup


def test_messages_are_released_in_order_after_a_crash(router: SpooledWorld) -> None:
    """PUBRELs follow the PUBRECs (MQTT-4.6.0-4), whatever the identifiers: clients may take messages then."""
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    source = publisher(router)
    for number in (1, 2, 3):
        source.pub("a", b"%d" % number, qos=2, pid=number)
    one, two, three = [message.packet_id for message in client.messages()]
    client.ack(PUBREC, one)
    assert client.got() == [Ack(PUBREL, one)]
    again = router.restart()
    back = again.lasting("c")
    back.send(Ack(PUBCOMP, one))
    # The identifier is used again, while older messages have higher ones.
    publisher(again).pub("a", b"4", qos=2)
    (message,) = back.messages()
    assert message.packet_id == one
    back.send(*[Ack(PUBREC, each) for each in (two, three, one)])
    assert back.got() == [Ack(PUBREL, each) for each in (two, three, one)]
    last = again.restart()
    assert last.lasting("c").rest == [Ack(PUBREL, each) for each in (two, three, one)]


def test_an_identifier_that_was_not_synced_is_not_used(router: SpooledWorld) -> None:
    """A client that comes back before the identifier of a message is in the store is sent nothing before.

    Otherwise the router could crash and send the message once more under another one.
    """
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    publisher(router).pub("a", b"1", qos=2)
    assert router.round()
    batch = router.spool.end_round()
    assert batch is not None
    assert [key for key, _ in batch.puts if key[:1] == keys.OUTBOUND]
    client.lose()
    back = router.open()
    back.send(Connect("c", clean_start=False, properties=FOREVER))
    assert router.spool.end_round() is None
    assert [type(packet) for packet in back.received()] == [Connack]
    router.store.commit(batch)
    router.spool.committed()
    (message,) = back.messages()
    number = router.vpn().clients["c"].number
    stored = [key for key, _ in router.store.scan(keys.OUTBOUND)]
    assert stored == [keys.outbound(number, message.packet_id)]


@pytest.mark.parametrize("again", [False, True])
def test_pubrel_waits_for_the_sync(router: SpooledWorld, again: bool) -> None:
    """Whether the client comes back or says PUBREC twice: PUBREL leaves once the message is settled in the store."""
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    publisher(router).pub("a", b"1", qos=2)
    (message,) = client.messages()
    client.ack(PUBREC, message.packet_id)
    assert router.spool.end_round() is not None
    if again:
        client.ack(PUBREC, message.packet_id)
        assert client.received() == []
    client.lose()
    back = router.open()
    back.send(Connect("c", clean_start=False, properties=FOREVER))
    assert [type(packet) for packet in back.received()] == [Connack]
    router.spool.committed()
    assert back.received() == [Ack(PUBREL, message.packet_id)]


def test_a_slow_client_is_waited_for(router: SpooledWorld) -> None:
    """With its outbox half full nothing more is sent; it goes on when the outbox has drained."""
    router.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=10_000))
    client = router.join("c")
    assert client.sub("a") == 1
    source = publisher(router)
    for number in range(1, 21):
        source.pub("a", b"x" * 1_000, pid=number)
        router.settle()
    first = client.messages()
    assert 4 <= len(first) <= 7
    router.advance(0.2)
    second = client.messages()
    assert len(second) >= 4
    seen = len(first) + len(second)
    client.puback(*first, *second)
    while seen < 20:
        router.advance(0.2)
        messages = client.messages()
        assert messages
        client.puback(*messages)
        seen += len(messages)
    assert seen == 20


def test_identifiers_go_round(router: SpooledWorld) -> None:
    """After 65,535 comes 1, and one that is in use is passed over (MQTT-2.2.1-4)."""
    client = router.join("c")
    assert client.sub("a") == 1
    outbound = router.vpn().clients["c"].outbound
    source = publisher(router)
    source.pub("a")
    (first,) = client.messages()
    assert first.packet_id == 1
    outbound._last = 65_534
    for pid in (2, 3):
        source.pub("a", pid=pid)
    assert [message.packet_id for message in client.messages()] == [65_535, 2]

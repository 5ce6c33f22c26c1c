"""vpnrouter.core.mqtt.consumer_flow: QoS 1 and 2 deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.discard_reasons import MSG_TOO_BIG
from vpnrouter.core.discard_rows import DiscardRows
from vpnrouter.spool import keys
from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.packets import (
    BRIDGE_BIT,
    Ack,
    Connect,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

FOREVER = 0xFFFF_FFFF


def publisher(router: SpooledWorld) -> SpooledClient:
    """A client that publishes; its answers are not looked at."""
    return router.join("publisher")


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("subscribed", [0, 1, 2])
def test_the_qos_of_a_delivery(
    router: SpooledWorld, level: int, published: int, subscribed: int
) -> None:
    """It is the lesser of that of the message and that of the subscription (MQTT-3.8.4-8)."""
    client = router.join("c", level)
    assert client.sub("a/+", subscribed) == subscribed
    publisher(router).pub("a/b", qos=published, pid=1 if published else 0)
    (message,) = client.messages()
    assert message.qos == min(published, subscribed)
    assert not message.dup
    assert not message.retain


def test_nothing_is_delivered_before_it_is_synced(router: SpooledWorld) -> None:
    """A guaranteed message leaves for subscribers after the commit."""
    client = router.join("c")
    assert client.sub("a") == 1
    publisher(router).pub("a")
    batch = router.spool.end_round()
    assert batch is not None
    assert client.received() == []
    router.store.commit(batch)
    router.spool.committed()
    (message,) = client.received()
    assert isinstance(message, Publish)


def test_overlapping_subscriptions_give_one_copy(router: SpooledWorld) -> None:
    """One copy with the highest QoS and all identifiers (MQTT-3.3.4-2 to -5)."""
    client = router.join("c")
    for number, (text, qos) in enumerate([("#", 0), ("a/b", 2), ("a/+", 1), ("x", 2)], 1):
        client.request([SubscriptionRequest(text, qos)], number)
    router.settle()
    client.received()
    publisher(router).pub("a/b", qos=2)
    (message,) = client.messages()
    assert message.qos == 2
    assert sorted(message.properties.subscription_identifiers or []) == [1, 2, 3]


def test_no_local(router: SpooledWorld) -> None:
    """A client does not get back what it published where it said so (MQTT-3.8.3-3)."""
    client = router.join("c")
    assert client.sub("a", no_local=True) == 1
    client.pub("a", pid=3)
    assert client.got() == [Ack(PUBACK, 3)]
    publisher(router).pub("a")
    assert len(client.messages()) == 1


@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("bridge", [False, True])
def test_a_bridge_gets_nothing_back(
    router: SpooledWorld, level: int, qos: int, bridge: bool
) -> None:
    """A client of 3.1 or 3.1.1 that says that it is a bridge has no-local, and gets RETAIN as it was published."""
    client = router.open("blue", level)
    client.send(Connect("c", protocol_level=level | BRIDGE_BIT if bridge else level))
    client.got()
    assert client.sub("t/#", qos) == qos
    client.publish("t/own")
    publisher(router).publish("t/a", b"kept", retain=True)
    found = [(message.payload, message.retain) for message in client.messages()]
    assert found == ([(b"kept", True)] if bridge else [(b"x", False), (b"kept", False)])


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("lasts", [False, True])
def test_qos_2_out(router: SpooledWorld, level: int, lasts: bool) -> None:
    """PUBLISH, PUBREC, PUBREL, PUBCOMP (MQTT 5, 4.3.3); the identifier is in use until the end."""
    client = router.lasting("c", level) if lasts else router.join("c", level)
    assert client.sub("a", 2) == 2
    publisher(router).pub("a", qos=2)
    (message,) = client.messages()
    assert message.qos == 2
    session = router.vpn().clients["c"]
    client.ack(PUBREC, message.packet_id)
    if lasts:
        assert client.received() == []
    assert client.got() == [Ack(PUBREL, message.packet_id)]
    assert session.endpoint.spooled_count == 0
    assert message.packet_id in session.outbound.releasing
    client.ack(PUBREC, message.packet_id)
    assert client.got() == [Ack(PUBREL, message.packet_id)]
    client.ack(PUBCOMP, message.packet_id)
    assert client.got() == []
    assert session.outbound.releasing == {}
    assert list(router.store.scan(keys.OUTBOUND)) == []


@pytest.mark.parametrize("queue", [False, True])
def test_messages_too_large_for_the_client(router: SpooledWorld, queue: bool) -> None:
    """They count as delivered (MQTT-3.1.2-25); a queue's go to the dead message queue."""
    dead = router.queue("#DEAD_MSG_QUEUE")
    endpoint = router.queue("q", "b")
    client = router.join(
        "c", properties=Properties(maximum_packet_size=100, session_expiry_interval=10)
    )
    assert client.sub("$queue/q" if queue else "b", 2) == 2
    source = publisher(router)
    for qos in (1, 2):
        source.pub("b", b"x" * 200, qos=qos, pid=qos)
    source.pub("b", b"small", pid=3)
    (message,) = client.messages()
    assert message.payload == b"small"
    assert router.vpn().discards.counts[MSG_TOO_BIG] == 2
    assert dead.spooled_count == (2 if queue else 0)
    if queue:
        assert endpoint.spooled_count == 1
    assert list(router.store.scan(keys.OUTBOUND)) == []
    client.puback(message)
    router.settle()
    assert router.vpn().clients["c"].outbound.held == {}


def test_topic_aliases(router: SpooledWorld) -> None:
    """They serve guaranteed deliveries too, and start anew with each connection."""
    properties = Properties(topic_alias_maximum=1, session_expiry_interval=FOREVER)
    client = router.join("c", clean_start=False, properties=properties)
    assert client.sub("#") == 1
    source = publisher(router)
    for number, topic in enumerate(["long/topic", "other/topic", "long/topic"], 1):
        source.pub(topic, pid=number)
    topics = [packet.topic for packet in client.got() if isinstance(packet, Publish)]
    assert topics == [b"long/topic", b"other/topic", b""]
    client.lose()
    back = router.join("c", clean_start=False, properties=properties)
    topics = [packet.topic for packet in back.rest if isinstance(packet, Publish)]
    assert topics == [b"long/topic", b"other/topic", b""]


def test_tx_counts(router: SpooledWorld) -> None:
    """Guaranteed deliveries are counted as sent messages; those still in the outbox are no loss."""
    client = router.lasting("c")
    assert client.sub("a") == 1
    publisher(router).pub("a")
    router.settle()
    assert client.connection.outbox.messages == 1
    assert client.connection.outbox.waiting() == 0
    client.lose()
    assert router.vpn().discards.counts == {}


def test_a_traceparent_names_the_delivery(router: SpooledWorld) -> None:
    """A traced message says the span of this very delivery; the next one after a break is another."""
    router.router.context.honours = True
    trace = 0x4BF92F3577B34DA6A3CE929D0E0E4736
    text = f"00-{trace:032x}-00f067aa0ba902b7-01"
    client = router.join("c", properties=Properties(session_expiry_interval=FOREVER))
    assert client.sub("a") == 1
    router.rows()
    sent = Properties(user_properties=[("traceparent", text), ("k", "v")])
    publisher(router).pub("a", properties=sent)
    (first,) = client.messages()
    client.lose()
    client = router.join("c", clean_start=False)
    (second,) = client.resolved(client.rest)
    assert second.dup
    rows = [row for row in router.rows() if row.event in ("deliver", "redeliver")]
    assert [row.event for row in rows] == ["deliver", "redeliver"]
    for row, message in zip(rows, (first, second), strict=True):
        assert row.trace == trace
        high, low = trace >> 64, trace & (1 << 64) - 1
        where = row.context.endpoint
        span = span_id(high, low, row.message_id, "here", "blue", row.event, "c", where)
        (said, other) = message.properties.user_properties or []
        assert said == ("traceparent", f"00-{trace:032x}-{span:016x}-01")
        assert other == ("k", "v")


def test_a_message_too_large_for_its_consumer_is_told(router: SpooledWorld) -> None:
    """As a discard at the endpoint, with the client that cannot take it."""
    context = router.router.context
    context.discard_rows = DiscardRows(context, True, True)
    client = router.join("c", properties=Properties(maximum_packet_size=60))
    client.sub("a")
    publisher(router).pub("a", bytes(100))
    assert client.messages() == []
    context.discard_rows.tell()
    (row,) = [row for row in router.rows() if row.event == "discard"]
    assert (row.context.client, row.context.reason, row.messages) == ("c", MSG_TOO_BIG, 1)
    assert row.context.endpoint


MANY = 1_200


def held(router: SpooledWorld, client: SpooledClient, qos: int) -> list[Publish]:
    """So many messages on topic `a`, which the client has and does not acknowledge."""
    source = publisher(router)
    for number in range(MANY):
        source.pub("a", b"%05d" % number, qos=qos, pid=number + 1)
    router.settle()
    found = client.messages()
    assert [message.payload for message in found] == [b"%05d" % each for each in range(MANY)]
    router.router.context.work = 0
    return found


@pytest.mark.parametrize("end", ["lose", "disconnect", "unsubscribe", "forbidden"])
def test_what_a_consumer_of_a_queue_held_goes_back_in_slices(
    router: SpooledWorld, end: str
) -> None:
    """However it ends, no turn gives back all; the next consumer has it in order, once, marked as redelivered."""
    queue = router.queue("q", "a")
    second = router.join("second")
    client = router.join("c")
    assert client.sub("$queue/q") == 1
    held(router, client, 1)
    context = router.router.context
    if end == "unsubscribe":
        client.send(Unsubscribe(9, ["$queue/q"]))
    elif end == "forbidden":
        queue.unbind_all("503 Shutdown")
    else:
        getattr(client, end)()
    assert (len(queue.flows), len(queue.returning)) == (0, 1)
    assert context.work <= limits.TURN_WORK
    second.send(Subscribe(1, [SubscriptionRequest("$queue/q", qos=1)]))
    slices = 0
    while queue.returning:
        context.jobs.step()
        assert context.work <= limits.TURN_WORK + 10
        slices += 1
    assert slices > 1
    _, *rest = second.got()
    found = second.resolved(rest)
    assert [message.payload for message in found] == [b"%05d" % each for each in range(MANY)]
    again = ("JMSRedelivered", "true")
    assert all(again in message.properties.user_properties for message in found)
    memory = router.vpn().memory
    second.disconnect()
    client.lose()
    router.settle()
    assert (memory.held, memory.unreturned) == (0, 0)


@pytest.mark.parametrize("qos", [1, 2])
def test_identifiers_hold_while_messages_go_back(router: SpooledWorld, qos: int) -> None:
    """A client that is back at once is sent all again, in order, under the identifiers that it knows."""
    client = router.lasting("c")
    assert client.sub("a", qos) == qos
    before = held(router, client, qos)
    client.lose()
    back = router.lasting("c")
    router.settle()
    again = back.resolved([*back.rest, *back.received()])
    assert [(each.payload, each.packet_id, each.dup) for each in again] == [
        (each.payload, each.packet_id, True) for each in before
    ]
    back.rest.clear()
    for each in again:
        if qos == 1:
            back.ack(PUBACK, each.packet_id)
    router.settle()
    endpoint = router.vpn().endpoints
    assert len(endpoint) == 1
    assert router.vpn().memory.unreturned == 0


def test_a_session_that_ends_takes_what_it_held(router: SpooledWorld) -> None:
    """Its endpoint goes with it, and no message is looked at for that."""
    client = router.join("c")
    assert client.sub("a", 1) == 1
    held(router, client, 1)
    client.disconnect()
    assert router.router.context.work <= limits.TURN_WORK
    assert router.spool.usage == 0
    router.settle()
    assert (router.vpn().endpoints, router.vpn().memory.held) == ({}, 0)
    assert router.vpn().memory.unreturned == 0

"""Long work of one client, in slices: what it asked for is done in order, and nobody else waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld
    from vpnrouter.testing.memory import Client, MemoryRouter


def many(pattern: str, count: int) -> list[SubscriptionRequest]:
    """So many filters."""
    return [SubscriptionRequest(pattern.format(number)) for number in range(count)]


def retain(world: MemoryRouter, count: int, size: int = 10, qos: int = 0) -> None:
    """Retain a message on each of so many topics."""
    source = world.connect("source")
    for number in range(count):
        source.publish(
            f"r/{number}", bytes([number % 251]) * size, retain=True, qos=qos, packet_id=qos
        )
        source.drain()


@pytest.mark.parametrize("level", [4, 5])
def test_a_long_subscribe_lets_others_have_their_turn(world: MemoryRouter, level: int) -> None:
    """4,000 filters take many turns; what the client sent behind them waits, another client's packet does not."""
    client, other = world.connect("c", level=level), world.connect("other", level=level)
    client.send(Subscribe(7, many("a/{}/+", 4_000)), Pingreq())
    jobs = world.router.context.jobs
    turns = 0
    while len(jobs):
        assert not client.connection.outbox.chunks
        other.send(Pingreq())
        assert other.connection.outbox.chunks.pop() == encode(Pingresp(), level)
        jobs.step()
        turns += 1
    assert turns > 10
    answer, pong = client.received()
    assert isinstance(answer, Suback)
    assert answer.reason_codes == [0] * 4_000
    assert isinstance(pong, Pingresp)
    world.connect("p").publish("a/3999/x")
    assert client.payloads() == [b"x"]
    client.send(Unsubscribe(8, [f"a/{number}/+" for number in range(4_000)]), Pingreq())
    assert len(jobs)
    answer, pong = client.received()
    assert isinstance(answer, Unsuback)
    assert isinstance(pong, Pingresp)
    assert world.vpn().subscription_count == 0


def test_a_client_that_goes_ends_its_long_work(world: MemoryRouter) -> None:
    """The filters that it had not come to are never subscribed to."""
    client = world.connect("c")
    client.send(Subscribe(7, many("a/{}/+", 4_000)))
    assert len(world.router.context.jobs)
    client.lose()
    world.router.context.jobs.finish()
    assert world.vpn().subscription_count == 0


@pytest.mark.parametrize("unsubscribe", [False, True])
def test_filters_of_a_packet_are_bounded(world: MemoryRouter, unsubscribe: bool) -> None:
    """A packet with one filter more than SUBSCRIBE_FILTERS ends the connection with 0x97."""
    most = limits.SUBSCRIBE_FILTERS
    client = world.connect("c")
    if unsubscribe:
        client.send(Unsubscribe(1, ["a"] * most), Unsubscribe(2, ["a"] * (most + 1)))
    else:
        client.send(Subscribe(1, many("a", most)), Subscribe(2, many("a", most + 1)))
    world.router.context.jobs.finish()
    assert client.reason() == 0x97


def test_user_properties_of_a_packet_are_bounded(world: MemoryRouter) -> None:
    """Any packet with one user property more than USER_PROPERTIES ends the connection with 0x97."""
    for count in (limits.USER_PROPERTIES, limits.USER_PROPERTIES + 1):
        properties = Properties(user_properties=[("a", "b")] * count)
        publisher, subscriber = world.connect("p"), world.connect("s")
        publisher.publish("a", properties=properties)
        subscriber.send(Subscribe(1, many("b", 1), properties))
        for client in (publisher, subscriber):
            if count == limits.USER_PROPERTIES:
                assert not client.closed
            else:
                assert client.reason() == 0x97


def test_many_small_packets_are_handled_in_turns(world: MemoryRouter) -> None:
    """Ten thousand PINGREQs in one chunk are answered in turns with what another client sends."""
    client, other = world.connect("c"), world.connect("other")
    client.raw(encode(Pingreq(), 5) * 10_000)
    turns = 0
    while len(world.router.context.jobs):
        other.send(Pingreq())
        assert other.connection.outbox.chunks.pop() == encode(Pingresp(), 5)
        world.router.context.jobs.step()
        turns += 1
    assert turns > 10
    assert len(client.received()) == 10_000


def test_new_topics_are_routed_in_turns(world: MemoryRouter) -> None:
    """Messages on thousands of new topics, in one chunk, arrive complete and in order, in turns with others."""
    world.connect("p")
    client, publisher = world.connect("s"), world.connect("p2")
    client.subscribe("t/#")
    packets = [encode(Publish(b"t/%d" % number, b"%d" % number), 5) for number in range(5_000)]
    publisher.raw(b"".join(packets))
    assert len(world.router.context.jobs)
    assert client.payloads() == [b"%d" % number for number in range(5_000)]


def test_retained_messages_come_once_for_each_filter(world: MemoryRouter) -> None:
    """The same filter two thousand times in one packet brings each retained message once."""
    retain(world, 20)
    client = world.connect("c")
    answer, *messages = client.request(
        [SubscriptionRequest("#")] * 2_000 + [SubscriptionRequest("r/+")]
    )
    assert isinstance(answer, Suback)
    assert len(messages) == 40


def test_retained_messages_come_as_the_client_reads(world: MemoryRouter) -> None:
    """More than the outbox holds, of all sizes: nothing is discarded, and the outbox stays within its limit."""
    retain(world, 300, 60_000)
    client = world.connect("c", level=4)
    client.send(Subscribe(1, [SubscriptionRequest("r/#")]))
    got: list[bytes] = []
    outbox = client.connection.outbox
    for _ in range(100):
        world.router.context.jobs.finish()
        assert outbox.size <= outbox.limit // 2
        got += [each.payload[:1] for each in client.received() if isinstance(each, Publish)]
        if len(got) == 300:
            break
        world.advance(0.11)
    assert sorted(got) == sorted(bytes([number % 251]) for number in range(300))
    assert outbox.discarded == 0
    assert client.connection.session is not None
    assert client.connection.session.feed is None


def test_what_is_retained_meanwhile_does_not_come_twice(world: MemoryRouter) -> None:
    """A message that is published while retained ones are on their way comes as the subscription brings it."""
    retain(world, 200, 60_000)
    client = world.connect("c", level=4)
    client.send(Subscribe(1, [SubscriptionRequest("r/#")]))
    world.router.context.jobs.finish()
    client.drain()
    source = world.connect("source2")
    for number in range(200):
        source.publish(f"r/{number}", b"new", retain=True)
    seen: list[tuple[bytes, bool]] = []
    for _ in range(50):
        seen += [
            (each.topic, each.retain)
            for each in client.received()
            if isinstance(each, Publish) and each.payload == b"new"
        ]
        world.advance(0.11)
    assert sorted(seen) == sorted((b"r/%d" % number, False) for number in range(200))


def test_who_unsubscribes_gets_no_more_retained_messages(world: MemoryRouter) -> None:
    """What had not left is not sent any more."""
    retain(world, 200, 60_000)
    client = world.connect("c", level=4)
    client.send(Subscribe(1, [SubscriptionRequest("r/#")]))
    client.drain()
    client.unsubscribe("r/#")
    for _ in range(5):
        world.advance(0.11)
        assert client.received() == []
    assert world.vpn().retained.message(b"r/1", 0, 0) is not None


def test_retained_messages_through_the_endpoint_follow_the_acknowledgements(
    router: SpooledWorld,
) -> None:
    """More of QoS 1 than RETAINED_AHEAD: all arrive, and the endpoint never holds many at a time."""
    count = limits.RETAINED_AHEAD + 500
    source = router.join("source")
    for number in range(count):
        source.pub(f"r/{number}", b"%d" % number, retain=True, pid=number % 60_000 + 1)
        if number % 500 == 0:
            source.got()
    source.got()
    client = router.join("c")
    client.send(Subscribe(1, [SubscriptionRequest("r/#", 1)]))
    got: list[bytes] = []
    for _ in range(100):
        packets = [each for each in client.got() if isinstance(each, Publish)]
        (endpoint,) = [each for key, each in router.vpn().endpoints.items() if "c" in key[1]]
        assert endpoint.spooled_count <= limits.RETAINED_AHEAD
        got += [each.payload for each in packets]
        client.puback(*packets)
        if len(got) == count:
            break
        router.advance(0.11)
    assert sorted(got) == sorted(b"%d" % number for number in range(count))


def subscribe_all(client: Client, pattern: str, count: int) -> None:
    """Subscribe to so many filters, in packets that may have them."""
    for first in range(0, count, 4_000):
        numbers = range(first, min(count, first + 4_000))
        client.request([SubscriptionRequest(pattern.format(number)) for number in numbers])


def test_the_subscriptions_of_a_client_that_went_go_bit_by_bit(world: MemoryRouter) -> None:
    """At once nothing reaches it any more, and a new client of its id has none of them; in the end none is left."""
    client, publisher = world.connect("c"), world.connect("p")
    subscribe_all(client, "a/{}/+", 6_000)
    client.request([SubscriptionRequest("$share/g/a/1/x")])
    publisher.publish("a/1/x")
    assert b"x" in client.payloads()
    client.lose()
    assert world.vpn().subscription_count > 5_000
    again = world.connect("c")
    publisher.publish("a/1/x")
    assert again.payloads() == []
    world.router.context.jobs.finish()
    assert world.vpn().subscription_count == 0
    assert len(world.vpn().trie) == 0
    assert not world.vpn().groups


def test_a_subscription_changes_no_route_but_those_that_it_must(world: MemoryRouter) -> None:
    """A filter held against few cached topics drops what it matches; one against very many drops all, quickly."""
    publisher, client = world.connect("p"), world.connect("c")
    topics = [f"a/b/c/d/e/f/g/{number}/x" for number in range(20_000)]
    for topic in topics:
        publisher.publish(topic)
    world.router.context.jobs.finish()
    vpn = world.vpn()
    kept = len(vpn.cache)
    assert kept >= 15_000
    client.subscribe("a/b/c/d/e/f/g/7/x")
    assert kept - len(vpn.cache) == 1
    began = time.thread_time()
    for number in range(100):
        client.subscribe(f"a/+/c/+/e/+/g/+/y{number}/#")
    assert time.thread_time() - began < 1.0
    assert len(vpn.cache) == 0
    # What is freed is freed with what is cached anew.
    publisher.publish("a/b/c/d/e/f/g/7/x", b"1")
    assert client.payloads() == [b"1"]

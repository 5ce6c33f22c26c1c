"""The dialer's end: what crosses into the local VPN, and how; what does not, and why."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.selectors import parse_selector
from vpnrouter.testing.memory import FakeLink
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties


def bridged(world: Any, filters: tuple[str, ...] = (">",), **bounds: Any) -> Any:
    """A publisher in blue on edge, a bridge, and a subscriber to everything in yellow on core."""
    local = world.vpn("yellow", "core", bounds=VpnLimits(**bounds) if bounds else None)
    remote = world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", list(filters))
    subscriber = world.client(local, "s")
    subscriber.subscribe("#", as_published=True)
    return link, world.client(remote, "p"), subscriber


@pytest.mark.parametrize("piece", [0, 1, 3, 100])
def test_messages_cross(world: Any, piece: int) -> None:
    """What matches the bridge's subscriptions arrives once, in order, however the bytes are cut."""
    link, publisher, subscriber = bridged(world, ("flights/*/JFK/>", "weather/>"))
    link.wire.piece = piece
    sent = [
        (f"flights/AA/{airport}/LAX", str(number).encode() * 50)
        for number, airport in enumerate(["JFK", "EWR", "JFK", "LGA", "JFK"])
    ]
    for topic, payload in sent:
        publisher.publish(topic, payload)
    publisher.publish("weather/JFK", b"")
    publisher.publish("news", b"")
    taken = [(one.topic.decode(), one.payload) for one in subscriber.take()]
    assert taken == [sent[0], sent[2], sent[4], ("weather/JFK", b"")]
    assert link.dialed.publisher.messages == 4


def test_only_what_is_asked_for_goes_on_the_wire(world: Any) -> None:
    """The remote VPN sends nothing that the subscriptions do not attract."""
    link, publisher, _ = bridged(world, ("a",))
    before = len(link.wire.carried[1])
    publisher.publish("b", b"not asked for")
    assert len(link.wire.carried[1]) == before


def test_nothing_goes_the_other_way(world: Any) -> None:
    """A bridge has one direction: what is published in the local VPN stays there."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue")
    outside = world.client(remote, "outside")
    outside.subscribe("#")
    before = len(link.wire.carried[0])
    world.client(local, "p").publish("a", b"local")
    assert outside.take() == []
    assert len(link.wire.carried[0]) == before


def test_properties_cross_in_order(world: Any) -> None:
    """Every property of the message arrives as it was sent, user properties in their order."""
    _, publisher, subscriber = bridged(world)
    sent = Properties(
        payload_format_indicator=1,
        message_expiry_interval=60,
        content_type="text/plain",
        response_topic="answers/1",
        correlation_data=b"\x00\x01",
        user_properties=[("b", "2"), ("a", "1"), ("b", "2")],
    )
    publisher.publish("a", b"text", properties=sent)
    (message,) = subscriber.take()
    assert message.properties == sent
    assert message.payload == b"text"


def test_retain_crosses(world: Any) -> None:
    """A retained message is retained in the receiving VPN and shows its flag to who wants it."""
    link, publisher, subscriber = bridged(world)
    publisher.publish("a", b"kept", retain=True)
    assert [one.retain for one in subscriber.take()] == [True]
    late = world.client(link.dialed.vpn, "late")
    late.subscribe("#")
    assert late.payloads() == [b"kept"]
    publisher.publish("a", b"", retain=True)
    later = world.client(link.dialed.vpn, "later")
    later.subscribe("#")
    assert later.take() == []


def test_retained_messages_are_not_replayed_to_a_bridge(world: Any) -> None:
    """SUBSCRIBE over a link brings what is published from then on, not what was kept (LINK-26)."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    world.client(remote, "p").publish("a", b"old", retain=True)
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    world.link(local, "edge", "blue")
    assert subscriber.take() == []


def test_a_traced_message_keeps_its_trace_over_two_links(world: Any) -> None:
    """The second link tells the first router as origin and the whole path."""
    world.router("edge", sample=1.0)
    _, publisher, _ = bridged(world)
    third = world.vpn("red", "third")
    world.link(third, "core", "yellow")
    subscriber = world.client(third, "s")
    subscriber.subscribe("#")
    world.traces("edge")
    publisher.publish("a", b"x")
    assert subscriber.payloads() == [b"x"]
    traced = {one.trace for one in world.traces("edge")}
    received = [one for one in world.traces("third") if one.event == "bridge_receive"]
    assert {one.trace for one in received} == traced
    context = received[0].context
    assert (context.path, context.hops, context.origin_router) == (
        "edge/blue>core/yellow",
        2,
        "edge",
    )


@pytest.mark.parametrize(
    ("bounds", "topic", "payload", "reason"),
    [
        ({"max_topic_levels": 3}, "a/b/c/d", b"x", "topic-parse-error"),
        ({"max_topic_bytes": 5}, "abcdef", b"x", "topic-parse-error"),
        ({"max_msg_size": 10}, "a", b"x" * 11, "msg-too-big"),
    ],
    ids=["levels", "bytes", "size"],
)
@pytest.mark.parametrize("retain", [False, True])
def test_what_the_local_vpn_cannot_take(
    world: Any, bounds: dict[str, Any], topic: str, payload: bytes, reason: str, retain: bool
) -> None:
    """Too much for this VPN alone: discarded, counted, nothing kept, and the link stays up."""
    link, publisher, subscriber = bridged(world, **bounds)
    publisher.publish(topic, payload, retain=retain)
    publisher.publish("a", b"next")
    assert subscriber.payloads() == [b"next"]
    assert link.up
    assert link.half.record.counters.discarded_rx.counts == {reason: 1}
    assert link.dialed.vpn.totals().discards == {reason: 1}
    assert len(link.dialed.vpn.retained) == 0


@pytest.mark.parametrize("topic", ["a/#", "+", "a\tb/+/c"])
def test_topics_that_no_publisher_may_use(world: Any, topic: str) -> None:
    """A wildcard in a topic from a foreign router is discarded and counted (LINK-27)."""
    link, _, subscriber = bridged(world)
    link.dialed.feed(encode.direct(encode.direct_body(topic.encode(), b"", b"x")))
    assert subscriber.take() == []
    assert link.up
    assert link.half.record.counters.discarded_rx.counts == {"topic-parse-error": 1}


@pytest.mark.parametrize(
    ("path", "hops", "verdict"),
    [
        (["x/1", "edge/blue"], 2, ""),
        (["x/1", "core/yellow", "edge/blue"], 3, "loop-detected"),
        (["edge/blue"], 3, ""),
        (["edge/blue"], 4, "ttl-exceeded"),
    ],
)
def test_the_receiver_checks_path_and_hops(
    world: Any, path: list[str], hops: int, verdict: str
) -> None:
    """A message that was here, or crossed more than `max_ttl` links, is discarded (LINK-36)."""
    local, _ = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"max_ttl": 3})
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    extension = frames.Extension(path, hops)
    link.dialed.feed(encode.message(frames.Direct(b"a", b"", b"x", extension)))
    assert len(subscriber.take()) == (0 if verdict else 1)
    assert link.half.record.counters.discarded_rx.counts == ({verdict: 1} if verdict else {})
    assert link.up


def test_no_subscriber_is_counted(world: Any) -> None:
    """What a bridge brings and nobody wants is discarded under its reason."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    world.link(local, "edge", "blue")
    publisher = world.client(remote, "p")
    publisher.publish("a", b"x")
    publisher.publish("a", b"x", properties=Properties(content_type="x"))
    assert local.totals().discards == {"no-subscription-match": 2}


def welcome(**different: Any) -> bytes:
    """A WELCOME that fits, apart from what is given."""
    fields: dict[str, Any] = {"router": "edge", "vpn": "blue", "client_name": "#bridge/x"}
    fields.update(different)
    return encode.welcome(frames.Welcome(**fields))


@pytest.mark.parametrize(
    ("different", "code"),
    [
        ({"router": "other"}, 0xC3),
        ({"vpn": "green"}, 0x82),
        ({"features": 4}, 0x82),
        ({"minor": 2}, 0x82),
    ],
)
def test_a_welcome_that_does_not_fit(world: Any, different: dict[str, Any], code: int) -> None:
    """A WELCOME for another HELLO is closed with its code, told to the acceptor (LINK-19)."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", settle=False, terms={"remote_router": "edge"})
    link.dialed.outbox.take(1 << 20)
    link.dialed.feed(welcome(**different))
    data = link.dialed.outbox.take(1 << 20)
    close = decode(data, 0, len(data))
    assert isinstance(close, frames.Close)
    assert close.code == code
    assert link.events.names == ["lost"]
    assert local.clients == {}


@pytest.mark.parametrize("router", ["r" * 300, "a/b"])
def test_a_router_that_no_path_can_name(world: Any, router: str) -> None:
    """A router name too long for a path, or ambiguous in one, is refused before messages come."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", settle=False)
    link.dialed.feed(welcome(router=router))
    assert link.dialed.closing
    assert local.clients == {}


def test_an_answer_nobody_asked_for(world: Any) -> None:
    """SUBSCRIBED without a request is closed with 0x82."""
    link, _, _ = bridged(world)
    link.dialed.feed(encode.subscribed(frames.Subscribed(9, [0])))
    assert link.dialed.closing
    assert link.events.told[-1][0] == "lost"


def test_many_filters_are_one_question(world: Any) -> None:
    """Filters beyond one frame go in several, and the owner hears once that all are answered."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    count = 2 * limits.LINK_SUBSCRIBE_FILTERS + 1
    link = world.link(local, "edge", "blue", [f"t/{number}" for number in range(count)])
    assert remote.subscription_count == count
    assert link.events.names == ["welcomed", "subscribed"]


def test_a_bridge_without_subscriptions(world: Any) -> None:
    """With nothing to ask for the bridge is in sync at once."""
    link = world.link(
        world.vpn("yellow", "core"), world.vpn("blue", "edge").context.router_name, "blue", []
    )
    assert link.events.names == ["welcomed", "subscribed"]


def test_counters_when_the_link_ends(world: Any) -> None:
    """The link tells how much it brought, and the VPN's totals keep it."""
    link, publisher, _ = bridged(world)
    for number in range(5):
        publisher.publish("a", bytes(number))
    before = link.dialed.vpn.totals()
    link.dialed.lost("reset")
    counters = link.half.record.counters
    assert counters.data_rx_msg_count == 5
    assert counters.data_rx_byte_count > 0
    assert counters.delivered_rx_msg_count == 5
    assert counters.rx_imbalance(0) == 0
    assert link.dialed.vpn.totals().rx_msg_count == before.rx_msg_count == 5


@pytest.mark.parametrize("compress", [False, True])
def test_dear_selectors_hold_the_link(world: Any, compress: bool) -> None:
    """Messages whose receivers have selectors that cost many turns come in order, also within one compressed frame."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"compress": compress})
    takers = [FakeLink(local, f"there/{number}") for number in range(8)]
    for number, taker in enumerate(takers):
        text = f"p{number} = 1 OR k IS NULL OR k LIKE '%a_b%'"
        taker.subscribe("t", selector=parse_selector(text))
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    values = ["a" * 65_000 + "b", "a" * 65_000, "", "c" + "a" * 60_000 + "bb"]
    packets = []
    for number, value in enumerate(values):
        user = [("k", value)] if value else None
        properties = Properties(user_properties=user)
        packets.append(Publish(b"t", b"%d" % number, properties=properties))
    publisher.send(*packets)
    world.settle()
    assert [taker.taken() for taker in takers] == [[b"0", b"2", b"3"]] * 8
    assert subscriber.payloads() == [b"0", b"1", b"2", b"3"]
    assert not link.dialed.held

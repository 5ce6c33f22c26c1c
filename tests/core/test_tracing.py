"""vpnrouter.core.tracing: trace filters, traceparent and trace rows."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.message import Message
from vpnrouter.core.tracing import TraceFilter, TraceSettings, read
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.trace.events import DIRECT
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, with_user_properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import Client, MemoryRouter


def one(
    sample: float,
    *subscriptions: str,
    vpns: tuple[str, ...] = (),
    usernames: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    dialect: int = SMF,
) -> TraceFilter:
    """A filter."""
    return TraceFilter(
        Sampler(sample, 5),
        [parse_filter(text, dialect) for text in subscriptions],
        list(vpns),
        list(usernames),
        list(names),
    )


def traced(world: MemoryRouter) -> dict[tuple[str, bytes], int]:
    """How many messages of each client and topic were traced since the last call."""
    found: dict[tuple[str, bytes], int] = {}
    for row in world.rows():
        if row.event == "ingress":
            key = (row.context.client, row.topic)
            found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"vpns": ("blue",)}, True),
        ({"vpns": ("green", "red")}, False),
        ({"usernames": ("ann",)}, True),
        ({"usernames": ("an",)}, False),
        ({"names": ("sensor-1",)}, True),
        ({"names": ("sensor-",)}, False),
        ({"names": ("x", "sensor-*")}, True),
        ({"names": ("*",)}, True),
        ({"names": ("sensor-1*",)}, True),
        ({"names": ("sensor-11*",)}, False),
        ({"vpns": ("blue",), "usernames": ("ann",), "names": ("other",)}, False),
    ],
)
def test_fits_a_client(given: dict[str, Any], fits: bool) -> None:
    """Every criterion that is given has to fit; what is left out fits everybody."""
    assert one(1.0, **given).fits_client("blue", "ann", "sensor-1") is fits


@pytest.mark.parametrize(
    ("dialect", "text", "fits"),
    [(SMF, "a/>", True), (SMF, "a/*", True), (MQTT, "a/+", True), (MQTT, "a/*", False)],
)
def test_fits_a_topic(dialect: int, text: str, fits: bool) -> None:
    """Subscriptions are topic filters of their dialect; without any every topic fits."""
    assert one(1.0, "z", text, dialect=dialect).fits_topic("a/b") is fits
    assert one(1.0).fits_topic("a/b")


@pytest.mark.parametrize("level", [4, 5])
def test_the_first_that_fits_decides(kit: ModuleType, level: int) -> None:
    """By topic: all alarms but the noisy ones, nothing else."""
    terms = TraceSettings(
        filters=[one(0.0, "alarm/noise"), one(1.0, "alarm/>"), one(0.0, "alarm/x")]
    )
    world = kit.MemoryRouter(terms=terms)
    world.connect("sub").subscribe("#")
    client = world.connect("c", level=level)
    for topic in (b"alarm/noise", b"alarm/x", b"other", b"alarm/x"):
        client.raw(encode_publish(topic, b"x", level) * 3)
        client.publish(topic.decode(), b"yy", retain=True)
    assert traced(world) == {("c", b"alarm/x"): 8}


def test_by_client(kit: ModuleType) -> None:
    """A filter without topics is decided at the login: nothing is left to ask for a message."""
    world = kit.MemoryRouter(
        sample=1.0, terms=TraceSettings(filters=[one(0.0, names=("quiet-*",))])
    )
    loud, quiet = world.connect("loud"), world.connect("quiet-1")
    for client in (loud, quiet):
        client.raw(encode_publish(b"a", b"x", 5) * 2)
        assert client.connection.publisher is not None
        assert client.connection.publisher.picking is None
    assert traced(world) == {("loud", b"a"): 2}


def test_routes_are_shared_by_clients_of_two_kinds(kit: ModuleType) -> None:
    """Two kinds of clients that publish to the same topic in turn each keep their own filter."""
    terms = TraceSettings(
        filters=[one(1.0, "a", names=("all",)), one(0.0, "a", names=("none",)), one(1.0, "b")]
    )
    world = kit.MemoryRouter(terms=terms)
    every, none = world.connect("all"), world.connect("none")
    for _ in range(3):
        for client in (every, none):
            for topic in (b"a", b"b", b"c"):
                client.raw(encode_publish(topic, b"x", 5))
    assert traced(world) == {("all", b"a"): 3, ("all", b"b"): 3, ("none", b"b"): 3}


def test_clients_of_one_kind_share_what_is_known(kit: ModuleType) -> None:
    """A thousand sensors are one kind, and what was chosen for topics is bounded."""
    world = kit.MemoryRouter(terms=TraceSettings(filters=[one(1.0, "a/>", names=("s*",))]))
    clients = [world.connect(f"s{number}") for number in range(5)]
    pickings = {id(client.connection.publisher.picking) for client in clients}
    assert len(pickings) == 1
    count = limits.REMEMBERED_TOPIC_BYTES // 1_000 + 10
    for number in range(count):
        topic = (b"a/%d/" % number).ljust(1_000, b"x")
        clients[0].raw(encode_publish(topic, b"x", 5))
    (picking,) = world.router.context.pickings.values()
    assert 0 < len(picking._chosen.answers) <= limits.REMEMBERED_TOPIC_BYTES // 1_000
    assert len(traced(world)) == count


def test_a_share(kit: ModuleType) -> None:
    """A filter's share holds for the messages that fit it, however they are mixed with others."""
    world = kit.MemoryRouter(terms=TraceSettings(filters=[one(0.25, "a")]))
    client = world.connect("c", level=4)
    for _ in range(200):
        client.raw(encode_publish(b"b", b"x", 4) * 7 + encode_publish(b"a", b"x", 4) * 5)
    found = traced(world)
    assert set(found) == {("c", b"a")}
    assert 200 < found["c", b"a"] < 300


def test_subscriptions_say_their_dialect(kit: ModuleType) -> None:
    """A filter's text alone does not say what it means; both dialects stand in one message VPN."""
    world = kit.MemoryRouter(sample=1.0)
    client = world.connect("c")
    client.subscribe("a/+")
    kit.FakeLink(world.vpn(), "far/red").subscribe("a/*")
    client.unsubscribe("a/+")
    found = [
        (row.event, row.context.client, row.topic, row.context.topic_syntax) for row in world.rows()
    ]
    assert found == [
        ("subscribe", "c", b"a/+", "mqtt"),
        ("subscribe", "#bridge/far/red", b"a/*", "smf"),
        ("unsubscribe", "c", b"a/+", "mqtt"),
    ]


def test_subscriptions_are_told_whatever_the_share(kit: ModuleType) -> None:
    """A report on subscriptions needs all of them, also where no message is traced."""
    for terms, count in ((None, 0), (TraceSettings(), 1)):
        world = kit.MemoryRouter(terms=terms)
        world.connect("c").subscribe("a")
        assert len(world.rows()) == count


@pytest.mark.parametrize("sample", [0.0, 1.0])
def test_who_did_not_get_it(kit: ModuleType, sample: float) -> None:
    """Discards on the way to a receiver name the receiver, traced or not."""
    world = kit.MemoryRouter(sample=sample, terms=TraceSettings(discards=True))
    picky = world.connect("picky", properties=Properties(maximum_packet_size=50))
    own = world.connect("own")
    picky.subscribe("big")
    own.subscribe("own", no_local=True)
    world.rows()
    own.publish("big", bytes(100))
    own.publish("own", b"x")
    own.publish("none", b"x", retain=True)
    world.advance(1)
    found = {
        (row.context.client, row.topic, row.context.reason, row.messages, bool(row.trace))
        for row in world.rows()
        if row.event == "discard"
    }
    assert found == {
        ("picky", b"big", "msg-too-big", 1, sample == 1.0),
        ("own", b"own", "no-local-delivery", 1, sample == 1.0),
        ("own", b"none", "no-subscription-match", 1, sample == 1.0),
    }


def test_a_message_that_came_over_a_bridge(kit: ModuleType) -> None:
    """A row of a traced message has its bridge's peer, way and origin where it is given up."""
    world = kit.MemoryRouter(sample=1.0)
    vpn = world.vpn()
    link = kit.FakeLink(vpn, "far/red")
    message = Message(b"a", b"x", source=link)
    message.trace_low = 5
    message.path = ["far/red"]
    message.hops = 1
    message.origin_router, message.origin_vpn = "far", "red"
    assert vpn.publish(message) == "no-subscription-match"
    (row,) = world.rows()
    context = row.context
    assert (context.peer_router, context.peer_vpn) == ("far", "red")
    assert (context.path, context.hops) == ("far/red", 1)
    assert (context.origin_router, context.origin_vpn, context.mode) == ("far", "red", DIRECT)


def test_messages_that_may_not_enter(kit: ModuleType) -> None:
    """Too large, or not allowed: told with topic and publisher before anybody asks for a trace."""
    world = kit.MemoryRouter(sample=1.0, terms=TraceSettings(discards=True))
    world.add_vpn(
        "blue",
        acl=AclProfile("default", publish=TopicRule(True, [("no", SMF)])),
        bounds=VpnLimits(max_msg_size=10),
    )
    client = world.connect("c")
    client.publish("no", b"x")
    client.publish("yes", bytes(11))
    world.advance(1)
    found = [(row.event, row.topic, row.context.reason, row.trace) for row in world.rows()]
    assert found == [
        ("discard", b"no", "publish-topic-acl", 0),
        ("discard", b"yes", "msg-too-big", 0),
    ]


TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736
SPAN = 0x00F067AA0BA902B7
SAMPLED = f"00-{TRACE:032x}-{SPAN:016x}-01"
UNSAMPLED = f"00-{TRACE:032x}-{SPAN:016x}-00"
BAD = (
    "",
    "00",
    SAMPLED.upper(),
    SAMPLED.replace("00-", "01-", 1),
    SAMPLED.replace("00-", "ff-", 1),
    SAMPLED + "-more",
    f"00-{0:032x}-{SPAN:016x}-01",
    f"00-{TRACE:032x}-{0:016x}-01",
    f"00_{TRACE:032x}-{SPAN:016x}-01",
    f"00-{TRACE:032x}_{SPAN:016x}-01",
    f"00-{TRACE:032x}-{SPAN:016x}_01",
    f"00-{TRACE:032x}-{SPAN:016x}-0g",
    f"00-+{TRACE:031x}-{SPAN:016x}-01",
)


def block(*texts: str) -> bytes:
    """Properties with these traceparents among others."""
    pairs = [
        ("a", "traceparent"),
        *[("traceparent", text) for text in texts],
        ("traceparents", SAMPLED),
    ]
    return with_user_properties(b"\x03\x00\x0btraceparent\x01\x01\x09\x00\x02xy", pairs)


@pytest.mark.parametrize(("text", "sampled"), [(SAMPLED, True), (UNSAMPLED, False)])
def test_a_valid_one(text: str, sampled: bool) -> None:
    """Trace id, span and flag; other flags mean nothing."""
    for flags in (0x00, 0x02, 0xFE):
        found = read(block(text[:-2] + f"{int(sampled) | flags:02x}"))
        assert found is not None
        assert (found.high << 64 | found.low, found.span) == (TRACE, SPAN)
        assert found.sampled is sampled


@pytest.mark.parametrize("text", BAD)
def test_a_bad_one_is_none(text: str) -> None:
    """Whatever is not of version 00's form says nothing."""
    assert read(block(text)) is None


@given(st.text(alphabet=string.hexdigits + "-", min_size=53, max_size=57))
@example(SAMPLED)
def test_any_text(text: str) -> None:
    """Nothing breaks on any text, and what is read is what was written."""
    found = read(block(text))
    if found is not None:
        flags = text[-2:]
        assert text == f"00-{found.high:016x}{found.low:016x}-{found.span:016x}-{flags}"


def parents(client: Client) -> list[list[str]]:
    """The traceparents of each message that came."""
    return [
        [text for name, text in message.properties.user_properties or [] if name == "traceparent"]
        for message in client.messages()
    ]


def publish(client: Client, *texts: str, topic: str = "a") -> None:
    """Publish with these traceparents."""
    pairs = [("traceparent", text) for text in texts]
    client.publish(topic, properties=Properties(user_properties=pairs or None))


def honouring(kit: ModuleType, sample: float = 0.0, emits: bool = False) -> MemoryRouter:
    """A router that honours traceparent."""
    world: MemoryRouter = kit.MemoryRouter(
        sample=sample, terms=TraceSettings(honours=True, emits=emits)
    )
    return world


def leaves(world: MemoryRouter, message_id: int, client: str, trace: int = TRACE) -> str:
    """What a message says when it is delivered to a client."""
    high, low = trace >> 64, trace & (1 << 64) - 1
    span = span_id(high, low, message_id, "here", "blue", "deliver", client)
    return f"00-{trace:032x}-{span:016x}-01"


def test_a_sampled_message_is_traced(kit: ModuleType) -> None:
    """Under its own trace id, whatever the share; it leaves with the span of each delivery."""
    world = honouring(kit)
    subscribers = [
        world.connect("s1"),
        world.connect("s2", properties=Properties(topic_alias_maximum=5)),
    ]
    for subscriber in subscribers:
        subscriber.subscribe("a")
    old = world.connect("old", level=4)
    old.subscribe("a")
    world.rows()
    publish(world.connect("p"), SAMPLED)
    ingress, *delivered = world.rows()
    assert (ingress.event, ingress.trace) == ("ingress", TRACE)
    assert ingress.context.parent_span_id == f"{SPAN:016x}"
    assert [row.event for row in delivered] == ["deliver"] * 3
    assert {(row.trace, row.message_id) for row in delivered} == {(TRACE, ingress.message_id)}
    for subscriber, name in zip(subscribers, ("s1", "s2"), strict=True):
        assert parents(subscriber) == [[leaves(world, ingress.message_id, name)]]
    assert old.payloads() == [b"x"]


def test_what_is_not_sampled_goes_untouched(kit: ModuleType) -> None:
    """With a share of 0 nobody traces it, and the property is passed on."""
    world = honouring(kit)
    subscriber = world.connect("s")
    subscriber.subscribe("a")
    world.rows()
    publish(world.connect("p"), UNSAMPLED)
    assert world.rows() == []
    assert parents(subscriber) == [[UNSAMPLED]]


def test_our_own_draw_joins_the_trace(kit: ModuleType) -> None:
    """A message that is not sampled there and is here is traced under its trace id all the same."""
    world = honouring(kit, sample=1.0)
    subscriber = world.connect("s")
    subscriber.subscribe("a")
    world.rows()
    publish(world.connect("p"), UNSAMPLED)
    ingress, deliver = world.rows()
    assert ingress.trace == deliver.trace == TRACE
    assert parents(subscriber) == [[leaves(world, ingress.message_id, "s")]]


@pytest.mark.parametrize("texts", [*[(bad,) for bad in BAD], (SAMPLED, UNSAMPLED)])
@pytest.mark.parametrize("emits", [False, True])
def test_bad_ones_are_passed_on(kit: ModuleType, texts: tuple[str, ...], emits: bool) -> None:
    """The message is as good as any other, and its properties stay as they were."""
    world = honouring(kit, sample=1.0, emits=emits)
    subscriber = world.connect("s")
    subscriber.subscribe("a")
    world.rows()
    publish(world.connect("p"), *texts)
    ingress, _ = world.rows()
    assert ingress.trace >> 64 == world.router.context.ids.high
    assert ingress.context.parent_span_id == ""
    assert parents(subscriber) == [list(texts)]


def test_ignored(kit: ModuleType) -> None:
    """Where it is to be ignored, a trace of our own says nothing of it, and it is passed on."""
    world: MemoryRouter = kit.MemoryRouter(sample=1.0, terms=TraceSettings())
    subscriber = world.connect("s")
    subscriber.subscribe("a")
    world.rows()
    publish(world.connect("p"), SAMPLED)
    ingress, _ = world.rows()
    assert ingress.trace != TRACE
    assert parents(subscriber) == [[SAMPLED]]


@pytest.mark.parametrize("emits", [False, True])
@pytest.mark.parametrize("level", [4, 5])
def test_messages_without_one(kit: ModuleType, emits: bool, level: int) -> None:
    """They get one where that is wanted, in the batch path too, each its own."""
    world = honouring(kit, sample=0.3, emits=emits)
    subscriber = world.connect("s")
    subscriber.subscribe("a")
    world.rows()
    world.connect("p", level=level).raw(encode_publish(b"a", b"x", level) * 20)
    rows = [row for row in world.rows() if row.event == "deliver"]
    found = parents(subscriber)
    assert len(found) == 20
    wanted = [leaves(world, row.message_id, "s", row.trace) for row in rows]
    assert 2 < len(rows) < 15
    assert [one for texts in found for one in texts] == (wanted if emits else [])


def test_several_messages_of_one_trace(kit: ModuleType) -> None:
    """A publisher may send many messages under one trace id: the message id tells them apart."""
    world = honouring(kit)
    client = world.connect("p")
    client.send(
        *[
            Publish(b"a", b"x", properties=Properties(user_properties=[("traceparent", SAMPLED)]))
            for _ in range(3)
        ]
    )
    rows = [row for row in world.rows() if row.event == "ingress"]
    assert [row.trace for row in rows] == [TRACE] * 3
    assert len({row.message_id for row in rows}) == 3


def test_a_sampled_one_takes_no_draw(kit: ModuleType) -> None:
    """The share is of the other messages."""
    world = honouring(kit, sample=0.01)
    client = world.connect("p")
    left = world.router.context.sampler.left
    publish(client, SAMPLED)
    assert world.router.context.sampler.left == left
    publish(client, UNSAMPLED)
    assert world.router.context.sampler.left == left - 1

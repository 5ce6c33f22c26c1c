"""vpnrouter.core.tracing: whose trace a message belongs to, and what it says when it leaves."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter.core.tracing import TraceSettings, read
from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, with_user_properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import Client, MemoryRouter

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


def test_two_are_none() -> None:
    """Nobody knows which of two would be meant."""
    assert read(block(SAMPLED, SAMPLED)) is None
    assert read(block()) is None


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

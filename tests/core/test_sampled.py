"""vpnrouter.core.forward: what is recorded of a run, and that the run crosses as ever."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.forward import trace
from vpnrouter.core.message import Message
from vpnrouter.trace.events import DELIVER, DIRECT, DISCARD, INGRESS, PERSISTENT
from vpnrouter.wire.mqtt.encode import encode_publish

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

RUN = b"".join(encode_publish(b"some/topic", bytes([number]) * 8, 4) for number in range(10))


def recorded(world: MemoryRouter) -> list[tuple[int, str, str, int]]:
    """(event, client, reason, message id) of all events, in order."""
    recorder = world.router.context.recorder
    recorder.cut()
    found = []
    for block in recorder.take():
        for place in range(block.count):
            fields = struct.unpack_from("<qQQQqqqII", block.data, place * 64)
            context = block.contexts[fields[7]]
            found.append((context.event, context.client, context.reason, fields[3]))
    return found


def messages_of(world: MemoryRouter) -> list[tuple[int, str, str, int]]:
    """The events that concern messages."""
    return [event for event in recorded(world) if event[0] in (INGRESS, DELIVER, DISCARD)]


@pytest.fixture
def traced(kit: Any) -> MemoryRouter:
    """A VPN in which every message is traced."""
    return kit.MemoryRouter("blue", sample=1.0)


def test_each_message_enters_and_is_delivered(traced: MemoryRouter) -> None:
    """Every message of a run has an id of its own, one ingress, and one delivery per receiver."""
    first, second = traced.connect("first", level=4), traced.connect("second", level=5)
    first.subscribe("some/#")
    second.subscribe("some/topic")
    publisher = traced.connect("p", level=4)
    publisher.raw(RUN)
    assert first.drain() == RUN
    assert len(second.messages()) == 10
    events = messages_of(traced)
    ids = sorted({number for *_, number in events})
    assert len(ids) == 10
    for client, event in (("p", INGRESS), ("first", DELIVER), ("second", DELIVER)):
        assert sorted(n for e, c, _, n in events if (e, c) == (event, client)) == ids


def test_what_has_no_room_is_recorded_as_discarded(traced: MemoryRouter) -> None:
    """Of a run that fits in part, the first messages are delivered and the rest congested."""
    slow = traced.connect("slow", level=4)
    slow.subscribe("some/topic")
    slow.connection.outbox.limit = len(RUN) // 2
    traced.connect("p", level=4).raw(RUN)
    events = [
        (event, reason) for event, client, reason, _ in messages_of(traced) if client == "slow"
    ]
    assert events == [(DELIVER, "")] * 5 + [(DISCARD, "transmit-congestion")] * 5


def test_what_nobody_wants_is_recorded_as_unmatched(traced: MemoryRouter) -> None:
    """Each message of the run is discarded for want of a subscription, and counted so."""
    publisher = traced.connect("p", level=4)
    publisher.raw(RUN)
    reasons = [reason for event, _, reason, _ in messages_of(traced) if event == DISCARD]
    assert reasons == ["no-subscription-match"] * 10
    assert publisher.connection.publisher is not None
    assert publisher.connection.publisher.unmatched == 10


def test_the_sampler_is_served_across_runs(kit: Any) -> None:
    """However frames fall into chunks, the same messages are picked as one by one."""
    picked = []
    for cut in (len(RUN), len(RUN) // 10, 7):
        world = kit.MemoryRouter("blue", sample=0.3)
        world.connect("w", level=4).subscribe("#")
        publisher = world.connect("p", level=4)
        for _ in range(20):
            for at in range(0, len(RUN), cut):
                publisher.raw(RUN[at : at + cut])
        picked.append(sum(event == INGRESS for event, *_ in messages_of(world)))
    assert picked[0] == picked[1] == picked[2]
    assert 30 <= picked[0] <= 90


def test_the_mode_of_an_ingress(traced: MemoryRouter) -> None:
    """A message that came with QoS 1 is a persistent one from the first event on."""
    publisher = traced.connect("p", level=4)
    session = publisher.connection.publisher
    assert session is not None
    for qos in (0, 1):
        message = Message(b"a", b"x")
        message.qos = qos
        trace(session, message)
    recorder = traced.router.context.recorder
    recorder.cut()
    modes = []
    for block in recorder.take():
        for place in range(block.count):
            fields = struct.unpack_from("<qQQQqqqII", block.data, place * 64)
            context = block.contexts[fields[7]]
            if context.event == INGRESS:
                modes.append((context.mode, context.client))
    assert modes == [(DIRECT, "p"), (PERSISTENT, "p")]

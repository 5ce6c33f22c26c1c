import dataclasses
import socket
from itertools import pairwise

import pytest

from bench.ceiling import forwarder
from bench.clients import clients, prove_path
from bench.dialects import MQTT, NATS, Dialect
from bench.layout import CYCLE_AT
from bench.publisher import Publisher
from bench.throughput import FANOUT, MANY, ONE_TO_ONE, Shape, audit, faults, prepare
from bench.window import Window


def test_the_window_is_measured_at_the_slowest_receiver() -> None:
    """Room is what the slowest may still be behind, in messages published."""
    everything = Window(100, 1)
    assert everything.room(published=0, slowest=0) == 100
    assert everything.room(published=100, slowest=0) == 0
    assert everything.room(published=130, slowest=50) == 20
    hundredth = Window(100, 100)
    assert hundredth.room(published=0, slowest=0) == 10_000
    assert hundredth.room(published=10_000, slowest=1) == 100


def test_written_off_messages_open_the_window_once() -> None:
    """What is given up is counted once, and the window is as wide as before."""
    window = Window(100, 1)
    assert window.write_off(published=100, slowest=40) == 60
    assert window.room(published=100, slowest=40) == 100
    assert window.write_off(published=100, slowest=40) == 0
    assert window.room(published=150, slowest=90) == 100


def test_a_publisher_keeps_to_its_budget_and_completes_its_frame() -> None:
    """A budget in the middle of a frame leaves exactly the missing bytes of that frame."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        publisher = Publisher(ours, bytearray(b"abcdefghij" * 4), 10, -1)
        assert publisher.push(47) == 47
        assert publisher.missing() == 3
        assert publisher.push(publisher.missing()) == 3
        assert publisher.missing() == 0
        assert theirs.recv(1000) == b"abcdefghij" * 5


def test_a_publisher_steps_the_cycle_of_every_frame_each_round() -> None:
    """With many topics each round of the burst carries the next cycle number."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        publisher = Publisher(ours, bytearray(b"x\x00yyx\x00yy"), 4, 1)
        publisher.push(24)
        assert theirs.recv(1000) == b"x\x00yyx\x00yyx\x01yyx\x01yyx\x02yyx\x02yy"


def test_a_publisher_stops_when_the_kernel_has_no_room() -> None:
    """A full socket marks the publisher as not writable; what was taken is what is counted."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        publisher = Publisher(ours, bytearray(b"0123456789" * 10_000), 10, -1)
        taken = publisher.push(1 << 30)
        assert not publisher.writable
        assert publisher.sent_bytes == taken
        theirs.setblocking(False)
        arrived = 0
        while arrived < taken:
            arrived += len(theirs.recv(1 << 20))
        with pytest.raises(BlockingIOError):
            theirs.recv(1)


@pytest.mark.parametrize("shape", [ONE_TO_ONE, MANY, FANOUT])
def test_shapes_spread_topics_evenly(shape: Shape) -> None:
    """Every topic has its subscribers: one with many topics, all with one topic."""
    taken = [number for taker in range(shape.subscribers) for number in shape.numbers_of(taker)]
    assert set(taken) == set(range(shape.topics))
    assert len(taken) == shape.topics * shape.copies
    assert shape.share * shape.copies == shape.subscribers


@pytest.mark.parametrize("dialect", [MQTT, NATS])
def test_bursts_of_many_topics_take_turns(dialect: Dialect) -> None:
    """No two messages in a row go to the same subscriber, and every topic occurs once."""
    socks = [sock for _ in range(2) for sock in socket.socketpair()]
    shape = Shape("small", 2, 2, 10, 1000)
    flood = prepare(dialect, shape, socks[:2], socks[2:])
    try:
        seen = []
        for publisher in flood.publishers:
            burst = bytes(publisher.burst)
            size = publisher.size
            frames = [burst[place : place + size] for place in range(0, len(burst), size)]
            destinations = [body[publisher.cycle_at - CYCLE_AT + 1] for body in frames]
            assert all(a != b for a, b in pairwise(destinations))
            seen.append(frames)
        assert len(set(seen[0])) == 10
        assert seen[0] != seen[1]
    finally:
        flood.close()
        for sock in socks:
            sock.close()


@pytest.mark.parametrize("dialect", [MQTT, NATS])
def test_the_audit_finds_foreign_topics_and_disorder(dialect: Dialect) -> None:
    """A full parse tells a foreign topic, a break in a sequence and a cut message."""
    shape = Shape("small", 2, 2, 10, 1000)
    right = b"".join(
        dialect.delivered(dialect.topic(topic), bytes((cycle, 0)) + bytes(62))
        for cycle in range(5)
        for topic in shape.numbers_of(0)
    )
    stray = dialect.delivered(dialect.topic(1), bytes(64))
    early = dialect.delivered(dialect.topic(0), bytes((9, 0)) + bytes(62))
    assert audit(dialect, shape, 0, right) == []
    assert any("foreign" in text for text in audit(dialect, shape, 0, right + stray))
    assert any("order" in text for text in audit(dialect, shape, 0, right + early))
    assert any("left" in text for text in audit(dialect, shape, 0, right[:-1]))


def test_a_flood_loses_nothing_and_never_leaves_its_window() -> None:
    """Through a process that hands bytes on, all that is published arrives thrice, in order."""
    shape = dataclasses.replace(FANOUT, subscribers=3, window_bytes=50_000)
    with (
        forwarder(None) as site,
        clients(MQTT, site.publish_to, 1, "pub") as senders,
        clients(MQTT, site.subscribe_at, 3, "sub") as takers,
    ):
        for taker in takers:
            MQTT.subscribe(taker, [MQTT.topic(0)])
        prove_path(MQTT, senders[0], takers, [[MQTT.topic(0)]] * 3)
        flood = prepare(MQTT, shape, senders, takers)
        delivered, nanoseconds = flood.run(0.2)
        ahead = flood.published() - min(receiver.received for receiver in flood.receivers)
        flood.drain(flood.published() * 3, 5.0)
        flood.close()
    assert delivered > 0
    assert nanoseconds >= 200_000_000
    assert ahead <= flood.window.frames
    assert flood.delivered() == flood.published() * 3
    assert faults(flood, MQTT, shape) == []

"""Measures deliveries a second at full speed: the shapes, one run, and what makes it void."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from bench.clients import clients, prove_path
from bench.dialects import Dialect
from bench.flood import Flood
from bench.layout import (
    CYCLE,
    CYCLE_AT,
    DESTINATION_AT,
    EVERYBODY,
    PAYLOAD_BYTES,
    PUBLISHER_AT,
    payload,
)
from bench.machine import Usage
from bench.products import Site
from bench.publisher import Publisher
from bench.receiver import BUFFER_BYTES, Receiver
from bench.window import Window

WARM_UP_SECONDS = 1.0
QUIET_SECONDS = 3.0
"""Nothing received for so long after the last publish means that the rest is lost."""
BURST_FRAMES = 8 * CYCLE
"""Frames of a publisher's burst where all go to one topic: whole cycles, some 160 KiB."""


@dataclass(frozen=True)
class Shape:
    """Who publishes what to whom.

    Topic t goes to subscriber t modulo `subscribers` when there are more topics than one, so that
    two messages in a row never go to the same subscriber; with one topic every subscriber gets
    everything.
    """

    name: str
    publishers: int
    subscribers: int
    topics: int
    window_bytes: int
    """How far publishing may be ahead of the slowest subscriber, in bytes delivered to it."""

    @property
    def share(self) -> int:
        """Messages published for each one that a given subscriber gets."""
        return self.subscribers if self.topics > 1 else 1

    @property
    def copies(self) -> int:
        """Deliveries for each message published."""
        return 1 if self.topics > 1 else self.subscribers

    def numbers_of(self, subscriber: int) -> range:
        """Topic numbers of one subscriber."""
        return range(subscriber, self.topics, self.subscribers) if self.topics > 1 else range(1)


ONE_TO_ONE = Shape("one-to-one", 1, 1, 1, 2_000_000)
MANY = Shape("many", 100, 100, 1000, 512_000)
FANOUT = Shape("fanout", 1, 50, 1, 1_000_000)
SHAPES = (ONE_TO_ONE, MANY, FANOUT)


@dataclass
class Run:
    """What one run gave. `faults` is empty when nothing was lost, reordered or misdirected."""

    rate: float
    """Deliveries a second at the subscribers, in the timed interval."""
    delivered: int
    seconds: float
    generator_busy: float
    """This and the two that follow: see `bench.machine.Usage`."""
    broker_busy: float
    others_busy: float
    lost: int
    faults: list[str]


def run(site: Site, shape: Shape, seconds: float) -> Run:
    """One warm-up and one timed interval at full speed, then the accounts."""
    dialect = site.dialect
    with contextlib.ExitStack() as stack:
        senders = stack.enter_context(clients(dialect, site.publish_to, shape.publishers, "pub"))
        takers = stack.enter_context(clients(dialect, site.subscribe_at, shape.subscribers, "sub"))
        topics = [
            [dialect.topic(number) for number in shape.numbers_of(subscriber)]
            for subscriber in range(shape.subscribers)
        ]
        for taker, names in zip(takers, topics, strict=True):
            dialect.subscribe(taker, names)
        prove_path(dialect, senders[0], takers, topics)
        flood = prepare(dialect, shape, senders, takers)
        stack.callback(flood.close)
        return measure(flood, site, shape, seconds)


def prepare(
    dialect: Dialect,
    shape: Shape,
    senders: Sequence[socket.socket],
    takers: Sequence[socket.socket],
) -> Flood:
    """Publishers with their bursts, receivers with their checks, and the window."""
    several = shape.topics > 1
    sent = dialect.publish(dialect.topic(0), _payload(0, 0, several=several))
    arriving = dialect.delivered(dialect.topic(0), _payload(0, 0, several=several))
    sent_body = sent.index(_payload(0, 0, several=several))
    arriving_body = arriving.index(_payload(0, 0, several=several))
    publishers = []
    for number, sender in enumerate(senders):
        sender.setblocking(False)
        burst = _burst(dialect, shape, number)
        cycle_at = sent_body + CYCLE_AT if several else -1
        publishers.append(Publisher(sender, burst, len(sent), cycle_at))
    expected = b""
    if not several:
        cycle = b"".join(
            dialect.delivered(dialect.topic(0), _payload(number, 0, several=False))
            for number in range(CYCLE)
        )
        expected = cycle * (2 + BUFFER_BYTES // len(cycle))
    receivers = [
        Receiver(
            taker,
            len(arriving),
            head=dialect.head,
            cycle_at=-1 if several else arriving_body + CYCLE_AT,
            destination_at=arriving_body + DESTINATION_AT if several else -1,
            destination=number if several else EVERYBODY,
            expected=expected,
            intruder=dialect.intruder,
            answer=dialect.answer,
        )
        for number, taker in enumerate(takers)
    ]
    if several:
        receivers[0].keep = True
    window = Window(max(1, shape.window_bytes // len(arriving)), shape.share)
    return Flood(publishers, receivers, window, len(arriving))


def measure(flood: Flood, site: Site, shape: Shape, seconds: float) -> Run:
    """Warm-up, timed interval, drain, accounts."""
    flood.run(WARM_UP_SECONDS)
    usage = Usage(site.pids, site.core)
    delivered, nanoseconds = flood.run(seconds)
    shares = usage.shares()
    flood.drain(flood.published() * shape.copies, QUIET_SECONDS)
    return Run(
        rate=delivered * 1e9 / nanoseconds,
        delivered=delivered,
        seconds=nanoseconds / 1e9,
        generator_busy=shares["generator_busy"],
        broker_busy=shares["broker_busy"],
        others_busy=shares["others_busy"],
        lost=flood.published() * shape.copies - flood.delivered(),
        faults=faults(flood, site.dialect, shape),
    )


def faults(flood: Flood, dialect: Dialect, shape: Shape) -> list[str]:
    """Everything that a reader must know before believing the rate."""
    found = []
    lost = flood.published() * shape.copies - flood.delivered()
    if lost > 0:
        found.append(f"{lost} messages lost")
    if lost < 0:
        found.append(f"{-lost} messages more than were due")
    if flood.stalls:
        found.append(f"no arrival for 2 s, {flood.stalls} times")
    if gaps := sum(receiver.gaps for receiver in flood.receivers):
        found.append(f"{gaps} breaks in the order of a stream")
    if strangers := sum(receiver.strangers for receiver in flood.receivers):
        found.append(f"{strangers} chunks or frames that should not have come")
    for subscriber, receiver in enumerate(flood.receivers):
        if receiver.keep:
            found += audit(dialect, shape, subscriber, b"".join(receiver.audited))
    return found


def audit(dialect: Dialect, shape: Shape, subscriber: int, stream: bytes) -> list[str]:
    """A full parse of everything that one subscriber got: its topics only, each publisher's
    messages to each topic in sequence.
    """
    allowed = {dialect.topic(number) for number in shape.numbers_of(subscriber)}
    following: dict[tuple[int, str], int] = {}
    foreign = broken = 0
    messages, used = dialect.split(stream)
    for topic, body in messages:
        if topic not in allowed or len(body) != PAYLOAD_BYTES:
            foreign += 1
        key = (int.from_bytes(body[PUBLISHER_AT : PUBLISHER_AT + 2], "big"), topic)
        cycle = body[CYCLE_AT]
        if following.get(key, cycle) != cycle:
            broken += 1
        following[key] = (cycle + 1) % CYCLE
    found = []
    if foreign:
        found.append(f"audit: {foreign} messages of foreign topics")
    if broken:
        found.append(f"audit: {broken} breaks in the order of a publisher's messages to a topic")
    if used != len(stream):
        found.append(f"audit: {len(stream) - used} bytes are left after the last message")
    return found


def _payload(
    cycle: int, topic: int, *, several: bool, publisher: int = 0, subscribers: int = 1
) -> bytes:
    return payload(cycle, topic % subscribers if several else EVERYBODY, publisher, 0, 0)


def _burst(dialect: Dialect, shape: Shape, publisher: int) -> bytearray:
    if shape.topics == 1:
        frames = [
            dialect.publish(
                dialect.topic(0), _payload(number % CYCLE, 0, several=False, publisher=publisher)
            )
            for number in range(BURST_FRAMES)
        ]
        return bytearray(b"".join(frames))
    begin = publisher * shape.topics // shape.publishers
    frames = []
    for step in range(shape.topics):
        topic = (begin + step) % shape.topics
        body = _payload(0, topic, several=True, publisher=publisher, subscribers=shape.subscribers)
        frames.append(dialect.publish(dialect.topic(topic), body))
    return bytearray(b"".join(frames))

"""Deliveries a second of traffic that varies: topics in turn or at random, payloads of several sizes.

Frames that are all alike flatter a broker which treats runs of them as one. Here two messages in a row have different
topics, and in most loads different sizes. Every frame that arrives is parsed: it must be meant for this subscriber and
be the next one of its publisher.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bench.clients import clients, prove_path
from bench.flood import Flood
from bench.layout import EVERYBODY, PAYLOAD_BYTES, payload
from bench.machine import Usage
from bench.products import Site
from bench.publisher import Publisher
from bench.receiver import Parser, Taker
from bench.throughput import QUIET_SECONDS, WARM_UP_SECONDS, Run
from bench.window import Window

SEED = 20261123
BURST_BYTES = 1_000_000
"""A publisher's burst is sent over and over: so long at least, that no cache of the processor holds all of it."""


@dataclass(frozen=True)
class Load:
    """Who publishes what to whom.

    With several subscribers topic t goes to subscriber t modulo `subscribers`; a single one has a subscription with a
    wildcard. `sizes` are the least and the largest payload in bytes. `window_bytes` bounds what is on its way in all.
    """

    name: str
    publishers: int
    subscribers: int
    topics: int
    at_random: bool
    sizes: tuple[int, int]
    window_bytes: int


IN_TURN = Load("in-turn", 1, 1, 1000, False, (64, 64), 2_000_000)
AT_RANDOM = Load("at-random", 1, 1, 1000, True, (64, 512), 2_000_000)
MANY_AT_RANDOM = Load("many-at-random", 100, 100, 1000, True, (64, 512), 8_000_000)
ONE_TOPIC = Load("one-topic", 1, 1, 1, False, (64, 64), 2_000_000)
LARGE = Load("16-kib", 1, 1, 1, False, (16_384, 16_384), 4_000_000)
HUGE = Load("256-kib", 1, 1, 1, False, (262_144, 262_144), 4_000_000)


@dataclass(frozen=True)
class _Message:
    topic: int
    size: int


def run(site: Site, load: Load, seconds: float) -> Run:
    """One warm-up and one timed interval at full speed, then the accounts."""
    with flooding(site, load) as flood:
        return measure(flood, site, seconds)


@contextlib.contextmanager
def flooding(site: Site, load: Load) -> Iterator[Flood]:
    """Clients that are connected and subscribed, and what floods the router through them."""
    dialect = site.dialect
    generator = random.Random(SEED)
    plans = [_plan(load, number, generator) for number in range(load.publishers)]
    with contextlib.ExitStack() as stack:
        senders = stack.enter_context(
            clients(dialect, site.publish_to, load.publishers, "pub", site.tls)
        )
        takers = stack.enter_context(
            clients(dialect, site.subscribe_at, load.subscribers, "sub", site.tls)
        )
        topics = [
            [dialect.topic(topic) for topic in range(number, load.topics, load.subscribers)]
            for number in range(load.subscribers)
        ]
        for taker, names in zip(takers, topics, strict=True):
            alone = load.subscribers == 1
            dialect.subscribe(taker, [dialect.everything()] if alone else names)
        prove_path(dialect, senders[0], takers, topics)
        publishers = []
        for number, (sender, plan) in enumerate(zip(senders, plans, strict=True)):
            sender.setblocking(False)
            frames = [
                dialect.publish(
                    dialect.topic(message.topic), _payload(load, number, place, message)
                )
                for place, message in enumerate(plan)
            ]
            ends = list(accumulate(len(frame) for frame in frames))
            publisher = Publisher(sender, bytearray(b"".join(frames)), ends[-1] // len(ends), -1)
            publisher.varied(ends)
            publishers.append(publisher)
        receivers: list[Taker] = [
            Parser(
                taker,
                _destination(load, number),
                [_after(load, plan, number) for plan in plans],
                dialect.intruder,
                dialect.answer,
                text=dialect.name == "nats",
                extra=dialect.after_topic,
                framed=dialect.framed,
            )
            for number, taker in enumerate(takers)
        ]
        mean = sum(message.size for plan in plans for message in plan) // sum(map(len, plans))
        window = Window(max(4, load.window_bytes // mean), 0)
        flood = Flood(publishers, receivers, window, mean)
        stack.callback(flood.close)
        yield flood


def measure(flood: Flood, site: Site, seconds: float) -> Run:
    """Warm-up, timed interval, drain, accounts."""
    flood.run(WARM_UP_SECONDS)
    usage = Usage(site.pids, site.core)
    delivered, nanoseconds = flood.run(seconds)
    shares = usage.shares()
    flood.drain(flood.published(), QUIET_SECONDS)
    lost = flood.published() - flood.delivered()
    return Run(
        rate=delivered * 1e9 / nanoseconds,
        delivered=delivered,
        seconds=nanoseconds / 1e9,
        lost=lost,
        faults=faults_of(flood, lost),
        **shares,
    )


def faults_of(flood: Flood, lost: int) -> list[str]:
    """Everything that a reader must know before believing the rate."""
    found = []
    if lost:
        found.append(f"{lost} of {flood.published()} messages lost")
    if flood.stalls:
        found.append(f"no arrival for 2 s, {flood.stalls} times")
    if gaps := sum(receiver.gaps for receiver in flood.receivers):
        found.append(f"{gaps} gaps in what a publisher sent")
    if strangers := sum(receiver.strangers for receiver in flood.receivers):
        found.append(f"{strangers} messages that were meant for others")
    return found


def _plan(load: Load, publisher: int, generator: random.Random) -> Sequence[_Message]:
    """What one publisher sends over and over."""
    least, largest = load.sizes
    mean = (least + largest) // 2
    count = max(4, load.topics, BURST_BYTES // load.publishers // mean)
    first = publisher * load.topics // load.publishers
    return [
        _Message(
            generator.randrange(load.topics) if load.at_random else (first + place) % load.topics,
            generator.randint(least, largest),
        )
        for place in range(count)
    ]


def _destination(load: Load, subscriber: int) -> int:
    return EVERYBODY if load.subscribers == 1 else subscriber


def _payload(load: Load, publisher: int, place: int, message: _Message) -> bytes:
    destination = _destination(load, message.topic % load.subscribers)
    head = payload(0, destination, publisher, place, 0)
    return head + b"." * (message.size - PAYLOAD_BYTES)


def _after(load: Load, plan: Sequence[_Message], subscriber: int) -> list[int]:
    """For each message of the plan the number of the one that the subscriber gets next."""
    own = [
        place
        for place, message in enumerate(plan)
        if message.topic % load.subscribers == subscriber
    ]
    following = [-1] * len(plan)
    for place, then in zip(own, own[1:] + own[:1], strict=True):
        following[place] = then
    return following

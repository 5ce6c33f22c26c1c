"""How costs grow, and what one kind of traffic costs beside another, in CPU time of one thread in one run.

No figure depends on how fast the machine is, or how busy: each is a ratio of two costs that were measured in turn, the
least of several rounds each.
"""

import math
import random
import time
from collections.abc import Callable

import pytest

from vpnrouter.testing.memory import Client, MemoryRouter
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish, Subscribe, SubscriptionRequest

ROUNDS = 9
CHUNK = 131_072
"""Bytes that a connection is fed at a time, as the reactor does."""

Load = Callable[[], tuple[Callable[[], None], int]]
"""Prepares something to be timed; returns it and how many messages or subscriptions it handles."""


def costs(*loads: Load) -> list[float]:
    """Nanoseconds of CPU time for one message of each load, the least of rounds that take turns."""
    prepared = [load() for load in loads]
    least = [math.inf] * len(loads)
    for _ in range(ROUNDS):
        for index, (run, count) in enumerate(prepared):
            began_ns = time.thread_time_ns()
            run()
            least[index] = min(least[index], (time.thread_time_ns() - began_ns) / count)
    print("nanoseconds each:", [round(one, 1) for one in least])
    return least


def exponent(cost: float, larger: float, times: float) -> float:
    """With which power of the size a cost grows: 0 constant, 1 linear."""
    return math.log(larger / cost) / math.log(times)


def world_of(receivers: int = 1, standing: int = 0) -> tuple[MemoryRouter, Client, list[Client]]:
    """A publisher and receivers of t/#, beside standing subscriptions of another client that match nothing."""
    world = MemoryRouter(sample=0.01)
    takers = [world.connect(f"takes-{number}", level=4) for number in range(receivers)]
    for taker in takers:
        taker.subscribe("t/#")
    if standing:
        other = world.connect("other", level=4)
        for at in range(0, standing, 1_000):
            wanted = [f"s/{number % 97}/{number}/+" for number in range(at, at + 1_000)]
            other.request([SubscriptionRequest(text) for text in wanted])
    return world, world.connect("says", level=4), takers


def flood(
    count: int = 20_000,
    topics: int = 1,
    sizes: tuple[int, int] = (64, 64),
    at_random: bool = False,
    receivers: int = 1,
    standing: int = 0,
) -> Load:
    """Messages through a router, fed in chunks and taken from the outboxes."""

    def load() -> tuple[Callable[[], None], int]:
        draw = random.Random(7)
        world, says, takers = world_of(receivers, standing)
        frames = []
        for number in range(count):
            topic = draw.randrange(topics) if at_random else number % topics
            payload = bytes(draw.randint(*sizes))
            frames.append(encode(Publish(b"t/%d/level" % topic, payload), 4))
        stream = b"".join(frames)
        chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]

        def run() -> None:
            for chunk in chunks:
                says.raw(chunk)
                world.router.context.jobs.finish()
                for taker in takers:
                    outbox = taker.connection.outbox
                    while outbox.size:
                        outbox.take(262_144)
                    outbox.dirty = False
                world.router.context.ready.clear()

        run()
        for taker in takers:
            assert taker.connection.outbox.discarded == 0
            assert taker.connection.outbox.messages >= count
        return run, count

    return load


def churn(standing: int, count: int = 2_000) -> Load:
    """Subscriptions of a new client that come beside standing ones, and go with it."""

    def load() -> tuple[Callable[[], None], int]:
        world, _, _ = world_of(standing=standing)
        wanted = [SubscriptionRequest(f"n/{number}/+/x") for number in range(count)]
        packet = encode(Subscribe(1, wanted), 4)

        def run() -> None:
            client = world.connect("comes", level=4)
            client.raw(packet)
            client.received()
            client.lose()
            world.router.context.jobs.finish()

        return run, count

    return load


@pytest.mark.slow
def test_what_varied_traffic_costs() -> None:
    """Topics in turn, and topics and sizes at random, cost a small multiple of what is more regular.

    The messages of random sizes are compared with as many bytes in messages of one size: how fast memory is beside a
    cache is the machine's, and not the router's.
    """
    one, in_turn, one_size, random_sizes = costs(
        flood(),
        flood(topics=1_000),
        flood(topics=1_000, sizes=(288, 288)),
        flood(topics=1_000, sizes=(64, 512), at_random=True),
    )
    assert in_turn < 8 * one
    assert random_sizes < 8 * one_size


@pytest.mark.slow
def test_how_costs_grow() -> None:
    """Standing subscriptions cost next to nothing, receivers are linear, and long messages are copied, not handled."""
    few, many = costs(flood(topics=1_000, standing=1_000), flood(topics=1_000, standing=64_000))
    assert exponent(few, many, 64) < 0.2
    ten, thousand = costs(flood(2_000, receivers=10), flood(2_000, receivers=1_000))
    assert exponent(ten, thousand, 100) < 1.1
    short, long = costs(flood(5_000), flood(5_000, sizes=(16_384, 16_384)))
    assert exponent(short, long, 256) < 1
    few, many = costs(churn(1_000), churn(64_000))
    assert exponent(few, many, 64) < 0.2

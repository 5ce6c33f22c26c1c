"""Makes the load of the trace bench: typed loops, compiled together with the recorder as the core is."""

from typing import Final

from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.sampler import Sampler

ROUND_MESSAGES: Final = 32
"""Traced messages in one round of the event loop."""

START_NS: Final = 1_789_000_000_000_000_000
MESSAGE_NS: Final = 20_000
"""Mean time between two traced messages: 50,000 a second."""

_FACTOR: Final = 48_271
_MODULUS: Final = (1 << 31) - 1


def fill(
    recorder: Recorder,
    publishers: list[Context],
    subscribers: list[Context],
    topics: list[bytes],
    first: int,
    messages: int,
    trace_high: int,
) -> None:
    """Record an ingress and a deliver event for each message, numbered from `first`.

    Times and topics are drawn by Lehmer's generator, so that files do not compress better than
    those of real traffic.
    """
    now = START_NS + first * MESSAGE_NS
    draw = first + 1
    for number in range(first, first + messages):
        if number % ROUND_MESSAGES == 0:
            recorder.end_round(now + draw % MESSAGE_NS)
            recorder.begin_round()
        draw = draw * _FACTOR % _MODULUS
        now += draw % (2 * MESSAGE_NS)
        topic = topics[draw % len(topics)]
        publisher = publishers[draw % len(publishers)]
        subscriber = subscribers[draw // 128 % len(subscribers)]
        for context in (publisher, subscriber):
            recorder.record(
                context,
                now,
                topic,
                trace_high=trace_high,
                trace_low=number,
                message_id=number,
                size=64 + draw % 32,
                since_ingress_ns=0,
                origin_ts_ns=now,
            )
    recorder.end_round(now)


def draw_only(
    publishers: list[Context],
    subscribers: list[Context],
    topics: list[bytes],
    first: int,
    messages: int,
) -> int:
    """The loop of `fill` without the recorder, whose time is to be taken off; a meaningless sum."""
    now = START_NS + first * MESSAGE_NS
    draw = first + 1
    total = 0
    for number in range(first, first + messages):
        if number % ROUND_MESSAGES == 0:
            total += now + draw % MESSAGE_NS
        draw = draw * _FACTOR % _MODULUS
        now += draw % (2 * MESSAGE_NS)
        topic = topics[draw % len(topics)]
        publisher = publishers[draw % len(publishers)]
        subscriber = subscribers[draw // 128 % len(subscribers)]
        total += len(topic) + publisher.event + subscriber.event
    return total


def rounds(recorder: Recorder, count: int) -> None:
    """Begin and end rounds in which nothing is recorded."""
    for _ in range(count):
        recorder.begin_round()
        recorder.end_round(START_NS)


def gaps(sampler: Sampler, count: int) -> int:
    """Draw `count` gaps; the sum of them."""
    total = 0
    for _ in range(count):
        total += sampler.left
        sampler.next()
    return total

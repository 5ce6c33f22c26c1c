"""Measures one-way latency at a fixed rate."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.clients import clients, prove_path
from bench.dialects import Dialect
from bench.layout import EVERYBODY, payload
from bench.machine import Usage
from bench.pace import Pace, PacedPublisher, PacedReceiver
from bench.percentiles import summary
from bench.products import Site
from bench.turns import long_turns, turns_at

WARM_UP_SECONDS = 1.0
QUIET_SECONDS = 2.0


@dataclass(frozen=True)
class Load:
    """`pairs` publishers and as many subscribers, the n-th of each on topic n; `rate` messages a
    second in all.
    """

    pairs: int
    rate: float


WIDE = Load(200, 10_000.0)
ACROSS_RATE = 1_000.0


def run(site: Site, load: Load, seconds: float) -> dict[str, object]:
    """Percentiles in microseconds, the generator's own lag, and faults.

    At a site that echoes each connection both publishes and receives.
    """
    dialect = site.dialect
    with contextlib.ExitStack() as stack:
        senders = stack.enter_context(clients(dialect, site.publish_to, load.pairs, "pub"))
        topics = list(range(load.pairs))
        prepared: contextlib.AbstractContextManager[Pace]
        if site.echoes:
            prepared = contextlib.closing(prepare(dialect, senders, senders, topics))
        else:
            takers = stack.enter_context(clients(dialect, site.subscribe_at, load.pairs, "sub"))
            prepared = _ready(dialect, senders, takers, topics)
        with prepared as pace:
            shares = _paced(pace, site, load.rate, seconds, copies=1)
            ages = [age for receiver in pace.receivers for age in receiver.ages]
            return {**summary(ages), **_lag(pace), **shares}


def run_across(site: Site, rate: float, seconds: float) -> dict[str, object]:
    """Percentiles at the far end of a bridge, and of what the bridge adds.

    One publisher; one subscriber beside it and one across the bridge get the same messages, so what
    is added is known for every single message.
    """
    dialect = site.dialect
    with contextlib.ExitStack() as stack:
        senders = stack.enter_context(clients(dialect, site.publish_to, 1, "pub"))
        near = stack.enter_context(clients(dialect, site.publish_to, 1, "near"))
        far = stack.enter_context(clients(dialect, site.subscribe_at, 1, "far"))
        with _ready(dialect, senders, [*near, *far], [0, 0]) as pace:
            shares = _paced(pace, site, rate, seconds, copies=2)
            beside, across = pace.receivers
            row: dict[str, object] = {
                **summary(across.ages),
                **_lag(pace),
                **shares,
            }
            if not shares["faults"]:
                added = summary(
                    [late - soon for late, soon in zip(across.ages, beside.ages, strict=True)]
                )
                row |= {f"added_{field}": added[field] for field in ("p50_us", "p99_us")}
                row |= {f"near_{field}": value for field, value in summary(beside.ages).items()}
            return row


@contextlib.contextmanager
def _ready(
    dialect: Dialect,
    senders: Sequence[socket.socket],
    takers: Sequence[socket.socket],
    topics: Sequence[int],
) -> Iterator[Pace]:
    """Subscribed, proven and prepared; `topics` has the number of each taker's topic."""
    names = [[dialect.topic(number)] for number in topics]
    for taker, name in zip(takers, names, strict=True):
        dialect.subscribe(taker, name)
    prove_path(dialect, senders[0], takers, names)
    pace = prepare(dialect, senders, takers, topics)
    try:
        yield pace
    finally:
        pace.close()


def _paced(pace: Pace, site: Site, rate: float, seconds: float, copies: int) -> dict[str, object]:
    """Warm-up and timed interval; afterwards `pace` holds the ages of the interval alone.

    Returns the cores' use in the interval, `faults`, and as `notes` which turns of the router took long.
    """
    shares: dict[str, float] = {}
    faults = []
    notes: list[str] = []
    for phase in (WARM_UP_SECONDS, seconds):
        pace.forget()
        turns = turns_at(site)
        usage = Usage(site.pids, site.core)
        pace.run(rate, phase)
        shares = usage.shares() | usage.waits()
        due = int(rate * phase) * copies
        pace.drain(due, QUIET_SECONDS)
        # A scrape is a long turn itself, so it waits until the last message has arrived.
        notes = long_turns(turns, turns_at(site))
        if lost := due - pace.kept():
            faults.append(f"{lost} messages lost")
    if refused := sum(publisher.refused for publisher in pace.publishers):
        faults.append(f"{refused} messages not taken by the kernel")
    if gaps := sum(receiver.gaps for receiver in pace.receivers):
        faults.append(f"{gaps} breaks in the order of a stream")
    return {**shares, "faults": faults, "notes": notes}


def _lag(pace: Pace) -> dict[str, float]:
    lags = summary(pace.lags)
    return {"generator_lag_p50_us": lags["p50_us"], "generator_lag_p99_us": lags["p99_us"]}


def prepare(
    dialect: Dialect,
    senders: Sequence[socket.socket],
    takers: Sequence[socket.socket],
    topics: Sequence[int],
) -> Pace:
    """Publishers with their frames, the n-th on topic n, and receivers that know what to expect."""
    publishers = []
    frames = []
    for number, sender in enumerate(senders):
        sender.setblocking(False)
        topic = dialect.topic(number)
        body = payload(0, EVERYBODY, number, 0, 0)
        frame = dialect.publish(topic, body)
        publishers.append(PacedPublisher(sender, frame, frame.index(body)))
        arriving = dialect.delivered(topic, body)
        frames.append((arriving[: arriving.index(body)], len(arriving)))
    receivers = []
    for taker, topic_number in zip(takers, topics, strict=True):
        prefix, size = frames[topic_number]
        receivers.append(
            PacedReceiver(taker, prefix, size, topic_number, dialect.intruder, dialect.answer)
        )
    return Pace(publishers, receivers)

"""Measures messages a second through a queue or over a guaranteed link: published, stored, acknowledged, consumed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from bench.guaranteed_disk import flushes
from bench.guaranteed_flow import Flow
from bench.guaranteed_products import Running, Store
from bench.machine import Usage
from bench.scenarios import Row

PUBLISHERS = 8
WARM_UP_SECONDS = 1.0


@contextlib.contextmanager
def flow(store: Store, running: Running, publishers: int, consumers: int) -> Iterator[Flow]:
    """So many publishers with the usual window and so many consumers, connected."""
    made = Flow(
        [store.producer(running.publish_to, number, store.window) for number in range(publishers)],
        [store.consumer(running.consume_at, number, consumers) for number in range(consumers)],
        store.ahead,
    )
    try:
        yield made
    finally:
        made.close()


def run(
    store: Store, running: Running, core: int | None, seconds: float, consumers: int = 1
) -> Row:
    """One timed run. Everything is checked: each acknowledged message is consumed once."""
    with flow(store, running, PUBLISHERS, consumers) as loaded:
        # The interval begins when the first message has come all the way.
        patience = time.monotonic() + 30
        loaded.publish(lambda: loaded.consumed > 0 or time.monotonic() > patience)
        _for(loaded, WARM_UP_SECONDS)
        usage = Usage(running.pids, core)
        consumed, acked = loaded.consumed, loaded.acked
        flushed = flushes()
        begin = time.perf_counter()
        _for(loaded, seconds)
        took = time.perf_counter() - begin
        shares = usage.shares()
        rate = (loaded.consumed - consumed) / took
        row: Row = {
            "rate": rate,
            "accepted_rate": (loaded.acked - acked) / took,
            "flush_rate": (flushes() - flushed) / took,
            "waiting": loaded.acked - loaded.consumed,
            **shares,
        }
        busy = shares["broker_busy"]
        row["rate_per_core"] = rate / busy if busy > 0 else 0.0
        row["faults"] = loaded.settle()
        row["checked"] = loaded.consumed
    return row


def _for(loaded: Flow, seconds: float) -> None:
    end = time.monotonic() + seconds
    loaded.publish(lambda: time.monotonic() >= end)

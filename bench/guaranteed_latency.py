"""Measures the time from publish to acknowledgement, one message at a time."""

from __future__ import annotations

import contextlib
import time

from bench.guaranteed_backlog import fill
from bench.guaranteed_products import Running, Store
from bench.percentiles import summary
from bench.scenarios import Row

WARM_UP_MESSAGES = 200
WRITTEN_MESSAGES = 160_000
"""Messages that the broker has stored before, 40 MB: a broker that has worked for a while writes over its old logs."""
_LONGEST_SECONDS = 20.0


def run(store: Store, running: Running, seconds: float) -> Row:
    """One publisher with a window of one message, after others have published; nobody consumes.

    The clock runs from right before the send call to right after the receive call that brings the
    acknowledgement. The publisher polls without sleeping.
    """
    fill(store, running, WRITTEN_MESSAGES, 1)
    producer = store.producer(running.publish_to, 0, 1)
    ages: list[int] = []
    with contextlib.closing(producer.pipe):
        end = time.monotonic() + _LONGEST_SECONDS
        while producer.acked < WARM_UP_MESSAGES and time.monotonic() < end:
            producer.push(1)
            producer.take()
        while producer.acked < producer.sent and time.monotonic() < end:
            producer.take()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter_ns()
            producer.push(1)
            while producer.acked < producer.sent:
                producer.take()
                if time.perf_counter_ns() - begin > _LONGEST_SECONDS * 1e9:
                    raise TimeoutError("a message is not acknowledged")
            ages.append(time.perf_counter_ns() - begin)
    return {**summary(ages), "faults": []}

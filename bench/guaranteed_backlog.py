"""Measures how fast a full queue is drained, how fast a broker starts with it, and what memory it takes."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import numpy as np

from bench.guaranteed_body import Keys, faults
from bench.guaranteed_flow import Flow
from bench.guaranteed_products import UNKNOWN, Running, Store, end
from bench.machine import Usage, resident_bytes
from bench.products import Address, directory
from bench.scenarios import Row

WINDOW = 4000
"""One publisher fills the queue, so that the order of all messages can be checked."""
LAST = 10_000
"""Messages that are acknowledged right before a broker is killed."""
MIB = 1 << 20
_READY_SECONDS = 300.0


def fill(store: Store, running: Running, count: int, publisher: int = 0) -> float:
    """Puts so many messages into the queue; returns how many a second were acknowledged."""
    loaded = Flow([store.producer(running.publish_to, publisher, WINDOW)], [])
    with contextlib.closing(loaded):
        begin = time.perf_counter()
        loaded.load(count)
        return count / (time.perf_counter() - begin)


def drain(store: Store, core: int | None, count: int) -> Row:
    """One consumer takes all that wait, in order; timed from before it connects to the last."""
    with directory(store.name) as folder, store.start(folder, core) as running:
        store.prepare(running.publish_to, 1)
        filled = fill(store, running, count)
        usage = Usage(running.pids, core)
        rate, got = _empty(store, running.consume_at, count)
        shares = usage.shares()
        found = faults({0: count}, [got])
        return {"rate": rate, "filled_rate": filled, **shares, "faults": found}


def restart(store: Store, core: int | None, count: int) -> Row:
    """Stopped as it should be and started again; given `LAST` messages more, killed as soon as they
    are acknowledged, started again and drained.
    """
    row: Row = {}
    with directory(store.name) as folder:
        with store.start(folder, core) as running:
            store.prepare(running.publish_to, 1)
            row["filled_rate"] = fill(store, running, count)
            row["full_mib"] = resident_bytes(running.pids) / MIB
            row["stop_seconds"] = end(running.pids[0], signal.SIGTERM)
        with store.start(folder, core) as running:
            row["ready_seconds"] = running.ready_seconds + _until_there(store, running, count)
            row["resident_mib"] = resident_bytes(running.pids) / MIB
            fill(store, running, LAST, 1)
            end(running.pids[0], signal.SIGKILL)
        with store.start(folder, core) as running:
            row["killed_seconds"] = running.ready_seconds + _until_there(store, running, count)
            _, got = _empty(store, running.consume_at, count + LAST)
    found = faults({0: count, 1: LAST}, [got])
    row["lost"] = count + LAST - len(np.unique(got))
    # What a broker loses is a figure here; anything else is a fault.
    row["faults"] = [text for text in found if "never consumed" not in text]
    return row


def memory(store: Store, core: int | None, count: int) -> Row:
    """Resident memory with so many messages in the queue."""
    with directory(store.name) as folder, store.start(folder, core) as running:
        store.prepare(running.publish_to, 1)
        empty = resident_bytes(running.pids)
        filled = fill(store, running, count)
        return {
            "resident_mib": resident_bytes(running.pids) / MIB,
            "empty_mib": empty / MIB,
            "filled_rate": filled,
            "disk_mib": _disk_bytes(folder) / MIB,
            "faults": [],
        }


def _until_there(store: Store, running: Running, count: int) -> float:
    """How long it takes until the broker says that it has the messages; 0 where it cannot be asked."""
    begin = time.perf_counter()
    limit = time.monotonic() + _READY_SECONDS
    found = 0
    while time.monotonic() < limit:
        with contextlib.suppress(OSError):
            found = store.waiting(running.consume_at)
            if found == UNKNOWN:
                return 0.0
            if found >= count:
                return time.perf_counter() - begin
        time.sleep(0.05)
    raise TimeoutError(f"{found} of {count} messages are there")


def _empty(store: Store, at: Address, count: int) -> tuple[float, Keys]:
    """Drains the queue; messages a second and what came, also where this is not all."""
    begin = time.perf_counter()
    loaded = Flow([], [store.consumer(at, 0, 1)])
    with contextlib.closing(loaded):
        with contextlib.suppress(TimeoutError):
            loaded.drain(count)
        took = time.perf_counter() - begin
        return loaded.consumed / took, loaded.consumers[0].taken()


def _disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())

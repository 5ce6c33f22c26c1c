"""Keep trace files while the router runs, show traces while they happen, and send spans to a collector.

Routing traces for whoever looks at them while they happen.

Rows are taken from the tables that the writer's thread makes of blocks anyway, and in that thread: nothing here
runs for a message. While somebody looks, blocks are handed over twice a second instead of with each file.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import trio

from vpnrouter import limits
from vpnrouter.core.barrier import THREAD
from vpnrouter.core.tracing import TraceFilter, TraceTerms
from vpnrouter.errors import OperationError
from vpnrouter.events.table import TRACE_TROUBLE
from vpnrouter.management.sources import TraceLook
from vpnrouter.server.events.narrate import log_here, tell
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.trace.retention import DAY_NS, Retention
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.writer import Writer, WriterThread

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from vpnrouter.config import trace
    from vpnrouter.config.trace import Trace
    from vpnrouter.core.barrier import Barrier
    from vpnrouter.core.router import Router
    from vpnrouter.management.sources import TraceWish
    from vpnrouter.server.otlp import OtlpThread
    from vpnrouter.trace.writer import Status


def terms_of(written: trace.Trace | None, seed: int) -> TraceTerms | None:
    """What is traced besides the share of all messages; None where nothing is.

    `seed` is 64 random bits; each filter draws by its own.
    """
    if written is None or not written.enabled:
        return None
    enabled = [one for one in written.filters if one.enabled]
    return TraceTerms(
        "discard" in written.always,
        "reject" in written.always,
        [_filter(one, seed + index) for index, one in enumerate(enabled, start=1)],
        written.traceparent == "honour",
        written.emit_traceparent,
    )


def _filter(written: trace.TraceFilter, seed: int) -> TraceFilter:
    dialect = MQTT if written.topic_syntax == "mqtt" else SMF
    return TraceFilter(
        Sampler(written.sample, seed),
        [parse_filter(text, dialect) for text in written.subscriptions],
        list(written.msg_vpns),
        list(written.client_usernames),
        list(written.client_names),
    )


SECOND_NS: Final = 1_000_000_000

LEASE_NS: Final = 10 * SECOND_NS
"""How long somebody who does not come back counts as looking."""

HAND_OVER_S: Final = 0.5
"""Seconds between two blocks while somebody looks."""

Row = dict[str, object]


@final
class Tail:
    """The rows that fit one wish. One thread adds, another one looks; `lock` of the tap is theirs.

    Each row that fits has a number, one above that of the row before, whether or not it is kept.
    """

    def __init__(self, wish: TraceWish, number: int) -> None:
        self.wish = wish
        self.number = number
        self.until_ns = 0
        self.filter = parse_filter(wish.topic, SMF) if wish.topic else None
        self.rows: deque[tuple[int, Row]] = deque(maxlen=limits.TRACE_TAIL_ROWS)
        self._second = 0
        self._left = limits.TRACE_TAIL_RATE

    def room(self, now_ns: int) -> int:
        """How many rows more are copied in this second."""
        second = now_ns // SECOND_NS
        if second != self._second:
            self._second = second
            self._left = limits.TRACE_TAIL_RATE
        return self._left

    def add(self, rows: list[Row], count: int) -> None:
        """Keep `rows`, the first ones of `count` that fit."""
        for number, row in enumerate(rows, self.number + 1):
            self.rows.append((number, row))
        self.number += count
        self._left -= len(rows)

    def look(self, after: int, most: int) -> TraceLook:
        """At most `most` rows behind mark `after`, the oldest first, and how many are not shown."""
        found = [(number, row) for number, row in self.rows if number > after]
        shown = found[:most]
        mark = shown[-1][0] if len(found) > len(shown) else self.number
        return TraceLook(mark, [row for _, row in shown], max(0, mark - after - len(shown)))


@final
class LiveTraces:
    """The TraceTap of a router. `writer` is the one that runs, None where nothing is traced."""

    def __init__(self, router: str, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.writer: Writer | None = None
        self._router = router
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._tails: dict[TraceWish, Tail] = {}

    # -- the router's thread ---------------------------------------------------------------------

    @property
    def tails(self) -> int:
        """How many wishes are looked at."""
        self._forget()
        return len(self._tails)

    def status(self) -> Status | None:
        """What became of the rows until now; None where nothing is traced."""
        return None if self.writer is None else self.writer.status()

    def look(self, wish: TraceWish, after: int, most: int) -> TraceLook | None:
        """At most `most` rows of `wish` behind mark `after` (0: from now on), the oldest first.

        None when TRACE_TAILS other wishes are looked at already.
        """
        if self.writer is None:
            return TraceLook(after, (), tracing=False)
        self._forget()
        with self._lock:
            tail = self._tails.get(wish)
            if tail is None:
                if len(self._tails) >= limits.TRACE_TAILS:
                    return None
                # Marks of the same wish go on rising when it was forgotten meanwhile.
                tail = Tail(wish, max(1, after))
                self._tails[wish] = tail
            tail.until_ns = self._clock_ns() + LEASE_NS
            return tail.look(after or tail.number, most)

    def _forget(self) -> None:
        if not self._tails:
            return
        now_ns = self._clock_ns()
        with self._lock:
            self._tails = {
                wish: tail for wish, tail in self._tails.items() if tail.until_ns > now_ns
            }

    # -- the writer's thread ---------------------------------------------------------------------

    def offer(self, table: pa.Table) -> None:
        """Copy the rows of one block to the tails that want them."""
        if not self._tails:
            return
        with self._lock:
            tails = list(self._tails.values())
        for tail in tails:
            now_ns = self._clock_ns()
            if tail.until_ns <= now_ns:
                continue
            rows, count = fitting(table, tail, tail.room(now_ns))
            for row in rows:
                row["router"] = self._router
            with self._lock:
                tail.add(rows, count)


def fitting(table: pa.Table, tail: Tail, most: int) -> tuple[list[Row], int]:
    """The first `most` rows that fit, and how many do; those that were not examined count as fitting."""
    # In the writer's thread pyarrow is loaded; whoever traces nothing never loads it.
    import pyarrow as pa
    import pyarrow.compute as pc

    wish = tail.wish
    wanted: dict[str, Any] = {"event": wish.event, "trace_id": wish.trace_id, "vpn": wish.msg_vpn}
    mask = None
    for column, value in wanted.items():
        if value:
            mask = _both(mask, pc.equal(_plain(table.column(column)), pa.scalar(value)))
    if wish.seen is not None:
        seen = pa.array(sorted(wish.seen), pa.string())
        mask = _both(mask, pc.is_in(_plain(table.column("vpn")), value_set=seen))
    if tail.filter is not None:
        topics = table.column("topic").combine_chunks()
        if isinstance(topics, pa.ChunkedArray):
            topics = topics.chunk(0)
        names = topics.dictionary.to_pylist()
        fits = [matches(tail.filter, name) for name in islice(names, limits.TRACE_TAIL_TOPICS)]
        # Beyond the bound a topic may fit: its rows are counted, and never shown.
        fits += [True] * (len(names) - len(fits))
        mask = _both(mask, pc.take(pa.array(fits, pa.bool_()), topics.indices))
    chosen = table if mask is None else table.filter(pc.fill_null(mask, fill_value=False))
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for row in chosen.slice(0, most).to_pylist()
    ]
    if tail.filter is not None:
        rows = [row for row in rows if matches(tail.filter, str(row["topic"]))]
    return rows, chosen.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts instead of a dictionary's indices."""
    import pyarrow as pa

    return column.cast(pa.string())


def _both(mask: pa.ChunkedArray | None, more: pa.ChunkedArray) -> pa.ChunkedArray:
    """Rows that meet both conditions."""
    import pyarrow.compute as pc

    return more if mask is None else pc.and_kleene(mask, more)


def each_of(*observers: Callable[[pa.Table], None] | None) -> Callable[[pa.Table], None]:
    """An observer that passes each table on to all of these."""
    told = [observer for observer in observers if observer is not None]

    def offer(table: pa.Table) -> None:
        for observer in told:
            observer(table)

    return offer


HAND_OVERS: Final = 4
"""Times in the life of a file that what was recorded is handed to the writer's thread.

Each costs some milliseconds of the interpreter lock however little there is, so not every second.
"""

DISK_S: Final = 5.0
"""Seconds that the disk has for the last file when the router stops."""

COLLECTOR_S: Final = 2.0
"""Seconds that a collector has, after that, for the last spans."""


def check_traces(written: Trace | None) -> None:
    """Check that what tracing needs is there; called before the router begins.

    Raises:
        OperationError: spans are to be sent, and the OpenTelemetry SDK is missing or refuses.
    """
    if written is not None and written.enabled and written.otlp.enabled:
        from vpnrouter.server.otlp import open_exporter

        open_exporter(written.otlp).shutdown()


def machine() -> str:
    """The boot id of this machine, which all of its containers share, as they share its clock; "" where the system
    has none.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""


async def keep_traces(written: Trace, router: Router, live: LiveTraces) -> None:
    """Run the writer's thread until cancelled; then write the rest. `live` shows rows to whoever looks."""
    recorder = router.plane.recorder
    exporter = _exporter(written, router.name, router.plane.barrier)
    writer = Writer(
        written.directory,
        router.name,
        recorder,
        # With filters there is no one share that holds for all messages.
        sample=None if written.filters else written.sample,
        always=[str(one) for one in written.always],
        host=machine(),
        flush_ns=written.rotation.max_seconds * SECOND_NS,
        file_rows=written.rotation.max_rows,
        file_bytes=written.rotation.max_bytes,
        retention=Retention(
            Path(written.directory),
            router.name,
            written.retention.max_days * DAY_NS,
            written.retention.max_bytes,
        ),
        observer=each_of(None if exporter is None else exporter.offer, live.offer),
    )
    live.writer = writer
    thread = WriterThread(
        writer,
        recorder,
        time.monotonic_ns,
        say=_say_from_elsewhere(),
        fault=_fault_from_elsewhere(router.plane.barrier, "trace writer"),
    )
    thread.start()
    if exporter is not None:
        exporter.start()
    try:
        while True:
            until_s = trio.current_time() + written.rotation.max_seconds / HAND_OVERS
            while trio.current_time() < until_s:
                await trio.sleep(min(HAND_OVER_S, until_s - trio.current_time()))
                if live.tails:
                    break
            thread.tick()
    finally:
        live.writer = None
        # In this thread: only the router's own may touch the block being filled.
        losses = router.plane.losses
        if losses is not None:
            losses.tell()
        thread.finish()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.stop, DISK_S)
            if exporter is not None:
                await trio.to_thread.run_sync(exporter.stop, COLLECTOR_S)


def _exporter(written: Trace, router: str, barrier: Barrier) -> OtlpThread | None:
    """The thread that sends spans; None when none is wanted, or when it cannot be had."""
    if not written.otlp.enabled:
        return None
    from vpnrouter.server.otlp import OtlpThread, open_exporter

    try:
        exporter = open_exporter(written.otlp)
    except OperationError as error:
        tell(TRACE_TROUBLE, f"{error}; no spans are sent")
        return None
    fault = _fault_from_elsewhere(barrier, "spans")
    return OtlpThread(
        exporter, router, written.otlp.max_queue, say=_say_from_elsewhere(), fault=fault
    )


def _say_from_elsewhere() -> Callable[[str], None]:
    """A function that tells from another thread, in the router's own, which the event log is for."""
    token = trio.lowlevel.current_trio_token()
    log = log_here()

    def say(text: str) -> None:
        # After the run has ended nobody is left who listens.
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(partial(tell, TRACE_TROUBLE, text, log=log))

    return say


def _fault_from_elsewhere(barrier: Barrier, name: str) -> Callable[[Exception], None]:
    """A callback that hands what the thread `name` raised to the barrier, in the router's thread."""
    token = trio.lowlevel.current_trio_token()

    def fault(error: Exception) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(barrier.caught, error, THREAD, name, "", "it goes on")

    return fault

"""Routing traces for whoever looks at them while they happen.

Rows are taken from the tables that the process which writes traces makes of blocks anyway: nothing here runs for a
message. While somebody looks, blocks are handed over twice a second instead of with each file.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, final

from vpnrouter import limits
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from vpnrouter.trace.writer import BlockWriter, Status


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which rows somebody wants to see; "" wants all."""

    topic: str = ""
    """A topic filter in the SMF dialect, checked. It leaves out rows that have no topic."""
    event: str = ""
    """A name of trace/events.py."""
    msg_vpn: str = ""
    trace_id: str = ""
    """32 lower-case hexadecimal digits."""
    seen: frozenset[str] | None = None
    """The message VPNs whose rows may be shown at all, None for those of all."""


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """What there is to see behind a mark."""

    mark: int
    """To ask for what comes after this."""
    rows: Sequence[Mapping[str, object]]
    """Names and values of columns as in trace files, and `router`; what is null is left out."""
    missed: int = 0
    """Rows between the marks that fitted the wish, or may have, and are not shown: too many at a time."""
    tracing: bool = True
    """False where the router traces nothing."""


LEASE_NS: Final = 10 * SECOND_NS
"""How long somebody who does not come back counts as looking."""

Row = dict[str, object]


@final
class Tail:
    """The rows that fit one wish. One thread adds, another one looks; the lock of LiveTraces is theirs.

    Each row that fits has a number, one above that of the row before, whether or not it is kept.
    """

    def __init__(self, wish: TraceFilter, number: int) -> None:
        self.wish = wish
        self.number = number
        self.until_ns = 0
        self.rows: deque[tuple[int, Row]] = deque(maxlen=limits.TRACE_TAIL_ROWS)
        self._second = 0
        self._left = limits.TRACE_TAIL_RATE

    def room(self, now_ns: int) -> int:
        """Return how many rows more are copied in this second."""
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

    def look(self, after: int, most: int) -> TraceBatch:
        """Return at most `most` rows behind mark `after`, the oldest first, and how many are not shown."""
        fitting_rows = [(number, row) for number, row in self.rows if number > after]
        shown = fitting_rows[:most]
        mark = shown[-1][0] if len(fitting_rows) > len(shown) else self.number
        return TraceBatch(mark, [row for _, row in shown], max(0, mark - after - len(shown)))


@final
class LiveTraces:
    """Routing traces as they happen, for whoever looks; nothing is kept while nobody does.

    `writer` is the one that runs, None where nothing is traced.
    """

    def __init__(self, router: str, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.writer: BlockWriter | None = None
        self._router = router
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._tails: dict[TraceFilter, Tail] = {}

    # -- the router's thread ---------------------------------------------------------------------

    @property
    def tails(self) -> int:
        """How many wishes are looked at."""
        self._forget()
        return len(self._tails)

    def status(self) -> Status | None:
        """Return what became of the rows until now; None where nothing is traced."""
        return None if self.writer is None else self.writer.status()

    def look(self, wish: TraceFilter, after: int, most: int) -> TraceBatch | None:
        """Return at most `most` rows of `wish` behind mark `after` (0: from now on), the oldest first.

        A wish that nobody has come back to for some seconds is forgotten with its rows. None when TRACE_TAILS
        other wishes are looked at already.
        """
        if self.writer is None:
            return TraceBatch(after, (), tracing=False)
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

    # -- the thread that has traces written ---------------------------------------------------------------------

    def wishes(self) -> list[tuple[TraceFilter, int]]:
        """Return what is looked at now, and how many rows of it there is room for."""
        if not self._tails:
            return []
        now_ns = self._clock_ns()
        with self._lock:
            return [
                (tail.wish, tail.room(now_ns))
                for tail in self._tails.values()
                if tail.until_ns > now_ns
            ]

    def add(
        self,
        wishes: Sequence[tuple[TraceFilter, int]],
        found: Sequence[tuple[list[Row], int]],
    ) -> None:
        """Keep the rows of one block that fit `wishes`, as `fitting` found them."""
        for (wish, _), (rows, count) in zip(wishes, found, strict=False):
            for row in rows:
                row["router"] = self._router
            with self._lock:
                tail = self._tails.get(wish)
                if tail is not None:
                    tail.add(rows, count)


def fitting(table: pa.Table, wish: TraceFilter, most: int) -> tuple[list[Row], int]:
    """Return the first `most` rows that fit, and how many do; those that were not examined count as fitting."""
    # Loaded where traces are written; whoever traces nothing never loads it.
    import pyarrow as pa
    import pyarrow.compute as pc

    topic_filter = parse_filter(wish.topic, SMF) if wish.topic else None
    wanted: dict[str, Any] = {"event": wish.event, "trace_id": wish.trace_id, "vpn": wish.msg_vpn}
    mask = None
    for column, value in wanted.items():
        if value:
            mask = _both(mask, pc.equal(_plain(table.column(column)), pa.scalar(value)))
    if wish.seen is not None:
        seen = pa.array(sorted(wish.seen), pa.string())
        mask = _both(mask, pc.is_in(_plain(table.column("vpn")), value_set=seen))
    if topic_filter is not None:
        topics = table.column("topic").combine_chunks()
        if isinstance(topics, pa.ChunkedArray):
            topics = topics.chunk(0)
        names = topics.dictionary.to_pylist()
        fits = [matches(topic_filter, name) for name in islice(names, limits.TRACE_TAIL_TOPICS)]
        # Beyond the bound a topic may fit: its rows are counted, and never shown.
        fits += [True] * (len(names) - len(fits))
        mask = _both(mask, pc.take(pa.array(fits, pa.bool_()), topics.indices))
    chosen = table if mask is None else table.filter(pc.fill_null(mask, fill_value=False))
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for row in chosen.slice(0, most).to_pylist()
    ]
    if topic_filter is not None:
        rows = [row for row in rows if matches(topic_filter, str(row["topic"]))]
    return rows, chosen.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its texts instead of a dictionary's indices."""
    import pyarrow as pa

    return column.cast(pa.string())


def _both(mask: pa.ChunkedArray | None, more: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return rows that meet both conditions."""
    import pyarrow.compute as pc

    return more if mask is None else pc.and_kleene(mask, more)

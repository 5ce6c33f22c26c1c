"""Draws trace rows from the templates, and writes them as trace files in the format of docs/traces.md.

The rows of a stretch of time are drawn for all streams at once, without a loop over messages or rows. Times follow the
parents level by level. The texts of a router's templates become dictionaries once; rows pick values by number.
Several threads write routers: numpy and pyarrow release the interpreter most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vpnrouter.simulation.plan import ALWAYS, Plan
from vpnrouter.simulation.templates import COLUMNS, State, Templates
from vpnrouter.trace.parquet import SCHEMA, TraceFileWriter, by_date, partition_value, trace_ids
from vpnrouter.trace.schema import ALWAYS_KEY, CONTEXT, context_of, file_metadata
from vpnrouter.units import SECOND_NS

_SPREAD_OF_SIZES: Final = 4
_LEAST_BYTES: Final = 8


@dataclass(frozen=True)
class Rows:
    """Trace rows; arrays of equal length.

    `row` is the template's row, `topic` the topic's number (-1: none), `message` the message's number from 0
    among all of the simulation (-1: concerns none). Times are by the router's own clock.
    """

    row: NDArray[np.int32]
    topic: NDArray[np.int32]
    message: NDArray[np.int64]
    origin: NDArray[np.int32]
    ts_ns: NDArray[np.int64]
    since_ns: NDArray[np.int64]
    origin_ts_ns: NDArray[np.int64]
    size_bytes: NDArray[np.int64]

    def at(self, which: NDArray[np.int64]) -> Rows:
        """Return these rows, in this order."""
        return Rows(*(column[which] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.row)


class RowGenerator:
    """Draws the rows of all messages.

    Args:
        plan: what is drawn.
        counts: messages of each of its streams.
        start_ns: when the simulation begins, nanoseconds since 1970.
        rng: where all draws come from.

    `rows` is the total.
    """

    def __init__(
        self, plan: Plan, counts: NDArray[np.int64], start_ns: int, rng: np.random.Generator
    ) -> None:
        templates, streams = plan.templates, plan.streams
        # Streams of one profile stand together, so that their times are found in one call.
        order = np.argsort([stream.profile for stream in streams], kind="stable")
        streams = [streams[at] for at in order]
        self._counts = counts[order]
        self._profiles = plan.profiles
        self._profile = np.array([stream.profile for stream in streams], np.int32)
        self._topic = np.array([stream.topic for stream in streams], np.int32)
        self._mean_bytes = np.array([stream.mean_bytes for stream in streams], np.float32)
        template = np.array([stream.template for stream in streams], np.int64)
        self._first = np.array(templates.first, np.int32)[template]
        self._length = np.array(templates.length, np.int32)[template]
        self._router = np.array(templates.router, np.int32)
        self._up = np.array(templates.up, np.int32)
        self._entry = np.array(templates.entry, np.int32)
        self._depth = np.array(templates.depth, np.int8)
        self._base = np.array(templates.base_ns, np.float32)
        self._spread = np.array(templates.spread_ns, np.float32)
        self._ramp = np.array(templates.ramp_ns, np.float32)
        self._ramps = bool(self._ramp.any())
        self._clocks_ns = plan.clocks_ns
        self._set_at_ns = np.full(len(plan.clocks_ns), np.iinfo(np.int64).max)
        self._set_by_ns = np.zeros(len(plan.clocks_ns), np.int64)
        self._drifts = np.zeros(len(plan.clocks_ns))
        for router, ppm in plan.clock_drifts_ppm.items():
            self._drifts[router] = ppm / 1e6
        for router, (at_s, by_ns) in plan.clock_sets.items():
            self._set_at_ns[router], self._set_by_ns[router] = round(at_s * SECOND_NS), by_ns
        self._start_ns = start_ns
        self._seconds = plan.seconds
        self._rng = rng
        self._drawn = 0
        self._done = np.zeros(len(streams), np.int64)
        self.rows = int((self._counts * self._length).sum()) + len(plan.states)
        self._states = sorted(plan.states, key=lambda each: each.at_s)

    def draw(self, end_s: float) -> tuple[Rows, NDArray[np.int64]]:
        """Return the rows of all messages that come in before `end_s` and are not drawn yet, and the order of
        them by router, then time.
        """
        messages = self._messages(end_s)
        if end_s >= self._seconds:
            states, self._states = self._states, []
        else:
            states = [state for state in self._states if state.at_s < end_s]
            self._states = self._states[len(states) :]
        rows = _joined(messages, self._state_rows(states))
        # One sort of one number each: router above, time below, to 2 µs for simulations of years.
        at = ((rows.ts_ns - self._start_ns) >> 11) + (1 << 40)
        key = (self._router[rows.row].astype(np.int64) << 46) + at
        return rows, np.argsort(key, kind="stable")

    def _messages(self, end_s: float) -> Rows:
        upto = np.zeros_like(self._counts)
        for number in np.unique(self._profile):
            mine = self._profile == number
            share = (
                1.0
                if end_s >= self._seconds
                else float(self._profiles[number].before(np.array([end_s]))[0])
            )
            upto[mine] = np.floor(self._counts[mine] * share)
        new = upto - self._done
        stream = np.repeat(np.arange(len(new), dtype=np.int32), new)
        total = len(stream)
        starts = np.cumsum(new) - new
        place = np.arange(total) - np.repeat(starts - self._done, new)
        self._done = upto
        share = (place + self._rng.random(total)) / self._counts[stream]
        at_s = np.empty(total)
        begin = 0
        for number, many in zip(*_runs(self._profile[stream]), strict=True):
            at_s[begin : begin + many] = self._profiles[number].times(share[begin : begin + many])
            begin += many
        size = self._mean_bytes[stream] * self._rng.standard_gamma(
            _SPREAD_OF_SIZES, total, dtype=np.float32
        )
        bytes_ = np.maximum((size / _SPREAD_OF_SIZES).astype(np.int64), _LEAST_BYTES)
        first = self._drawn
        self._drawn += total
        return self._stamp(stream, (at_s * SECOND_NS).astype(np.int64), bytes_, first)

    def _stamp(
        self,
        stream: NDArray[np.int32],
        at_ns: NDArray[np.int64],
        size: NDArray[np.int64],
        first: int,
    ) -> Rows:
        many = self._length[stream]
        starts = (np.cumsum(many, dtype=np.int64) - many).astype(np.int64)
        message = np.repeat(np.arange(len(stream), dtype=np.int32), many)
        place = np.arange(len(message), dtype=np.int32)
        row = (self._first[stream] - starts.astype(np.int32))[message] + place
        came_ns = at_ns[message]
        delay = self._rng.standard_exponential(len(row), dtype=np.float32)
        delay *= self._spread[row]
        delay += self._base[row]
        if self._ramps:
            late = (came_ns / (self._seconds * SECOND_NS)).astype(np.float32)
            delay += self._ramp[row] * late * late
        ts = came_ns.copy()
        up = self._up[row]
        depth = self._depth[row]
        for level in range(1, int(depth.max(initial=0)) + 1):
            mine = np.flatnonzero(depth == level)
            ts[mine] = ts[mine - up[mine]] + delay[mine].astype(np.int64)
        since = ts - ts[place - self._entry[row]]
        router = self._router[row]
        origin = self._router[self._first[stream]]
        return Rows(
            row=row,
            topic=self._topic[stream][message],
            message=first + message.astype(np.int64),
            origin=origin[message],
            ts_ns=self._shown(router, ts),
            since_ns=since,
            origin_ts_ns=self._shown(origin, at_ns)[message],
            size_bytes=size[message],
        )

    def _shown(self, router: NDArray[np.int32], at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the clocks of these routers show at these times."""
        was_set = at_ns >= self._set_at_ns[router]
        return (
            at_ns
            + (self._clocks_ns[router] + self._start_ns)
            + np.where(was_set, self._set_by_ns[router], 0)
            + (self._drifts[router] * at_ns).astype(np.int64)
        )

    def _state_rows(self, states: Sequence[State]) -> Rows:
        row = np.array([state.row for state in states], np.int32)
        at_ns = (np.array([state.at_s for state in states]) * SECOND_NS).astype(np.int64)
        none = np.full(len(states), -1, np.int64)
        return Rows(
            row=row,
            topic=np.array([state.topic for state in states], np.int32),
            message=none,
            origin=none.astype(np.int32),
            ts_ns=self._shown(self._router[row], at_ns),
            since_ns=none,
            origin_ts_ns=none,
            size_bytes=none,
        )


def _joined(one: Rows, other: Rows) -> Rows:
    if not len(other):
        return one
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return Rows(*(np.concatenate(pair) for pair in pairs))


def _runs(values: NDArray[np.int32]) -> tuple[list[int], list[int]]:
    """Return the distinct values of an ordered array, and their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct.tolist(), counts.tolist()


FILE_ROWS: Final = 4_000_000
"""Rows of a file; as `trace.rotation.max_rows` has it by default."""

GROUP_ROWS: Final = 65_536
"""Rows of a row group at most, as a router writes them."""

_THREADS: Final = 2


@dataclass(frozen=True)
class _Texts:
    """One column of one router: its distinct values, and the code of each of its template rows (-1: null)."""

    values: pa.Array
    codes: NDArray[np.int32]


class TraceFiles:
    """The trace files of all routers under a directory.

    Args:
        folder: the directory; made when missing.
        plan: what the drawn rows refer to.
        rng: gives each router the upper half of the trace ids that begin there.
        sample: the share of messages that the routers trace.
    """

    def __init__(self, folder: Path, plan: Plan, rng: np.random.Generator, sample: float) -> None:
        templates = plan.templates
        self._folder = folder
        self._routers = plan.mesh.network.routers
        self._topics = pa.array(plan.topics.names, pa.string())
        self._highs = rng.integers(1, 2**63, len(self._routers), dtype=np.uint64)
        self._sample = sample
        self._router_of = np.array(templates.router, np.int32)
        self._local = np.zeros(len(self._router_of), np.int32)
        self._texts: list[dict[str, _Texts]] = [{} for _ in self._routers]
        self._numbers: list[dict[str, NDArray[np.int32]]] = [{} for _ in self._routers]
        self._contexts: list[_Texts] = []
        self._parts: dict[int, _Part] = {}
        self._pool = ThreadPoolExecutor(_THREADS)
        self._writing: list[Future[None]] = []
        self.paths: list[Path] = []
        self._prepare(templates)

    def _prepare(self, templates: Templates) -> None:
        order = np.argsort(self._router_of, kind="stable")
        ends = np.searchsorted(self._router_of[order], np.arange(len(self._routers) + 1))
        for router in range(len(self._routers)):
            mine = order[ends[router] : ends[router + 1]]
            self._local[mine] = np.arange(len(mine), dtype=np.int32)
        contexts = _contexts(templates, [self._routers[router] for router in templates.router])
        codes, distinct = _coded(contexts)
        for router in range(len(self._routers)):
            mine = order[ends[router] : ends[router + 1]]
            self._contexts.append(_own(distinct, codes[mine]))
        for name in COLUMNS:
            column = templates.columns[name]
            if pa.types.is_dictionary(SCHEMA.field(name).type):
                coded = pa.array(column, pa.string()).dictionary_encode()
                codes = coded.indices.fill_null(-1).to_numpy()[order]
                for router in range(len(self._routers)):
                    some = codes[ends[router] : ends[router + 1]]
                    self._texts[router][name] = _own(coded.dictionary, some)
            else:
                numbers = np.array([-1 if each is None else each for each in column], np.int32)
                for router in range(len(self._routers)):
                    self._numbers[router][name] = numbers[order[ends[router] : ends[router + 1]]]

    def write(self, rows: Rows, order: NDArray[np.int64]) -> None:
        """Append rows; `order` sorts them by router, then time.

        Returns while they are being written: the next call raises what failed.

        Raises:
            OSError: a file cannot be made or written.
        """
        router = self._router_of[rows.row[order]]
        edges = np.flatnonzero(np.diff(router, prepend=-1))
        ends = [*edges[1:].tolist(), len(router)]
        self._settle()
        self._writing = [
            self._pool.submit(self._write, rows, int(router[begin]), order[begin:end])
            for begin, end in zip(edges.tolist(), ends, strict=True)
        ]

    def close(self) -> None:
        """Finish all files.

        Raises:
            OSError: a file cannot be finished.
        """
        self._settle()
        self._pool.shutdown()
        for part in self._parts.values():
            part.close()
        self._parts.clear()

    def _settle(self) -> None:
        for each in self._writing:
            each.result()
        self._writing = []

    def _write(self, rows: Rows, router: int, order: NDArray[np.int64]) -> None:
        for first in range(0, len(order), GROUP_ROWS):
            mine = rows.at(order[first : first + GROUP_ROWS])
            for date, table in by_date(self._table(router, mine)):
                self._append(router, date, table, int(mine.ts_ns[0]))

    def _append(self, router: int, date: str, table: pa.Table, first_ns: int) -> None:
        part = self._parts.get(router)
        if part is not None and (part.date != date or part.rows >= FILE_ROWS):
            part.close()
            part = None
        if part is None:
            name = self._routers[router]
            folder = self._folder / f"date={date}" / f"router={partition_value(name)}"
            number = 1
            while (path := folder / f"part-{first_ns}-{number}.parquet").exists():
                number += 1
            self.paths.append(path)
            part = self._parts[router] = _Part(path, date, self._metadata(name))
        part.write(table)

    def _metadata(self, router: str) -> dict[str, str]:
        metadata = file_metadata(router, self._sample, host=f"machine of {router}")
        metadata[ALWAYS_KEY] = ",".join(ALWAYS)
        return metadata

    def _table(self, router: int, rows: Rows) -> pa.Table:
        local = self._local[rows.row]
        none = rows.message < 0
        null = none if none.any() else None
        number = rows.message + 1
        columns = {
            "ts_ns": pa.array(rows.ts_ns),
            "trace_id": trace_ids(self._highs[rows.origin], number.view(np.uint64), none),
            "message_id": pa.array(_mixed(number), mask=null),
            "size_bytes": pa.array(rows.size_bytes, mask=null),
            "since_ingress_ns": pa.array(rows.since_ns, mask=null),
            "origin_ts_ns": pa.array(rows.origin_ts_ns, mask=null),
            "topic": self._topic_column(rows.topic),
            "context": _dictionary(
                self._contexts[router].codes[local], self._contexts[router].values
            ),
            "in_full": pa.array(none),
        }
        for name, texts in self._texts[router].items():
            columns[name] = _dictionary(texts.codes[local], texts.values)
        for name, numbers in self._numbers[router].items():
            values = numbers[local]
            columns[name] = pa.array(values, SCHEMA.field(name).type, mask=values < 0)
        empty = [name for name in SCHEMA.names if name not in columns]
        columns |= {name: pa.nulls(len(rows), SCHEMA.field(name).type) for name in empty}
        return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _topic_column(self, topic: NDArray[np.int32]) -> pa.Array:
        is_used = np.zeros(len(self._topics) + 1, bool)
        is_used[topic] = True
        is_used[-1] = False
        present = np.flatnonzero(is_used).astype(np.int32)
        code = np.full(len(is_used), -1, np.int32)
        code[present] = np.arange(len(present), dtype=np.int32)
        return _dictionary(code[topic], self._topics.take(pa.array(present)))


class _Part:
    """One file in the making, hidden until it is complete."""

    def __init__(self, path: Path, date: str, metadata: dict[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.date = date
        self.rows = 0
        self._path = path
        self._hidden = path.with_name(f".{path.name}")
        self._writer = TraceFileWriter(self._hidden, metadata)

    def write(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._writer.write(table)

    def close(self) -> None:
        self._writer.close()
        self._hidden.replace(self._path)


def _contexts(templates: Templates, routers: list[str]) -> list[int]:
    """Return the context of each template row, as `trace.schema` has it."""
    columns = [routers if name == "router" else templates.columns[name] for name in CONTEXT]
    return [context_of(values) for values in zip(*columns, strict=True)]


def _coded(contexts: list[int]) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the code of each context and the distinct ones."""
    coded = pa.array(contexts, pa.int64()).dictionary_encode()
    return coded.indices.to_numpy(), coded.dictionary


def _own(values: pa.Array, codes: NDArray[np.int32]) -> _Texts:
    present = np.unique(codes)
    present = present[present >= 0]
    code = np.full(len(values) + 1, -1, np.int32)
    code[present] = np.arange(len(present), dtype=np.int32)
    return _Texts(values.take(pa.array(present)), code[codes])


def _dictionary(codes: NDArray[np.int32], values: pa.Array) -> pa.Array:
    null = codes < 0
    indices = pa.array(codes, mask=null if null.any() else None)
    return pa.DictionaryArray.from_arrays(indices, values, safe=False)


def _mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return distinct numbers that look random, one for each number (the finisher of splitmix64)."""
    mixed = numbers.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)

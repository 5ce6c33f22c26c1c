"""Blocks of trace records become Arrow tables and Parquet files.

The only module here that imports numpy and pyarrow (a fifth of a second): import it in the
writer's thread. All work per event is vectorised; loops run over contexts and topics, of which a
block has few.

Encodings are chosen for the time they take: integers as deltas; strings keep the dictionary they
already have; trace ids, nearly all distinct, plain. Statistics only for `ts_ns`, where a reader can
skip row groups by them. zstd at level 1. Spark's vectorised reader knows them all.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter import limits
from vpnrouter.trace import events, schema
from vpnrouter.trace.recorder import Block, Context
from vpnrouter.units import DAY_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

_RECORD: Final = np.dtype(
    [
        ("ts", "<i8"),
        ("high", "<u8"),
        ("low", "<u8"),
        ("message_id", "<u8"),
        ("size", "<i8"),
        ("since", "<i8"),
        ("origin", "<i8"),
        ("context", "<u4"),
        ("topic", "<u4"),
    ]
)
_ROUND: Final = np.dtype([("first", "<u4"), ("end", "<u4"), ("flush", "<i8")])

_EPOCH: Final = dt.date(1970, 1, 1)
# Four hexadecimal digits, as they lie in memory, for each pair of bytes.
_HEX: Final = np.frombuffer(np.arange(1 << 16, dtype=">u2").tobytes().hex().encode(), np.uint32)
_TRACE_ID_CHARS: Final = 32

# What Spark and Hive escape in the value of a partition directory. They unescape byte by byte, so
# letters beyond ASCII must stay as they are.
_ESCAPED: Final = frozenset(map(chr, [*range(0x20), 0x7F])) | frozenset("\"#%'*/:=?\\{[]^")


ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
"""What the types in `schema.COLUMNS` are in a file."""


def _arrow_type(column: schema.Column) -> pa.DataType:
    if column.name == "context":
        return _CONTEXT
    if column.type != "string":
        return ARROW_TYPES[column.type]
    if column.name == "trace_id":
        return pa.string()
    # Dictionaries as they come from the block: written without touching each row. In the
    # file these are plain string columns.
    return _TEXT


_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
_CONTEXT: Final = pa.dictionary(pa.int32(), pa.int64())
SCHEMA: Final = pa.schema(
    [pa.field(c.name, _arrow_type(c), nullable=c.nullable) for c in schema.FILE_COLUMNS]
)
_TEXTS: Final = [
    c.name
    for c in schema.FILE_COLUMNS
    if c.type == "string" and c.name not in {"event", "trace_id", "topic", "mode"}
]
"""The columns whose text a context holds under the same name."""

_DICTIONARIES: Final = [f.name for f in SCHEMA if pa.types.is_dictionary(f.type)]
_ENCODINGS: Final = {
    f.name: "PLAIN" if f.name == "trace_id" else "DELTA_BINARY_PACKED"
    for f in SCHEMA
    if f.name not in _DICTIONARIES and f.type != pa.bool_()
}


def table(block: Block, router: str) -> pa.Table:
    """Return the rows of `block`, recorded by `router`, in order, with the columns of `schema.FILE_COLUMNS`.

    Text that is not UTF-8 has U+FFFD where it is not. `in_full` is true of rows that concern no message: which rows are
    the first of their context, a `TraceFileWriter` knows.
    """
    rows = np.frombuffer(block.data, dtype=_RECORD, count=block.count)
    contexts = block.contexts
    which = pa.array(rows["context"].astype(np.int32))
    event_of = np.array([c.event for c in contexts], dtype=np.int32)
    event = event_of[rows["context"]]
    no_message = event >= events.FIRST_WITHOUT_MESSAGE
    # A row without a trace has in the place of its message's id how many messages it stands for.
    untraced = no_message | ((rows["high"] | rows["low"]) == 0)
    number = np.ascontiguousarray(rows["message_id"]).view(np.int64)
    ts, since = _times(block, rows, event)

    nothing = pa.nulls(block.count, _TEXT)

    def text(values: Sequence[str]) -> pa.Array:
        if not any(values):
            return nothing
        return _strings([v or None for v in values]).take(which)

    columns = {
        "ts_ns": pa.array(ts),
        "event": _named(events.EVENT_NAMES, event_of, None).take(which),
        "trace_id": trace_ids(rows["high"], rows["low"], untraced),
        # Ids beyond 2**63 keep their bits: the column is signed, as everything in Spark.
        "message_id": _integers(number, untraced | (number == 0)),
        "topic": _topics(block).take(pa.array(rows["topic"].astype(np.int32))),
        "mode": _modes(contexts, event_of).take(which),
        "size_bytes": _integers(rows["size"], no_message | (rows["size"] < 0)),
        "hops": _integers(
            np.array([c.hops for c in contexts], np.int32)[rows["context"]], no_message
        ),
        "since_ingress_ns": _integers(since, no_message | (since < 0)),
        "origin_ts_ns": _integers(rows["origin"], no_message | (rows["origin"] <= 0)),
        "count": _counts(number, untraced, no_message),
        "partition": _partitions(contexts).take(which),
        "context": pa.DictionaryArray.from_arrays(which, _contexts(contexts, router)),
        "in_full": pa.array(no_message),
        **{name: text([getattr(c, name) for c in contexts]) for name in _TEXTS},
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


class TraceFileWriter:
    """Writes trace rows, encoded as the head of this module says, into a file with this metadata.

    Each table becomes a row group. `in_full` of the first row of each context in the file becomes true.

    Raises:
        OSError: the file cannot be made or written.
    """

    def __init__(self, where: Path | BinaryIO, metadata: dict[str, str]) -> None:
        self._known: set[int] = set()
        self._writer = pq.ParquetWriter(
            where,
            SCHEMA,
            use_dictionary=_DICTIONARIES,
            column_encoding=_ENCODINGS,
            compression="zstd",
            compression_level=1,
            write_statistics=["ts_ns"],
            # Without it a reader sees strings, not the dictionaries they were written from.
            store_schema=False,
        )
        self._writer.add_key_value_metadata(metadata)

    def write(self, rows: pa.Table) -> None:
        """Append a table, at least one row."""
        at = SCHEMA.get_field_index("in_full")
        marked = rows.set_column(at, SCHEMA.field(at), pa.array(self._in_full(rows)))
        self._writer.write_table(marked, row_group_size=rows.num_rows)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Write no footer, neither now nor when the writer is collected."""
        self._writer.is_open = False

    def _in_full(self, rows: pa.Table) -> NDArray[np.bool_]:
        in_full: NDArray[np.bool_] = rows.column("in_full").to_numpy().copy()
        begin = 0
        for chunk in rows.column("context").chunks:
            codes = chunk.indices.to_numpy()
            first = np.full(len(chunk.dictionary), -1)
            # Of several rows the one assigned last stays.
            first[codes[::-1]] = np.arange(len(codes))[::-1]
            for context, row in zip(chunk.dictionary.to_pylist(), first.tolist(), strict=True):
                if row >= 0 and context not in self._known:
                    self._known.add(context)
                    in_full[begin + row] = True
            begin += len(codes)
        if len(self._known) > limits.TRACE_FILE_CONTEXTS:
            # What is forgotten is in full once more.
            self._known.clear()
        return in_full


def by_date(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split a table by the UTC date of `ts_ns`.

    Yields:
        The date as "YYYY-MM-DD" and its rows, in order of date.
    """
    days = rows.column("ts_ns").to_numpy() // DAY_NS
    first, last = int(days.min()), int(days.max())
    for day in [first] if first == last else np.unique(days).tolist():
        date = (_EPOCH + dt.timedelta(days=day)).isoformat()
        yield date, rows if first == last else rows.filter(pa.array(days == day))


def partition_value(name: str) -> str:
    """Return `name` as the value of a partition directory, escaped as Spark and Hive do."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in name)


def folder_of(router: str) -> str:
    """Return the name of the directory of a router's files under each date."""
    return f"router={partition_value(router)}"


def open_for_writing(path: Path) -> BinaryIO:
    """Return a new buffered binary file."""
    # Buffered although the writes are large: an unbuffered file may take a part of a write only.
    return path.open("wb")


class PartFile:
    """One Parquet file in the making, under a hidden name until it is complete.

    Args:
        folder: partition directory; made when it is missing.
        name: final file name.
        metadata: keys and values for the file's footer.
        opener: opens a path for writing.

    Raises:
        OSError: the directory or the file cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        metadata: dict[str, str],
        opener: Callable[[Path], BinaryIO],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self._final = folder / name
        self._hidden = folder / f".{name}"
        self._file = opener(self._hidden)
        try:
            self._writer = TraceFileWriter(self._file, metadata)
        except OSError:
            self._remove()
            raise

    @property
    def name(self) -> str:
        """The final name of the file."""
        return self._final.name

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return self._file.tell()

    def write(self, rows: pa.Table) -> None:
        """Append a table as one row group.

        Raises:
            OSError: the file cannot take it; only `abandon()` may follow.
        """
        # Counted first: what a failed write leaves behind is lost together with it.
        self.rows += rows.num_rows
        self._writer.write(rows)

    def publish(self) -> int:
        """Finish the file, sync it and give it its name.

        Returns:
            Its size in bytes.

        Raises:
            OSError: the file cannot be finished; only `abandon()` may follow.
        """
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        self._hidden.replace(self._final)
        return size

    def abandon(self) -> None:
        """Abort the file and remove it; never raises OSError."""
        self._writer.abandon()
        self._remove()

    def _remove(self) -> None:
        # Closing may fail in its turn, on what is still buffered; the descriptor is closed anyway.
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._hidden.unlink()


def _times(
    block: Block, rows: NDArray[Any], event: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns ts_ns and since_ingress_ns, with the sends of a round moved to the time of its flush."""
    ts = rows["ts"].copy()
    since = rows["since"].copy()
    if block.rounds:
        marks = np.frombuffer(block.rounds, dtype=_ROUND)
        first = marks["first"].astype(np.int64)
        lengths = marks["end"].astype(np.int64) - first
        starts = np.cumsum(lengths) - lengths
        where = np.repeat(first - starts, lengths) + np.arange(lengths.sum())
        sent = (event[where] == events.DELIVER) | (event[where] == events.BRIDGE_SEND)
        where = where[sent]
        # The wall clock may be set back between the two.
        waited = np.maximum(np.repeat(marks["flush"], lengths)[sent] - ts[where], 0)
        ts[where] += waited
        since[where] += np.where(since[where] < 0, 0, waited)
    return ts, since


def _integers(values: NDArray[Any], null: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.ascontiguousarray(values), mask=null)


def _contexts(contexts: Sequence[Context], router: str) -> pa.Array:
    """Return the number of each context, for `schema.CONTEXT`."""
    numbers = []
    for context in contexts:
        no_message = context.event >= events.FIRST_WITHOUT_MESSAGE
        columns = {
            "router": router,
            "event": events.EVENT_NAMES[context.event],
            "mode": None if no_message else events.MODE_NAMES[context.mode],
            "hops": None if no_message else context.hops,
            "partition": None if context.partition < 0 else context.partition,
        }
        values = [
            columns[name] if name in columns else _repaired(getattr(context, name))
            for name in schema.CONTEXT
        ]
        numbers.append(schema.context_of(values))
    return pa.array(numbers, pa.int64())


def _strings(values: Sequence[str | bytes | None]) -> pa.DictionaryArray:
    """Return a dictionary array of distinct strings, None as null."""
    try:
        if any(isinstance(v, bytes) for v in values):
            # Converted as a whole, which also checks the encoding.
            array = pa.array(values, pa.binary()).cast(pa.string())
        else:
            array = pa.array(values, pa.string())
    except (pa.ArrowInvalid, UnicodeEncodeError):
        array = pa.array([_repaired(v) for v in values], pa.string())
    return array.dictionary_encode()


def _repaired(value: str | bytes | None) -> str | None:
    if value is None:
        return None
    raw = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    return raw.decode(errors="replace")


def _topics(block: Block) -> pa.DictionaryArray:
    return _strings([topic or None for topic in block.topics])


def _named(
    names: Sequence[str], codes: NDArray[np.int32], null: NDArray[np.bool_] | None
) -> pa.DictionaryArray:
    indices = pa.array(codes, mask=null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


def _modes(contexts: Sequence[Context], event_of: NDArray[np.int32]) -> pa.DictionaryArray:
    codes = np.array([c.mode for c in contexts], dtype=np.int32)
    null = event_of >= events.FIRST_WITHOUT_MESSAGE
    return _named(events.MODE_NAMES, np.where(null, np.int32(0), codes), null)


def _counts(
    number: NDArray[np.int64], untraced: NDArray[np.bool_], no_message: NDArray[np.bool_]
) -> pa.Array:
    """Return the numbers of rows that stand for messages without a trace; most blocks have none."""
    counted = untraced & ~no_message
    if not counted.any():
        return pa.nulls(len(number), pa.int64())
    return _integers(number, ~counted | (number == 0))


def _partitions(contexts: Sequence[Context]) -> pa.Array:
    return pa.array([c.partition if c.partition >= 0 else None for c in contexts], pa.int32())


def trace_ids(
    high: NDArray[np.uint64], low: NDArray[np.uint64], untraced: NDArray[np.bool_]
) -> pa.StringArray:
    """Return both halves as 32 hexadecimal digits, null where there is no trace."""
    count = len(high)
    halves = np.empty((count, 2), dtype=">u8")
    halves[:, 0] = high
    halves[:, 1] = low
    digits = np.take(_HEX, halves.view(">u2").reshape(-1))
    ends = np.arange(0, _TRACE_ID_CHARS * (count + 1), _TRACE_ID_CHARS, dtype=np.int32)
    valid = None
    if untraced.any():
        valid = pa.py_buffer(np.packbits(~untraced, bitorder="little"))
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits), valid)

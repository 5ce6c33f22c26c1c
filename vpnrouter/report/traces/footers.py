"""Reads the footers of trace files: what each says about itself, or why it is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_FOOTER_BYTES
from vpnrouter.report.traces.storage import Storage, StoredFile
from vpnrouter.trace.schema import (
    ALWAYS_KEY,
    COLUMNS,
    HOST_KEY,
    ROUTER_KEY,
    SAMPLE_KEY,
    VERSION,
    VERSION_KEY,
)

_NEEDED: Final = frozenset({"ts_ns", "vpn", "event"})
_VERSION_KEY: Final = VERSION_KEY.encode()
_ROUTER_KEY: Final = ROUTER_KEY.encode()
_SAMPLE_KEY: Final = SAMPLE_KEY.encode()
_ALWAYS_KEY: Final = ALWAYS_KEY.encode()
_HOST_KEY: Final = HOST_KEY.encode()


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """A readable trace file.

    `router_from` is where its rows' router stands. `sample` is the writer's sampling rate, None if the file does not
    say; `always` are the events that it recorded of every message; `host` is the machine that wrote it, "" if not
    known. `mark` is a digest of its footer. `first_ns` and `last_ns` bound its rows' times, if the footer has them.
    `has_contexts`: its rows have the columns `context` and `in_full`.
    """

    path: str
    rows: int
    size_bytes: int
    router: str | None
    router_from: Literal["column", "directory", "metadata"]
    sample: float | None
    always: frozenset[str] = frozenset()
    host: str = ""
    mark: str = ""
    first_ns: int | None = None
    last_ns: int | None = None
    has_contexts: bool = False


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """A file that is not part of the report, and why. `same_as` is the other file with its contents, "" without one.
    `may_pass`: what is wrong may be its store, and not the file.
    """

    path: str
    reason: str
    same_as: str = ""
    may_pass: bool = False


_TAIL_BYTES: Final = 16_384
"""Read at first of each file: the footer of a small file, of which there may be very many, is smaller."""

_TOGETHER: Final = 2_000
"""Files whose footers are in memory at a time."""

_LENGTH_BYTES: Final = 8
"""What a Parquet file ends with: the length of its footer in four bytes, and its mark in four more."""


def footers(
    storage: Storage, files: Sequence[StoredFile], newer: list[str]
) -> Iterator[TraceFile | SetAside]:
    """Yield what each of these files is by its footer, in their order. Files of a newer trace format are added to
    `newer` instead.

    Raises:
        OperationError: the storage cannot be read at all.
    """
    for at in range(0, len(files), _TOGETHER):
        some = files[at : at + _TOGETHER]
        tails = list(storage.tails(some, _TAIL_BYTES))
        longer = [
            (place, file, needed)
            for place, (file, tail) in enumerate(zip(some, tails, strict=True))
            if isinstance(tail, bytes) and (needed := _footer_bytes(tail)) > len(tail)
        ]
        for place, file, needed in longer:
            if file.size_bytes >= needed and needed <= REPORT_FOOTER_BYTES:
                tails[place] = next(iter(storage.tails([file], needed)))
            elif needed > REPORT_FOOTER_BYTES:
                limit = f"more than {REPORT_FOOTER_BYTES // 1_000_000} MB of footer"
                tails[place] = _TooLong(f"damaged: {limit}")
        for file, tail in zip(some, tails, strict=True):
            found = _read_footer(file, tail)
            if isinstance(found, str):
                newer.append(found)
            else:
                yield found


class _TooLong(OperationError):
    """A footer that is not read."""


def _footer_bytes(tail: bytes) -> int:
    """Return how many bytes at the end of a file its footer takes; 0 where there is none."""
    if len(tail) < _LENGTH_BYTES or tail[-4:] != b"PAR1":
        return 0
    return int.from_bytes(tail[-_LENGTH_BYTES:-4], "little") + _LENGTH_BYTES


def _read_footer(file: StoredFile, tail: bytes | OperationError) -> TraceFile | SetAside | str:
    """Return a file by its last bytes; of a newer format its name and which one."""
    path = file.path
    if isinstance(tail, OperationError):
        return SetAside(path=path, reason=str(tail), may_pass=not isinstance(tail, _TooLong))
    if not tail:
        return SetAside(path=path, reason="empty: no bytes")
    try:
        footer = pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        return SetAside(path=path, reason=f"damaged: {str(error).splitlines()[0]}")
    metadata = footer.metadata or {}
    version = _number(metadata.get(_VERSION_KEY, b"1"))
    if version is not None and version > VERSION:
        return f"{path} (format {version:g})"
    columns = {footer.schema.column(at).path.split(".")[0] for at in range(footer.num_columns)}
    missing = sorted(_NEEDED - columns)
    stated = metadata.get(_ROUTER_KEY, b"").decode(errors="replace")
    directory = path.rpartition("/")[0].rpartition("/")[2]
    named = directory.removeprefix("router=") if directory.startswith("router=") else _NO_VALUE
    placed = unquote(named) if named != _NO_VALUE else ""
    router = stated or placed or None
    if missing:
        return SetAside(path=path, reason=f"not a trace file: no column {', '.join(missing)}")
    if router is None and "router" not in columns:
        reason = "names no router: no column router, and no directory router=NAME above it"
        return SetAside(path=path, reason=reason)
    if footer.num_rows == 0:
        return SetAside(path=path, reason="empty: no rows")
    unlike = _unlike(footer)
    if unlike:
        return SetAside(path=path, reason=f"not a trace file: {unlike}")
    sample = _number(metadata.get(_SAMPLE_KEY, b""))
    always = metadata.get(_ALWAYS_KEY, b"").decode(errors="replace")
    first_ns, last_ns = _times(footer)
    return TraceFile(
        path=path,
        rows=footer.num_rows,
        size_bytes=file.size_bytes,
        router=router,
        router_from="column"
        if "router" in columns
        else "directory"
        if placed == router
        else "metadata",
        sample=sample if sample is not None and _LEAST_SHARE <= sample <= 1 else None,
        always=frozenset(name for name in always.split(",") if name),
        host=metadata.get(_HOST_KEY, b"").decode(errors="replace"),
        mark=blake2b(tail[-_footer_bytes(tail) :], digest_size=16).hexdigest(),
        first_ns=first_ns,
        last_ns=last_ns,
        has_contexts={"context", "in_full"} <= columns,
    )


_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark and Hive write, and read, for a partition without a value."""

_LEAST_SHARE: Final = 1e-9
"""No router traces less: a smaller share is damage, and estimates by it would overflow."""

_INTEGER: Final = "a whole number"
_TEXT: Final = "text"
_FLAG: Final = "true or false"
_NOTHING: Final = "nothing but nulls"
_KINDS: Final = {"int64": _INTEGER, "int32": _INTEGER, "string": _TEXT, "bool": _FLAG}
_EXPECTED: Final = {column.name: column for column in COLUMNS}
_LOGICAL: Final = {"INT": _INTEGER, "STRING": _TEXT, "ENUM": _TEXT, "NULL": _NOTHING}
_PHYSICAL: Final = {"INT32": _INTEGER, "INT64": _INTEGER, "BOOLEAN": _FLAG}


def _unlike(footer: pq.FileMetaData) -> str:
    """Return which column has another type than trace files have, the type found and the one expected; "" for none.

    Integers may have any width that Spark reads as 64 bits, as other programs write them.
    """
    known: set[str] = set()
    for at in range(footer.num_columns):
        leaf = footer.schema.column(at)
        name = leaf.path.split(".")[0]
        column = _EXPECTED.get(name.lower())
        if column is None:
            continue
        if name != column.name or name in known:
            return f"column {column.name} is there more than once or in other letters: {name}"
        known.add(name)
        found = _kind_of(leaf)
        expected = _KINDS[column.type]
        if found != expected:
            return f"column {name} is {found}, expected {expected} ({column.type})"
    return ""


def _kind_of(leaf: pq.ColumnSchema) -> str:
    """Return what a column of a file holds: one of the kinds above, or a type by the name that Parquet gives it."""
    if leaf.max_repetition_level or "." in leaf.path:
        return "a list or a structure"
    logical = str(leaf.logical_type.type)
    if logical == "NONE":
        return _PHYSICAL.get(leaf.physical_type, str(leaf.physical_type))
    if logical == "INT" and leaf.physical_type == "INT64":
        described = json.loads(leaf.logical_type.to_json())
        if not described.get("isSigned", True):
            return "UINT64"
    return _LOGICAL.get(logical, logical)


def _times(footer: pq.FileMetaData) -> tuple[int | None, int | None]:
    """Return the least and the greatest `ts_ns`, where all row groups say so."""
    at = footer.schema.names.index("ts_ns")
    groups = [
        footer.row_group(number).column(at).statistics for number in range(footer.num_row_groups)
    ]
    if not groups or any(group is None or not group.has_min_max for group in groups):
        return None, None
    return min(group.min for group in groups), max(group.max for group in groups)


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

"""Finds the rows of one message in trace files, row group by row group, so that memory stays small."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vpnrouter import limits
from vpnrouter.explain.request import Event, UsageError, path_of
from vpnrouter.report.traces.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vpnrouter.report.traces.footers import TraceFile

_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\Z")
_COLUMN: Final = "trace_id"
_WANTED: Final = (
    "ts_ns",
    "router",
    "vpn",
    "event",
    "message_id",
    "topic",
    "mode",
    "size_bytes",
    "client",
    "endpoint",
    "bridge",
    "peer_router",
    "peer_vpn",
    "hops",
    "path",
    "reason",
    "since_ingress_ns",
    "origin_router",
    "origin_vpn",
    "origin_ts_ns",
    "partition",
)


class Found(NamedTuple):
    """The events of a message in the order of their times, how many files were searched, and what is to be said
    of those that were not.
    """

    events: list[Event]
    files: int
    notes: list[str]


def parse_trace_id(text: str) -> str:
    """Return the trace id in `text`: 32 hexadecimal digits, or a whole `traceparent`. Raises UsageError."""
    lowered = text.strip().lower()
    parent = _PARENT.fullmatch(lowered)
    if parent is not None:
        return parent[1]
    if _ID.fullmatch(lowered) is None or not lowered.strip("0"):
        raise UsageError(f"{text} is no trace id: 32 hexadecimal digits, or a traceparent")
    return lowered


def read_trace(paths: Sequence[Path], trace_id: str) -> Found:
    """Return the rows of `trace_id` (see parse_trace_id) in all trace files below `paths`.

    Raises OperationError where a path is not there, or a file is of a newer format.
    """
    inventory = take_inventory([str(path) for path in paths])
    files = inventory.files[: limits.EXPLAIN_TRACE_FILES]
    notes = [f"{one.path}: {one.reason}" for one in inventory.set_aside]
    if len(inventory.files) > len(files):
        notes.append(f"{len(inventory.files) - len(files):,} files were not searched")
    rows: list[tuple[int, int, Event]] = []
    for file in files:
        try:
            for event in _rows(file, trace_id):
                rows.append((event.ts_ns, len(rows), event))
                if len(rows) >= limits.EXPLAIN_EVENTS:
                    notes.append(f"more than {limits.EXPLAIN_EVENTS:,} rows; the rest is left out")
                    break
        except (pa.ArrowException, OSError) as error:
            notes.append(f"{file.path}: damaged: {str(error).splitlines()[0]}")
        if len(rows) >= limits.EXPLAIN_EVENTS:
            break
    rows.sort(key=lambda one: one[:2])
    return Found([event for _, _, event in rows], len(files), notes)


def _rows(file: TraceFile, trace_id: str) -> Iterator[Event]:
    with pq.ParquetFile(file.path) as parquet:
        names = parquet.schema_arrow.names
        if _COLUMN not in names:
            return
        columns = [name for name in _WANTED if name in names]
        at = parquet.metadata.schema.names.index(_COLUMN)
        for number in range(parquet.num_row_groups):
            if not _may_hold(parquet.metadata.row_group(number).column(at).statistics, trace_id):
                continue
            ids = parquet.read_row_group(number, columns=[_COLUMN]).column(0)
            matching = pc.equal(ids, pa.scalar(trace_id, ids.type))
            if not pc.any(matching).as_py():
                continue
            rows = parquet.read_row_group(number, columns=columns).filter(matching)
            for row in rows.to_pylist():
                yield _event(row, file.router or "")


def _may_hold(statistics: Any, trace_id: str) -> bool:  # noqa: ANN401 - pyarrow has no types
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(str(statistics.min) <= trace_id <= str(statistics.max))


def _event(row: dict[str, Any], router: str) -> Event:
    def text(name: str) -> str:
        return row.get(name) or ""

    def number(name: str, missing: int = -1) -> int:
        value = row.get(name)
        return missing if value is None else int(value)

    return Event(
        router=text("router") or router,
        event=text("event"),
        vpn=text("vpn"),
        topic=text("topic"),
        mode=text("mode"),
        client=text("client"),
        endpoint=text("endpoint"),
        bridge=text("bridge"),
        peer_router=text("peer_router"),
        peer_vpn=text("peer_vpn"),
        hops=number("hops", 0),
        path=path_of(text("path")),
        reason=text("reason"),
        ts_ns=number("ts_ns"),
        since_ingress_ns=number("since_ingress_ns"),
        size=number("size_bytes"),
        message_id=number("message_id", 0),
        origin_router=text("origin_router"),
        origin_vpn=text("origin_vpn"),
        origin_ts_ns=number("origin_ts_ns"),
        partition=number("partition"),
    )

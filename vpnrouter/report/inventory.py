"""Lists the trace files, which of them can be read, and over which range of time.

docs/traces.md and docs/report.md state the rules. Only complete files count: names that begin with "." or "_", and
directories so named, are skipped. A file that is empty, damaged or not a trace is set aside with its reason. A file
of a newer trace format is refused, and with it the whole run, because a guess at its meaning would give a wrong
report. A file below two of the given paths, and one with the same contents as another, is read once.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.errors import OperationError
from vpnrouter.trace.schema import (
    ALWAYS_KEY,
    COLUMNS,
    HOST_KEY,
    ROUTER_KEY,
    SAMPLE_KEY,
    VERSION,
    VERSION_KEY,
)
from vpnrouter.units import SECOND_NS

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FORMS: Final = (
    "2026-03-01, 2026-03-01T12:30, 2026-03-01T12:30:15+01:00, or 90m (so long ago; s, m, h, d, w)"
)

RANGE: Final = ".."
"""Stands between the two ends of a range."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """From `since_ns` up to but not including `until_ns`, nanoseconds since 1970 (UTC); None: no bound."""

    since_ns: int | None = None
    until_ns: int | None = None

    def days(self) -> tuple[str | None, str | None]:
        """Return the first and the last UTC date that has times of the span, "YYYY-MM-DD"; None: no bound."""
        first = None if self.since_ns is None else _date(self.since_ns)
        last = None if self.until_ns is None else _date(self.until_ns - 1)
        return first, last


def parse_time(text: str, now_ns: int) -> int:
    """Return a point of time, in nanoseconds since 1970: a date, a date and time (ISO 8601, UTC unless it says
    otherwise), or a duration before `now_ns`.

    Raises:
        OperationError: the text is none of these.
    """
    stripped = text.strip()
    ago = _AGO.fullmatch(stripped)
    if ago is not None:
        return now_ns - round(float(ago.group(1)) * _UNIT_S[ago.group(2)] * SECOND_NS)
    try:
        moment = dt.datetime.fromisoformat(stripped)
    except ValueError:
        raise OperationError(f"not a time: {text!r}; write {_FORMS}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1_000


def parse_span(since: str | None, until: str | None, now_ns: int) -> Span:
    """Return the span between two times as `parse_time` reads them; None leaves an end open.

    Raises:
        OperationError: a time is not one, or nothing lies between them.
    """
    begin = None if since is None else parse_time(since, now_ns)
    end = None if until is None else parse_time(until, now_ns)
    if begin is not None and end is not None and begin >= end:
        raise OperationError(f"nothing lies between {since} and {until}")
    return Span(since_ns=begin, until_ns=end)


def parse_range(text: str, now_ns: int) -> Span:
    """Return a span written as "SINCE..UNTIL"; an end that is left away is open, but not both.

    Raises:
        OperationError: it has another form, or nothing lies between.
    """
    first, dots, last = text.partition(RANGE)
    if not dots or not (first or last):
        raise OperationError(f"not a range of time: {text!r}; write SINCE{RANGE}UNTIL")
    return parse_span(first or None, last or None, now_ns)


def _date(time_ns: int) -> str:
    return (_EPOCH + dt.timedelta(seconds=time_ns // SECOND_NS)).date().isoformat()


_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def local_path(text: str) -> Path:
    """Return the path that a text names: a path of this machine, or its URI (`file:///traces`).

    Raises:
        OperationError: it is the URI of something else.
    """
    if not _URI.match(text) or Path(text).exists():
        return Path(text)
    scheme, host, path, _, _ = urlsplit(text)
    if scheme.lower() == "file" and host in {"", "localhost"}:
        return Path(unquote(path))
    raise OperationError(
        f"{text} is not on this machine: only paths and file:/// can be read and written; copy or mount"
        f" what is at {scheme}:"
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
    known. `first_ns` and `last_ns` bound its rows' times, if the footer has them.
    """

    path: Path
    rows: int
    size_bytes: int
    router: str | None
    router_from: Literal["column", "directory", "metadata"]
    sample: float | None
    always: frozenset[str] = frozenset()
    host: str = ""
    first_ns: int | None = None
    last_ns: int | None = None


OLDEST_NS: Final = 946_684_800 * SECOND_NS
"""The begin of the year 2000: a machine that starts without a clock writes times of 1970."""

AHEAD_NS: Final = 86_400 * SECOND_NS
"""A day: a clock that is set for another time zone is ahead by less."""


def credible_times() -> tuple[int, int]:
    """Return from when, and up to when, nanoseconds since 1970, the time of a row can be right, now."""
    return OLDEST_NS, time.time_ns() + AHEAD_NS


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The share of messages that a router traced which entered from `since_ns` up to but not including `until_ns`."""

    router: str
    since_ns: int
    until_ns: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """A file that is not part of the report, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The trace files of the given paths. `earlier` are files whose rows are all before the requested time: they show
    which links and subscriptions were up already.
    """

    files: tuple[TraceFile, ...]
    set_aside: tuple[SetAside, ...]
    earlier: tuple[TraceFile, ...] = ()

    @property
    def rows(self) -> int:
        """Trace rows in all readable files, from their footers."""
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all readable files on disk."""
        return sum(file.size_bytes for file in self.files)

    def times(self) -> tuple[int | None, int | None]:
        """Return the first and last time of a row; None if a footer lacks them, or has one that cannot be right."""
        if self.doubtful():
            return None, None
        firsts = [file.first_ns for file in self.files if file.first_ns is not None]
        lasts = [file.last_ns for file in self.files if file.last_ns is not None]
        return min(firsts, default=None), max(lasts, default=None)

    def doubtful(self) -> tuple[TraceFile, ...]:
        """Return the files that may hold rows with a time that cannot be right (`credible_times`)."""
        since_ns, until_ns = credible_times()
        return tuple(
            file
            for file in (*self.files, *self.earlier)
            if file.first_ns is None
            or file.last_ns is None
            or file.first_ns < since_ns
            or file.last_ns >= until_ns
        )

    def without(self, path: Path, reason: str) -> Inventory:
        """Return a copy of the inventory with the file `path` moved to those set aside."""
        return replace(
            self,
            files=tuple(file for file in self.files if file.path != path),
            earlier=tuple(file for file in self.earlier if file.path != path),
            set_aside=(*self.set_aside, SetAside(path=path, reason=reason)),
        )

    def without_any(self, aside: Iterable[SetAside]) -> Inventory:
        """Return a copy of the inventory with these files moved to those set aside, unless they are there."""
        known = {file.path for file in self.set_aside}
        inventory = self
        for file in aside:
            if file.path not in known:
                inventory = inventory.without(file.path, file.reason)
        return inventory

    def always(self) -> frozenset[str]:
        """Return the events that every router recorded of every message, by what all files say."""
        if not self.files:
            return frozenset()
        return frozenset.intersection(*(file.always for file in self.files))

    def hosts(self) -> dict[str, frozenset[str]]:
        """Return the machines of each router's files. A router is left out if one of its files names none."""
        by_router: dict[str, set[str]] = {}
        for file in self.files:
            if file.router is not None:
                by_router.setdefault(file.router, set()).add(file.host)
        return {router: frozenset(hosts) for router, hosts in by_router.items() if "" not in hosts}

    def sampling(self) -> dict[str, float]:
        """Return the sampling rate of each router all of whose files state one and the same."""
        rates: dict[str, set[float | None]] = {}
        for file in self.files:
            if file.router is not None:
                rates.setdefault(file.router, set()).add(file.sample)
        known: dict[str, float] = {}
        for router, router_rates in rates.items():
            (rate, *others) = router_rates
            if rate is not None and not others:
                known[router] = rate
        return known

    def rates(self) -> list[Rate]:
        """Return the sampling rates of all routers, for the times of which it is known.

        A router whose rate was changed has several; the new one begins with the first row of the first file that states
        it. Of a router whose files of two rates overlap in time, or do not say their times, nothing is known.
        """
        by_router: dict[str, list[TraceFile]] = {}
        for file in (*self.earlier, *self.files):
            if file.router is not None:
                by_router.setdefault(file.router, []).append(file)
        return [rate for router, files in by_router.items() for rate in _rates_of(router, files)]


_EVER: Final = (1 << 63) - 1


def _rates_of(router: str, files: list[TraceFile]) -> Iterator[Rate]:
    """Yield the rates of one router's files."""
    if len({file.sample for file in files}) == 1:
        stated = files[0].sample
        if stated is not None:
            yield Rate(router=router, since_ns=-_EVER, until_ns=_EVER, rate=stated)
        return
    if any(file.first_ns is None or file.last_ns is None for file in files):
        return
    ordered = sorted(files, key=lambda file: file.first_ns or 0)
    runs = [list(run) for _, run in groupby(ordered, key=lambda file: file.sample)]
    begins = [run[0].first_ns or 0 for run in runs]
    ends = [max(file.last_ns or 0 for file in run) for run in runs]
    if any(end >= begin for end, begin in zip(ends, begins[1:], strict=False)):
        return
    bounds = [-_EVER, *begins[1:], _EVER]
    for run, (since_ns, until_ns) in zip(runs, pairwise(bounds), strict=True):
        if run[0].sample is not None:
            yield Rate(router=router, since_ns=since_ns, until_ns=until_ns, rate=run[0].sample)


def take_inventory(
    roots: Sequence[Path], *, leave_out: Path | None = None, span: Span | None = None
) -> Inventory:
    """Read the footer of every trace file under `roots` (directories or single files), but of none under
    `leave_out`. Files that lie outside `span` with all their rows are not among those to read.

    Raises:
        OperationError: a root does not exist, or a file is of a newer trace format.
    """
    return read_footers(_trace_files(roots, leave_out), span)


def read_footers(
    paths: Iterable[Path], span: Span | None = None, known: Iterable[TraceFile] = ()
) -> Inventory:
    """Read the footers of these trace files, as `take_inventory` does. A file with the same contents as one of `known`,
    or as another one, is set aside.

    Raises:
        OperationError: a file is of a newer trace format.
    """
    files: list[TraceFile] = []
    earlier: list[TraceFile] = []
    set_aside: list[SetAside] = []
    newer: list[str] = []
    bounds = span or Span()
    contents = _Contents(known)
    for path in paths:
        try:
            file = _read_footer(path)
        except _NewerFormatError as error:
            newer.append(str(error))
            continue
        if isinstance(file, SetAside):
            set_aside.append(file)
            continue
        same = contents.same(file)
        if same is not None:
            set_aside.append(
                SetAside(path=path, reason=f"has the contents of {same}, which count once")
            )
        elif _is_before(file, bounds.since_ns):
            earlier.append(file)
        elif not _is_after(file, bounds.until_ns):
            files.append(file)
    if newer:
        raise OperationError(
            f"written by a newer vpnrouter than this one (it reads up to format {VERSION}): "
            + ", ".join(newer)
        )
    return Inventory(files=tuple(files), set_aside=tuple(set_aside), earlier=tuple(earlier))


class _Contents:
    """The files known so far: their contents are compared only where the footers have the same figures."""

    def __init__(self, known: Iterable[TraceFile]) -> None:
        self._alike: dict[tuple[object, ...], list[Path]] = {}
        self._digests: dict[Path, bytes] = {}
        for file in known:
            self._alike.setdefault(self._figures(file), []).append(file.path)

    def same(self, file: TraceFile) -> Path | None:
        """Return another file with these contents, None if there is none; then this one is known."""
        alike = self._alike.setdefault(self._figures(file), [])
        if any(path == file.path for path in alike):
            return None
        for path in alike:
            if self._digest(path) == self._digest(file.path) != b"":
                return path
        alike.append(file.path)
        return None

    @staticmethod
    def _figures(file: TraceFile) -> tuple[object, ...]:
        return file.router, file.rows, file.size_bytes, file.first_ns, file.last_ns

    def _digest(self, path: Path) -> bytes:
        """Return a digest of the contents; b"" of a file that is gone, whose rows were read earlier."""
        found = self._digests.get(path)
        if found is None:
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").digest()
            except OSError:
                found = b""
            self._digests[path] = found
        return found


class _NewerFormatError(Exception):
    """A file of a trace format that this program does not know."""


def _read_footer(path: Path) -> TraceFile | SetAside:
    """Return the file by its footer."""
    try:
        footer = pq.read_metadata(path)
        size_bytes = path.stat().st_size
    except (pa.ArrowException, OSError) as error:
        return SetAside(path=path, reason=_damage(path, error))
    metadata = footer.metadata or {}
    version = _number(metadata.get(_VERSION_KEY, b"1"))
    if version is not None and version > VERSION:
        raise _NewerFormatError(f"{path} (format {version:g})")
    columns = {footer.schema.column(at).path.split(".")[0] for at in range(footer.num_columns)}
    missing = sorted(_NEEDED - columns)
    stated = metadata.get(_ROUTER_KEY, b"").decode(errors="replace")
    directory = path.parent.name
    placed = unquote(directory.removeprefix("router=")) if directory.startswith("router=") else ""
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
        size_bytes=size_bytes,
        router=router,
        router_from="column"
        if "router" in columns
        else "directory"
        if placed == router
        else "metadata",
        sample=sample if sample is not None and 0 < sample <= 1 else None,
        always=frozenset(name for name in always.split(",") if name),
        host=metadata.get(_HOST_KEY, b"").decode(errors="replace"),
        first_ns=first_ns,
        last_ns=last_ns,
    )


_INTEGER: Final = "a whole number"
_TEXT: Final = "text"
_NOTHING: Final = "nothing but nulls"
_KINDS: Final = {"int64": _INTEGER, "int32": _INTEGER, "string": _TEXT}
_EXPECTED: Final = {column.name: column for column in COLUMNS}
_LOGICAL: Final = {"INT": _INTEGER, "STRING": _TEXT, "ENUM": _TEXT, "NULL": _NOTHING}
_PHYSICAL: Final = {"INT32": _INTEGER, "INT64": _INTEGER}


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


def _is_before(file: TraceFile, since_ns: int | None) -> bool:
    return since_ns is not None and file.last_ns is not None and file.last_ns < since_ns


def _is_after(file: TraceFile, until_ns: int | None) -> bool:
    return until_ns is not None and file.first_ns is not None and file.first_ns >= until_ns


def _trace_files(roots: Sequence[Path], leave_out: Path | None) -> Iterator[Path]:
    omitted = leave_out.resolve() if leave_out is not None else None
    known_paths: set[Path] = set()
    for root in roots:
        if not root.exists():
            raise OperationError(f"no such trace directory or file: {root}")
        if root.is_dir():
            files = sorted(path for path in root.rglob("*.parquet") if not _hidden(path, root))
        else:
            files = [root]
        for path in files:
            real = path.resolve()
            if omitted is not None and real.is_relative_to(omitted):
                continue
            if real not in known_paths and path.is_file():
                known_paths.add(real)
                yield real


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(root).parts)


def _damage(path: Path, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        # Arrow's own text names the path once more.
        return f"cannot be read: {os.strerror(error.errno)}"
    if path.stat().st_size == 0:
        return "empty: no bytes"
    return f"damaged: {str(error).splitlines()[0]}"


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

"""Keeps the digests of each day's trace files beside a report, so that the next report reads only days that changed.

A day is what is in directories of its date (`date=YYYY-MM-DD`). Its digests are those of a list of files: where files
came late, went, or have another size, the day is digested anew, and else its trace files are not even opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from vpnrouter.errors import OperationError
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.digests.counts import standing_at
from vpnrouter.report.digests.digest import Digests
from vpnrouter.report.digests.merge import merged
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.engine.failures import DamagedTraceFile, spark_errors
from vpnrouter.report.engine.progress import Progress, watched
from vpnrouter.report.engine.remote import escaped
from vpnrouter.report.jobs import SHORT_ROWS, digested_files, without_damaged
from vpnrouter.report.output import parquet_of
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.footers import SetAside, TraceFile
from vpnrouter.report.traces.inventory import Inventory, date_of, read_footers, trace_files
from vpnrouter.report.traces.rows import wrong_times
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import Storage, Storages, StoredFile, below
from vpnrouter.units import DAY_NS, SECOND_NS

FOLDER: Final = "days"
"""Directory of the digests under a report's output directory."""

MANIFEST: Final = "day.json"
UNDATED: Final = "undated"
"""In the place of a date for files that are in no directory of one."""

WIDTH_NS: Final = 30 * 60 * SECOND_NS
"""Stretches of a day's digests: those of a report on one day, and a part of all longer ones."""

_FORMAT: Final = 2


@dataclass(frozen=True, kw_only=True)
class Day:
    """What is kept of a day: the list of its trace files, what these are, notes, and the file of each digest."""

    date: str
    listed: tuple[StoredFile, ...]
    inventory: Inventory
    notes: tuple[str, ...]
    digests: Mapping[str, StoredFile]


class DayStore:
    """The days under `output`/days on `storage`."""

    def __init__(self, output: str, storage: Storage) -> None:
        self._folder = below(output, FOLDER)
        self._storage = storage

    def find(self, date: str, listed: Sequence[StoredFile]) -> Day | None:
        """Return what is kept of a day, if it is of these files, all of them read, and of this version."""
        path = below(self._folder_of(date), MANIFEST)
        if not self._storage.exists(path):
            return None
        try:
            day = _day_of(date, json.loads(self._storage.read(path)), self._folder_of(date))
        except (OperationError, ValueError, KeyError, TypeError, AttributeError):
            return None
        was_read = not any(file.may_pass for file in day.inventory.set_aside)
        return day if was_read and day.listed == tuple(listed) and self._is_whole(day) else None

    def _is_whole(self, day: Day) -> bool:
        """Return whether all digests of a day are there, as long as they were written."""
        if not day.digests:
            return True
        there = {
            _name_of(file.path): file.size_bytes
            for file in self._storage.files(self._folder_of(day.date))
        }
        return all(there.get(_name_of(path)) == size for path, size in day.digests.values())

    def keep(
        self,
        date: str,
        listed: Sequence[StoredFile],
        inventory: Inventory,
        notes: Sequence[str],
        tables: Mapping[str, pa.Table],
    ) -> Day:
        """Keep the digests of a day in the place of those that were there; a crash leaves the old ones or the new ones.

        Raises:
            OperationError: they cannot be written.
        """
        folder = self._folder_of(date)
        mark = hashlib.sha256(repr((listed, _FORMAT)).encode()).hexdigest()[:12]
        digests = {}
        for name, table in tables.items():
            data = parquet_of(table)
            digests[name] = StoredFile(below(folder, f"{name}-{mark}.parquet"), len(data))
            self._storage.write(digests[name].path, data)
        day = Day(
            date=date,
            listed=tuple(listed),
            inventory=inventory,
            notes=tuple(notes),
            digests=digests,
        )
        self._storage.write(below(folder, MANIFEST), json.dumps(_manifest_of(day)).encode())
        kept = {_name_of(file.path) for file in digests.values()}
        for file in self._storage.files(folder):
            if _name_of(file.path) not in kept:
                self._storage.remove(file.path)
        return day

    def _folder_of(self, date: str) -> str:
        return below(self._folder, date if date == UNDATED else f"date={date}")


def _manifest_of(day: Day) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "listed": day.listed,
        "files": [{**asdict(file), "always": sorted(file.always)} for file in day.inventory.files],
        "set_aside": [asdict(file) for file in day.inventory.set_aside],
        "notes": day.notes,
        "digests": {name: (_name_of(path), size) for name, (path, size) in day.digests.items()},
    }


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _day_of(date: str, manifest: dict[str, Any], folder: str) -> Day:
    """Return the day of a manifest in a directory.

    Raises:
        ValueError: it is of another format.
        KeyError, TypeError, AttributeError: it is damaged.
    """
    if manifest["format"] != _FORMAT:
        raise ValueError(f"format {manifest['format']}")
    files = tuple(
        TraceFile(**{**file, "always": frozenset(file["always"])}) for file in manifest["files"]
    )
    return Day(
        date=date,
        listed=tuple(StoredFile(path, size) for path, size in manifest["listed"]),
        inventory=Inventory(
            files=files, set_aside=tuple(SetAside(**file) for file in manifest["set_aside"])
        ),
        notes=tuple(manifest["notes"]),
        digests={
            name: StoredFile(below(folder, file), size)
            for name, (file, size) in manifest["digests"].items()
        },
    )


def require_whole_days(*spans: Span | None) -> None:
    """Refuse spans that begin or end within a day.

    Raises:
        OperationError: one does.
    """
    for span in spans:
        for time_ns in (span.since_ns, span.until_ns) if span is not None else ():
            if time_ns is not None and time_ns % DAY_NS:
                raise OperationError(
                    "--incremental is of whole days: give times as dates (2026-11-25), or in days (7d)"
                )


class Days:
    """Makes and finds the digests of days for a request.

    Raises:
        OperationError: the request's times are not whole days.
    """

    def __init__(
        self,
        spark: SparkSession,
        request: ReportRequest,
        store: DayStore,
        traces: Storages,
        progress: Progress,
    ) -> None:
        require_whole_days(request.span, request.against)
        self._spark = spark
        self._request = request
        self._store = store
        self._traces = traces
        self._progress = progress
        self._files: dict[str, list[StoredFile]] = {}
        self._days: dict[str, Day] = {}
        self._anew: set[str] = set()

    def take(self) -> None:
        """List the trace files, and digest each day whose files are not those that its digests are of.

        Raises:
            OperationError: a place cannot be listed or written, a file is of a newer trace format, or Spark failed.
        """
        self._progress.stage("trace files")
        request = self._request
        listed = trace_files(request.traces, request.output, self._until(), self._traces)
        for file in listed:
            self._files.setdefault(date_of(file.path) or UNDATED, []).append(file)
        changed = []
        for date, files in sorted(self._files.items()):
            files.sort()
            day = self._store.find(date, files)
            if day is None or not self._have_originals(day):
                changed.append(date)
            else:
                self._days[date] = day
        self._require_dates()
        for date in changed:
            self._days[date] = self._made(date, self._files[date])

    def _have_originals(self, day: Day) -> bool:
        """Return whether the files that count for copies among those of a day are still there."""
        there = {file.path for files in self._files.values() for file in files}
        originals = {file.same_as for file in day.inventory.set_aside if file.same_as}
        return originals <= there

    def _require_dates(self) -> None:
        """Refuse files without a date where only some days are asked for.

        Raises:
            OperationError: there is one; it is named.
        """
        request = self._request
        if UNDATED in self._files and (request.span != Span() or request.against is not None):
            one = self._files[UNDATED][0].path
            raise OperationError(
                f"--incremental tells the day of a file by a directory date=YYYY-MM-DD, and {one} is in none:"
                " leave out --since, --until and --against"
            )

    def _until(self) -> Span:
        """Return up to when files are needed; those before tell which links and subscriptions were up."""
        spans = [self._request.span, *([self._request.against] if self._request.against else [])]
        ends = [span.until_ns for span in spans]
        known = [end for end in ends if end is not None]
        return Span(until_ns=max(known) if len(known) == len(ends) else None)

    def _made(self, date: str, files: Sequence[StoredFile]) -> Day:
        known = [file for day in self._days.values() for file in day.inventory.files]
        inventory = read_footers(files, known=known, storages=self._traces)

        def work(left: Inventory) -> tuple[dict[str, pa.Table], list[str]]:
            if not left.files:
                return {}, []
            with watched(self._spark, self._progress):
                with digested_files(self._spark, left, Span(), WIDTH_NS, self._progress) as found:
                    digests, _, _ = found
                    tables = {name: frame.toArrow() for name, frame in digests.frames.items()}
                return tables, wrong_times(self._spark, left, digests.rows)

        (tables, notes), inventory = without_damaged(inventory, work)
        return self._store.keep(date, files, inventory, notes, tables)

    def inventory(self, span: Span) -> Inventory:
        """Return the files of the days in a span."""
        days = self._in(span)
        return Inventory(
            files=tuple(file for day in days for file in day.inventory.files),
            set_aside=tuple(file for day in days for file in day.inventory.set_aside),
        )

    def analyse(self, request: ReportRequest, before: Analysis | None = None) -> Analysis:
        """Return the analysis of the days in the span of a request; `before` is that of a time to compare with. A day
        whose digests turn out to be damaged is digested anew.

        Raises:
            OperationError: Spark failed.
        """
        while True:
            try:
                return self._analysed(request, before)
            except DamagedTraceFile as damaged:
                date = self._date_of(damaged.path)
                if date is None:
                    raise
                self._days[date] = self._made(date, self._files[date])

    def _date_of(self, path: str) -> str | None:
        """Return the day that has this digest, None where none has. No digest is made anew twice."""
        for date, day in self._days.items():
            if date not in self._anew and any(path == file.path for file in day.digests.values()):
                self._anew.add(date)
                return date
        return None

    def _analysed(self, request: ReportRequest, before: Analysis | None) -> Analysis:
        days = self._in(request.span)
        with (
            spark_errors(),
            watched(self._spark, self._progress),
            self._merged(days, request) as found,
        ):
            digests, width_ns = found
            analysis = analyse(
                self._spark,
                digests,
                width_ns,
                self._progress.stage,
                request.mesh,
                before,
                request.questions,
            )
        analysis.notes[:0] = [note for day in days for note in day.notes]
        return analysis

    @contextmanager
    def _merged(self, days: Sequence[Day], request: ReportRequest) -> Iterator[tuple[Digests, int]]:
        self._progress.stage("days")
        parts = {name: self._frame(name, days) for name in DIGESTS}
        since_ns = request.span.since_ns
        if since_ns is not None:
            # There is one: a report without a file is refused.
            first = days[0].date
            earlier = [day for date, day in sorted(self._days.items()) if date < first]
            parts["states"] = standing_at(self._frame("states", [*earlier, *days]), since_ns)
        inventory = self.inventory(request.span)
        small = inventory.rows < SHORT_ROWS
        with merged(parts, inventory.hosts(), WIDTH_NS, small=small) as found:
            yield found

    def _frame(self, name: str, days: Sequence[Day]) -> DataFrame:
        paths = [day.digests[name].path for day in days if name in day.digests]
        if not paths:
            # As an Arrow table, Spark takes it without a Python process of its own.
            empty = to_arrow_schema(DIGESTS[name]).empty_table()
            return self._spark.createDataFrame(empty, DIGESTS[name])
        return self._spark.read.schema(DIGESTS[name]).parquet(*map(escaped, paths))

    def _in(self, span: Span) -> list[Day]:
        first, last = span.days()
        return [
            day
            for date, day in sorted(self._days.items())
            if date == UNDATED or ((first or date) <= date <= (last or date))
        ]

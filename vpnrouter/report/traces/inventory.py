"""Lists the trace files, which of them can be read, and over which range of time.

docs/traces.md and docs/report.md state the rules. Only complete files count: names that begin with "." or "_", and
directories so named, are skipped. A file that is empty, damaged or not a trace is set aside with its reason. A file
of a newer trace format is refused, and with it the whole run, because a guess at its meaning would give a wrong
report. A file below two of the given places, and one with the same contents as another, is read once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from vpnrouter.errors import OperationError
from vpnrouter.report.traces.footers import SetAside, TraceFile, footers
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import Storages, StoredFile, is_uri, lies_below, without_links
from vpnrouter.trace.schema import VERSION
from vpnrouter.units import SECOND_NS

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

    def without(self, path: str, reason: str) -> Inventory:
        """Return a copy of the inventory with the file `path`, whose contents could not be read, moved to those set
        aside.
        """
        return replace(
            self,
            files=tuple(file for file in self.files if file.path != path),
            earlier=tuple(file for file in self.earlier if file.path != path),
            set_aside=(*self.set_aside, SetAside(path=path, reason=reason, may_pass=is_uri(path))),
        )

    def without_any(self, aside: Iterable[SetAside]) -> Inventory:
        """Return a copy of the inventory with these files moved to those set aside, unless they are there."""
        known = {file.path for file in self.set_aside}
        inventory = self
        for file in aside:
            if file.path not in known:
                inventory = inventory.without(file.path, file.reason)
        return inventory

    def always(self) -> dict[str, frozenset[str]]:
        """Return the events that each router recorded of every message, by what all its files say; no router without.

        A file that names no router may be of any.
        """
        anybody = [file.always for file in self.files if file.router is None]
        by_router: dict[str, list[frozenset[str]]] = {}
        for file in self.files:
            if file.router is not None:
                by_router.setdefault(file.router, [*anybody]).append(file.always)
        known = {router: frozenset.intersection(*said) for router, said in by_router.items()}
        return {router: events for router, events in known.items() if events}

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
    roots: Sequence[str],
    *,
    leave_out: str | None = None,
    span: Span | None = None,
    storages: Storages | None = None,
) -> Inventory:
    """Read the footer of every trace file under `roots` (directories or single files), but of none under
    `leave_out`. Files that lie outside `span` with all their rows are not among those to read; those in a directory
    of a later date (`date=…`) are not looked at.

    Raises:
        OperationError: a root does not exist, cannot be listed or is below `leave_out`, or a file is of a newer trace
            format.
    """
    bounds = span or Span()
    found = trace_files(roots, leave_out, bounds, storages or Storages())
    return read_footers(found, bounds, storages=storages)


def read_footers(
    files: Iterable[StoredFile],
    span: Span | None = None,
    known: Iterable[TraceFile] = (),
    storages: Storages | None = None,
) -> Inventory:
    """Read the footers of these trace files, as `take_inventory` does. A file with the same contents as one of `known`,
    or as another one, is set aside.

    Raises:
        OperationError: a file is of a newer trace format.
    """
    places = storages or Storages()
    sound: list[TraceFile] = []
    earlier: list[TraceFile] = []
    set_aside: list[SetAside] = []
    newer: list[str] = []
    bounds = span or Span()
    contents = _Contents(known, places)
    for storage, some in groupby(files, key=lambda file: places.of(file.path)):
        for file in footers(storage, list(some), newer):
            if isinstance(file, SetAside):
                set_aside.append(file)
                continue
            same = contents.same(file)
            if same is not None:
                reason = f"has the contents of {same}, which count once"
                set_aside.append(SetAside(path=file.path, reason=reason, same_as=same))
            elif _is_before(file, bounds.since_ns):
                earlier.append(file)
            elif not _is_after(file, bounds.until_ns):
                sound.append(file)
    if newer:
        raise OperationError(
            f"written by a newer vpnrouter than this one (it reads up to format {VERSION}): "
            + ", ".join(newer)
        )
    return Inventory(files=tuple(sound), set_aside=tuple(set_aside), earlier=tuple(earlier))


class _Contents:
    """The files known so far: their contents are compared only where the footers are the same."""

    def __init__(self, known: Iterable[TraceFile], storages: Storages) -> None:
        self._storages = storages
        self._alike: dict[tuple[object, ...], list[str]] = {}
        self._digests: dict[str, str] = {}
        for file in known:
            self._alike.setdefault(self._figures(file), []).append(file.path)

    def same(self, file: TraceFile) -> str | None:
        """Return another file with these contents, None if there is none; then this one is known."""
        alike = self._alike.setdefault(self._figures(file), [])
        if any(path == file.path for path in alike):
            return None
        for path in alike:
            if self._digest(path) == self._digest(file.path) != "":
                return path
        alike.append(file.path)
        return None

    @staticmethod
    def _figures(file: TraceFile) -> tuple[object, ...]:
        return file.router, file.rows, file.size_bytes, file.mark

    def _digest(self, path: str) -> str:
        """Return a digest of the contents; "" of a file that is gone, whose rows were read earlier."""
        found = self._digests.get(path)
        if found is None:
            found = self._storages.of(path).digest(path)
            self._digests[path] = found
        return found


def _is_before(file: TraceFile, since_ns: int | None) -> bool:
    return since_ns is not None and file.last_ns is not None and file.last_ns < since_ns


def _is_after(file: TraceFile, until_ns: int | None) -> bool:
    return until_ns is not None and file.first_ns is not None and file.first_ns >= until_ns


_DATE: Final = re.compile(r"/date=(\d{4}-\d{2}-\d{2})/")


def date_of(path: str) -> str | None:
    """Return the UTC date in the path of a trace file, "YYYY-MM-DD"."""
    found = _DATE.search(path)
    return None if found is None else found[1]


def trace_files(
    roots: Sequence[str], leave_out: str | None, span: Span, storages: Storages
) -> Iterator[StoredFile]:
    """Yield the trace files under `roots`, as `take_inventory` finds them.

    Raises:
        OperationError: a root does not exist, cannot be listed or is below `leave_out`.
    """
    omitted = without_links(leave_out) if leave_out is not None else None
    _, last_day = span.days()
    known_paths: set[str] = set()
    for root in roots:
        if omitted is not None and lies_below(without_links(root), omitted):
            raise OperationError(
                f"the traces {root} are in the output directory, where nothing is read: "
                "choose another --output"
            )
        for file in storages.of(root).files(root):
            path = file.path
            if path in known_paths or (omitted is not None and lies_below(path, omitted)):
                continue
            date = date_of(path)
            if last_day is not None and date is not None and date > last_day:
                continue
            known_paths.add(path)
            yield file

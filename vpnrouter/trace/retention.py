"""Which complete trace files of one router go away: those too old, and the oldest beyond so many bytes.

Looks at nothing but `DIR/date=YYYY-MM-DD/router=NAME/part-NUMBER-NUMBER.parquet`: what another router
wrote, what is being written, and what anybody else put there stays. A file goes away as a whole, by
unlinking it: who has it open reads on.

Work is done in steps, so that events wait for a small part of it only. Belongs to the writer's thread.
"""

from __future__ import annotations

import bisect
import contextlib
import datetime as dt
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from vpnrouter import limits
from vpnrouter.trace.schema import reason_of
from vpnrouter.units import DAY_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATE: Final = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_PART: Final = re.compile(r"part-([0-9]{1,19})-([0-9]{1,19})\.parquet")


class _File(NamedTuple):
    """A complete file, ordered by age: time of its first row and serial number, from its name."""

    first_ns: int
    serial: int
    name: str
    size_bytes: int
    time_ns: int
    """Before this moment nothing in it happened, nor was it complete: the later of row and file time."""


class Keeper(Protocol):
    """Whoever needs files for a while longer."""

    def holds(self, date: str, name: str) -> bool:
        """Return whether a file has to stay."""

    def removed(self, date: str, name: str) -> None:
        """Take note that a file has gone."""


class Retention:
    """Removes files of one router.

    Args:
        directory: DIR.
        router: NAME.
        max_age_ns: age from which a file goes away, nanoseconds; 0 for never. Counted from the time
            of its first row or its completion, whichever is later.
        max_bytes: bytes of all files together; the oldest go away beyond. 0 for no bound. The
            newest file stays, however large it is.
        step: files looked at or removed in one `step()`.
        uploader: says which files are to stay until they are uploaded, and is told which have gone.
    """

    def __init__(
        self,
        directory: Path,
        router: str,
        max_age_ns: int,
        max_bytes: int,
        step: int = limits.TRACE_RETENTION_STEP,
        uploader: Keeper | None = None,
    ) -> None:
        self._directory = directory
        self._router = router
        self._folder = ""
        self._max_age_ns = max_age_ns
        self._max_bytes = max_bytes
        self._step = step
        self._uploader = uploader
        # Bytes by date; None until they were counted, and again when a new date begins.
        self._bytes_by_date: dict[str, int] | None = None
        self._sweep: Iterator[None] | None = None
        self._again = max_age_ns > 0 or max_bytes > 0
        self._refused: set[str] = set()
        self.removed = 0
        """Files removed."""
        self.removed_bytes = 0
        """Their bytes."""
        self.errors: dict[str, int] = {}
        """Times that a file or a directory could not be looked at or removed, by reason."""
        self.last_error = ""
        """The last error, empty for none."""

    def completed(self, date: str, size_bytes: int) -> None:
        """Record one more complete file under `date=…`."""
        self._again = self._max_age_ns > 0 or self._max_bytes > 0
        bytes_by_date = self._bytes_by_date
        if bytes_by_date is None:
            return
        if date in bytes_by_date:
            bytes_by_date[date] += size_bytes
        elif self._sweep is None:
            # Once a day what others removed by hand is noticed.
            self._bytes_by_date = None
        else:
            bytes_by_date[date] = size_bytes

    def step(self, now_ns: int) -> bool:
        """Do a bounded part of the work.

        Args:
            now_ns: wall clock, nanoseconds since 1970.

        Returns:
            Whether there is more to do at once.
        """
        if self._sweep is None:
            if not self._again:
                return False
            if not self._folder:
                # Imported here, in the writer's thread: it takes longer than the router to start.
                from vpnrouter.trace.parquet import folder_of

                self._folder = folder_of(self._router)
            self._again = False
            self._refused = set()
            self._sweep = self._work(now_ns)
        for _ in range(self._step):
            try:
                next(self._sweep)
            except StopIteration:
                self._sweep = None
                break
            except OSError as error:
                # Of this sweep nothing is left; the next file begins another.
                self._failed(error)
                self._sweep = None
                break
        return self._sweep is not None or self._again

    def _work(self, now_ns: int) -> Iterator[None]:
        """Do one sweep; yields after each file."""
        if self._max_age_ns:
            yield from self._by_age(now_ns)
        if self._max_bytes:
            if self._bytes_by_date is None:
                yield from self._count()
            yield from self._by_bytes(now_ns)

    def _by_age(self, now_ns: int) -> Iterator[None]:
        limit_ns = now_ns - self._max_age_ns
        for date in self._dates():
            # No file of a date is older than the date.
            if _begin_ns(date) > limit_ns:
                return
            late = []
            for file in self._files(date):
                if file is not None and file.time_ns <= limit_ns:
                    if self._uploader is None:
                        self._remove(date, file)
                    else:
                        late.append(file)
                yield
            # Of those that are to be uploaded the oldest go first.
            for file in sorted(late):
                self._remove(date, file)
                yield
            self._tidy(date, now_ns)

    def _count(self) -> Iterator[None]:
        bytes_by_date: dict[str, int] = {}
        self._bytes_by_date = bytes_by_date
        for date in self._dates():
            total = 0
            for file in self._files(date):
                total += 0 if file is None else file.size_bytes
                yield
            bytes_by_date[date] = total

    def _by_bytes(self, now_ns: int) -> Iterator[None]:
        bytes_by_date = self._bytes_by_date or {}
        for date in sorted(bytes_by_date):
            while sum(bytes_by_date.values()) > self._max_bytes:
                newest: _File | None = None
                oldest: list[_File] = []
                total = 0
                for file in self._files(date):
                    if file is not None:
                        total += file.size_bytes
                        newest = file if newest is None else max(newest, file)
                        if not self._holds(date, file):
                            bisect.insort(oldest, file)
                        del oldest[limits.TRACE_RETENTION_REMOVALS :]
                    yield
                bytes_by_date[date] = total
                removed = 0
                for file in sorted(oldest):
                    fits = sum(bytes_by_date.values()) <= self._max_bytes
                    if fits or (file == newest and date == max(bytes_by_date)):
                        break
                    removed += self._remove(date, file)
                    yield
                if removed == 0 or removed < len(oldest):
                    break
            if bytes_by_date[date] == 0:
                del bytes_by_date[date]
                self._tidy(date, now_ns)

    def _dates(self) -> list[str]:
        return _dates(self._directory, self._folder)

    def _files(self, date: str) -> Iterator[_File | None]:
        return _files(self._place(date))

    def _remove(self, date: str, file: _File) -> bool:
        """Remove one file. Returns False when the system refuses; it is not tried again in this sweep."""
        path = self._place(date) / file.name
        if str(path) in self._refused or self._holds(date, file):
            return False
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._refused.add(str(path))
            self._failed(error)
            return False
        if self._uploader is not None:
            self._uploader.removed(date, file.name)
        self.removed += 1
        self.removed_bytes += file.size_bytes
        if self._bytes_by_date is not None and date in self._bytes_by_date:
            self._bytes_by_date[date] = max(0, self._bytes_by_date[date] - file.size_bytes)
        return True

    def _holds(self, date: str, file: _File) -> bool:
        return self._uploader is not None and self._uploader.holds(date, file.name)

    def _tidy(self, date: str, now_ns: int) -> None:
        """Remove the directories of a past date when they are empty."""
        # Under today's date another router may be about to make its own.
        if _begin_ns(date) + 2 * DAY_NS > now_ns:
            return
        place = self._place(date)
        # Not empty is the usual case, and no error.
        with contextlib.suppress(OSError):
            place.rmdir()
            place.parent.rmdir()

    def _place(self, date: str) -> Path:
        return self._directory / f"date={date}" / self._folder

    def _failed(self, error: OSError) -> None:
        reason = reason_of(error)
        self.errors[reason] = self.errors.get(reason, 0) + 1
        self.last_error = f"{reason}: {error}"


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _begin_ns(date: str) -> int:
    """Return midnight (UTC) at which a date begins, nanoseconds since 1970."""
    epoch = dt.date(1970, 1, 1)
    return (dt.date.fromisoformat(date) - epoch).days * DAY_NS


def complete_files(directory: Path, folder: str) -> Iterator[tuple[str, str, int]]:
    """Yield date, name and bytes of the complete files of the router that has this folder under each date.

    Raises:
        OSError: a directory cannot be read.
    """
    for date in _dates(directory, folder):
        for file in _files(directory / f"date={date}" / folder):
            if file is not None:
                yield date, file.name, file.size_bytes


def _dates(directory: Path, folder: str) -> list[str]:
    """Return the dates that have a directory of a router, oldest first."""
    dates = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                match = _DATE.fullmatch(entry.name)
                if match and _is_date(match[1]) and entry.is_dir(follow_symlinks=False):
                    place = directory / entry.name / folder
                    if place.is_dir() and not place.is_symlink():
                        dates.append(match[1])
    except FileNotFoundError:
        return []
    return sorted(dates)


def _files(place: Path) -> Iterator[_File | None]:
    """Yield the complete files of a directory, in no order; None for any other file."""
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                match = _PART.fullmatch(entry.name)
                if match is None or not entry.is_file(follow_symlinks=False):
                    yield None
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                first_ns = int(match[1])
                yield _File(
                    first_ns,
                    int(match[2]),
                    entry.name,
                    status.st_size,
                    max(first_ns, status.st_mtime_ns),
                )
    except FileNotFoundError:
        return

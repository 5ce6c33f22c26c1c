"""Takes blocks from a recorder and keeps trace files: when to begin one, when to finish it, what to
do when the disk does not take it.

Nothing that happens here reaches the router: what cannot be written is dropped, counted by
reason, and the next block is tried afresh. Files appear under their names only when complete.

Threads: `Writer` belongs to one thread, which is not the router's. In a running router it is in a process of its own
(`vpnrouter.server.trace_process`). `WriterThread` is the router's thread that drives it, and its methods are called
from the router's own thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.trace import schema
from vpnrouter.trace.schema import BUFFER_FULL, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from vpnrouter.trace.parquet import PartFile
    from vpnrouter.trace.recorder import Block, Recorder
    from vpnrouter.trace.retention import Retention

FLUSH_NS: Final = 10 * 10**9
"""Age at which a file is finished, by default: reports lag by as much, files multiply by less."""

FILE_ROWS: Final = 4_000_000
"""Rows of one file, by default: about `limits.TRACE_FILE_BYTES` of events that compress badly."""


class Uploads(NamedTuple):
    """Counts of the uploads of complete files."""

    files: int = 0
    size_bytes: int = 0
    """Bytes of the files that were uploaded."""
    pending: int = 0
    """Files that are to be uploaded."""
    pending_bytes: int = 0
    failures: Mapping[str, int] = MappingProxyType({})
    """Attempts that failed, by reason."""
    lost: int = 0
    """Files that retention removed, or somebody else, before they were uploaded."""
    lost_bytes: int = 0
    last_error: str = ""


class Status(NamedTuple):
    """Counts of a recorder's events: recorded = written + open + waiting for the writer + dropped by the writer."""

    recorded: int
    """Events taken by the recorder."""
    written: int
    """Events in complete files."""
    open: int
    """Events in the file being written."""
    files: int
    """Complete files."""
    size_bytes: int
    """Bytes of the complete files."""
    dropped: dict[str, int]
    """Events lost, by reason; `buffer-full` ones were never recorded."""
    last_error: str
    """The last error, empty for none."""
    removed: int
    """Complete files that retention removed, those of earlier processes included."""
    removed_bytes: int
    """Their bytes."""
    removal_errors: dict[str, int]
    """Times that retention could not look at a file or remove it, by reason."""
    uploads: Uploads | None = None
    """None where nothing is uploaded."""


class BlockWriter(Protocol):
    """What a `WriterThread` drives."""

    def load(self) -> None:
        """Begin what takes long, before the first block."""

    def run_once(self, now_ns: int) -> None:
        """Take every block that is ready, and complete the file when its time has come."""

    def stop(self, now_ns: int) -> None:
        """Take the rest and complete the file."""

    def failed(self, error: Exception) -> None:
        """Count and report an exception that belongs to no block of rows."""

    def status(self) -> Status:
        """Return the present counters. May be called from any thread."""


class Writer(BlockWriter):
    """Writes what a recorder holds to `DIR/date=YYYY-MM-DD/router=NAME/part-….parquet`.

    Args:
        directory: DIR; made when it is missing.
        router: name of the router.
        recorder: where the blocks come from; nobody else may call its `take()`.
        sample: share of the messages that the router traces, for the files' metadata.
        always: events that are recorded of every message, for the metadata.
        flush_ns: a file is finished at this age …
        file_rows: … or with this many rows …
        file_bytes: … or at this size, exceeded by one block at most.
        opener: opens a path for writing; None for an ordinary file.
        retention: asked at the start and after each complete file what is to go away; `run_once`
            gives it a bounded time each.
        completed: told date, name and bytes of each complete file. It must not wait or raise.
        observer: gets each block as a table of `schema.FILE_COLUMNS`, whether or not the disk takes
            it. It must not wait; what it raises is counted as an internal error of no events.
        wall: wall clock, nanoseconds since 1970.

    Raises:
        ValueError: `file_rows` is below 1.
    """

    def __init__(
        self,
        directory: str | Path,
        router: str,
        recorder: Recorder,
        *,
        sample: float | None = None,
        always: Sequence[str] = (),
        host: str = "",
        flush_ns: int = FLUSH_NS,
        file_rows: int = FILE_ROWS,
        file_bytes: int = limits.TRACE_FILE_BYTES,
        opener: Callable[[Path], BinaryIO] | None = None,
        retention: Retention | None = None,
        completed: Callable[[str, str, int], None] | None = None,
        observer: Callable[[pa.Table], None] | None = None,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        if file_rows < 1:
            raise ValueError(f"a trace file holds one row or more, not {file_rows}")
        self._directory = Path(directory)
        self._router = router
        self._metadata = schema.file_metadata(router, sample, always, host)
        self._recorder = recorder
        self._flush_ns = flush_ns
        self._file_rows = file_rows
        self._file_bytes = file_bytes
        self._opener = opener
        self._retention = retention
        self._completed = completed
        self._observer = observer
        self._wall = wall
        self._part: PartFile | None = None
        self._part_date = ""
        self._part_began_ns = 0
        self._serial = 0
        self._clean = False
        self._written = 0
        self._files = 0
        self._size_bytes = 0
        self._dropped: dict[str, int] = {}
        self._last_error = ""

    @override
    def load(self) -> None:
        """Load modules, which takes some hundred milliseconds."""
        import numpy.ma  # noqa: F401 - pyarrow looks for it with each array
        import pyarrow.compute  # noqa: F401

        import vpnrouter.trace.parquet  # noqa: F401

    @override
    def run_once(self, now_ns: int) -> None:
        """Write every block that is ready, and finish the file when its time has come.

        Args:
            now_ns: monotonic clock, nanoseconds.
        """
        if not self._clean:
            self._clean = True
            self._remove_leftovers()
        # One at a time: blocks not yet taken count against the recorder's bound.
        while taken := self._recorder.take(1):
            self._write(taken[0], now_ns)
        if self._part is not None and now_ns - self._part_began_ns >= self._flush_ns:
            self._finish()
        if self._retention is not None:
            try:
                self._retention.step(self._wall())
            except Exception as error:  # noqa: BLE001 - tracing never hurts the router
                self._drop(0, error)

    @override
    def stop(self, now_ns: int) -> None:
        """Write the rest and finish the file; to be called after the recorder's `cut()`."""
        self.run_once(now_ns)
        self._finish()

    @override
    def status(self) -> Status:
        """Return the present counters. May be called from any thread."""
        part = self._part
        dropped = dict(self._dropped)
        if self._recorder.dropped:
            dropped[BUFFER_FULL] = self._recorder.dropped
        retention = self._retention
        return Status(
            recorded=self._recorder.recorded,
            written=self._written,
            open=0 if part is None else part.rows,
            files=self._files,
            size_bytes=self._size_bytes,
            dropped=dropped,
            last_error=self._last_error or ("" if retention is None else retention.last_error),
            removed=0 if retention is None else retention.removed,
            removed_bytes=0 if retention is None else retention.removed_bytes,
            removal_errors={} if retention is None else dict(retention.errors),
        )

    def _write(self, block: Block, now_ns: int) -> None:
        try:
            # Imported here, in the writer's thread: it takes longer than the router takes to start.
            from vpnrouter.trace import parquet

            table = parquet.table(block, self._router)
            parts = list(parquet.by_date(table))
        except Exception as error:  # noqa: BLE001 - the same
            self._drop(block.count, error)
            return
        if self._observer is not None:
            try:
                self._observer(table)
            except Exception as error:  # noqa: BLE001 - the same
                self._drop(0, error)
        left = block.count
        try:
            for date, rows in parts:
                at = 0
                while at < rows.num_rows:
                    # A full file is finished at once, so there is room for at least one row.
                    room = min(self._file_rows - self._open_rows(date), rows.num_rows - at)
                    part = rows.slice(at, room)
                    left -= room
                    self._append(date, part, now_ns)
                    at += room
        except Exception as error:  # noqa: BLE001 - the same
            self._drop(left, error)

    def _open_rows(self, date: str) -> int:
        return 0 if self._part is None or date != self._part_date else self._part.rows

    def _append(self, date: str, rows: pa.Table, now_ns: int) -> None:
        if self._part is not None and date != self._part_date:
            self._finish()
        try:
            if self._part is None:
                self._part = self._begin(date, rows.column("ts_ns")[0].as_py())
                self._part_date = date
                self._part_began_ns = now_ns
        except Exception as error:  # noqa: BLE001 - the same
            self._drop(rows.num_rows, error)
            return
        try:
            self._part.write(rows)
            complete = (
                self._part.rows >= self._file_rows or self._part.size_bytes >= self._file_bytes
            )
        except Exception as error:  # noqa: BLE001 - the same
            self._give_up(error)
            return
        if complete:
            self._finish()

    def _begin(self, date: str, first_ts_ns: int) -> PartFile:
        from vpnrouter.trace import parquet

        folder = self._directory / f"date={date}" / parquet.folder_of(self._router)
        self._serial += 1
        # An earlier process counted from 1 too, and the clock may have been set back since.
        while (folder / f"part-{first_ts_ns}-{self._serial}.parquet").exists():
            self._serial += 1
        return parquet.PartFile(
            folder,
            f"part-{first_ts_ns}-{self._serial}.parquet",
            self._metadata,
            self._opener or parquet.open_for_writing,
        )

    def _finish(self) -> None:
        part = self._part
        if part is None:
            return
        try:
            size_bytes = part.publish()
        except Exception as error:  # noqa: BLE001 - the same
            self._give_up(error)
            return
        self._part = None
        self._files += 1
        self._size_bytes += size_bytes
        self._written += part.rows
        if self._completed is not None:
            self._completed(self._part_date, part.name, size_bytes)
        if self._retention is not None:
            self._retention.completed(self._part_date, size_bytes)

    def _give_up(self, error: Exception) -> None:
        """Drop the open file with all its rows."""
        part = self._part
        self._part = None
        if part is not None:
            self._drop(part.rows, error)
            # Files that cannot be removed now are removed at the next start.
            with contextlib.suppress(Exception):
                part.abandon()

    @override
    def failed(self, error: Exception) -> None:
        """Count and report an exception that belongs to no block of rows."""
        self._drop(0, error)

    def _drop(self, rows: int, error: Exception) -> None:
        reason = reason_of(error)
        self._dropped[reason] = self._dropped.get(reason, 0) + rows
        self._last_error = f"{reason}: {error}"

    def _remove_leftovers(self) -> None:
        """Remove what an earlier process of this router was writing when it was killed.

        Such a file has no footer, so nothing in it can be read.
        """
        try:
            from vpnrouter.trace import parquet

            folder = parquet.folder_of(self._router)
            for path in self._directory.glob(f"date=*/{folder}/.part-*.parquet"):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
        except Exception as error:  # noqa: BLE001 - the same
            self._drop(0, error)


class WriterThread:
    """Drives a `BlockWriter` in a thread of its own.

    Args:
        writer: what to run.
        recorder: the writer's recorder.
        clock: monotonic clock, nanoseconds.
        period_s: seconds between two looks for full blocks.
        say: told one line when rows begin to be lost, and one when they are written again.
        fault: called with an unexpected exception; the thread goes on.
    """

    def __init__(
        self,
        writer: BlockWriter,
        recorder: Recorder,
        clock: Callable[[], int],
        period_s: float = 0.25,
        say: Callable[[str], None] | None = None,
        fault: Callable[[Exception], None] | None = None,
    ) -> None:
        self._say = say
        self._fault = fault
        self._lost = 0
        self._written = 0
        self._losing = False
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._period_s = period_s
        self._wake = threading.Event()
        self._stopping = False
        # A daemon: a disk that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="trace-writer", daemon=True)

    def start(self) -> None:
        """Start the thread, when the router is up: numpy and pyarrow are imported first."""
        self._thread.start()

    def tick(self) -> None:
        """Hand over what was recorded so far; to be called every flush interval."""
        self._recorder.cut()
        self._wake.set()

    def finish(self) -> None:
        """Hand over the rest and end the thread; what is recorded later is not written."""
        if not self._stopping:
            self._recorder.cut()
            self._stopping = True
            self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Write the rest, finish the file and end the thread.

        Blocks. After `finish()` it may be called from any thread.

        Args:
            timeout_s: seconds to wait for the disk.

        Returns:
            False when the time was not enough; the rest is lost when the process ends.
        """
        self.finish()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        # At once and not with the first block: loading takes the interpreter lock for long, and the
        # first block comes when there is traffic. A failure shows again with that block, counted.
        self._contained(self._writer.load)
        while not self._stopping:
            self._contained(self._write)
            self._wake.wait(self._period_s)
            self._wake.clear()
        self._contained(self._stop)

    def _write(self) -> None:
        self._writer.run_once(self._clock())
        self._report_losses()

    def _stop(self) -> None:
        self._writer.stop(self._clock())
        self._report_losses()

    def _contained(self, step: Callable[[], None]) -> None:
        """Run one step. The thread survives any exception: no descriptor, no memory, a missing module."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the same
            self._writer.failed(error)
            if self._fault is not None:
                with contextlib.suppress(Exception):
                    self._fault(error)

    def _report_losses(self) -> None:
        """Report when rows begin to be lost, and when they are written again."""
        if self._say is None:
            return
        status = self._writer.status()
        lost = sum(count for reason, count in status.dropped.items() if reason != BUFFER_FULL)
        if lost > self._lost and not self._losing:
            self._losing = True
            self._say(f"traces: rows are lost: {status.last_error}")
        elif lost == self._lost and status.written > self._written and self._losing:
            self._losing = False
            self._say(f"traces: rows are written again; {lost:,} were lost")
        self._lost = lost
        self._written = status.written

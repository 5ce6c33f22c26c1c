"""Runs the writer of traces, and what sends spans, in a process of its own.

Making columns of events, compressing them and making spans take the interpreter lock: in the router's process every
message would wait behind them. So the router's thread for traces hands blocks on over a pipe, one at a time, and
gets back what became of them, and the rows that somebody looks at.

The router's part is `TraceProcess`, which has the methods of `Writer`. The other part is `main`. It ignores the
signals that end a router, since it has to outlive it: when the pipe ends, it completes the file and ends itself. So
a router that is killed leaves a complete file behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter.errors import OperationError
from vpnrouter.management.live_traces import TraceFilter, fitting
from vpnrouter.settings.trace import Trace
from vpnrouter.trace.recorder import Block, Context, Recorder
from vpnrouter.trace.retention import Retention
from vpnrouter.trace.schema import BUFFER_FULL, PROCESS_ENDED
from vpnrouter.trace.writer import Status, Uploads, Writer
from vpnrouter.units import DAY_NS, SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from vpnrouter.management.live_traces import LiveTraces, Row
    from vpnrouter.server.otlp import OtlpThread
    from vpnrouter.server.trace_upload import Uploader, UploadThread

STEP_NS: Final = SECOND_NS
"""Nanoseconds between two orders while nothing is recorded: files are completed and removed by time as well."""

RESTART_NS: Final = 5 * SECOND_NS
"""Nanoseconds from one start of the process to the next, where it ends by itself."""

PROGRAM: Final = f"from {__name__} import main; main()"

NICE: Final = 10
"""The priority of the process: where the router needs the core, rows are lost and messages go on."""

UPLOAD_S: Final = 3.0
"""Seconds for the last files to be uploaded when the router stops; the next start goes on with the rest."""

COLLECTOR_S: Final = 2.0
"""Seconds that a collector has for the last spans when the router stops."""

CONTEXT_FIELDS: Final = (
    *("event", "vpn", "mode", "client", "endpoint", "bridge", "peer_router", "peer_vpn", "hops"),
    *("path", "reason", "origin_router", "origin_vpn", "topic_syntax", "partition"),
    "parent_span_id",
)
"""What a `Context` is made of, in the order of its arguments."""


class Terms(NamedTuple):
    """What is written where."""

    configured: Trace
    router: str
    host: str
    """The boot id of the machine."""


class Order(NamedTuple):
    """What the router wants. Where `records` is not 0, the records of a block follow as a message of their own."""

    records: int = 0
    contexts: Sequence[tuple[object, ...]] = ()
    topics: Sequence[bytes] = ()
    rounds: bytes = b""
    tails: Sequence[tuple[TraceFilter, int]] = ()
    """What is looked at, and how many rows of it are wanted at most."""
    ends: bool = False


class Report(NamedTuple):
    """What became of an order."""

    status: Status
    found: Sequence[tuple[list[Row], int]]
    """For each tail its rows, and how many fitted."""
    said: Sequence[str]
    """Lines for the event log."""
    faults: Sequence[str]
    """Exceptions that nobody expected."""
    uploading: Sequence[tuple[str, str]] = ()
    """What the uploader told: its kind, and a line."""


NOTHING_WRITTEN: Final = Status(
    recorded=0,
    written=0,
    open=0,
    files=0,
    size_bytes=0,
    dropped={},
    last_error="",
    removed=0,
    removed_bytes=0,
    removal_errors={},
)


@final
class TraceProcess:
    """The router's side: hands blocks of `recorder` to the process, which it starts, and starts again if it ends.

    Its methods are called from one thread, `status` and `abandon` from any. `say` gets lines for the event log,
    `fault` exceptions of the process that nobody expected, `tell` what the uploader says: its kind, and a line.
    """

    def __init__(
        self,
        terms: Terms,
        recorder: Recorder,
        live: LiveTraces,
        say: Callable[[str], None],
        fault: Callable[[Exception], None],
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        self._tell = tell
        self._terms = terms
        self._recorder = recorder
        self._live = live
        self._say = say
        self._fault = fault
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: Connection | None = None
        self._reports: Connection | None = None
        self._started_ns = 0
        self._asked_ns = 0
        # The sums of processes that have ended, and what the living one has told: exchanged together.
        self._counts = (NOTHING_WRITTEN, NOTHING_WRITTEN)
        self._error = ""

    def load(self) -> None:
        """Start the process."""
        self._start(time.monotonic_ns())

    def run_once(self, now_ns: int) -> None:
        """Hand on every block that is ready. They wait in the recorder while there is no process."""
        if self._process is None:
            if now_ns - self._started_ns < RESTART_NS:
                return
            self._start(now_ns)
        handed_on = False
        # One at a time: blocks not yet taken count against the recorder's bound.
        while self._process is not None and (taken := self._recorder.take(1)):
            self._hand_on(taken[0])
            handed_on = True
        if not handed_on and now_ns - self._asked_ns >= STEP_NS:
            self._ask(Order())
        elif not handed_on:
            return
        self._asked_ns = now_ns

    def stop(self, now_ns: int) -> None:
        """Hand on the rest, and wait until the file is complete and the process has ended."""
        self.run_once(now_ns)
        self._ask(Order(ends=True))
        process = self._process
        if process is not None:
            self._close()
            process.wait()

    def abandon(self) -> None:
        """Kill the process: the disk has not taken the rest in time."""
        process = self._process
        if process is not None:
            process.kill()

    def failed(self, error: Exception) -> None:
        """Keep an exception that belongs to no block of rows, for the status."""
        self._error = f"{type(error).__name__}: {error}"

    def status(self) -> Status:
        """Return the present counters."""
        told = _sum(*self._counts)
        dropped = dict(told.dropped)
        if self._recorder.dropped:
            dropped[BUFFER_FULL] = self._recorder.dropped
        return told._replace(
            recorded=self._recorder.recorded,
            dropped=dropped,
            last_error=told.last_error or self._error,
        )

    def _start(self, now_ns: int) -> None:
        self._started_ns = now_ns
        # The same modules as here, wherever they come from.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        theirs, ours = Pipe(duplex=False)
        reports, their_reports = Pipe(duplex=False)
        with theirs, their_reports:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM],
                stdin=theirs.fileno(),
                stdout=their_reports.fileno(),
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        self._orders, self._reports = ours, reports
        self._send(pickle.dumps(self._terms), 0)

    def _hand_on(self, block: Block) -> None:
        tails = self._live.wishes()
        order = Order(
            block.count,
            [
                tuple([getattr(context, name) for name in CONTEXT_FIELDS])
                for context in block.contexts
            ],
            list(block.topics),
            bytes(block.rounds),
            tails,
        )
        self._ask(order, block.data)

    def _ask(self, order: Order, data: bytes = b"") -> None:
        if not self._send(pickle.dumps(order), order.records, data):
            return
        try:
            report: Report = pickle.loads(self._received())  # noqa: S301 - from our own process
        except (OSError, EOFError):
            self._lost(order.records)
            return
        self._counts = (self._counts[0], report.status)
        self._live.add(order.tails, report.found)
        for text in report.said:
            self._say(text)
        for text in report.faults:
            self._fault(RuntimeError(text))
        for kind, text in report.uploading:
            if self._tell is not None:
                self._tell(kind, text)

    def _send(self, text: bytes, count: int, data: bytes = b"") -> bool:
        """Send a message, and the records of a block behind it; False, and the rows are lost, without a process."""
        orders = self._orders
        if orders is None:
            return False
        try:
            orders.send_bytes(text)
            if data:
                orders.send_bytes(data)
        except OSError:
            self._lost(count)
            return False
        return True

    def _received(self) -> bytes:
        if self._reports is None:
            raise EOFError
        return self._reports.recv_bytes()

    def _lost(self, count: int) -> None:
        """The process has ended by itself: the open file has gone with it, and the block on its way."""
        process = self._process
        self._close()
        how = -1 if process is None else process.wait()
        ended = _sum(*self._counts)
        sums = ended._replace(
            open=0,
            dropped=_added(ended.dropped, {PROCESS_ENDED: ended.open + count}),
            last_error=f"{PROCESS_ENDED}: the process that writes traces ended ({how})",
        )
        self._counts = (sums, NOTHING_WRITTEN)

    def _close(self) -> None:
        self._process = None
        for connection in (self._orders, self._reports):
            if connection is not None:
                connection.close()
        self._orders = self._reports = None


def _sum(one: Status, other: Status) -> Status:
    """Return the counters of two processes together; texts and what is open are those of the later one."""
    return Status(
        recorded=one.recorded + other.recorded,
        written=one.written + other.written,
        open=other.open,
        files=one.files + other.files,
        size_bytes=one.size_bytes + other.size_bytes,
        dropped=_added(one.dropped, other.dropped),
        last_error=other.last_error or one.last_error,
        removed=one.removed + other.removed,
        removed_bytes=one.removed_bytes + other.removed_bytes,
        removal_errors=_added(one.removal_errors, other.removal_errors),
        uploads=_sum_of_uploads(one.uploads, other.uploads),
    )


def _sum_of_uploads(one: Uploads | None, other: Uploads | None) -> Uploads | None:
    """Return the counters of two processes together; what waits is what waits for the later one."""
    if one is None or other is None:
        return one or other
    return Uploads(
        files=one.files + other.files,
        size_bytes=one.size_bytes + other.size_bytes,
        pending=other.pending,
        pending_bytes=other.pending_bytes,
        failures=_added(one.failures, other.failures),
        lost=one.lost + other.lost,
        lost_bytes=one.lost_bytes + other.lost_bytes,
        last_error=other.last_error or one.last_error,
    )


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {reason: one.get(reason, 0) + other.get(reason, 0) for reason in sorted({*one, *other})}


# -- in the process ----------------------------------------------------------------------------------


def main() -> None:
    """Write what comes over standard input, and report over standard output."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    orders = Connection(os.dup(0), writable=False)
    reports = Connection(os.dup(1), readable=False)
    # What a library prints is no report.
    os.dup2(2, 1)
    TraceWriting(orders, reports).run()


@final
class TraceWriting:
    """What the process does: `orders` come in, a report goes out for each."""

    def __init__(self, orders: Connection, reports: Connection) -> None:
        self._orders = orders
        self._reports = reports
        terms: Terms = pickle.loads(orders.recv_bytes())  # noqa: S301 - from the router that began this
        # Blocks are taken from a recorder: from this one those of the router's.
        self._recorder = Recorder()
        self._tails: Sequence[tuple[TraceFilter, int]] = ()
        self._found: list[tuple[list[Row], int]] = []
        self._said: list[str] = []
        self._faults: list[str] = []
        self._uploading: list[tuple[str, str]] = []
        self._exporter = self._exporter_of(terms)
        self._uploader: Uploader | None = None
        self._uploads: UploadThread | None = None
        configured = terms.configured
        if configured.upload is not None and configured.upload.enabled:
            self._begin_uploads(configured, terms.router)
        self._writer = Writer(
            configured.directory,
            terms.router,
            self._recorder,
            # With filters there is no one share that holds for all messages.
            sample=None if configured.filters else configured.sample,
            always=[str(one) for one in configured.always],
            host=terms.host,
            flush_ns=configured.rotation.max_seconds * SECOND_NS,
            file_rows=configured.rotation.max_rows,
            file_bytes=configured.rotation.max_bytes,
            retention=Retention(
                Path(configured.directory),
                terms.router,
                configured.retention.max_days * DAY_NS,
                configured.retention.max_bytes,
                uploader=self._uploader,
            ),
            completed=None if self._uploader is None else self._complete,
            observer=self._observe,
        )

    def run(self) -> None:
        """Follow orders until one ends it, or until there is no router any more."""
        self._contained(self._writer.load)
        # Only now: on a busy machine it would take a minute to load its libraries with the lower priority.
        with contextlib.suppress(OSError):
            os.nice(NICE)
        if self._exporter is not None:
            self._exporter.start()
        if self._uploads is not None:
            self._uploads.start()
        ends = False
        while not ends:
            try:
                order: Order = pickle.loads(self._orders.recv_bytes())  # noqa: S301 - the same
                if order.records:
                    self._recorder.full.append(self._block(order))
            except (EOFError, OSError):
                order = Order(ends=True)
            ends = order.ends
            self._tails = order.tails
            self._contained(self._finish if ends else self._write)
            status = self._writer.status()
            if self._uploader is not None:
                status = status._replace(uploads=self._uploader.status())
            told, self._uploading = self._uploading, []
            report = Report(status, self._found, self._said, self._faults, told)
            with contextlib.suppress(OSError):
                self._reports.send_bytes(pickle.dumps(report))
            self._found, self._said, self._faults = [], [], []
        if self._exporter is not None:
            self._exporter.stop(COLLECTOR_S)
        if self._uploads is not None:
            self._uploads.stop(UPLOAD_S)
            # At once: the end of the interpreter would wait for a store that hangs, and complete what broke off.
            os._exit(0)

    def _begin_uploads(self, configured: Trace, router: str) -> None:
        from vpnrouter.server.trace_upload import Uploader, UploadThread

        if configured.upload is not None:
            self._uploader = Uploader(
                Path(configured.directory), router, configured.upload, self._told
            )
            self._uploads = UploadThread(self._uploader, self._fault)

    def _complete(self, date: str, name: str, size_bytes: int) -> None:
        if self._uploader is not None and self._uploads is not None:
            self._uploader.completed(date, name, size_bytes)
            self._uploads.wake()

    def _told(self, kind: str, text: str) -> None:
        self._uploading.append((kind, text))

    def _block(self, order: Order) -> Block:
        block = Block()
        block.count = order.records
        block.contexts = [Context(*fields) for fields in order.contexts]  # type: ignore[arg-type]
        block.topics = {topic: number for number, topic in enumerate(order.topics)}
        block.rounds = bytearray(order.rounds)
        block.data = self._orders.recv_bytes()
        return block

    def _write(self) -> None:
        self._writer.run_once(time.monotonic_ns())

    def _finish(self) -> None:
        self._writer.stop(time.monotonic_ns())

    def _observe(self, table: pa.Table) -> None:
        self._found = [fitting(table, wish, most) for wish, most in self._tails]
        if self._exporter is not None:
            self._exporter.offer(table)

    def _exporter_of(self, terms: Terms) -> OtlpThread | None:
        """The thread that sends spans; None when none is wanted, or when it cannot be had."""
        otlp = terms.configured.otlp
        if not otlp.enabled:
            return None
        from vpnrouter.server.otlp import OtlpThread, open_exporter

        try:
            exporter = open_exporter(otlp)
        except OperationError as error:
            self._said.append(f"{error}; no spans are sent")
            return None
        return OtlpThread(
            exporter, terms.router, otlp.max_queue, say=self._said_later, fault=self._fault
        )

    def _said_later(self, text: str) -> None:
        self._said.append(text)

    def _fault(self, error: Exception) -> None:
        self._faults.append(f"{type(error).__name__}: {error}")

    def _contained(self, step: Callable[[], None]) -> None:
        """Run one step. The process survives any exception: no descriptor, no memory, a missing module."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - told to the router
            self._writer.failed(error)
            self._fault(error)

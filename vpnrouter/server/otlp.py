"""Send the spans of traced messages to an OpenTelemetry collector, by OTLP over HTTP.

The spans of `vpnrouter.trace.span` as objects of the OpenTelemetry SDK.

The only module here that imports the SDK when it is imported: import it when spans are to be sent.

A thread of its own takes tables of trace rows from a queue with a bound, makes spans of them
(`vpnrouter.trace.spans`) and gives them to the exporter of the OpenTelemetry SDK. When the collector is
slow, the queue fills, and what comes then makes no spans; what a request could not deliver is lost.
Both are counted. Messages and trace files know nothing of it.

The thread is in the process that writes traces, and uses `SHARE` of one core at most, for it takes the interpreter lock
from the writer: beyond that rate spans are lost, too.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from vpnrouter import __version__, limits
from vpnrouter.config.otel_sdk import NO_SDK
from vpnrouter.errors import OperationError
from vpnrouter.text import printable
from vpnrouter.trace import span as names
from vpnrouter.trace.spans import COLUMNS, SpanMaker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from opentelemetry.sdk.trace.export import SpanExporter

    from vpnrouter.settings.trace import Otlp
    from vpnrouter.trace.span import Span


_KINDS: Final = {
    names.CONSUMER: SpanKind.CONSUMER,
    names.PRODUCER: SpanKind.PRODUCER,
    names.INTERNAL: SpanKind.INTERNAL,
}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_FINE: Final = Status(StatusCode.UNSET)


class SpanFactory:
    """Makes the SDK's spans for one router.

    Args:
        router: `service.name`.
        version: `service.version`.
    """

    def __init__(self, router: str, version: str) -> None:
        self._router = router
        self._version = version
        self._scope = InstrumentationScope("vpnrouter", version)
        self._resources: dict[str, Resource] = {}

    def resource(self, vpn: str) -> Resource:
        """Who made the spans of a message VPN; the environment has no say in it."""
        known = self._resources.get(vpn)
        if known is None:
            known = Resource(
                {
                    "service.name": self._router,
                    "service.instance.id": vpn,
                    "service.version": self._version,
                }
            )
            self._resources[vpn] = known
        return known

    def span(self, span: Span) -> ReadableSpan:
        """The span in the form that the OpenTelemetry SDK exports."""
        trace = span.trace_id
        parent = None
        if span.parent:
            parent = SpanContext(trace, span.parent, span.remote, _SAMPLED)
        return ReadableSpan(
            name=span.name,
            context=SpanContext(trace, span.span_id, is_remote=False, trace_flags=_SAMPLED),
            parent=parent,
            resource=self.resource(span.vpn),
            attributes=span.attributes,
            events=[Event(e.name, e.attributes, e.ts_ns) for e in span.events],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else _FINE,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


SHARE: Final = 0.25
"""Part of a core that making spans may take."""

CHUNK_ROWS: Final = 256
"""Rows made into Python values at a time: the interpreter lock is held for some milliseconds."""

IDLE_S: Final = 1.0
"""Seconds between two checks for sends without an outcome, while no rows arrive."""

SDK_LOGGER: Final = "opentelemetry.exporter"


class OtlpStatus(NamedTuple):
    """What became of the rows of traced messages and their spans."""

    sent: int
    """Spans that the collector took."""
    lost: int
    """Spans that it did not take in time, or refused."""
    dropped_rows: int
    """Rows that found no room in the queue, or could not be made into spans."""
    waiting_rows: int
    """Rows in the queue."""
    last_error: str
    """The last error, empty for none."""


class _LastLogText(logging.Handler):
    """Keeps the last text that the SDK logged, which is the only place where it says why."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of `record` in place of the last one."""
        self.text = record.getMessage()


def open_exporter(written: Otlp) -> SpanExporter:
    """The SDK's exporter for the collector of a configuration.

    Raises:
        OperationError: the SDK is not installed, or does not take the settings.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise OperationError(NO_SDK) from error
    try:
        return OTLPSpanExporter(
            endpoint=written.endpoint,
            headers={name: value.reveal() for name, value in written.headers.items()},
            timeout=float(written.timeout_s),
        )
    except Exception as error:
        # Its own environment variables may be wrong, too.
        raise OperationError(f"trace.otlp: {error}") from error


class OtlpThread:
    """Makes spans of rows and sends them, in a thread of its own.

    `offer()` is called from the writer's thread, everything else from any.

    Args:
        exporter: what sends spans.
        router: the router's name.
        max_queue: rows that may wait.
        clock: wall clock, nanoseconds since 1970.
        share: part of a core that the thread may take.
        say: told one line when the collector stops taking spans, and one when it takes them again.
        fault: called with an unexpected exception; the thread goes on.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        router: str,
        max_queue: int = limits.OTLP_QUEUE_ROWS,
        *,
        clock: Callable[[], int] = time.time_ns,
        share: float = SHARE,
        say: Callable[[str], None] | None = None,
        fault: Callable[[Exception], None] | None = None,
    ) -> None:
        from vpnrouter.server.otlp import SpanFactory

        self._fault = fault
        self._exporter = exporter
        self._maker = SpanMaker(router)
        self._max_queue = max_queue
        self._clock = clock
        self._share = share
        self._say = say or (lambda text: print(f"vpnrouter: {printable(text)}", file=sys.stderr))
        self._queue: deque[pa.Table] = deque()
        self._lock = threading.Lock()
        self._waiting = 0
        self._wake = threading.Event()
        self._stopping = False
        self._given_up = False
        self._factory = SpanFactory(router, __version__)
        self._batch: list[Span] = []
        self._sent = 0
        self._lost = 0
        self._dropped_rows = 0
        self._last_error = ""
        self._down = False
        self._word = _LastLogText()
        # A daemon: a collector that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="trace-otlp", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        logger = logging.getLogger(SDK_LOGGER)
        logger.addHandler(self._word)
        # A line for each failed request is too much; `say` tells once.
        logger.propagate = False
        self._thread.start()

    def offer(self, table: pa.Table) -> None:
        """Take the rows of traced messages from a table of `schema.FILE_COLUMNS`; never waits."""
        rows = table.select(COLUMNS)
        rows = rows.filter(rows.column("trace_id").is_valid())
        with self._lock:
            room = self._max_queue - self._waiting
            taken = min(rows.num_rows, room)
            self._dropped_rows += rows.num_rows - taken
            if taken == 0:
                return
            self._waiting += taken
            self._queue.append(rows.slice(0, taken))
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Send what waits and end the thread.

        Blocks. What is not sent after `timeout_s` seconds is given up.

        Returns:
            Whether the thread has ended.
        """
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        self._given_up = True
        # Ends the SDK's own waiting between repetitions.
        self._exporter.shutdown()
        self._thread.join(1.0)
        logging.getLogger(SDK_LOGGER).removeHandler(self._word)
        return not self._thread.is_alive()

    def status(self) -> OtlpStatus:
        """Counters up to now."""
        return OtlpStatus(
            self._sent, self._lost, self._dropped_rows, self._waiting, self._last_error
        )

    def _run(self) -> None:
        while True:
            try:
                table = self._next()
                if table is not None:
                    self._use(table)
                    continue
                # All rows that waited are handled: send what is open now, not with the next rows.
                ended = None if self._stopping else self._clock()
                self._collect(self._maker.flush(ended), whole=True)
            except Exception as error:  # noqa: BLE001 - the same
                self._last_error = f"{type(error).__name__}: {error}"
                if self._fault is not None:
                    with contextlib.suppress(Exception):
                        self._fault(error)
            if self._given_up or (self._stopping and self._waiting == 0):
                return
            self._wake.wait(IDLE_S)
            self._wake.clear()

    def _next(self) -> pa.Table | None:
        with self._lock:
            return self._queue.popleft() if self._queue else None

    def _use(self, table: pa.Table) -> None:
        count = table.num_rows
        try:
            columns = [plain_columns(table.column(name)) for name in COLUMNS]
        except Exception as error:  # noqa: BLE001 - tracing never hurts the router
            self._unreadable(count, error)
            return
        for at in range(0, count, CHUNK_ROWS):
            if self._given_up:
                return
            began = time.thread_time()
            length = min(CHUNK_ROWS, count - at)
            try:
                values = [column.slice(at, length).to_pylist() for column in columns]
                spans = self._maker.take(
                    dict(zip(COLUMNS, row, strict=True)) for row in zip(*values, strict=True)
                )
            except Exception as error:  # noqa: BLE001 - the same
                self._unreadable(length, error)
                continue
            with self._lock:
                self._waiting -= length
            self._collect(spans, whole=False)
            used = time.thread_time() - began
            if not self._stopping and self._share < 1:
                time.sleep(used / self._share - used)

    def _unreadable(self, rows: int, error: Exception) -> None:
        with self._lock:
            self._waiting -= rows
            self._dropped_rows += rows
        self._last_error = f"{type(error).__name__}: {error}"

    def _collect(self, spans: Sequence[Span], *, whole: bool) -> None:
        self._batch += spans
        size = limits.OTLP_BATCH_SPANS
        while not self._given_up and (len(self._batch) >= size or (whole and self._batch)):
            batch, self._batch = self._batch[:size], self._batch[size:]
            self._export(batch)

    def _export(self, batch: list[Span]) -> None:
        self._word.text = ""
        try:
            result = self._exporter.export([self._factory.span(span) for span in batch])
            done, why = result.value == 0, self._word.text
        except Exception as error:  # noqa: BLE001 - the same
            done, why = False, f"{type(error).__name__}: {error}"
        if not done:
            self._lost += len(batch)
            self._failed(why or "the collector did not take the spans")
            return
        self._sent += len(batch)
        if self._down:
            self._down = False
            self._say("trace.otlp: the collector takes spans again")

    def _failed(self, why: str) -> None:
        self._last_error = why
        if not self._down:
            self._down = True
            self._say(f"trace.otlp: spans are lost: {why}")


def plain_columns(column: pa.ChunkedArray) -> pa.Array:
    """One array of plain values of a column, dictionaries undone, all rows at once."""
    import pyarrow as pa

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks == 1 else pa.concat_arrays(whole.chunks)
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole

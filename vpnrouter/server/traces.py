"""Writes trace files while the router runs, shows live traces, and sends spans to a collector."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter.config.otel_sdk import NO_SDK
from vpnrouter.core.fault_barrier import THREAD
from vpnrouter.core.tracing import TraceFilter, TraceSettings
from vpnrouter.errors import OperationError
from vpnrouter.events.table import TRACE_TROUBLE, TRACE_UPLOAD_DOWN, TRACE_UPLOAD_UP
from vpnrouter.server.events.event_context import current_log, raise_event
from vpnrouter.server.trace_process import COLLECTOR_S, UPLOAD_S, Terms, TraceProcess
from vpnrouter.server.trace_upload import FAILING, WORKING
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.writer import WriterThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.fault_barrier import FaultBarrier
    from vpnrouter.core.router import Router
    from vpnrouter.management.live_traces import LiveTraces
    from vpnrouter.settings import trace
    from vpnrouter.settings.trace import Trace


def terms_of(configured: trace.Trace | None, seed: int) -> TraceSettings | None:
    """What is traced besides the share of all messages; None where nothing is.

    `seed` is 64 random bits; each filter draws by its own.
    """
    if configured is None or not configured.enabled:
        return None
    enabled = [one for one in configured.filters if one.enabled]
    return TraceSettings(
        "discard" in configured.always,
        "reject" in configured.always,
        [_filter(one, seed + index) for index, one in enumerate(enabled, start=1)],
        configured.traceparent == "honour",
        configured.emit_traceparent,
    )


def _filter(configured: trace.TraceFilter, seed: int) -> TraceFilter:
    dialect = MQTT if configured.topic_syntax == "mqtt" else SMF
    return TraceFilter(
        Sampler(configured.sample, seed),
        [parse_filter(text, dialect) for text in configured.subscriptions],
        list(configured.msg_vpns),
        list(configured.client_usernames),
        list(configured.client_names),
    )


_UPLOADING: Final = {FAILING: TRACE_UPLOAD_DOWN, WORKING: TRACE_UPLOAD_UP}

HAND_OVER_S: Final = 0.5
"""Seconds between two blocks while somebody looks."""

HAND_OVERS: Final = 4
"""Times in the life of a file that what was recorded is handed to the writer's thread.

Each costs some of the interpreter lock however little there is, so not every second.
"""

DISK_S: Final = 15.0
"""Seconds that the disk has for the last file when the router stops, and a process of low priority for its work."""

STOP_S: Final = DISK_S + COLLECTOR_S + UPLOAD_S
"""Seconds until the process that writes traces is ended, when the router stops."""


def check_traces(configured: Trace | None) -> None:
    """Check that what tracing needs is there; called before the router begins.

    Raises:
        OperationError: spans are to be sent, and the OpenTelemetry SDK is missing or refuses.
    """
    if configured is not None and configured.enabled and configured.otlp.enabled:
        try:
            from vpnrouter.server.otlp import open_exporter
        except ImportError as error:
            if not (error.name or "").startswith("opentelemetry"):
                raise
            raise OperationError(NO_SDK) from error
        open_exporter(configured.otlp).shutdown()


def machine() -> str:
    """The boot id of this machine, which all of its containers share, as they share its clock; "" where the system
    has none.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""


async def keep_traces(configured: Trace, router: Router, live: LiveTraces) -> None:
    """Have traces written until cancelled; then have the rest written. `live` shows rows to whoever looks."""
    recorder = router.context.recorder
    say = _say_from_elsewhere()
    fault = _fault_from_elsewhere(router.context.barrier, "trace writer")
    terms = Terms(configured, router.name, machine())
    writer = TraceProcess(terms, recorder, live, say, fault, _tell_from_elsewhere())
    live.writer = writer
    thread = WriterThread(
        writer,
        recorder,
        time.monotonic_ns,
        say=say,
        fault=fault,
    )
    thread.start()
    try:
        while True:
            until_s = trio.current_time() + configured.rotation.max_seconds / HAND_OVERS
            while trio.current_time() < until_s:
                await trio.sleep(min(HAND_OVER_S, until_s - trio.current_time()))
                if live.tails:
                    break
            thread.tick()
    finally:
        live.writer = None
        # In this thread: only the router's own may touch the block being filled.
        losses = router.context.discard_rows
        if losses is not None:
            losses.tell()
        thread.finish()
        with trio.CancelScope(shield=True):
            if not await trio.to_thread.run_sync(thread.stop, STOP_S):
                writer.abandon()


def _say_from_elsewhere() -> Callable[[str], None]:
    """A function that tells from another thread, in the router's own, which the event log is for."""
    token = trio.lowlevel.current_trio_token()
    log = current_log()

    def say(text: str) -> None:
        # After the run has ended nobody is left who listens.
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(partial(raise_event, TRACE_TROUBLE, text, log=log))

    return say


def _tell_from_elsewhere() -> Callable[[str, str], None]:
    """Return what raises an event for what the uploader says, by its kind; callable from any thread."""
    token = trio.lowlevel.current_trio_token()
    log = current_log()

    def tell(kind: str, text: str) -> None:
        event = _UPLOADING.get(kind, TRACE_TROUBLE)
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(partial(raise_event, event, text, log=log))

    return tell


def _fault_from_elsewhere(barrier: FaultBarrier, name: str) -> Callable[[Exception], None]:
    """A callback that hands what the thread `name` raised to the barrier, in the router's thread."""
    token = trio.lowlevel.current_trio_token()

    def fault(error: Exception) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(barrier.caught, error, THREAD, name, "", "it goes on")

    return fault

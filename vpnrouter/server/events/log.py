"""Writes and publishes the events of a running router, and keeps the newest.

Lines go to stderr without ever making the router wait for their reader.

A pipe, terminal or socket that says it has room takes `limits.EVENT_LINE_BYTES` at once. While it says
that it has none, lines wait, and beyond `limits.EVENT_LINES_WAITING` they are lost and counted.
"""

from __future__ import annotations

import io
import os
import select
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TextIO, final

import trio

from vpnrouter import limits
from vpnrouter.core.fault_barrier import TASK
from vpnrouter.events import table
from vpnrouter.events.log import Event, EventLog, RateLimit, as_json, readable, shortened
from vpnrouter.events.table import AREAS, CONFIG, NAMES
from vpnrouter.server.events.event_context import use_log
from vpnrouter.server.events.publisher import EventPublisher
from vpnrouter.server.events.sampler import LOOK_S, EventSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.router import Router
    from vpnrouter.management.meters import VpnMeters
    from vpnrouter.management.status.bridges import OwnBridge, PeerBridge
    from vpnrouter.settings.logging import Logging


AT_ONCE: Final = 2_000
"""Lines that are made up for in one go; some milliseconds."""


def _stderr() -> TextIO | None:
    return sys.stderr


@final
class LogWriter:
    """Writes whole lines to the stream that `stream` returns; None is no stream."""

    def __init__(self, stream: Callable[[], TextIO | None] = _stderr) -> None:
        self._stream = stream
        self._waiting: deque[str] = deque()
        self.lost = 0

    @property
    def waiting(self) -> int:
        """Lines that have not been taken."""
        return len(self._waiting)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at it, so that colours make sense."""
        stream = self._stream()
        try:
            return stream is not None and stream.isatty()
        except ValueError:
            return False

    def write(self, line: str) -> None:
        """Write `line`, which has no line end, now or when there is room; or count it as lost."""
        if self._waiting or not self._send(line):
            if len(self._waiting) >= limits.EVENT_LINES_WAITING:
                self.lost += 1
            else:
                self._waiting.append(line)
                self.drain()

    def drain(self) -> None:
        """Write what waits, as far as there is room."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            if not self._send(self._waiting[0]):
                return
            self._waiting.popleft()

    def take_lost(self) -> int:
        """Return how many lines were lost since the last call, 0 while others still wait."""
        if self._waiting:
            return 0
        lost = self.lost
        self.lost = 0
        return lost

    def _send(self, line: str) -> bool:
        """False where there is no room."""
        stream = self._stream()
        if stream is None:
            return True
        try:
            if not _has_room(stream):
                return False
            stream.write(f"{line}\n")
            stream.flush()
        except (OSError, ValueError):
            # Nobody reads any more, or the stream is closed: no log is no reason to end.
            self.lost += 1
        return True


def _has_room(stream: TextIO) -> bool:
    try:
        descriptor = stream.fileno()
    except (io.UnsupportedOperation, AttributeError):
        return True  # in memory
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


@final
class StderrLog:
    """A listener of an EventLog. `settings` returns the `logging` block in force, at each event."""

    def __init__(
        self, router_name: str, writer: LogWriter, settings: Callable[[], Logging]
    ) -> None:
        self.settings = settings
        self._router_name = router_name
        self._writer = writer
        self._written: Logging | None = None
        self._json = False
        self._colour = False
        self._least: dict[str, int] = {}
        self._limit = RateLimit(limits.EVENT_LINES_A_SECOND)

    def __call__(self, event: Event) -> None:
        """Write one event, if its level is logged."""
        written = self.settings()
        if written is not self._written:
            self._take(written)
        kind = event.kind
        if kind.level < self._least[kind.area]:
            return
        # A reload tells all it has to tell: it comes from who may do worse.
        if kind.area != CONFIG and not self._limit.admits(kind.name, event.time_ns):
            return
        self._write(event)

    def tick(self, now_ns: int) -> None:
        """Write what waits, and how many events were suppressed; about once a second. `now_ns` is UTC since 1970."""
        self._writer.drain()
        lost = self._writer.take_lost()
        if lost:
            self._tell(now_ns, f"{lost:,} lines were lost: nobody read stderr")
        for name, count in self._limit.suppressed().items():
            self._tell(now_ns, f"{count:,} more {name} were not written (logging.rate_limit)")

    def _tell(self, now_ns: int, text: str) -> None:
        self._write(Event(0, now_ns, table.SUPPRESSED, "", "", text))

    def _write(self, event: Event) -> None:
        line = self._line(event)
        if len(line) * 4 > limits.EVENT_LINE_BYTES:
            most = limits.EVENT_LINE_BYTES - 1
            if len(line.encode("utf-8", "backslashreplace")) > most:
                line = self._line(shortened(event))
        self._writer.write(line)

    def _line(self, event: Event) -> str:
        if self._json:
            return as_json(event, self._router_name)
        return readable(event, colour=self._colour)

    def _take(self, written: Logging) -> None:
        self._written = written
        self._json = written.format == "json"
        self._colour = self._writer.is_terminal and not os.environ.get("NO_COLOR")
        self._least = {area: _level(written, area) for area in AREAS}
        self._limit.most = written.rate_limit


def _level(written: Logging, area: str) -> int:
    own = getattr(written.levels, area)
    return NAMES.index(written.level if own == "default" else own)


@final
class RouterEvents:
    """The event log of one router, written and published.

    Made in the router's own task, before anything is started: the tasks inherit the log (event_context.py).
    `follow(config)` says where the configuration in force is, once it can change.
    """

    def __init__(
        self, router: Router, config: RouterConfig, writer: LogWriter | None = None
    ) -> None:
        self.log = EventLog(router.name, time.time_ns)
        self._router = router
        self._config: Callable[[], RouterConfig] = lambda: config
        self._stderr = StderrLog(router.name, writer or LogWriter(), lambda: config.logging)
        self.publisher = EventPublisher(router, self._config)
        self.publisher.watch()
        self.log.listeners += [self._stderr, self.publisher]
        router.context.events = self.log
        barrier = router.context.barrier
        self.log.on_fault = lambda error: barrier.caught(error, TASK, "event log", "", "one event")
        use_log(self.log)

    def follow(self, config: Callable[[], RouterConfig]) -> None:
        """Take the configuration in force from `config` from now on."""
        self._config = config
        self._stderr.settings = lambda: config().logging
        self.publisher.config = config

    async def run(
        self,
        bridges: Callable[[], Iterable[tuple[tuple[str, str], OwnBridge | PeerBridge]]],
        meters: VpnMeters,
    ) -> None:
        """Watch thresholds, and write what waits, for ever."""
        sampler = EventSampler(self.log, self._router, self._config, bridges, meters)
        while True:
            self.publisher.watch()
            await sampler.look()
            self._stderr.tick(time.time_ns())
            await trio.sleep(LOOK_S)

    def stopping(self) -> None:
        """The router stops: what can be written is written."""
        self.log.raise_event(table.SHUTDOWN, text="stopping")
        self._stderr.tick(time.time_ns())

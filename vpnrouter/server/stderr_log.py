"""The event log on stderr: which events, in which form, how many of a kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

from vpnrouter.events import limits, table
from vpnrouter.events.event import Event
from vpnrouter.events.kind import AREAS, CONFIG
from vpnrouter.events.levels import NAMES
from vpnrouter.events.lines import as_json, readable, shortened
from vpnrouter.events.rate import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.logging import Logging
    from vpnrouter.server.log_writer import LogWriter


@final
class StderrLog:
    """Listens to an EventLog. `settings` gives the `logging` block in force, asked at each event."""

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
        """Write one event, if it is to be written."""
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
        """About once a second: write what waits, and tell what was kept out. `now_ns` is UTC since 1970."""
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

"""Lines to stderr, without ever making the router wait for whoever reads them.

A pipe, terminal or socket that says it has room takes `limits.EVENT_LINE_BYTES` at once. While it says
that it has none, lines wait, and beyond `limits.EVENT_LINES_WAITING` they are lost and counted.
"""

from __future__ import annotations

import io
import select
import sys
from collections import deque
from typing import TYPE_CHECKING, Final, TextIO, final

from vpnrouter.events import limits

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE: Final = 2_000
"""Lines that are made up for in one go; some milliseconds."""


def _stderr() -> TextIO | None:
    return sys.stderr


@final
class LogWriter:
    """Writes whole lines to the stream that `stream` gives; None is nobody at all."""

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
        """How many lines were lost since this was asked last; 0 while others still wait."""
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

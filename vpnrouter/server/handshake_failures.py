"""Tell the operator of failed TLS handshakes, without letting strangers fill the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.events.table import TLS_FAILED
from vpnrouter.server.narrate import tell

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S: Final = 1.0


def _raise(line: str) -> None:
    tell(TLS_FAILED, line.removeprefix("vpnrouter: "))


@final
class HandshakeFailures:
    """Writes a line for each failure, limits.TLS_FAILURE_LINES a second; the rest is counted."""

    def __init__(self, say: Callable[[str], None] = _raise) -> None:
        self._say = say
        self._began_s = float("-inf")
        self._said = 0
        self._unsaid = 0

    def note(self, listener: str, peer: str, why: str, now_s: float) -> None:
        """One handshake failed, at `now_s` of a monotonic clock."""
        if now_s - self._began_s >= WINDOW_S:
            self._began_s = now_s
            self._said = 0
        if self._said >= limits.TLS_FAILURE_LINES:
            self._unsaid += 1
            return
        self._said += 1
        if self._unsaid:
            self._say(f"vpnrouter: {self._unsaid} more TLS handshakes failed before")
            self._unsaid = 0
            self._said += 1
        self._say(f"vpnrouter: {listener}: TLS handshake with {peer} failed: {why}")

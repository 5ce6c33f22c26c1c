"""What a connector does next, without I/O: when it dials, which address it takes, when it waits or stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, final

from vpnrouter.units import MILLISECOND_NS, SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.settings.connector import ProviderUrl

PAUSED: Final = "paused"
"""What is told of a connector that is up, instead of that, while nothing is to cross: the connection is no other."""

LEAST_DELAY_NS: Final = 100 * MILLISECOND_NS
"""Least delay between two attempts, whatever the configuration says."""

JITTER: Final = 0.5
"""Share of the delay by which it varies, so that many connectors do not try in step."""


class State(StrEnum):
    """What a connector is doing."""

    DISABLED = "disabled"
    """Switched off in the configuration, or its message VPN is."""
    CONNECTING = "connecting"
    """Name look-up, TCP and TLS are under way."""
    LOGGING_IN = "logging-in"
    """The provider has not answered the login."""
    UP = "up"
    """Logged in: the links carry messages."""
    WAITING = "waiting"
    """An attempt failed, or the connection was lost; the next attempt has its time."""
    IDLE = "idle"
    """Nothing has crossed for `connect.idle_timeout`, and the connection was closed. A message that waits opens it."""
    STOPPED = "stopped"
    """As many attempts failed as `connect.retry_count` allows."""


class Event(StrEnum):
    """What happens to a connector."""

    ENABLE = "enable"
    DISABLE = "disable"
    REACHED = "reached"
    """The connection is made."""
    JOINED = "joined"
    """The provider has accepted the login."""
    FAILED = "failed"
    """The attempt came to nothing, or the connection was lost."""
    DUE = "due"
    """The time of the next attempt has come."""
    GIVE_UP = "give-up"
    REST = "rest"
    """Nothing crosses, and nothing waits."""
    WAKE = "wake"
    """A message waits."""


TABLE: Final[dict[tuple[State, Event], State]] = {
    (State.DISABLED, Event.ENABLE): State.CONNECTING,
    (State.CONNECTING, Event.REACHED): State.LOGGING_IN,
    (State.CONNECTING, Event.FAILED): State.WAITING,
    (State.CONNECTING, Event.DISABLE): State.DISABLED,
    (State.LOGGING_IN, Event.JOINED): State.UP,
    (State.LOGGING_IN, Event.FAILED): State.WAITING,
    (State.LOGGING_IN, Event.DISABLE): State.DISABLED,
    (State.UP, Event.FAILED): State.WAITING,
    (State.UP, Event.DISABLE): State.DISABLED,
    (State.UP, Event.REST): State.IDLE,
    (State.IDLE, Event.WAKE): State.WAITING,
    (State.IDLE, Event.DISABLE): State.DISABLED,
    (State.WAITING, Event.DUE): State.CONNECTING,
    (State.WAITING, Event.GIVE_UP): State.STOPPED,
    (State.WAITING, Event.DISABLE): State.DISABLED,
    (State.STOPPED, Event.DISABLE): State.DISABLED,
}
"""(state, event) → the next state. An event that is missing here cannot happen in that state."""


@final
@dataclass(slots=True)
class Attempts:
    """When and where a connector connects, from the configuration; a `retry_count` of -1 is no bound, an
    `idle_timeout_ns` of 0 keeps the connection.
    """

    urls: tuple[ProviderUrl, ...] = ()
    enabled: bool = True
    retry_count: int = -1
    retry_delay_ns: int = 5 * SECOND_NS
    idle_timeout_ns: int = 0


@final
class Machine:
    """The decisions of one connector. Times are nanoseconds of a monotonic clock.

    `url` is the address that is in use or tried. `failure` is why the last attempt or connection ended, "" while it is
    up. `failures` counts attempts that failed in a row, `since_ns` is when the state began, `wake_ns` when `due` is to
    be called, -1 for never.
    """

    def __init__(self, attempts: Attempts, now_ns: int) -> None:
        self.attempts = attempts
        self.state = State.DISABLED
        self.since_ns = now_ns
        self.wake_ns = -1
        self.failure = ""
        self.failures = 0
        self._place = 0
        # The last time at which something crossed or waited.
        self._busy_ns = now_ns

    @property
    def url(self) -> ProviderUrl:
        """The address that is in use, or comes next."""
        return self.attempts.urls[self._place % len(self.attempts.urls)]

    def happened(self, event: Event, now_ns: int) -> None:
        """Go to the next state. Raises KeyError for what cannot happen now."""
        self.state = TABLE[self.state, event]
        self.since_ns = now_ns
        self.wake_ns = -1

    def configure(self, attempts: Attempts, now_ns: int) -> None:
        """Take another configuration; the connection under the old one has ended. `begin` has to follow."""
        self.attempts = attempts
        self._place = 0
        self.failures = 0
        self.failure = ""
        if self.state is not State.DISABLED:
            self.happened(Event.DISABLE, now_ns)

    def begin(self, now_ns: int) -> bool:
        """Return whether to dial now: the connector is enabled, and does not run yet."""
        if not self.attempts.enabled or self.state is not State.DISABLED:
            return False
        self.happened(Event.ENABLE, now_ns)
        return True

    def reached(self, now_ns: int) -> None:
        """Note that the connection is made."""
        self.happened(Event.REACHED, now_ns)

    def joined(self, now_ns: int) -> None:
        """Note that the provider has accepted the login."""
        self.happened(Event.JOINED, now_ns)
        self.failures = 0
        self.failure = ""

    def failed(self, why: str, now_ns: int, draw: float) -> None:
        """Note that the attempt failed, or the connection was lost; `draw` is a random number in [0, 1).

        The next address is tried at once where the one before could not be reached, and all again after the delay.
        """
        was_up = self.state is State.UP
        self.happened(Event.FAILED, now_ns)
        self.failure = why
        self.failures += 1
        most = self.attempts.retry_count
        if 0 <= most < self.failures:
            self.happened(Event.GIVE_UP, now_ns)
            self.failure = f"gave up after {self.failures} attempts: {why}"
            return
        if not was_up:
            self._place = (self._place + 1) % len(self.attempts.urls)
        delay_ns = int(self.attempts.retry_delay_ns * (1 + JITTER * (draw - 0.5)))
        delay_ns = max(LEAST_DELAY_NS, delay_ns)
        self.wake_ns = now_ns + (0 if self._place and not was_up else delay_ns)

    def again(self, now_ns: int) -> None:
        """Note that the attempt failed, and that another one, which may do better, is due at once."""
        self.happened(Event.FAILED, now_ns)
        self.wake_ns = now_ns

    def rests(self, now_ns: int, *, busy: bool) -> bool:
        """Return whether to close the connection now, as nothing has crossed and waited for long enough; `busy`: it
        has since this was last asked. An idle connector that is busy is `due` at once.
        """
        if busy or self.state not in (State.UP, State.IDLE):
            self._busy_ns = now_ns
        if self.state is State.IDLE and busy:
            self.happened(Event.WAKE, now_ns)
            self.wake_ns = now_ns
        timeout_ns = self.attempts.idle_timeout_ns
        if self.state is not State.UP or not timeout_ns or now_ns - self._busy_ns < timeout_ns:
            return False
        self.happened(Event.REST, now_ns)
        return True

    def due(self, now_ns: int) -> bool:
        """Return whether to dial now, where the time for that has come."""
        if self.state is not State.WAITING or now_ns < self.wake_ns:
            return False
        self.happened(Event.DUE, now_ns)
        return True

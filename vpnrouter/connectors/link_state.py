"""What a link of a connector is doing, and what it has counted: its own, whatever other links of the connector do."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.discard_reasons import UNACCOUNTED, DiscardCounts


class LinkState(StrEnum):
    """What a link is doing."""

    DISABLED = "disabled"
    """Switched off in the configuration."""
    DOWN = "down"
    """Its connector is not up. What it would carry waits."""
    OPENING = "opening"
    """The connector is up; the provider has not answered for this link."""
    UP = "up"
    """It carries messages."""
    HELD = "held"
    """A message is refused, and what comes behind it waits."""
    PAUSED = "paused"
    """An operator lets nothing cross. What it would carry waits."""
    REFUSED = "refused"
    """It cannot carry messages over this connection."""
    STOPPED = "stopped"
    """A message was refused as often as the link allows, and the link is to stop then."""


class LinkEvent(StrEnum):
    """What happens to a link."""

    CONNECTED = "connected"
    """The connector is up."""
    OPENED = "opened"
    """The link may carry messages."""
    REFUSED = "refused"
    """It may not, over this connection."""
    LOST = "lost"
    """The connection is over."""
    STOP = "stop"
    """A message was refused too often."""


TABLE: Final[dict[tuple[LinkState, LinkEvent], LinkState]] = {
    (LinkState.DOWN, LinkEvent.CONNECTED): LinkState.OPENING,
    (LinkState.DOWN, LinkEvent.STOP): LinkState.STOPPED,
    (LinkState.OPENING, LinkEvent.OPENED): LinkState.UP,
    (LinkState.OPENING, LinkEvent.REFUSED): LinkState.REFUSED,
    (LinkState.OPENING, LinkEvent.LOST): LinkState.DOWN,
    (LinkState.OPENING, LinkEvent.STOP): LinkState.STOPPED,
    (LinkState.UP, LinkEvent.REFUSED): LinkState.REFUSED,
    (LinkState.UP, LinkEvent.LOST): LinkState.DOWN,
    (LinkState.UP, LinkEvent.STOP): LinkState.STOPPED,
    (LinkState.REFUSED, LinkEvent.OPENED): LinkState.UP,
    (LinkState.REFUSED, LinkEvent.LOST): LinkState.DOWN,
}
"""(state, event) → the next state. What is missing changes nothing: a link that has stopped is made anew by a
reconnect. HELD and PAUSED are no rows: whether a message is
held, or the link paused, is another matter than whether there is a connection."""

ALIVE: Final = (LinkState.DOWN, LinkState.OPENING, LinkState.UP)
"""States instead of which PAUSED is told, or else HELD."""

COUNTS: Final = (
    "messages",
    "bytes_",
    "delivered",
    "duplicates",
    "returned",
    "refused",
    "dead_letters",
)
"""Attributes of LinkCounters that are numbers."""


@final
class LinkCounters:
    """What one link has carried. It outlives connections, changes of the configuration and restarts
    (server/spool/saved_counters.py).

    `messages` (and `bytes_`) came from the provider, or were taken out to be sent to it. Of these `delivered` were
    accepted by the other side (at most once: were sent), `duplicates` were known and left out, `returned` went back to
    where they came from, since the connection was lost, `dead_letters` were given up by the link, and `discarded` has
    the others by reason. The rest is in flight. `refused` counts what the other side said no to, each time.
    """

    __slots__ = (*COUNTS, "discarded")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes_ = 0
        self.delivered = 0
        self.duplicates = 0
        self.returned = 0
        self.refused = 0
        self.dead_letters = 0
        self.discarded = DiscardCounts()

    @property
    def outcomes(self) -> int:
        """Messages of which it is known what became of them."""
        known = self.delivered + self.duplicates + self.returned + self.dead_letters
        return known + self.discarded.total()

    def balance(self, in_flight: int) -> None:
        """Set what is in flight by what is there now; an earlier life of the router has left the rest open.

        Messages that are missing are discarded as UNACCOUNTED; those of which nothing was counted are counted.
        """
        missing = self.messages - self.outcomes - in_flight
        if missing > 0:
            self.discarded.add(UNACCOUNTED, missing)
        else:
            self.messages -= missing


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkOwner:
    """What the links of a connector tell it; `link` is the name of one."""

    __slots__ = ()

    def link_changed(self, link: str) -> None:
        """The state or the reason of a link has changed."""

    def gave_up(self, link: str, text: str) -> None:
        """A link has given up a message, as `text` says."""

    def not_delivered(self, link: str, text: str) -> None:
        """A link has given up a message, and no dead message queue takes it, as `text` says."""


@final
class LinkStatus:
    """The state of the link `name` since `since_ns` (monotonic), and the `reason` for it ("" where it needs none).
    `paused`: nothing is to cross.
    """

    __slots__ = ("_held", "_owner", "_reason", "_state", "name", "paused", "since_ns")

    def __init__(
        self, owner: LinkOwner, name: str, *, enabled: bool, now_ns: int, paused: bool = False
    ) -> None:
        self._owner = owner
        self.name = name
        self._state = LinkState.DOWN if enabled else LinkState.DISABLED
        self._reason = ""
        self._held = ""
        self.paused = paused
        self.since_ns = now_ns

    @property
    def state(self) -> LinkState:
        """What the link is doing."""
        if self._state not in ALIVE:
            return self._state
        if self.paused:
            return LinkState.PAUSED
        return LinkState.HELD if self._held else self._state

    @property
    def reason(self) -> str:
        """Why it carries nothing, or less than it should; "" where nothing is wrong with the link."""
        return self._held if self.state in (LinkState.HELD, LinkState.PAUSED) else self._reason

    @property
    def is_open(self) -> bool:
        """Whether it may carry messages over the connection, paused or not."""
        return self._state is LinkState.UP

    @property
    def opens(self) -> bool:
        """Whether the connection is there, and nobody has said yet whether it may carry messages."""
        return self._state is LinkState.OPENING

    def happened(self, event: LinkEvent, now_ns: int, reason: str = "") -> None:
        """Go to the next state for `reason`, if there is one."""
        after = TABLE.get((self._state, event))
        before = self.state
        if after is not None:
            self._state, self._reason = after, reason
            self._tell(before, now_ns)
        elif event is LinkEvent.REFUSED and before is LinkState.REFUSED and reason != self._reason:
            # It was asked for again.
            self._reason = reason
            self._tell(before, now_ns)

    def hold(self, reason: str, now_ns: int) -> None:
        """Note that a message is refused for `reason` and others wait for it; "" that none is."""
        if reason != self._held:
            before = self.state
            self._held = reason
            self._tell(before, now_ns)

    def pause(self, paused: bool, now_ns: int) -> None:
        """Note that nothing is to cross, or that messages cross again."""
        if paused is not self.paused:
            before = self.state
            self.paused = paused
            self._tell(before, now_ns)

    def _tell(self, before: LinkState, now_ns: int) -> None:
        if self.state is not before:
            self.since_ns = now_ns
        self._owner.link_changed(self.name)

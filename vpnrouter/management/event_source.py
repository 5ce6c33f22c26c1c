"""What the management API asks of the event log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, final


@dataclass(frozen=True, slots=True)
class EventStatus:
    """One event of the log."""

    event_id: int
    """Rising by one; the log keeps the last ones."""
    time_ns: int
    """Since 1970."""
    level: str
    """`debug`, `info`, `notice`, `warning` or `error`."""
    scope: str
    """`SYSTEM`, `VPN` or `CLIENT`."""
    event: str
    """The field's name, such as `VPN_BRIDGING_LINK_DOWN`; "" for what has none."""
    msg_vpn_name: str
    """"" for what is the router's as a whole."""
    name: str
    """The client, bridge, queue or listener that it is about; "" for none."""
    text: str
    area: str = ""
    """The part of the router that `logging.levels` has a level for."""


class EventSource(Protocol):
    """The event log of a running router. Called in the router's own thread."""

    def last_event_id(self) -> int:
        """Id of the newest event, 0 for none."""

    def events(
        self, after: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """At most `most` events with ids above `after`, by rising id.

        `sees` says of the name of a message VPN, "" for the router as a whole, whether its events are
        wanted.
        """

    def newest_events(
        self, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """The last `most` events, by rising id; `sees` as above."""


class Audit(Protocol):
    """Where the API tells who changed what. Texts have no secret in them. Called in the router's thread.

    `who` is the user's name, "" for whoever asked from this machine where no users are configured.
    `msg_vpn` is the message VPN that it was about, "" for several or none: who sees only one reads that.
    """

    def acted(self, who: str, what: str, msg_vpn: str = "") -> None:
        """Something was done to clients, queues, bridges or the spool."""

    def denied(self, peer: str, why: str) -> None:
        """A login from address `peer` failed. A name that was given is not told: it may be a password."""


@final
class NoEvents:
    """A router that keeps no log."""

    def last_event_id(self) -> int:
        """See EventSource."""
        return 0

    def events(
        self, after: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """See EventSource."""
        return ()

    def newest_events(
        self, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """See EventSource."""
        return ()


@final
class NoAudit:
    """Nobody hears."""

    def acted(self, who: str, what: str, msg_vpn: str = "") -> None:
        """See Audit."""

    def denied(self, peer: str, why: str) -> None:
        """See Audit."""

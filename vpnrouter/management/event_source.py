"""What the management API asks of the event log and of the traces that go by."""

from collections.abc import Mapping, Sequence
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


class EventSource(Protocol):
    """The event log of a running router. Called in the router's own thread."""

    def last_event_id(self) -> int:
        """Id of the newest event, 0 for none."""

    def events(self, after: int, most: int) -> Sequence[EventStatus]:
        """At most `most` events with ids above `after`, by rising id."""


class TraceTap(Protocol):
    """Routing traces as they happen, for whoever looks. Nothing is kept while nobody does."""

    def rows(self, after: int, most: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """At most `most` trace rows behind mark `after` (0: from now on), and the mark behind the last one.

        Names of columns as in trace files. A tap that is not asked for some seconds lets go of its rows;
        what did not fit its ring is left out.
        """


@final
class NoEvents:
    """A router that keeps no log."""

    def last_event_id(self) -> int:
        """See EventSource."""
        return 0

    def events(self, after: int, most: int) -> Sequence[EventStatus]:
        """See EventSource."""
        return ()


@final
class NoTraces:
    """A router whose traces nobody may look at."""

    def rows(self, after: int, most: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """See TraceTap."""
        return after, ()

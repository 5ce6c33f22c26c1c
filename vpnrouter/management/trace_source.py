"""What the management API asks of the routing traces that go by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final


@dataclass(frozen=True, slots=True)
class TraceWish:
    """Which rows somebody wants to see; "" wants all."""

    topic: str = ""
    """A topic filter in the SMF dialect, checked. It leaves out rows that have no topic."""
    event: str = ""
    """A name of trace/events.py."""
    msg_vpn: str = ""
    trace_id: str = ""
    """32 lower-case hexadecimal digits."""
    seen: frozenset[str] | None = None
    """The message VPNs whose rows may be shown at all, None for those of all."""


@dataclass(frozen=True, slots=True)
class TraceLook:
    """What there is to see behind a mark."""

    mark: int
    """To ask for what comes after this."""
    rows: Sequence[Mapping[str, object]]
    """Names and values of columns as in trace files, and `router`; what is null is left out."""
    missed: int = 0
    """Rows between the marks that fitted the wish, or may have, and are not shown: too many at a time."""
    tracing: bool = True
    """False where the router traces nothing."""


class TraceTap(Protocol):
    """Routing traces as they happen, for whoever looks. Nothing is kept while nobody does.

    Called in the router's own thread.
    """

    def look(self, wish: TraceWish, after: int, most: int) -> TraceLook | None:
        """At most `most` rows behind mark `after` (0: from now on), the oldest first.

        A wish that nobody has come back to for some seconds is forgotten with its rows. None when too many
        different ones are looked at.
        """


@final
class NoTraces:
    """A router that traces nothing."""

    def look(self, wish: TraceWish, after: int, most: int) -> TraceLook | None:
        """See TraceTap."""
        return TraceLook(after, (), tracing=False)

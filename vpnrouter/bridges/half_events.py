"""Defines what the own half of a link reports, and the callbacks that receive it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.own_half import OwnHalf


class HalfEvent(StrEnum):
    """What an own half reports."""

    WELCOMED = "welcomed"
    SUBSCRIBED = "subscribed"
    """All requested subscriptions are answered. A reason names a refused one."""
    DRAINED = "drained"
    """Nothing is subscribed any more, and everything that was on the way has arrived."""
    REFUSED = "refused"
    VERSION_MISMATCH = "version-mismatch"
    BOUND = "bound"
    """The flow of guaranteed messages is bound."""
    UNBOUND = "unbound"
    """The flow is not bound, and will be requested again."""
    STALLED = "stalled"
    """A guaranteed message is refused here and holds back those behind it."""
    RELEASED = "released"
    """No message is held any more."""
    STOPPED = "stopped"
    """A guaranteed message was refused as often as the bridge tolerates, and it is to stop then."""
    PARTED = "parted"
    """Another connection has taken this one's place: nothing more is attracted, and what was sent still arrives."""
    LOST = "lost"
    """The last event: the half is over."""


FLOW_EVENTS: Final = frozenset(
    {
        HalfEvent.BOUND,
        HalfEvent.UNBOUND,
        HalfEvent.STALLED,
        HalfEvent.RELEASED,
        HalfEvent.STOPPED,
    }
)
"""What is about guaranteed messages."""


@mypyc_attr(allow_interpreted_subclasses=True)
class HalfCallbacks:
    """Callbacks of an own half; the bridge's driver implements them."""

    __slots__ = ()

    def on_half_event(self, half: OwnHalf, event: HalfEvent, reason: str) -> None:
        """`reason` is for people, "" where nothing is wrong."""

    def incoming(self, link: Link) -> None:
        """A peer's bridge logged in to the bridge's VPN over `link`, or one of its halves ended."""

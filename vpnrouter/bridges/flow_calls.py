"""How the spool, the lanes and the clock call the receiver of a guaranteed flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.lanes import Steps
from vpnrouter.core.guaranteed.receipt import Receipt
from vpnrouter.core.timers import Timed

if TYPE_CHECKING:
    from vpnrouter.bridges.guaranteed_in import GuaranteedIn
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.plane import Plane
    from vpnrouter.core.timers import Timer

MILLISECOND_NS: Final = 1_000_000

ROOM: Final = -4
"""Token: an endpoint has more room."""


@final
class FlowReceipt(Receipt):
    """Passes on what the spool says."""

    __slots__ = ("_flow",)

    def __init__(self, flow: GuaranteedIn) -> None:
        self._flow = flow

    def party(self) -> Connection | None:
        """The link of the flow."""
        return self._flow.party()

    def settled(self, token: int, outcome: int, reason: str) -> None:
        """Pass the outcome on to the flow."""
        self._flow.settled(token, outcome, reason)


@final
class FlowSteps(Steps):
    """What the lanes may ask for."""

    __slots__ = ("_flow",)

    def __init__(self, flow: GuaranteedIn) -> None:
        self._flow = flow

    def enter(self, position: int) -> bool:
        """See Steps.enter."""
        return self._flow.enter(position)

    def park(self, position: int, number: int) -> bool:
        """See Steps.park."""
        return self._flow.park(position, number)

    def skip(self, position: int) -> bool:
        """See Steps.skip."""
        return self._flow.skip(position)

    def leave(self, number: int) -> bool:
        """See Steps.leave."""
        lot = self._flow.lot
        return lot is not None and lot.leave(number)


@final
class Retry(Timed):
    """When what was refused is tried again: as soon as an endpoint has more room, and after a time."""

    __slots__ = ("_asked_room", "_flow", "_spool", "_timer", "_told")

    def __init__(self, flow: GuaranteedIn, spool: Spool, told: FlowReceipt) -> None:
        self._flow = flow
        self._spool = spool
        self._told = told
        self._timer: Timer | None = None
        self._asked_room = False

    def wait(self, plane: Plane, retry_ms: int) -> None:
        """Something waits."""
        if self._timer is None:
            self._timer = plane.timers.arm(plane.now_ns + retry_ms * MILLISECOND_NS, self, 0)
        if not self._asked_room:
            self._asked_room = True
            self._spool.when_room(self._told, ROOM)

    def room(self) -> None:
        """There is room."""
        self._asked_room = False
        self._flow.retry()

    def party(self) -> Connection | None:
        """The link of the flow."""
        return self._flow.party()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Try again to deliver what was refused."""
        self._timer = None
        self._flow.retry()

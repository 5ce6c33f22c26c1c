"""What the receiver of a guaranteed flow owes its sender: ACK, SETTLED and REJECT, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed import receipt as outcomes
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.codes import PROTOCOL_ERROR, QUOTA_EXCEEDED
from vpnrouter.wire.link.ranges import ranges_of

if TYPE_CHECKING:
    from vpnrouter.bridges.flow_owner import FlowOwner

_OUTCOMES: Final[dict[int, int]] = {
    outcomes.DEMOTED: frames.DEMOTED,
    outcomes.UNMATCHED: frames.NO_ELIGIBLE_DESTINATION,
}
"""What the spool made of a message → outcome of SETTLED; the others are in an endpoint."""


@final
class FlowAnswers:
    """Of the flow that stands; `flow_id` is 0 while none does. `out` are positions that came and were neither
    acknowledged nor given back, at most `window`.
    """

    __slots__ = (
        "_acks",
        "_given_up",
        "_rejects",
        "_settled",
        "_special",
        "_stalled",
        "flow_id",
        "out",
        "owner",
        "window",
    )

    def __init__(self) -> None:
        self.owner: FlowOwner | None = None
        self.flow_id = 0
        self.window = 0
        self.out: set[int] = set()
        self._acks: list[int] = []
        self._settled: list[tuple[int, int]] = []
        self._rejects: list[frames.Reject] = []
        self._special: dict[int, int] = {}
        self._given_up: set[int] = set()
        self._stalled = False

    def opened(self, flow_id: int, window: int) -> None:
        """The flow stands."""
        self.flow_id = flow_id
        self.window = window

    def over(self) -> None:
        """No flow stands any more: nothing is owed to anybody."""
        self.flow_id = 0
        self.out.clear()
        self._acks.clear()
        self._settled.clear()
        self._rejects.clear()
        self._special.clear()
        self._given_up.clear()

    def came(self, position: int) -> None:
        """A message came. Raises ProtocolError for one that is out already, or beyond the window."""
        if position in self.out or len(self.out) >= self.window:
            raise ProtocolError(
                PROTOCOL_ERROR,
                f"LINK-41: position {position}, {len(self.out)} out of {self.window}",
            )
        self.out.add(position)

    def will_be(self, position: int, outcome: int) -> None:
        """When it is stored, SETTLED says this of the message."""
        self._special[position] = outcome

    def give_up(self, position: int) -> None:
        """When the reason is known, the message goes back for good."""
        self._given_up.add(position)

    def stored(self, position: int, outcome: int) -> None:
        """The synced store has the position; `outcome` is the spool's word on it."""
        if not self.flow_id:
            return
        self._acks.append(position)
        told = self._special.pop(position, 0) or _OUTCOMES.get(outcome, 0)
        if told:
            self._settled.append((position, told))

    def refused(self, position: int, reason: str, *, held: bool) -> None:
        """The spool refused the message; `held` says that it waits and holds up the others."""
        owner = self.owner
        if owner is None or not self.flow_id:
            return
        fate = frames.HELD
        if position in self._given_up:
            self._given_up.discard(position)
            self.out.discard(position)
            fate = frames.GIVEN_UP
        elif not held or self._stalled:
            return
        else:
            self._stalled = True
            owner.stalled(reason)
        self._rejects.append(frames.Reject(self.flow_id, position, QUOTA_EXCEEDED, reason, fate))

    def released(self) -> None:
        """Nothing is held up any more."""
        if self._stalled:
            self._stalled = False
            if self.owner is not None:
                self.owner.released()

    @property
    def owes(self) -> bool:
        """True when an ACK would name something."""
        return bool(self._acks)

    def acknowledge(self) -> None:
        """Say what was stored since the last time, then what was refused: it came behind that."""
        owner = self.owner
        if owner is None:
            return
        flow_id = self.flow_id
        for position, told in self._settled:
            owner.say(encode.settled(frames.Settled(flow_id, position, told)))
        self._settled.clear()
        if self._acks:
            self.out.difference_update(self._acks)
            ranges = ranges_of(self._acks)
            self._acks.clear()
            owner.say(encode.ack(frames.Ack(flow_id, self.window, ranges)))
        for reject in self._rejects:
            owner.say(encode.reject(reject))
        self._rejects.clear()

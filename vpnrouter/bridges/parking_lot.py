"""The parking lot of a bridge: an endpoint for what `on_reject: park` sets aside.

A message enters it and leaves it in one unit with its position or its new place, so it is in one of them
whatever breaks. The lot is the only consumer of its endpoint and holds all of it unacknowledged, in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from vpnrouter.bridges.arrival import lane
from vpnrouter.core.discards import TOPIC_PARSE_ERROR
from vpnrouter.core.guaranteed.flow import ACCEPTED, Flow
from vpnrouter.core.guaranteed.flow import REJECTED as REFUSED
from vpnrouter.core.guaranteed.receipt import REJECTED, Receipt
from vpnrouter.core.guaranteed.terms import CONSUME
from vpnrouter.errors import TopicError

if TYPE_CHECKING:
    from vpnrouter.bridges.lanes import Lanes
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message


@final
class _Unheard(Receipt):
    """What leaves the lot has no sender any more."""

    __slots__ = ()

    def settled(self, token: int, outcome: int, reason: str) -> None:
        """Do nothing: nobody waits for it."""


@final
class ParkingLot(Flow):
    """`endpoint` is of kind PARKING, its `max_spooled_msg_count` not above `window`. `lanes_by` is LANES_… of
    frames.py. `unseen` counts messages of before a restart that have not come to light yet: until it is
    0 nobody knows which lanes stand still, and nothing may enter (`ready`).
    """

    __slots__ = ("_coming", "_lanes", "_receipt", "ids", "lanes_by", "unseen")

    def __init__(
        self, endpoint: Endpoint, bridge: str, window: int, lanes: Lanes, lanes_by: int
    ) -> None:
        super().__init__(endpoint, f"#bridge/{bridge}", window)
        self.lanes_by = lanes_by
        self.unseen = endpoint.spooled_count
        self.ids: dict[int, int] = {}
        self._lanes = lanes
        self._coming: deque[int] = deque()
        self._receipt = _Unheard()
        endpoint.bind(self, CONSUME, CONSUME)

    @property
    def ready(self) -> bool:
        """True when all that is parked is known."""
        return self.unseen == 0

    def room(self) -> int:
        """Messages that still fit into the window."""
        return self.window - len(self.unacked)

    def send(self, message_id: int, message: Message, count: int) -> None:
        """See Flow.send: a message is in the lot, found there after a restart or synced just now."""
        if self.unseen:
            self.unseen -= 1
            self.ids[self._lanes.found(lane(message, self.lanes_by))] = message_id
        else:
            self.ids[self._coming.popleft()] = message_id

    def park(self, message: Message, number: int) -> bool:
        """Set a message aside; False when there is no room."""
        endpoint = self.endpoint
        if endpoint.spool.place(endpoint, message):
            return False
        self._coming.append(number)
        return True

    def leave(self, number: int) -> bool:
        """Let a message enter the message VPN; False while it cannot, or is not synced yet."""
        message_id = self.ids.get(number)
        if message_id is None:
            return False
        parked = self.unacked.get(message_id)
        if parked is not None:
            endpoint = self.endpoint
            message = parked.copy()
            message.retain = parked.retain
            try:
                outcome = endpoint.spool.publish(endpoint.vpn, message, self._receipt, number)
            except TopicError:
                # A limit of the message VPN was lowered while the message was parked: it can never enter.
                endpoint.vpn.discards.add(TOPIC_PARSE_ERROR)
                endpoint.settle(self, message_id, REFUSED)
                del self.ids[number]
                return True
            if outcome == REJECTED:
                return False
            endpoint.settle(self, message_id, ACCEPTED)
        # Else an operator took it away.
        del self.ids[number]
        return True

    def close(self) -> None:
        """Let go of the endpoint: what is in it waits there for another lot."""
        self.endpoint.unbind(self, counts=False)
        self.ids.clear()
        self._coming.clear()

    def unbound(self, reason: str) -> None:
        """See Flow.unbound: the bridge is deleted, and the lot with it."""
        self.ids.clear()
        self._coming.clear()

"""The receiver of a guaranteed flow: takes messages into the message VPN, once each, and acknowledges them.

It lives as long as its bridge; connections come and go under it. Nothing is acknowledged before the commit
that holds message and position (LINK-42), nothing that was accepted is taken twice (LINK-49).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges import arrival
from vpnrouter.bridges.flow_answers import FlowAnswers
from vpnrouter.bridges.flow_binding import FlowBinding
from vpnrouter.bridges.flow_calls import FlowReceipt, FlowSteps, Retry
from vpnrouter.bridges.lanes import Lanes
from vpnrouter.bridges.taken import Taken
from vpnrouter.core.discards import DUPLICATE, REFUSED, RETURNED, TOPIC_PARSE_ERROR
from vpnrouter.core.guaranteed.receipt import REJECTED, SPOOLED
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.codes import PROTOCOL_ERROR

if TYPE_CHECKING:
    from vpnrouter.bridges.accepted import Accepted
    from vpnrouter.bridges.flow_owner import FlowOwner
    from vpnrouter.bridges.flow_terms import FlowTerms
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.bridges.parking_lot import ParkingLot
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn

_ACK: Final = -1
_UNBOUND: Final = -3
_BIND: Final = -16
"""Tokens of receipts that are no messages; those of messages are positions, 0 and above. A BIND has `_BIND` or less."""


@final
class GuaranteedIn:
    """The flow of one bridge of `vpn`. `key` is where `accepted` is stored. `lot` is its parking lot, if it
    has one: set it right after construction, and call `flush`, so that what is parked is tried again.

    `received` counts messages, `taken` those that were accepted, `refusals` times that the message VPN said
    no, `duplicates` messages that came again after they were accepted.
    """

    __slots__ = (
        "_answers",
        "_binding",
        "_client",
        "_due",
        "_ending",
        "_leaving",
        "_messages",
        "_path",
        "_retry",
        "_taken",
        "_told",
        "accepted",
        "duplicates",
        "lanes",
        "lot",
        "received",
        "refusals",
        "spool",
        "taken",
        "terms",
        "vpn",
    )

    def __init__(
        self, vpn: MessageVpn, spool: Spool, key: bytes, accepted: Accepted, terms: FlowTerms
    ) -> None:
        self.vpn = vpn
        self.spool = spool
        self.accepted = accepted
        self.terms = terms
        self.lanes = Lanes(FlowSteps(self), terms.on_reject)
        self.lot: ParkingLot | None = None
        self.received = 0
        self.taken = 0
        self.refusals = 0
        self.duplicates = 0
        self._taken = Taken(spool, key, accepted)
        self._told = FlowReceipt(self)
        self._retry = Retry(self, spool, self._told)
        self._answers = FlowAnswers()
        self._client: LinkClient | None = None
        self._path: list[str] = []
        self._binding = FlowBinding()
        # The flow ends, from the other side or (`_leaving`) from this one, when what was taken is stored.
        self._ending: frames.Unbind | None = None
        self._leaving = False
        self._messages: dict[int, Message] = {}
        # Something is to be acknowledged after the next sync.
        self._due = False

    # -- the flow comes and goes -----------------------------------------------------------------

    @property
    def flow_id(self) -> int:
        """The flow that stands, 0 for none."""
        return self._answers.flow_id

    @property
    def held(self) -> int:
        """Messages that came, and wait in memory for the message VPN to take them."""
        return len(self._messages)

    def take(self, terms: FlowTerms) -> None:
        """Go on under other terms: for what comes, and for what is tried again."""
        self.terms = terms
        self.lanes.policy = terms.on_reject

    def start(self, owner: FlowOwner, client: LinkClient, queue: str, window: int) -> None:
        """Bind `queue` over a link that is up. BIND leaves when all that was accepted is synced."""
        self._answers.owner = owner
        self._client = client
        self._path = [client.vpn_id]
        self.flush()
        number = self._binding.want(queue, window)
        self.spool.when_synced(self._told, _BIND - number)

    def _bind(self, number: int) -> None:
        due = self._binding.due(number)
        lot = self.lot
        if lot is not None and not lot.ready:
            # Nobody knows yet which lanes stand still.
            self._binding.unready = True
            return
        owner = self._answers.owner
        # Without an owner it was asked for over an earlier connection.
        if due and owner is not None and not self._answers.flow_id:
            owner.say(self._binding.ask(self.accepted, self.terms))

    def on_bound(self, frame: frames.Bound) -> None:
        """BOUND (LINK-40). Raises ProtocolError for an answer to nothing."""
        owner = self._answers.owner
        binding = self._binding
        if owner is None:
            return
        if binding.unwanted(frame):
            if not frame.code:
                owner.say(binding.leave(frame.flow_id, 0, ""))
            return
        if self._answers.flow_id:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-40: BOUND without BIND")
        if not binding.answered(frame):
            owner.unbound(frame.code, frame.reason)
            return
        self._taken.open(frame.store_id, binding.queue, binding.settled(frame))
        self._answers.opened(frame.flow_id, min(binding.window, frame.window))
        owner.bound()

    def stop(self, code: int, reason: str) -> None:
        """End the flow from this side, at once; the link stays."""
        owner = self._answers.owner
        if owner is not None and self._answers.flow_id:
            owner.say(self._binding.leave(self._answers.flow_id, code, reason))
        else:
            self._binding.give_up()
        self._over()

    def finish(self, code: int, reason: str) -> None:
        """End the flow from this side when all that was taken is acknowledged; `unbound` is told then."""
        owner = self._answers.owner
        if owner is None:
            return
        flow_id = self._answers.flow_id
        if not flow_id:
            self.stop(code, reason)
            owner.unbound(code, reason)
        elif self._ending is None:
            self._leaving = True
            self._end(frames.Unbind(flow_id, code, reason))

    def _end(self, ending: frames.Unbind) -> None:
        self._drop()
        self.flush()
        self._ending = ending
        self.spool.when_synced(self._told, _UNBOUND)

    def on_unbind(self, frame: frames.Unbind) -> None:
        """The sender ends the flow: what is being stored is acknowledged, then UNBOUND says so."""
        owner = self._answers.owner
        if self._mine(frame.flow_id):
            self._leaving = False
            self._end(frame)
        elif owner is not None:
            owner.say(encode.unbound(frames.Unbound(frame.flow_id)))

    def _ended(self) -> None:
        ending = self._ending
        owner = self._answers.owner
        if ending is None or owner is None:
            return
        if self._leaving:
            self.stop(ending.code, ending.reason)
        else:
            owner.say(encode.unbound(frames.Unbound(ending.flow_id)))
            self._over()
        owner.unbound(ending.code, ending.reason)

    def on_unbound(self, frame: frames.Unbound) -> None:
        """The sender has heard our UNBIND."""
        self._binding.heard(frame.flow_id)

    def party(self) -> Connection | None:
        """The link under the flow, None while there is none."""
        owner = self._answers.owner
        return None if owner is None else owner.party()

    def serves(self, owner: FlowOwner) -> bool:
        """True when it was started for `owner` last and has not been detached since."""
        return self._answers.owner is owner

    def detach(self) -> None:
        """The link is lost; what was not acknowledged will come again."""
        self._drop_held()
        self._answers.owner = None
        self._client = None
        self._over()
        self._binding.cut()

    def _over(self) -> None:
        self._drop()
        self._answers.over()
        self._binding.over()
        self._ending = None
        self._leaving = False
        self._taken.close()
        self.flush()

    def _drop(self) -> None:
        self._drop_held()
        self._answers.released()

    def _drop_held(self) -> None:
        self.lanes.drop()
        # All of them wait in the lanes, unless handling one of them raised.
        dropped = len(self._messages)
        self._messages.clear()
        owner = self._answers.owner
        if dropped and owner is not None:
            owner.returned(dropped, RETURNED)

    # -- messages --------------------------------------------------------------------------------

    def on_message(self, frame: frames.Guaranteed, size: int = 0) -> None:
        """GUARANTEED, a frame of `size` bytes (LINK-41). Raises ProtocolError for more than was allowed."""
        taken, client, owner = self._taken, self._client, self._answers.owner
        if owner is None or client is None:
            return
        if not self._mine(frame.flow_id) or not taken.is_open or self._ending is not None:
            owner.passed_over(size, RETURNED)
            return
        position = frame.position
        if taken.has(position):
            self.duplicates += 1
            self._due = True
            self.spool.when_synced(self._told, position)
            owner.passed_over(size, DUPLICATE)
            return
        self._answers.came(position)
        if taken.count + len(self._messages) >= limits.LINK_FLOW_POSITIONS:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-42: too many positions to remember")
        if self.spool.fault is not None:
            self.spool.fault("bridge-received")
        self.received += 1
        message = arrival.arrived(frame, client, self._path, self.vpn.plane)
        owner.received(message, size)
        self._messages[position] = message
        reason = arrival.enters(message, self.vpn, self.terms, self._binding.queue)
        if reason in arrival.NEVER:
            self._refuse(position, reason)
        elif reason:
            self._discard(position, reason)
        else:
            self.lanes.arrive(position, arrival.lane(message, self.terms.lanes))

    def enter(self, position: int) -> bool:
        """See Steps.enter."""
        message = self._messages[position]
        # Message and position are both in the unit, or neither is.
        try:
            self._taken.add(position)
            outcome = self.spool.publish(self.vpn, message, self._told, position)
        except TopicError:
            # Good enough for the sender's VPN but not for ours, and never will be.
            self._taken.take_back(position)
            self._refuse(position, TOPIC_PARSE_ERROR)
            return True
        except Exception:
            if not self.spool.has_taken(message):
                self._taken.take_back(position)
            raise
        if outcome == REJECTED:
            self._taken.take_back(position)
            self.refusals += 1
            self._due = True
            return False
        del self._messages[position]
        self.taken += 1
        self._due = True
        self._entered(outcome)
        return True

    def park(self, position: int, number: int) -> bool:
        """See Steps.park."""
        lot = self.lot
        if lot is None or not lot.park(self._messages[position], number):
            return False
        self._answers.will_be(position, frames.PARKED)
        self._accept(position)
        self._entered(SPOOLED)
        self.spool.when_synced(self._told, position)
        return True

    def _entered(self, outcome: int) -> None:
        owner = self._answers.owner
        if owner is not None:
            owner.entered(outcome)

    def skip(self, position: int) -> bool:
        """See Steps.skip. A spool that takes nothing at all is no fault of the message."""
        if self.spool.down:
            return False
        del self._messages[position]
        self._answers.give_up(position)
        owner = self._answers.owner
        if owner is not None:
            owner.returned(1, REFUSED)
        return True

    def _refuse(self, position: int, reason: str) -> None:
        """Give a message back for good: someone is to find it in the dead message queue (LINK-43)."""
        message = self._messages.pop(position)
        self.refusals += 1
        self._due = True
        self._answers.give_up(position)
        self._answers.refused(position, arrival.NEVER[reason], held=False)
        owner = self._answers.owner
        if owner is not None:
            owner.discarded(message, reason)

    def _discard(self, position: int, reason: str) -> None:
        message = self._messages[position]
        self._answers.will_be(position, frames.DISCARDED)
        self._accept(position)
        self.spool.when_synced(self._told, position)
        owner = self._answers.owner
        if owner is not None:
            owner.discarded(message, reason)

    def _accept(self, position: int) -> None:
        del self._messages[position]
        self._taken.add(position)
        self.taken += 1
        self._due = True

    def on_forget(self, frame: frames.Forget) -> None:
        """FORGET (LINK-42)."""
        if self._mine(frame.flow_id):
            self._taken.forget(frame.ranges)

    def _mine(self, flow_id: int) -> bool:
        """True when this is the flow that is bound. Raises ProtocolError for a flow that never was."""
        if flow_id and flow_id == self._answers.flow_id:
            return True
        if not self._binding.has_left(flow_id):
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-40: flow {flow_id} is not bound")
        return False

    # -- rounds ----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Put into the unit being built what belongs to its messages; after each chunk of input."""
        self._taken.write()
        if self._due:
            self._due = False
            self.spool.when_synced(self._told, _ACK)
        lot = self.lot
        if self.lanes.waiting or (lot is not None and not lot.ready):
            self._retry.wait(self.vpn.plane, self.terms.retry_ms)

    def retry(self) -> None:
        """Try what was refused once more."""
        self.lanes.retry()
        if not self.lanes.held:
            self._answers.released()
        lot = self.lot
        if self._binding.unready and lot is not None and lot.ready:
            self._binding.unready = False
            self._bind(self._binding.asked)
        self.flush()

    def settled(self, token: int, outcome: int, reason: str) -> None:
        """Handle the outcome of a message, or the sync of something else, by its token."""
        if token >= 0:
            if outcome == REJECTED:
                self._answers.refused(token, reason, held=token in self._messages)
            else:
                self._answers.stored(token, outcome)
        elif token == _ACK:
            if self.spool.fault is not None and self._answers.owes:
                self.spool.fault("bridge-ack-before-send")
            self._answers.acknowledge()
        elif token <= _BIND:
            self._bind(_BIND - token)
        elif token == _UNBOUND:
            self._ended()
        else:
            self._retry.room()

"""Receives a guaranteed flow: publishes each message once in the message VPN, and acknowledges it.

The receiver lives as long as its bridge, over all connections. Nothing is acknowledged before the commit
that holds message and position (LINK-42), nothing that was accepted is taken twice (LINK-49).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.bridges import receive
from vpnrouter.bridges.parking_lot import (
    BLOCK,
    DROP,
    ENTERED,
    LATER,
    PARK,
    SKIP,
    LaneActions,
    LaneOrder,
)
from vpnrouter.bridges.parking_lot import REFUSED as NOT_NOW
from vpnrouter.bridges.received_positions import AcceptedPositions, PositionSet
from vpnrouter.core.discard_reasons import (
    DUPLICATE,
    REFUSED,
    RETURNED,
    TOPIC_PARSE_ERROR,
    TTL_EXPIRED,
)
from vpnrouter.core.guaranteed import unit_of_work as outcomes
from vpnrouter.core.guaranteed.dead_letters import Passage
from vpnrouter.core.guaranteed.failure_policy import (
    CROSS,
    DEAD_LETTER,
    STOP,
    TOO_LATE_TO_ENTER,
)
from vpnrouter.core.guaranteed.failure_policy import PARK as PARK_THEN
from vpnrouter.core.guaranteed.failure_policy import SKIP as SKIP_THEN
from vpnrouter.core.guaranteed.flow_selection import FlowSelection
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, CompletionCallback
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.units import MILLISECOND_NS
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.codes import PROTOCOL_ERROR, QUOTA_EXCEEDED
from vpnrouter.wire.link.ranges import ranges_of

if TYPE_CHECKING:
    from vpnrouter.bridges.dead_letters import DeadLetters
    from vpnrouter.bridges.flow_sender import FlowCallbacks
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.bridges.parking_lot import ParkingLot
    from vpnrouter.bridges.received_positions import ReceivedPositions
    from vpnrouter.bridges.remote_settings import FlowSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn


_OUTCOMES: Final[dict[int, int]] = {
    outcomes.DEMOTED: frames.DEMOTED,
    outcomes.UNMATCHED: frames.NO_ELIGIBLE_DESTINATION,
}
"""What the spool made of a message → outcome of SETTLED; the others are in an endpoint."""

_FATES: Final[dict[str, int]] = {DEAD_LETTER: SKIP, PARK_THEN: PARK, SKIP_THEN: DROP}
"""What is done with a message that was refused too often → what that is in its lane."""


@final
class FlowAcks:
    """What a bound flow has to acknowledge; `flow_id` is 0 while none is bound. `out` are positions that were received
    and neither acknowledged nor given back, at most `window`.
    """

    __slots__ = (
        "_acks",
        "_given_up",
        "_rejects",
        "_settled",
        "_special",
        "_stalled",
        "flow_id",
        "granted",
        "out",
        "owner",
        "window",
    )

    def __init__(self) -> None:
        self.owner: FlowCallbacks | None = None
        self.flow_id = 0
        self.window = 0
        self.granted = 0
        self.out: set[int] = set()
        self._acks: list[int] = []
        self._settled: list[tuple[int, int]] = []
        self._rejects: list[frames.Reject] = []
        self._special: dict[int, int] = {}
        self._given_up: set[int] = set()
        self._stalled = False

    def opened(self, flow_id: int, window: int) -> None:
        """Note that the flow is bound, with its id and window."""
        self.flow_id = flow_id
        self.window = self.granted = window

    def narrow(self, window: int) -> bool:
        """Let so many messages be on the way from now on; False for more than were granted, or for no flow."""
        owner = self.owner
        if owner is None or not self.flow_id or window > self.granted:
            return False
        if window != self.window:
            self.window = window
            owner.say(encode.ack(frames.Ack(self.flow_id, window, [])))
        return True

    def over(self) -> None:
        """Drop all pending answers: no flow is bound any more."""
        self.flow_id = 0
        self.out.clear()
        self._acks.clear()
        self._settled.clear()
        self._rejects.clear()
        self._special.clear()
        self._given_up.clear()

    def came(self, position: int) -> None:
        """Note a received message. Raises ProtocolError for a position in flight already, or beyond the window."""
        # What was on its way when the window became narrower still comes.
        if position in self.out or len(self.out) >= self.granted:
            raise ProtocolError(
                PROTOCOL_ERROR,
                f"LINK-41: position {position}, {len(self.out)} out of {self.granted}",
            )
        self.out.add(position)

    def will_be(self, position: int, outcome: int) -> None:
        """Have SETTLED say `outcome` of the message when it is stored."""
        self._special[position] = outcome

    def give_up(self, position: int) -> None:
        """Give the message back for good when the reason is known."""
        self._given_up.add(position)

    def stored(self, position: int, outcome: int) -> None:
        """Acknowledge a position that the synced store has; `outcome` is the spool's word on it."""
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
        """Report that nothing is held any more."""
        if self._stalled:
            self._stalled = False
            if self.owner is not None:
                self.owner.released()

    @property
    def owes(self) -> bool:
        """True when an ACK would name something."""
        return bool(self._acks)

    def acknowledge(self) -> None:
        """Send what was stored since the last time, then what was refused after it."""
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


@final
class FlowBinding:
    """The binding of a flow to a remote queue. `queue` is the one to bind, "" for none, with at most `window` messages
    in flight. `unready`: BIND waits for the parking lot. `asked` is the number of the last BIND.
    """

    __slots__ = (
        "_left",
        "_named",
        "_request_id",
        "_synced",
        "_unwanted",
        "asked",
        "queue",
        "unready",
        "window",
    )

    def __init__(self) -> None:
        self.queue = ""
        self.window = 0
        self.unready = False
        self._request_id = 0
        self.asked = 0
        # The last BIND that is synced, requests whose answers are not wanted any more, flows that end.
        self._synced = 0
        self._unwanted: set[int] = set()
        self._left: set[int] = set()
        self._named: dict[bytes, list[tuple[int, int]]] = {}

    def want(self, queue: str, window: int) -> int:
        """Note that BIND is to be sent after the next sync. Returns its number."""
        self.queue = queue
        self.window = window
        self.asked += 1
        return self.asked

    def due(self, number: int) -> bool:
        """Note that BIND `number` is synced. False where a later one was wanted, or nothing is wanted any more.

        BINDs are numbered, not counted: if the receipt of one raised, those behind it go on all the same.
        """
        self._synced = max(self._synced, number)
        return number == self.asked and self.queue != ""

    def ask(self, accepted: ReceivedPositions, terms: FlowSettings) -> bytes:
        """The BIND for what is wanted."""
        self._request_id += 1
        self._named = accepted.named(self.queue)
        frame = frames.Bind(self._request_id, self.queue, self.window, accepted=self._named)
        frame.selector = terms.selector
        frame.lanes = terms.lanes
        frame.on_reject = terms.on_reject
        return encode.bind(frame)

    def unwanted(self, frame: frames.Bound) -> bool:
        """Return whether this answers a request that was given up."""
        if frame.request_id not in self._unwanted:
            return False
        self._unwanted.discard(frame.request_id)
        return True

    def answered(self, frame: frames.Bound) -> bool:
        """True when the flow is bound now. Raises ProtocolError for an answer to nothing."""
        if frame.request_id != self._request_id:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-40: BOUND without BIND")
        if frame.code or not frame.flow_id:
            self.queue = ""
            return False
        return True

    def settled(self, frame: frames.Bound) -> list[tuple[int, int]]:
        """The positions that BIND named of the sender's store and BOUND does not keep: the sender has settled them."""
        named = self._named.pop(frame.store_id, [])
        if not frame.kept:
            return named
        left = PositionSet()
        for first, count in named:
            left.fill(first, count)
        for first, count in frame.kept:
            left.remove(first, count)
        return left.ranges()

    def give_up(self) -> None:
        """Drop the answer to the pending request, if there is one."""
        if self.queue and self._request_id and self._synced == self.asked:
            self._unwanted.add(self._request_id)

    def leave(self, flow_id: int, code: int, reason: str) -> bytes:
        """The UNBIND for a flow."""
        self._left.add(flow_id)
        return encode.unbind(frames.Unbind(flow_id, code, reason))

    def has_left(self, flow_id: int) -> bool:
        """True while UNBIND was sent for this flow and is not answered."""
        return flow_id in self._left

    def heard(self, flow_id: int) -> None:
        """Note that UNBOUND was received for a flow that was left."""
        self._left.discard(flow_id)

    def over(self) -> None:
        """Forget the queue: no flow is wanted any more."""
        self.queue = ""
        self.unready = False

    def cut(self) -> None:
        """Expect no answers any more: the link is lost."""
        self._left.clear()
        self._unwanted.clear()


ROOM: Final = -4
"""Token: an endpoint has more room."""


@final
class FlowOutcome(CompletionCallback):
    """Passes on what the spool says."""

    __slots__ = ("_flow",)

    def __init__(self, flow: FlowReceiver) -> None:
        self._flow = flow

    def owning_connection(self) -> Connection | None:
        """The link of the flow."""
        return self._flow.owning_connection()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Pass the outcome on to the flow."""
        self._flow.on_outcome(token, outcome, reason)


@final
class FlowLaneActions(LaneActions):
    """The actions of `LaneOrder` on a flow."""

    __slots__ = ("_flow",)

    def __init__(self, flow: FlowReceiver) -> None:
        self._flow = flow

    def enter(self, position: int) -> int:
        """Have the flow let the message at `position` enter the message VPN: ENTERED, REFUSED or LATER."""
        return self._flow.enter(position)

    def park(self, position: int, number: int) -> bool:
        """Have the flow set the message at `position` aside under `number`; False when it could not."""
        return self._flow.park(position, number)

    def fate(self, position: int, policy: int) -> int:
        """Have the flow count a refusal of the message at `position`; BLOCK, PARK, SKIP or DROP."""
        return self._flow.fate(position, policy)

    def skip(self, position: int) -> bool:
        """Have the flow give the message at `position` up for good; False when it could not."""
        return self._flow.skip(position)

    def drop(self, position: int) -> bool:
        """Have the flow discard the message at `position`."""
        return self._flow.drop(position)

    def leave(self, number: int) -> int:
        """Let the message that is parked under `number` enter the message VPN: ENTERED, REFUSED or LATER."""
        return self._flow.leave(number)


@final
class FlowLaneSelection(FlowSelection):
    """The evaluation of selectors for a flow."""

    __slots__ = ("_flow",)

    def __init__(self, flow: FlowReceiver, vpn: MessageVpn, spool: Spool) -> None:
        super().__init__(vpn, spool)
        self._flow = flow

    @override
    def go_on(self) -> None:
        self._flow.go_on()

    @override
    def owning_connection(self) -> Connection | None:
        return self._flow.owning_connection()


@final
class Retry(TimerTarget):
    """When what was refused is tried again: as soon as an endpoint has more room, and after a time."""

    __slots__ = ("_asked_room", "_flow", "_spool", "_timer", "_told")

    def __init__(self, flow: FlowReceiver, spool: Spool, told: FlowOutcome) -> None:
        self._flow = flow
        self._spool = spool
        self._told = told
        self._timer: Timer | None = None
        self._asked_room = False

    def wait(self, context: RouterContext, retry_ms: int) -> None:
        """Try again in `retry_ms`, and when the spool has room."""
        if self._timer is None:
            self._timer = context.timers.arm(context.now_ns + retry_ms * MILLISECOND_NS, self, 0)
        if not self._asked_room:
            self._asked_room = True
            self._spool.when_room(self._told, ROOM)

    def room(self) -> None:
        """Try again, because the spool has room."""
        self._asked_room = False
        self._flow.retry()

    def owning_connection(self) -> Connection | None:
        """The link of the flow."""
        return self._flow.owning_connection()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Try again to deliver what was refused."""
        self._timer = None
        self._flow.retry()


_ACK: Final = -1
_UNBOUND: Final = -3
_BIND: Final = -16
"""Tokens of receipts that are no messages; those of messages are positions, 0 and above. A BIND has `_BIND` or less."""


@final
class FlowReceiver:
    """The flow of one bridge of `vpn`. `key` is where `accepted` is stored. `lot` is its parking lot, if it
    has one: set it right after construction, and call `flush`, so that what is parked is tried again. `dead_letters`
    has what `name`, the bridge, has given up, None where that goes back to the remote.

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
        "_times_refused",
        "_told",
        "accepted",
        "dead_letters",
        "duplicates",
        "lanes",
        "lot",
        "name",
        "received",
        "refusals",
        "selection",
        "spool",
        "taken",
        "terms",
        "unmatched",
        "vpn",
    )

    def __init__(
        self,
        vpn: MessageVpn,
        spool: Spool,
        key: bytes,
        accepted: ReceivedPositions,
        terms: FlowSettings,
        name: str = "",
    ) -> None:
        self.vpn = vpn
        self.name = name
        self.spool = spool
        self.accepted = accepted
        self.terms = terms
        self.lanes = LaneOrder(FlowLaneActions(self), terms.on_reject)
        self.selection = FlowLaneSelection(self, vpn, spool)
        self.lot: ParkingLot | None = None
        self.dead_letters: DeadLetters | None = None
        # How often a message was refused, and when that was counted last: by position, or less than 0 by the number
        # under which it is parked.
        self._times_refused: dict[int, tuple[int, int]] = {}
        self.received = 0
        self.taken = 0
        self.refusals = 0
        self.duplicates = 0
        self.unmatched = 0
        self._taken = AcceptedPositions(spool, key, accepted)
        self._told = FlowOutcome(self)
        self._retry = Retry(self, spool, self._told)
        self._answers = FlowAcks()
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
        """Id of the bound flow, 0 for none."""
        return self._answers.flow_id

    @property
    def held(self) -> int:
        """Messages received that wait in memory until the message VPN takes them."""
        return len(self._messages)

    def take(self, terms: FlowSettings) -> None:
        """Use other settings, for new messages and for those that are retried."""
        was_paused = self.terms.paused
        self.terms = terms
        self.lanes.policy = terms.on_reject
        if terms.paused:
            # What is held is not refused now.
            self._answers.released()
        elif was_paused:
            self.retry()

    def narrow(self, window: int) -> bool:
        """Have at most so many messages on the way over the flow that is bound; False where that takes another BIND."""
        if self._ending is not None or not self._answers.narrow(window):
            return False
        self._binding.window = window
        return True

    def start(self, owner: FlowCallbacks, client: LinkClient, queue: str, window: int) -> None:
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
        """Act on BOUND (LINK-40). Raises ProtocolError for an answer to nothing."""
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
        """End the flow from this side when all accepted messages are acknowledged; `unbound` is called then."""
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
        """Note that the sender has heard our UNBIND."""
        self._binding.heard(frame.flow_id)

    def owning_connection(self) -> Connection | None:
        """The link under the flow, None while there is none."""
        owner = self._answers.owner
        return None if owner is None else owner.owning_connection()

    def serves(self, owner: FlowCallbacks) -> bool:
        """True when it was started for `owner` last and has not been detached since."""
        return self._answers.owner is owner

    def detach(self) -> None:
        """Detach from the lost link. What was not acknowledged will be sent again."""
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
        if self.selection.held:
            self.selection.drop()
        # All of them wait in the lanes, unless handling one of them raised.
        dropped = len(self._messages)
        self._messages.clear()
        for position in [one for one in self._times_refused if one >= 0]:
            del self._times_refused[position]
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
        message = receive.arrived(frame, client, self._path, self.vpn.context)
        owner.received(message, size)
        self._messages[position] = message
        reason = receive.enters(message, self.vpn, self.terms, self._binding.queue)
        if reason in receive.NEVER:
            self._refuse(position, reason, receive.NEVER[reason])
        elif reason:
            self._discard(position, reason)
        else:
            self.lanes.arrive(position, receive.lane(message, self.terms.lanes))

    def enter(self, position: int) -> int:
        """Publish the message at `position` in the message VPN: ENTERED, REFUSED by the spool, or LATER. A message
        whose topic is not valid here is rejected for good, which counts as ENTERED.
        """
        if self.terms.paused:
            return LATER
        message = self._messages[position]
        if message.expires_ns and self._expires(position, message):
            return ENTERED
        try:
            route = self.vpn.route(message.topic)
            if route.selector_cost:
                if not self.selection.ready(route, message, message, held=True):
                    return LATER
                try:
                    outcome = self._publish(position, message)
                finally:
                    self.selection.entered(message)
            else:
                outcome = self._publish(position, message)
        except TopicError:
            # Good enough for the sender's VPN but not for ours, and never will be.
            self._refuse(position, TOPIC_PARSE_ERROR, receive.NEVER[TOPIC_PARSE_ERROR])
            return ENTERED
        if outcome == REJECTED:
            self.refusals += 1
            self._due = True
            return NOT_NOW
        del self._messages[position]
        if self._times_refused:
            self._times_refused.pop(position, (0, 0))
        self.taken += 1
        if outcome == outcomes.UNMATCHED:
            self.unmatched += 1
        self._due = True
        self._entered(outcome)
        return ENTERED

    def _publish(self, position: int, message: Message) -> int:
        """Give the message to the spool. It and its position are both in the unit, or neither is."""
        try:
            self._taken.add(position)
            outcome = self.spool.publish(self.vpn, message, self._told, position)
        except Exception:
            if not self.spool.has_taken(message):
                self._taken.take_back(position)
            raise
        if outcome == REJECTED:
            self._taken.take_back(position)
        return outcome

    def park(self, position: int, number: int) -> bool:
        """Put the message at `position` into the parking lot under `number`; False when there is no room."""
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

    def fate(self, position: int, policy: int) -> int:
        """Return what is done with the message at `position`, which was refused, under `policy`: BLOCK, PARK, SKIP or
        DROP.
        """
        then = self._too_often(position)
        if then == STOP:
            self._stop(self._why_refused(self._messages[position]))
            return BLOCK
        return policy if then == "" else _FATES[then]

    def _too_often(self, number: int) -> str:
        """Count that a message was refused, by its position or less than 0; return what is to be done with it then, ""
        where it is to be tried again.
        """
        policy = self.terms.failures
        if not policy.reject_attempts or self.spool.down:
            return ""
        count, counted_ns = self._times_refused.get(number, (0, 0))
        now_ns = self.vpn.context.now_ns
        if count and now_ns - counted_ns < self.terms.retry_ms * MILLISECOND_NS:
            # Room anywhere has it tried again: that says nothing of this message.
            return ""
        count += 1
        self._times_refused[number] = (count, now_ns)
        return policy.then if count >= policy.reject_attempts else ""

    def _why_refused(self, message: Message) -> str:
        try:
            return self.spool.foreseen(self.vpn, message) or REFUSED
        except TopicError as error:
            return str(error)

    def _stop(self, why: str) -> None:
        owner = self._answers.owner
        if owner is not None:
            owner.stopped(
                f"a message was refused {self.terms.failures.reject_attempts} times: {why}"
            )

    def skip(self, position: int) -> bool:
        """Give the message at `position` up for good; False while the spool is down.

        A spool that takes nothing at all is no fault of the message.
        """
        if self.spool.down:
            return False
        if self.dead_letters is not None:
            return self._bury(position, self._why_refused(self._messages[position]), REFUSED)
        self._times_refused.pop(position, (0, 0))
        del self._messages[position]
        self._answers.give_up(position)
        owner = self._answers.owner
        if owner is not None:
            owner.returned(1, REFUSED)
        return True

    def drop(self, position: int) -> bool:
        """Discard the message at `position`."""
        self._discard(position, REFUSED)
        return True

    def _expires(self, position: int, message: Message) -> bool:
        """Do with a message whose life time is over what the bridge is to do with such ones; False where it enters."""
        policy = self.terms.failures.expired
        if policy == CROSS or message.expires_ns > self.vpn.context.now_ns:
            return False
        if policy == DEAD_LETTER:
            self._refuse(position, TTL_EXPIRED, TOO_LATE_TO_ENTER)
        else:
            self._discard(position, TTL_EXPIRED)
        return True

    def _bury(self, position: int, why: str, reason: str) -> bool:
        """Have the message at `position` be a dead letter here; False where there is no room for it."""
        dead_letters = self.dead_letters
        message = self._messages[position]
        if dead_letters is None or not dead_letters.put(
            message, why, self._said_of(message, position, reason)
        ):
            return False
        self._answers.will_be(position, frames.PARKED)
        self._accept(position)
        self.spool.when_synced(self._told, position)
        owner = self._answers.owner
        if owner is not None:
            owner.returned(1, reason)
        return True

    def _said_of(self, message: Message, number: int, reason: str) -> list[tuple[str, str]]:
        client = self._client
        remote = "" if client is None else client.vpn_id
        context = self.vpn.context
        topic = message.topic.decode(errors="replace")
        passage = Passage(
            f"bridge {self.name}", self._binding.queue, remote, topic, self.vpn.vpn_id
        )
        return passage.pairs(message, reason, number, context.wall_ns)

    def _refuse(self, position: int, reason: str, why: str) -> None:
        """Give a message up, as a dead letter here, or back for good: someone is to find it in the dead message queue
        (LINK-43).
        """
        self.refusals += 1
        self._due = True
        if self._bury(position, why, reason):
            return
        message = self._messages.pop(position)
        self._answers.give_up(position)
        self._answers.refused(position, why, held=False)
        owner = self._answers.owner
        if owner is not None:
            owner.discarded(message, reason)

    # -- what is parked --------------------------------------------------------------------------

    def leave(self, number: int) -> int:
        """Let the message that is parked under `number` enter the message VPN: ENTERED, REFUSED or LATER. One that has
        been refused too often, or has expired, is given up, which counts as ENTERED.
        """
        lot = self.lot
        if lot is None or self.terms.paused:
            return NOT_NOW
        parked = lot.message(number)
        policy = self.terms.failures
        now_ns = self.vpn.context.now_ns
        if parked is not None and policy.expired != CROSS and 0 < parked.expires_ns <= now_ns:
            dies = policy.expired == DEAD_LETTER
            return self._give_up_parked(
                lot, number, parked, TTL_EXPIRED, TOO_LATE_TO_ENTER, dies=dies
            )
        answer = lot.leave(number, self.selection)
        if answer != NOT_NOW:
            self._times_refused.pop(-number, (0, 0))
            return answer
        then = "" if parked is None else self._too_often(-number)
        if parked is None or then in ("", PARK_THEN):
            return answer
        why = self._why_refused(parked)
        if then == STOP:
            self._stop(why)
            return answer
        return self._give_up_parked(lot, number, parked, REFUSED, why, dies=then == DEAD_LETTER)

    def _give_up_parked(
        self, lot: ParkingLot, number: int, message: Message, reason: str, why: str, *, dies: bool
    ) -> int:
        """Give up what is parked under `number`. It has left the remote: its dead message queue is one here."""
        dead_letters = self.dead_letters
        more = self._said_of(message, 0, reason)
        if dies and dead_letters is not None:
            before = self.spool.unit.mark()
            if not dead_letters.put(message, why, more):
                return NOT_NOW
            lot.move(number, before)
        elif dies:
            lot.reject(number, why, more)
        else:
            lot.discard(number)
            self.vpn.discard(message, reason)
        self._times_refused.pop(-number, (0, 0))
        return ENTERED

    # -- what is left out ------------------------------------------------------------------------

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
        if self._times_refused:
            self._times_refused.pop(position, (0, 0))
        self._taken.add(position)
        self.taken += 1
        self._due = True

    def on_forget(self, frame: frames.Forget) -> None:
        """Act on FORGET (LINK-42): forget which of these positions were taken."""
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
            self._retry.wait(self.vpn.context, self.terms.retry_ms)

    def retry(self) -> None:
        """Try what was refused once more."""
        self.lanes.retry()
        self._tried()

    def go_on(self) -> None:
        """Try what waited until it is known who wants a message."""
        self.lanes.go_on(held=self.selection.held)
        self._tried()

    def _tried(self) -> None:
        if not self.lanes.held:
            self._answers.released()
        lot = self.lot
        if self._binding.unready and lot is not None and lot.ready:
            self._binding.unready = False
            self._bind(self._binding.asked)
        self.flush()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Handle the outcome of a message, or the sync of something else, by its token."""
        if token >= 0:
            if outcome == REJECTED:
                held = token in self._messages and not self.terms.paused
                self._answers.refused(token, reason, held=held)
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

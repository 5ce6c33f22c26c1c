"""Decides which guaranteed messages of a bridge pass and which wait when the message VPN refuses one (`on_reject`).

A message enters the parking lot and leaves it in one unit with its position or its new place, so it is in one of them
whatever breaks. The lot is the only consumer of its endpoint and holds all of it unacknowledged, in order.

A message of the bridge is known by its position, its lane by a number. Messages of one lane always enter the
message VPN in their order; the policy says which ones wait:

| policy | a message that is refused | what comes behind it |
|---|---|---|
| block | is held | all of it is held, whatever its lane |
| park | is set aside | that of its lane is set aside, the rest goes on; no room there: as block |
| skip | is given up: it is a dead letter here, or goes back for good | goes on |

After so many refusals as the bridge tolerates, another policy holds for the one message.

A message of which nobody knows yet who wants it, since that is much work, is held under each policy, and all that comes
behind it; where it is set aside, that of its lane goes on waiting. It is tried again as soon as that is known.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.bridges.receive import lane as lane_of
from vpnrouter.core.discard_reasons import TOPIC_PARSE_ERROR
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.guaranteed.flow import ACCEPTED, Flow
from vpnrouter.core.guaranteed.flow import REJECTED as NEVER_WANTED
from vpnrouter.core.guaranteed.unit_of_work import REJECTED
from vpnrouter.errors import TopicError

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow_selection import FlowSelection
    from vpnrouter.core.message import Message

ENTERED: Final = 0
"""A message has entered the message VPN, or is not there any more."""

REFUSED: Final = 1
"""The message VPN does not take it now."""

LATER: Final = 2
"""Nobody knows yet who wants it (flow_selection.py)."""


@final
class ParkingLot(Flow):
    """`endpoint` is of kind PARKING, its `max_spooled_msg_count` not above `window`. `lanes_by` is LANES_… of
    frames.py. `unseen` counts messages of before a restart that have not come to light yet: until it is
    0 nobody knows which lanes stand still, and nothing may enter (`ready`).
    """

    __slots__ = ("_coming", "_lanes", "ids", "lanes_by", "unseen")

    def __init__(
        self, endpoint: Endpoint, bridge: str, window: int, lanes: LaneOrder, lanes_by: int
    ) -> None:
        super().__init__(endpoint, f"#bridge/{bridge}", window)
        self.lanes_by = lanes_by
        self.unseen = endpoint.spooled_count
        self.ids: dict[int, int] = {}
        self._lanes = lanes
        self._coming: deque[int] = deque()
        endpoint.bind(self, CONSUME, CONSUME)

    @property
    def ready(self) -> bool:
        """True when all that is parked is known."""
        return self.unseen == 0

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Do nothing: messages that leave the lot have no sender to notify."""

    def room(self) -> int:
        """Messages that still fit into the window."""
        return self.window - len(self.unacked)

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Note a message that is in the lot: found there after a restart, or synced just now."""
        if self.unseen:
            self.unseen -= 1
            self.ids[self._lanes.found(lane_of(message, self.lanes_by))] = message_id
        else:
            self.ids[self._coming.popleft()] = message_id

    def park(self, message: Message, number: int) -> bool:
        """Set a message aside; False when there is no room."""
        endpoint = self.endpoint
        if endpoint.spool.place(endpoint, message):
            return False
        self._coming.append(number)
        return True

    def leave(self, number: int, selection: FlowSelection) -> int:
        """Let a message enter the message VPN; REFUSED while it cannot, or is not synced yet, or LATER."""
        message_id = self.ids.get(number)
        if message_id is None:
            return REFUSED
        parked = self.unacked.get(message_id)
        if parked is not None:
            endpoint = self.endpoint
            message = parked.copy()
            message.retain = parked.retain
            try:
                route = endpoint.vpn.route(message.topic)
                if route.selector_cost and not selection.ready(route, parked, message, held=False):
                    return LATER
                outcome = endpoint.spool.publish(endpoint.vpn, message, self, number)
            except TopicError:
                # A limit of the message VPN was lowered while the message was parked: it can never enter.
                endpoint.vpn.discards.add(TOPIC_PARSE_ERROR)
                endpoint.settle(self, message_id, NEVER_WANTED)
                del self.ids[number]
                return ENTERED
            finally:
                selection.entered(message)
            if outcome == REJECTED:
                return REFUSED
            endpoint.settle(self, message_id, ACCEPTED)
        # Else an operator took it away.
        del self.ids[number]
        return ENTERED

    def message(self, number: int) -> Message | None:
        """Return what is parked under `number`, None where it is not there, or not synced yet."""
        return self.unacked.get(self.ids.get(number, 0))

    def discard(self, number: int) -> None:
        """Take out what is parked under `number`: it is given up."""
        self.endpoint.settle(self, self.ids.pop(number), ACCEPTED)

    def move(self, number: int, before: tuple[int, int]) -> None:
        """Take out what is parked under `number` and is a dead letter in the unit being built; `before` is a mark of
        that without it.
        """
        self.endpoint.left(self, self.ids.pop(number), before)

    def reject(self, number: int, why: str, more: list[tuple[str, str]]) -> bool:
        """Let what is parked under `number` go to the dead message queue of this message VPN; False where it is
        discarded, since there is none.
        """
        return self.endpoint.reject(self, self.ids.pop(number), why, more)

    def close(self) -> None:
        """Let go of the endpoint: what is in it waits there for another lot."""
        self.endpoint.unbind(self, counts=False)
        self.ids.clear()
        self._coming.clear()

    def unbound(self, reason: str) -> None:
        """Forget what is parked: the bridge is deleted, and the lot with it."""
        self.ids.clear()
        self._coming.clear()


BLOCK: Final = 0
PARK: Final = 1
SKIP: Final = 2
"""The values of `on_reject`, with the numbers of LINK-40."""

DROP: Final = 3
"""Of a message that was refused too often: it is discarded."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LaneActions:
    """What the lanes let happen. Each answers at once whether it was possible, and changes nothing if not."""

    __slots__ = ()

    def enter(self, position: int) -> int:
        """Let the message enter the message VPN: ENTERED, REFUSED or LATER."""
        raise AssertionError(position)

    def park(self, position: int, number: int) -> bool:
        """Set the message aside under a `number` of its own."""
        raise AssertionError(position)

    def fate(self, position: int, policy: int) -> int:
        """Return what is done with a message that was refused: the `policy`, or what is due after so many times."""
        return policy

    def skip(self, position: int) -> bool:
        """Give the message up for good."""
        raise AssertionError(position)

    def drop(self, position: int) -> bool:
        """Discard the message."""
        raise AssertionError(position)

    def leave(self, number: int) -> int:
        """Let what is set aside under `number` enter the message VPN: ENTERED, REFUSED or LATER."""
        raise AssertionError(number)


@final
class LaneOrder:
    """The order of one bridge's guaranteed messages. `held` are positions that wait in memory, in order,
    each with its lane; `parked` are the numbers of what is set aside, in order, by lane.
    """

    __slots__ = ("_later", "_next", "_steps", "held", "parked", "policy")

    def __init__(self, steps: LaneActions, policy: int) -> None:
        self._steps = steps
        self._next = 1
        self.policy = policy
        self.held: deque[tuple[int, int]] = deque()
        self.parked: dict[int, deque[int]] = {}
        # Lanes whose first message of `parked` is to be tried again as soon as it is known who wants it.
        self._later: dict[int, None] = {}

    @property
    def waiting(self) -> bool:
        """True when there is something to try again."""
        return bool(self.held or self.parked)

    def arrive(self, position: int, lane: int) -> None:
        """Let a received message pass, or hold it."""
        if self.held or not self._pass(position, lane):
            self.held.append((position, lane))

    def found(self, lane: int) -> int:
        """A message was set aside before a restart; oldest first. Returns the number it has now."""
        return self._aside(lane, self._number())

    def removed(self, lane: int, number: int) -> None:
        """Forget what was set aside under `number`: an operator took it away."""
        numbers = self.parked.get(lane)
        if numbers is not None and number in numbers:
            numbers.remove(number)
            if not numbers:
                del self.parked[lane]

    def retry(self) -> None:
        """Try what was set aside, then what is held: the former is older."""
        for lane in list(self.parked):
            self._leave(lane)
        self._retry_held()

    def go_on(self, *, held: bool) -> None:
        """It is known who wants the first message that is `held`, or the first one of the lane that waits for that
        longest: try it, and what waited behind it.
        """
        refused = False
        if held and self.held:
            position, lane = self.held[0]
            refused = not self._pass(position, lane)
            if not refused:
                self.held.popleft()
        for lane in list(self._later):
            if self._leave(lane) == LATER:
                break
        if not refused:
            # Else it is tried again when there is more room, and evaluated anew for that.
            self._retry_held()

    def _leave(self, lane: int) -> int:
        """Try what is set aside of a lane; ENTERED when nothing of it is left, or why the first one stays."""
        numbers = self.parked.get(lane)
        answer = ENTERED
        while numbers and answer == ENTERED:
            answer = self._steps.leave(numbers[0])
            if answer == ENTERED:
                numbers.popleft()
        if numbers is not None and not numbers:
            del self.parked[lane]
        if answer == LATER:
            self._later[lane] = None
        else:
            self._later.pop(lane, None)
        return answer

    def _retry_held(self) -> None:
        held = self.held
        while held:
            position, lane = held[0]
            if not self._pass(position, lane):
                return
            held.popleft()

    def drop(self) -> list[int]:
        """Drop what is held, since the link is lost and it will be sent again. Returns the positions."""
        dropped = [position for position, _ in self.held]
        self.held.clear()
        return dropped

    def _pass(self, position: int, lane: int) -> bool:
        """Do with the message what can be done; False when it has to wait, and all behind it."""
        if lane not in self.parked:
            answer = self._steps.enter(position)
            if answer == ENTERED:
                return True
            if answer == LATER:
                return False
            fate = self._steps.fate(position, self.policy)
            if fate == BLOCK:
                return False
            if fate == SKIP:
                return self._steps.skip(position)
            if fate == DROP:
                return self._steps.drop(position)
        number = self._number()
        if not self._steps.park(position, number):
            return False
        self._aside(lane, number)
        return True

    def _number(self) -> int:
        number = self._next
        self._next += 1
        return number

    def _aside(self, lane: int, number: int) -> int:
        numbers = self.parked.get(lane)
        if numbers is None:
            numbers = deque()
            self.parked[lane] = numbers
        numbers.append(number)
        return number

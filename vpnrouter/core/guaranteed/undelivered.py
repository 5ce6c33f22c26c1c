"""Messages that a bridge or a link of a connector has given up, until one of its dead message queues has each.

A message stays in its endpoint meanwhile, held by nobody else, and leaves it in the unit in which the dead letter is
placed. So it is in one of both, whatever breaks. Entries of the list are tried in order, each as often as it says.
Where none takes the message its owner is told, and the list is tried anew: nothing is lost.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.dead_letters import REASON_PROPERTY, essentials, sources
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, REPLAY_LOG
from vpnrouter.core.guaranteed.flow import RELEASED, Flow
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import Refused, TopicError
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.failure_policy import DeadMsgQueue
    from vpnrouter.core.message import Message
    from vpnrouter.core.timers import Timer

GAVE_IT_UP: Final = "it has given the message up itself"
"""Why an endpoint is passed over: two that name each other would exchange it for ever."""

NOT_KEPT: Final = "no queue takes the topic"

WINDOW: Final = 1_000
"""Messages that are given up at once, where all of an endpoint are."""

_REST_NS: Final = 5 * SECOND_NS
"""How long a message rests that was refused where the list has no other entry."""

_AGAIN_NS: Final = SECOND_NS
"""How soon to look again whether the spool can be written, or after an exception."""


@mypyc_attr(allow_interpreted_subclasses=True)
class UndeliveredOwner:
    """Who has given messages up."""

    __slots__ = ()

    def dead_letter(self, text: str) -> None:
        """A message is a dead letter, as `text` says."""
        raise AssertionError(text)

    def no_dead_letter(self, text: str) -> None:
        """No dead message queue takes a message, as `text` says. It stays, and is tried again."""
        raise AssertionError(text)

    def taken(self, message: Message) -> None:
        """A message of the endpoint is given up, since all of them are."""

    def released(self, count: int) -> None:
        """So many messages are in the endpoint again, as they were."""


@final
class Letter:
    """One message that was given up for `why`, as the `content` that is placed.

    It was refused `tries` times by entry `place` of the list. `refusals` say why by those before. It has `rested` when
    it is tried again after all have refused it; `told`: its owner knows.
    """

    __slots__ = ("content", "place", "refusals", "rested", "told", "tries", "why")

    def __init__(self, content: Message, why: str) -> None:
        self.content = content
        self.why = why
        self.place = 0
        self.tries = 0
        self.refusals: list[str] = []
        self.rested = False
        self.told = False


@final
class Undelivered(Flow):
    """What `owner` has given up of the messages of `endpoint`, for the first of `places` that takes it.

    It is given messages one by one (`take`), or is the consumer of all that the endpoint has (`consume`), which are
    dead letters then. With `releases`, a message that no place takes is let go for another consumer.
    """

    __slots__ = (
        "_again",
        "_consumes",
        "_due",
        "_letters",
        "_number",
        "_owner",
        "places",
        "releases",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        client_name: str,
        owner: UndeliveredOwner,
        places: list[DeadMsgQueue],
        *,
        releases: bool = False,
    ) -> None:
        super().__init__(endpoint, client_name, WINDOW)
        self._owner = owner
        self.places = places
        self.releases = releases
        self._consumes = False
        self._letters: dict[int, Letter] = {}
        # When each is tried again, a number that keeps their order, and which.
        self._due: list[tuple[int, int, int]] = []
        self._number = 0
        self._again = TryAgain(self)

    @property
    def full(self) -> bool:
        """Whether so much waits for a dead message queue that nothing more is to be given up."""
        return self.bytes_out >= limits.UNDELIVERED_BYTES

    def take(self, flow: Flow, message_id: int, letter: Message, why: str) -> None:
        """Take a message from a consumer that holds it: it was given up for `why`, and `letter` is to be placed."""
        self.endpoint.hand_over(flow, message_id, self)
        self._begin(message_id, letter, why)

    def consume(self) -> None:
        """Give up all that the endpoint has, and gets. Raises Refused."""
        if not self._consumes:
            self._consumes = True
            try:
                self.endpoint.bind(self, CONSUME, CONSUME)
            except Refused:
                self._consumes = False
                raise

    def _begin(self, message_id: int, letter: Message, why: str) -> None:
        self._letters[message_id] = Letter(letter, why)
        self._attempt(message_id)

    def _attempt(self, message_id: int) -> None:
        try:
            self._try(message_id)
        except Exception:
            self._later(message_id, _AGAIN_NS)
            raise

    def _try(self, message_id: int) -> None:
        """Try entries of the list until one takes a message, or it has to wait."""
        letter = self._letters.get(message_id)
        if letter is None or message_id not in self.unacked:
            # Its endpoint was deleted.
            self._letters.pop(message_id, None)
            return
        spool = self.endpoint.spool
        if spool.down:
            self._later(message_id, _AGAIN_NS)
            return
        places = self.places
        if letter.rested:
            # All of them have refused it, some time ago.
            letter.rested = False
            if self.releases:
                self._release(message_id)
                return
            letter.place = 0
        while letter.place < len(places):
            place = places[letter.place]
            before = spool.unit.mark()
            refusal = self._put(letter.content, place)
            if not refusal:
                self._placed(message_id, letter, place, before)
                return
            letter.tries += 1
            if letter.tries < place.attempts:
                self._later(message_id, place.interval_ns)
                return
            letter.refusals.append(f"{place.shown}: {refusal}")
            letter.tries = 0
            letter.place += 1
        self._none_takes(message_id, letter)
        self._later(message_id, places[-1].interval_ns if places else _REST_NS)

    def _placed(
        self, message_id: int, letter: Letter, place: DeadMsgQueue, before: tuple[int, int]
    ) -> None:
        endpoint = self.endpoint
        if endpoint.spool.fault is not None:
            endpoint.spool.fault("dead-letter-placed")
        text = essentials(self.unacked[message_id], message_id)
        endpoint.left(self, message_id, before)
        del self._letters[message_id]
        self._owner.dead_letter(
            f"{place.shown} has a message as a dead letter: {text}: {letter.why}"
        )

    def _none_takes(self, message_id: int, letter: Letter) -> None:
        refusals, letter.refusals = letter.refusals, []
        letter.rested = True
        if not letter.told:
            letter.told = True
            text = essentials(self.unacked[message_id], message_id)
            why = f" ({'; '.join(refusals)})" if refusals else ""
            self._owner.no_dead_letter(
                f"no dead message queue takes a message, which stays: {text}: {letter.why}{why}"
            )

    def _release(self, message_id: int) -> None:
        del self._letters[message_id]
        self.endpoint.give_back(self, message_id, RELEASED)
        self._owner.released(1)

    def _put(self, content: Message, place: DeadMsgQueue) -> str:
        """Place a copy of a dead letter, in the unit being built; "" or why that cannot be."""
        endpoint = self.endpoint
        vpn = endpoint.vpn
        now_ns = vpn.context.now_ns
        copy = content.copy()
        if place.ttl_ns:
            copy.expires_ns = now_ns + place.ttl_ns
        elif copy.expires_ns <= now_ns:
            copy.expires_ns = 0
        if place.topic:
            return self._publish(copy, place.topic)
        target = endpoints_of(vpn).get((place.kind, place.name))
        if target is None:
            return refusals.UNKNOWN_QUEUE
        if target is endpoint or target.name in sources(copy.block):
            return GAVE_IT_UP
        return endpoint.spool.place(target, copy, even_down=True, moved=True)

    def _publish(self, copy: Message, topic: str) -> str:
        endpoint = self.endpoint
        vpn = endpoint.vpn
        spool = endpoint.spool
        unit = spool.unit
        copy.topic = topic.encode()
        before = unit.mark()
        try:
            reason, _ = spool.keep_together(vpn, [copy])
            route = vpn.route(copy.topic)
        except TopicError as error:
            return str(error)
        if reason:
            return reason
        taken = unit.destinations[-1] if len(unit.ids) > before[0] else []
        gave_up = [endpoint.name, *sources(copy.block)]
        kept = False
        for target in taken:
            kept = kept or target.kind != REPLAY_LOG
            if target.name in gave_up:
                spool.take_back(before)
                return GAVE_IT_UP
        if not kept:
            spool.take_back(before)
            return NOT_KEPT
        spool.pass_on(vpn, route, copy, True)
        return ""

    # -- time ------------------------------------------------------------------------------------

    def _later(self, message_id: int, interval_ns: int) -> None:
        due_ns = self.endpoint.vpn.context.now_ns + interval_ns
        self._number += 1
        heapq.heappush(self._due, (due_ns, self._number, message_id))
        self._again.arm(self.endpoint, self._due[0][0])

    def due(self, now_ns: int) -> None:
        """Try what is due."""
        while self._due and self._due[0][0] <= now_ns:
            self._attempt(heapq.heappop(self._due)[2])
        if self._due:
            self._again.arm(self.endpoint, self._due[0][0])

    # -- what a flow is asked --------------------------------------------------------------------

    @override
    def room(self) -> int:
        return 0 if self.full or not self._consumes else self.window - len(self.unacked)

    @override
    def send(self, message_id: int, message: Message, count: int) -> None:
        self._owner.taken(message)
        self._begin(message_id, message, message.text_property(REASON_PROPERTY))

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        return

    @override
    def letting_go(self) -> None:
        self._forget()

    @override
    def unbound(self, reason: str) -> None:
        self._consumes = False

    def close(self) -> None:
        """Give back what no dead message queue has taken."""
        self._forget()
        endpoint = self.endpoint
        if self._consumes:
            self._consumes = False
            endpoint.unbind(self, counts=False)
            return
        for message_id in list(self.unacked):
            endpoint.give_back(self, message_id, RELEASED)
        endpoint.discharged(self)

    def _forget(self) -> None:
        self._again.disarm()
        self._letters.clear()
        self._due.clear()
        if self.unacked:
            self._owner.released(len(self.unacked))


@final
class TryAgain(TimerTarget):
    """Has a list of dead message queues tried again."""

    __slots__ = ("_armed_ns", "_timer", "_undelivered")

    def __init__(self, undelivered: Undelivered) -> None:
        self._undelivered = undelivered
        self._timer: Timer | None = None
        self._armed_ns = 0

    def arm(self, endpoint: Endpoint, due_ns: int) -> None:
        """Have it done at `due_ns`."""
        if self._timer is not None:
            if self._armed_ns <= due_ns:
                return
            self._timer.cancel()
        self._armed_ns = due_ns
        self._timer = endpoint.vpn.context.timers.arm(due_ns, self, 0)

    def disarm(self) -> None:
        """Have it not done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        self._timer = None
        self._undelivered.due(now_ns)

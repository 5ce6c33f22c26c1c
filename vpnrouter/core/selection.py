"""Decides which subscriptions with a selector want a message, ahead of its delivery where that is much work.

Most messages meet selectors that cost next to nothing, which are evaluated while the message is delivered. Where those
of a route may cost more than a turn, they are evaluated first, in slices. Then the message is delivered as any other,
and the answers are at hand (`wants`). Subscriptions with another selector that came meanwhile are too late for the
message. Who waits meanwhile:

- a client, a link or a connector that publishes: its connection is held (`Selection`), so that its messages stay in
  their order and a guaranteed one is answered behind it;
- a commit, with all messages of the transaction (amqp/transactions.py): likewise;
- a will (mqtt/due_wills.py): nobody, its publisher has gone;
- a guaranteed message that came over a bridge or by a connector, and one that is parked
  (guaranteed/flow_selection.py): what is behind it;
- an event that is published (server/events/publisher.py): the events behind it.

Nothing else meets the selectors of many receivers. A message that moves into one endpoint, as a dead letter or by a
request, meets none, and so does a delayed one when it is due: its endpoints have it already. A replay asks one queue
for one message, and a consumer, a browser or a new subscription of a link its own selector; they count what that costs.
A copy that came over fewer links than one before it (bridges/receive.py) meets those of links again, in one turn: those
are the selectors of bridges, which operators write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.message import AMQP
from vpnrouter.core.timers import Job
from vpnrouter.selectors.conditions import LOOKED_SHIFT

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.selectors import Selector

Answers = set[str]
"""The texts of the selectors that want a message."""

NO_ANSWERS: Final[Answers] = set()
"""Those of a message that no selector wants; nothing may be added."""

HEAVY: Final = limits.TURN_WORK << 4
"""What selectors may cost that are evaluated while a message is delivered, in sixteenths of a part of a turn."""

ANSWER_COST: Final = 100
"""Bytes that an answer takes."""


@final
class Answered:
    """The answers for the messages that are being delivered, where they were found ahead."""

    __slots__ = ("by_message",)

    def __init__(self) -> None:
        self.by_message: dict[Message, Answers] = {}


ANSWERED: Final = Answered()
"""The one of the router's thread."""


def wants(selector: Selector, message: Message) -> bool:
    """Return whether the selector matches the message."""
    known = ANSWERED.by_message
    if known:
        answers = known.get(message)
        if answers is not None:
            return selector.text in answers
    return selector.matches(message.properties())


def counted_match(selector: Selector | None, message: Message, context: TurnContext) -> bool:
    """Return whether the selector, if there is one, matches the message, and count what that cost for the turn."""
    if selector is None:
        return True
    found = selector.matches(message.properties())
    context.work += MEASURE.work()
    return found


def estimate(route: Route, size: i64) -> i64:
    """Return what the selectors of a route cost at most, for a message with `size` characters to look at."""
    return route.selector_cost + (route.selector_looks * size >> LOOKED_SHIFT)


def heavy(route: Route, message: Message) -> bool:
    """Return whether the selectors of a route, if it has any, may cost more than a turn for this message."""
    size: i64 = len(message.topic) + len(message.block)
    if message.encoding == AMQP:
        size += len(message.payload)
    return estimate(route, size) > HEAVY


def must_wait(vpn: MessageVpn, message: Message) -> bool:
    """Return whether a large guaranteed or retained message has to wait for the commit after the next one."""
    if len(message.payload) < limits.LARGE_MESSAGE_BYTES or not (message.qos or message.retain):
        return False
    spool = vpn.context.spool
    return spool is not None and spool.crowded()


def at_hand(message: Message, answers: Answers) -> None:
    """Have the answers for a message at hand while it is delivered."""
    ANSWERED.by_message[message] = answers


def used(message: Message) -> None:
    """Forget them: it has been delivered, or could not be."""
    ANSWERED.by_message.pop(message, None)


@final
class Evaluation:
    """Evaluates the selectors of `route` for one message, in slices; `answers` are complete behind the last one."""

    __slots__ = ("_at", "_context", "_message", "_selectors", "answers")

    def __init__(self, context: TurnContext, route: Route, message: Message) -> None:
        self._context = context
        self._message = message
        self._selectors = list({one.text: one for one in route.selectors()}.values())
        self._at = 0
        self.answers: Answers = set()

    @property
    def memory(self) -> int:
        """Bytes that the answers take at most."""
        return ANSWER_COST * len(self._selectors)

    def go_on(self) -> bool:
        """Evaluate until this turn has done enough; True when all is done."""
        context = self._context
        selectors = self._selectors
        message = self._message
        while self._at < len(selectors):
            if context.turn_spent:
                return False
            selector = selectors[self._at]
            self._at += 1
            if selector.matches(message.properties()):
                self.answers.add(selector.text)
            context.work += MEASURE.work()
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class HeldWork(Job):
    """Work for a peer, in slices, while its connection is held."""

    __slots__ = ("connection", "context")

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.context = connection.context

    def begin(self) -> None:
        """Do it in this turn where it is short after all; else hold the connection."""
        if self.go_on():
            self.finish()
            return
        self.holds()
        self.connection.hold()
        self.context.jobs.add(self)

    def step(self) -> bool:
        """Go on until this turn has done enough. Finish behind the last slice, and let the peer go on."""
        if not self.go_on():
            return False
        connection = self.connection
        connection.held = False
        connection.paused = connection.choked
        self.lets_go()
        self.finish()
        # Too much may wait for the spool, which resumes then.
        if not connection.paused and not connection.closing:
            connection.resume()
        return True

    def go_on(self) -> bool:
        """Work until this turn has done enough; True when all is done."""
        raise AssertionError(self)

    def finish(self) -> None:
        """Do what waited for the work. The connection may have ended meanwhile."""
        raise AssertionError(self)

    def holds(self) -> None:
        """Count what is kept while the connection is held."""

    def lets_go(self) -> None:
        """Count it no more."""

    def owning_connection(self) -> Connection | None:
        """Return the connection of the peer."""
        return self.connection


@mypyc_attr(allow_interpreted_subclasses=True)
class Selection(HeldWork):
    """Evaluates the selectors of `route` for one message of a client, and delivers it when the spool has room."""

    __slots__ = ("_evaluation", "_held", "_vpn", "message")

    def __init__(
        self, connection: Connection, vpn: MessageVpn, route: Route, message: Message
    ) -> None:
        super().__init__(connection)
        self.message = message
        self._vpn = vpn
        self._evaluation = Evaluation(connection.context, route, message)
        self._held = 0

    @override
    def go_on(self) -> bool:
        return self._evaluation.go_on() and not must_wait(self._vpn, self.message)

    @override
    def step(self) -> bool:
        spool = self._vpn.context.spool
        if spool is not None and self._evaluation.go_on() and must_wait(self._vpn, self.message):
            spool.await_commit(self)
            return True
        return super().step()

    @override
    def holds(self) -> None:
        self._held = self.message.size + self._evaluation.memory
        self.keep(self._held)

    @override
    def lets_go(self) -> None:
        self.keep(-self._held)

    @override
    def finish(self) -> None:
        at_hand(self.message, self._evaluation.answers)
        try:
            self.deliver()
        finally:
            used(self.message)

    def keep(self, size: int) -> None:
        """Count bytes that the message and its answers take, in the account of the connection."""
        raise AssertionError(size)

    def deliver(self) -> None:
        """Deliver the message. The connection may have ended meanwhile."""
        raise AssertionError(self.message)

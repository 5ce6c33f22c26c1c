"""Decides which subscriptions with a selector want a message, ahead of its delivery where that is much work.

Most messages meet selectors that cost next to nothing, which are evaluated while the message is delivered. Where those
of a route may cost more than a turn, `Selection` evaluates them first, in slices, while the connection of the publisher
is held. Then the message is delivered as any other, and the answers are at hand (`wants`): a publisher's messages stay
in their order, and a guaranteed one is answered behind it. Subscriptions with another selector that came meanwhile are
too late for the message.

Where no connection can be held, a message is delivered in one turn: a will, one of the router itself, a guaranteed one
that came over a bridge, and one that is parked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

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
    from vpnrouter.selectors import Selector

Answers = dict[str, bool]
"""Whether selectors want a message, by their text."""

NO_ANSWERS: Final[Answers] = {}
"""Those of a message whose selectors are evaluated as it is delivered."""

HEAVY: Final = limits.TURN_WORK << 4
"""What selectors may cost that are evaluated while a message is delivered, in sixteenths of a part of a turn."""

SOME: Final = HEAVY >> 6
"""What they may cost for a message of a transaction: all of its messages are delivered in one turn."""

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
            return answers.get(selector.text, False)
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


def heavy(route: Route, message: Message, most: i64 = HEAVY) -> bool:
    """Return whether the selectors of a route, if it has any, may cost more than `most` for this message: a turn."""
    size: i64 = len(message.topic) + len(message.block)
    if message.encoding == AMQP:
        size += len(message.payload)
    return estimate(route, size) > most


@mypyc_attr(allow_interpreted_subclasses=True)
class Selection(Job):
    """Evaluates the selectors of `route` for one message of a client, and delivers it then."""

    __slots__ = ("_at", "_held", "_selectors", "answers", "connection", "context", "message")

    def __init__(
        self, context: TurnContext, connection: Connection, route: Route, message: Message
    ) -> None:
        super().__init__()
        self.context = context
        self.connection = connection
        self.message = message
        self.answers: Answers = {}
        self._selectors = route.selectors()
        self._at = 0
        self._held = 0

    def begin(self) -> None:
        """Do it in this turn where it is short after all; else hold the connection, whose account has what it takes."""
        if self._evaluate():
            self._pass_on()
            return
        self._held = self.message.size + ANSWER_COST * len(self._selectors)
        self.connection.hold()
        self.context.jobs.add(self)
        self.keep(self._held)

    def step(self) -> bool:
        """Evaluate until this turn has done enough. Deliver behind the last one, and let the client go on."""
        if not self._evaluate():
            return False
        connection = self.connection
        connection.held = False
        connection.paused = connection.choked
        self.keep(-self._held)
        self._pass_on()
        # Too much may wait for the spool, which resumes then.
        if not connection.paused and not connection.closing:
            connection.resume()
        return True

    def _evaluate(self) -> bool:
        context = self.context
        answers = self.answers
        selectors = self._selectors
        message = self.message
        while self._at < len(selectors):
            if context.turn_spent:
                return False
            selector = selectors[self._at]
            self._at += 1
            if selector.text not in answers:
                answers[selector.text] = selector.matches(message.properties())
                context.work += MEASURE.work()
        return True

    def _pass_on(self) -> None:
        known = ANSWERED.by_message
        known[self.message] = self.answers
        try:
            self.deliver()
        finally:
            known.clear()

    def keep(self, size: int) -> None:
        """Count bytes that the message and its answers take, in the account of the connection."""
        raise AssertionError(size)

    def deliver(self) -> None:
        """Deliver the message. The connection may have ended meanwhile."""
        raise AssertionError(self.message)

    def owning_connection(self) -> Connection | None:
        """Return the connection of the publisher."""
        return self.connection

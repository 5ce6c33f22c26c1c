"""Long work of an AMQP connection, in slices: outcomes of many deliveries, links to look at, deliveries taken up again.

The connection is held while its client's own frames have to wait for the rest (`AmqpConnection.work_on`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.timers import Job
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp.performatives import Attach, Disposition
from vpnrouter.wire.amqp.types import BINARY, MapWalk, RawMap, write, write_compound

if TYPE_CHECKING:
    from vpnrouter.core.amqp.connection import AmqpConnection
    from vpnrouter.core.amqp.link import Link
    from vpnrouter.core.amqp.sending_link import SendingLink
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.connection import Connection

OUTCOME_WORK: Final = 4
"""What the outcome of one delivery costs, in parts of a turn (TurnContext.work)."""

OUTCOMES: Final = 32
"""Outcomes that are taken before the work of this turn is looked at again."""

WAKE_WORK: Final = 3
"""What a look at a link costs that has nothing to send."""

TAG_WORK: Final = 2
"""What it costs to find what is known of a delivery."""

RESUMED_WORK: Final = 15
"""What it costs to tell a client that a delivery is settled."""


@final
class Outcomes(Job):
    """What a client says of deliveries, or of its own: `numbers` are those that are there."""

    __slots__ = ("_at", "_numbers", "_packet", "_session")

    def __init__(self, session: AmqpSession, packet: Disposition, numbers: list[int]) -> None:
        super().__init__()
        self._session = session
        self._packet = packet
        self._numbers = numbers
        self._at = 0

    def step(self) -> bool:
        """Take outcomes until this turn has done enough; after the last one, answer and read the client again."""
        session = self._session
        connection = session.connection
        context = connection.context
        numbers = self._numbers
        while self._at < len(numbers) and not session.over and not connection.closing:
            if context.turn_spent:
                return False
            some = numbers[self._at : self._at + OUTCOMES]
            self._at += len(some)
            context.work += len(some) * OUTCOME_WORK
            session.take_outcomes(self._packet, some)
        if not session.over and not connection.closing:
            session.took_outcomes(self._packet, len(numbers))
        connection.worked()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._session.connection


@final
class WakeLinks(Job):
    """The links of a connection that are still to be looked at. The client's frames need not wait for it."""

    __slots__ = ("_connection", "links")

    def __init__(self, connection: AmqpConnection) -> None:
        super().__init__()
        self._connection = connection
        self.links: dict[SendingLink, None] = {}

    def step(self) -> bool:
        """Look at links until this turn has done enough."""
        context = self._connection.context
        links = self.links
        while links and not context.turn_spent:
            link = next(iter(links))
            del links[link]
            context.work += WAKE_WORK
            link.wake()
        return not links

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._connection


@final
class Resumption(Job):
    """Compares what a client says of unsettled deliveries with what is known, and answers when it attaches a link.

    The answer has as many of them as fit into half of a frame; it says where there are more (2.7.3).
    """

    __slots__ = ("_answer", "_items", "_left", "_link", "_walk")

    def __init__(self, link: Link, answer: Attach, walk: MapWalk) -> None:
        super().__init__()
        self._link = link
        self._answer = answer
        self._walk = walk
        self._items: list[bytes] = []
        self._left = link.session.connection.max_frame // 2

    def step(self) -> bool:
        """Compare until this turn has done enough; at the end, answer and read the client again."""
        link = self._link
        connection = link.session.connection
        context = connection.context
        try:
            while not link.detached and not connection.closing:
                if context.turn_spent:
                    return False
                if not self._walk.next():
                    self._finish()
                    break
                context.work += TAG_WORK
                self._compare()
        except ProtocolError as problem:
            connection.fail(problem.reason_code, str(problem))
        connection.worked()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._link.session.connection

    def _compare(self) -> None:
        tag = self._walk.key
        if not isinstance(tag, bytes):
            return
        state = self._link.compare(tag, self._walk)
        if not state:
            return
        item = write(tag, BINARY) + state
        self._left -= len(item)
        if self._left < 0:
            self._answer = self._answer._replace(incomplete_unsettled=True)
        else:
            self._items += [item[: len(item) - len(state)], state]

    def _finish(self) -> None:
        answer = self._answer
        if self._items:
            answer = answer._replace(unsettled=RawMap(write_compound(self._items, 0xC1)))
        self._link.compared(answer)


@final
class TellResumed(Job):
    """Tells a client that deliveries are settled which it has taken up, and lets the link deliver others then."""

    __slots__ = ("_at", "_link", "_states")

    def __init__(self, link: SendingLink, states: list[tuple[bytes, object]]) -> None:
        super().__init__()
        self._link = link
        self._states = states
        self._at = 0

    def step(self) -> bool:
        """Tell of deliveries until this turn has done enough."""
        link = self._link
        context = link.client.vpn.context
        while self._at < len(self._states) and not link.detached:
            if context.turn_spent:
                return False
            context.work += RESUMED_WORK
            tag, state = self._states[self._at]
            self._at += 1
            link.tell_resumed(tag, state)
        link.resumed()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._link.session.connection

"""Lets go of the links of sessions and connections that have ended: of thousands of links in slices."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.fault_barrier import CONNECTION
from vpnrouter.core.timers import Job

if TYPE_CHECKING:
    from vpnrouter.core.amqp.connection import AmqpConnection
    from vpnrouter.core.amqp.link import Link
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.connection import Connection
    from vpnrouter.wire.amqp.performatives import End

AT_ONCE: Final = 32
"""Links that are let go of in the turn in which their session ends; of more, the rest in slices."""

LINK_WORK: Final = 8
"""What it costs to let go of a link, without its subscription and its deliveries, in parts of a turn
(TurnContext.work)."""

TRIES: Final = 2
"""How often a link is let go of that raises: the second time goes on behind what raised."""


@final
class LinkRelease(Job):
    """Lets go of the links of one connection: session by session, in the order in which they were attached.

    A session that ends detaches all its links at once (`AmqpSession.leave`): nothing comes or goes over them from then
    on. What they hold is given back here: flows, subscriptions, temporary queues, memory; many deliveries that are not
    settled go back behind that (returning.py). Until then a flow stays bound, so that what it holds goes back before
    another consumer of an exclusive queue is sent what comes behind it. Nobody is refused for it: who takes over a
    subscription, or needs the place of a flow, ends the link (`SendingLink.stolen`, `Flow.gives_way`), and a new
    connection of the container waits for the end of the work (`Successor`). A client hears of the end of a
    session when all its links are gone.

    A link that raises costs its own work: the others follow.
    """

    __slots__ = ("_at_once", "_connection", "_sessions")

    def __init__(self, connection: AmqpConnection) -> None:
        super().__init__()
        self._connection = connection
        self._at_once = AT_ONCE
        # Each with its links, the next one at the end, and what is answered when they are gone.
        self._sessions: deque[tuple[AmqpSession, list[Link], End | None]] = deque()

    def add(self, session: AmqpSession, links: list[Link], answer: End | None) -> None:
        """Let go of the links of one more session, which are detached; `answer` the client then."""
        links.reverse()
        self._sessions.append((session, links, answer))

    def step(self) -> bool:
        """Let go of links until this turn has done enough; at the end, go on with the connection or its end."""
        connection = self._connection
        context = connection.context
        sessions = self._sessions
        while sessions:
            session, links, answer = sessions[0]
            while links:
                if self._at_once > 0:
                    self._at_once -= 1
                elif context.turn_spent:
                    return False
                self._work_on(session, links)
            sessions.popleft()
            session.left(answer)
        if not connection.closing:
            self._at_once = AT_ONCE
            connection.worked()
            return True
        for _ in range(TRIES):
            try:
                return connection.links_gone()
            except Exception as problem:  # noqa: BLE001 - given to the barrier: the second time goes on behind it
                self._raised(problem)
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._connection

    def _work_on(self, session: AmqpSession, links: list[Link]) -> None:
        """Let go of the next link."""
        context = self._connection.context
        link = links[-1]
        for _ in range(TRIES):
            try:
                context.work += LINK_WORK
                link.let_go(closed=False)
            except Exception as problem:  # noqa: BLE001 - given to the barrier: the other links follow
                self._raised(problem)
            else:
                break
        links.pop()
        session.count_less(link)
        if context.turn_spent:
            # It is not one of a few that hold little.
            self._at_once = 0

    def _raised(self, problem: Exception) -> None:
        connection = self._connection
        name, msg_vpn = connection.log_identity()
        connection.context.barrier.caught(
            problem, CONNECTION, name, msg_vpn, "the end of the connection goes on"
        )


@final
class Successor(Job):
    """Reads a new client when earlier connections of its container have let go of all their links.

    It may attach the same links again, ask for what those held, and say what it knows of their deliveries (2.6.13).
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: AmqpConnection) -> None:
        super().__init__()
        self._connection = connection

    def step(self) -> bool:
        """Read the client, unless one of its container is still there."""
        connection = self._connection
        client = connection.client
        if client is not None and not connection.closing and client.predecessors:
            return False
        connection.worked()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._connection

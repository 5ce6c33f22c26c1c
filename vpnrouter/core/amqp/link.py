"""Defines what the links of both directions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.amqp.errors import error
from vpnrouter.core.guaranteed.end_to_end import EndToEndCallback
from vpnrouter.core.guaranteed.refusals import MAKER_GONE
from vpnrouter.core.memory_account import OUTGROWN
from vpnrouter.core.timers import Job
from vpnrouter.errors import ProtocolError, Refused
from vpnrouter.wire.amqp.performatives import Attach, Detach, Flow
from vpnrouter.wire.amqp.types import BINARY, RawMap, write, write_compound
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.wire.amqp.types import MapWalk

LINK_COST: Final = 4_096
"""Bytes that a link takes, with its name and those messages that its flow need not count (SPARE_BYTES)."""

ENDPOINT_COST: Final = 4_096
"""Bytes that a queue or subscription takes that is a link's own."""

REFUSED_COST: Final = 256
"""Bytes that one takes that was refused and is not detached."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Link(EndToEndCallback):
    """One link of a session, under `handle` in both directions. `detached`: it is over, and its handle is still taken.

    It counts for `cost` bytes. `temporary` is the queue that was made for it, and ends with it. `broken`: it ends for
    an error or with its connection, and not because the client has detached it.
    """

    __slots__ = ("broken", "client", "cost", "detached", "handle", "name", "session", "temporary")

    def __init__(
        self,
        session: AmqpSession,
        client: AmqpClient,
        name: str,
        handle: int,
        *,
        detached: bool = False,
    ) -> None:
        self.session = session
        self.client = client
        self.name = name
        self.handle = handle
        self.detached = detached
        self.broken = False
        self.cost = REFUSED_COST if detached else LINK_COST
        self.temporary: Endpoint | None = None

    def count_endpoint(self) -> None:
        """Count an endpoint that is the link's own. Raises Refused where the client holds too much already."""
        if not self.session.connection.take(ENDPOINT_COST):
            raise Refused(OUTGROWN, QUOTA_EXCEEDED)
        self.cost += ENDPOINT_COST

    def flow(self, packet: Flow) -> None:
        """Take the state of the link that the client tells."""
        raise AssertionError(self.name)

    def compare(self, tag: bytes, walk: MapWalk) -> bytes:
        """Take up a delivery that the client says is not settled; return its state as it is written, b"" for none.

        `walk` stands at what the client says of it. Raises ProtocolError where that is no state.
        """
        raise AssertionError(tag)

    def compared(self, answer: Attach) -> None:
        """Answer the client: all deliveries have been compared."""
        raise AssertionError(answer)

    def let_go(self, *, closed: bool) -> None:
        """Give back what the link holds; `closed` ends its terminus as well. A second call does nothing."""
        raise AssertionError(self.name)

    def end_temporary(self) -> None:
        """Delete the queue that was made for the link. A second call does nothing."""
        endpoint = self.temporary
        self.temporary = None
        if endpoint is not None and not endpoint.deleted:
            client = self.client
            client.connection.temporary.pop(endpoint.name, None)
            client.vpn.count_endpoint(client.username, -1)
            endpoint.delete(MAKER_GONE)

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self.session.connection

    def detach(self, condition: int, text: str) -> None:
        """End the link for an error."""
        if self.detached:
            return
        self.detached = True
        self.let_go(closed=False)
        self.session.say(Detach(self.handle, True, error(condition, text)))


TAG_WORK: Final = 2
"""What it costs to find what is known of a delivery."""


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

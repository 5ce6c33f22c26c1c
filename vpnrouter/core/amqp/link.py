"""Defines what the links of both directions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from vpnrouter.core.amqp.errors import error
from vpnrouter.core.guaranteed.end_to_end import EndToEndCallback
from vpnrouter.wire.amqp.performatives import Attach, Detach, Flow

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.wire.amqp.types import MapWalk

LINK_COST: Final = 4_096
"""Bytes that a link takes, with its name."""

REFUSED_COST: Final = 256
"""Bytes that one takes that was refused and is not detached."""

LINK_GONE: Final = "503 Queue Shutdown: the link that made it has ended"


@mypyc_attr(allow_interpreted_subclasses=True)
class Link(EndToEndCallback):
    """One link of a session, under `handle` in both directions. `detached`: it is over, and its handle is still taken.

    It counts for `cost` bytes. `temporary` is the queue that was made for it, and ends with it.
    """

    __slots__ = ("client", "cost", "detached", "handle", "name", "session", "temporary")

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
        self.cost = REFUSED_COST if detached else LINK_COST
        self.temporary: Endpoint | None = None

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
        """Give back what the link holds; `closed` ends its terminus as well."""
        raise AssertionError(self.name)

    def end_temporary(self) -> None:
        """Delete the queue that was made for the link. A second call does nothing."""
        endpoint = self.temporary
        self.temporary = None
        if endpoint is not None and not endpoint.deleted:
            client = self.client
            client.connection.temporary.pop(endpoint.name, None)
            client.vpn.count_endpoint(client.username, -1)
            endpoint.delete(LINK_GONE)

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

"""What the rest of the edge asks of whatever holds the plain sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

    from vpnrouter.core.connection import Connection
    from vpnrouter.server.acceptor import Acceptor


class Host(Protocol):
    """Reactor where there is epoll, TaskHost elsewhere."""

    def listen(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        """Accept from a bound, listening, non-blocking socket, `most` connections at a time."""

    def add(self, sock: socket.socket, connection: Connection) -> object:
        """Serve a connected socket."""

    def set_clocks(self) -> None:
        """Set the plane's times."""

    def tick(self) -> None:
        """Fire timers and flush; about ten times a second."""

    def close_all(self) -> None:
        """Send what can be sent and close everything."""

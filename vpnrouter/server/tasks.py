"""The place of the nested epoll on systems that have none: every socket runs as trio tasks.

Same methods as `Reactor`, so that nothing else needs to know.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.server.flush import flush_ready
from vpnrouter.server.listeners import serve_streams
from vpnrouter.server.streams import serve_stream

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Router
    from vpnrouter.server.acceptor import Acceptor


@final
class TaskHost:
    """Serves plain sockets with two tasks each, in `streams`; accepts in `nursery`."""

    def __init__(self, router: Router, nursery: trio.Nursery, streams: trio.Nursery) -> None:
        self._router = router
        self._plane = router.plane
        self._nursery = nursery
        self._streams = streams

    def listen(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        """See Reactor.listen."""
        self._nursery.start_soon(
            serve_streams, self._router, sock, acceptor, None, None, most, self._streams
        )

    def add(self, sock: socket.socket, connection: Connection) -> None:
        """See Reactor.add."""
        sock.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._streams.start_soon(serve_stream, self._plane, stream, connection)

    def set_clocks(self) -> None:
        """See Reactor.set_clocks."""
        self._plane.now_ns = time.monotonic_ns()
        self._plane.wall_ns = time.time_ns()

    def tick(self) -> None:
        """See Reactor.tick."""
        self.set_clocks()
        self._plane.timers.run(self._plane.now_ns)
        flush_ready(self._plane)

    def close_all(self) -> None:
        """See Reactor.close_all; the tasks close their sockets when all is sent."""
        flush_ready(self._plane)

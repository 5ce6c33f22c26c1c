"""Connections that cannot stand in the nested epoll: TLS, WebSocket, and systems without epoll.

Two trio tasks a connection, one reading, one writing; what they feed is the same connection object.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from vpnrouter.core.barrier import CONNECTION, LOST
from vpnrouter.core.outbox import Channel
from vpnrouter.server.flush import flush_ready
from vpnrouter.server.tls_reason import tls_reason

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Plane

RECEIVE_BYTES: Final = 65_536
SEND_BYTES: Final = 262_144

GOODBYE_S: Final = 5.0
"""Seconds a peer has to take our last bytes before its transport is cut."""


class ByteStream(Protocol):
    """What is asked of a transport; trio's streams fit."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Some bytes, b"" at the end."""

    async def send_all(self, data: bytes) -> None:
        """Send everything."""

    async def aclose(self) -> None:
        """Close."""


@final
class StreamChannel(Channel):
    """Tells the two tasks of a connection over `stream` that there is something to do."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.scope: trio.CancelScope | None = None
        self.why = "closed"
        # The connection while the peer has not taken everything that was sent.
        self.sending: Connection | None = None
        self._wanted = trio.Event()
        self._awake = trio.Event()

    def flush(self) -> None:
        """Wake the task that sends."""
        sending = self.sending
        if sending is not None and sending.outbox.size:
            sending.stuck_with(sending.outbox.size)
        self._wanted.set()

    def wake(self) -> None:
        """Wake the task that reads."""
        self._awake.set()

    def cut(self, why: str) -> bool:
        """Cancel the task that serves the connection; False where there is none yet."""
        if self.scope is None:
            return False
        self.why = why
        self.scope.cancel()
        return True

    async def wanted(self) -> None:
        """Wait until a flush was asked for."""
        await self._wanted.wait()
        self._wanted = trio.Event()

    async def awake(self) -> None:
        """Wait until the connection wants to read again."""
        await self._awake.wait()
        self._awake = trio.Event()


async def serve_stream(plane: Plane, stream: ByteStream, connection: Connection) -> None:
    """Run one connection over `stream` until either side ends it; closes the stream."""
    channel = StreamChannel(stream)
    connection.outbox.channel = channel
    plane.streams += 1
    try:
        async with trio.open_nursery() as nursery:
            channel.scope = nursery.cancel_scope
            nursery.start_soon(_write, plane, connection, channel)
            channel.why = await _read(plane, connection, channel)
            if connection.closing:
                # What we have to say last (a DISCONNECT with its reason) leaves before the transport goes.
                nursery.cancel_scope.deadline = trio.current_time() + GOODBYE_S
                channel.flush()
            else:
                nursery.cancel_scope.cancel()
    finally:
        plane.streams -= 1
        channel.scope = None
        # A stranger gets no time for a last answer: its place is needed at once.
        stranger = connection.admission is None and not connection.closing
        plane.barrier.lose(connection, channel.why)
        flush_ready(plane)
        connection.outbox.channel = None
        channel.sending = None
        if connection.stuck:
            connection.stuck_with(0)
        with trio.move_on_after(0.0 if stranger else GOODBYE_S, shield=True):
            try:
                await stream.aclose()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                plane.barrier.caught(error, CONNECTION, connection.peer, "", "is closed")


async def _read(plane: Plane, connection: Connection, channel: StreamChannel) -> str:
    stream = channel.stream
    try:
        while not connection.closing:
            try:
                data = bytes(await stream.receive_some(RECEIVE_BYTES))
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                # A TLS 1.3 peer that refuses our certificate says so here.
                return tls_reason(error)
            if not data:
                return "closed by peer"
            plane.now_ns = time.monotonic_ns()
            plane.wall_ns = time.time_ns()
            connection.feed(data)
            flush_ready(plane)
            while connection.paused and not connection.closing:
                await channel.awake()
    except Exception as error:  # noqa: BLE001 - given to the barrier
        plane.barrier.end(connection, error)
        return LOST
    return "closed"


async def _write(plane: Plane, connection: Connection, channel: StreamChannel) -> None:
    outbox = connection.outbox
    try:
        while True:
            while outbox.size:
                data = outbox.take(SEND_BYTES)
                channel.sending = connection
                try:
                    await channel.stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    channel.cut("closed")
                    return
                channel.sending = None
                if connection.stuck:
                    connection.stuck_with(outbox.size)
                if connection.choked:
                    connection.eased()
            if connection.closing:
                channel.cut("closed")
                return
            await channel.wanted()
    except Exception as error:  # noqa: BLE001 - given to the barrier
        plane.barrier.end(connection, error)

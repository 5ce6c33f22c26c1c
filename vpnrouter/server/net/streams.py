"""Serves the connections of clients and links on systems without epoll, and those over streams of other kinds.

Two trio tasks a connection, one reading, one writing; what they feed is the same connection object, through the same
layers (layers.py).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from vpnrouter.core.fault_barrier import CONNECTION, LISTENER, LOST
from vpnrouter.core.outbox import Channel
from vpnrouter.server.net.descriptors import SpareDescriptor, is_shortage
from vpnrouter.server.net.reactor import LINGER_NS, flush_ready, peer_text, shown_address
from vpnrouter.server.net.tls import tls_reason
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.router import Router
    from vpnrouter.server.net.layers import Layer
    from vpnrouter.server.net.reactor import Acceptor


RECEIVE_BYTES: Final = 65_536

SEND_BYTES: Final = 262_144

GOODBYE_S: Final = 5.0
"""Seconds a peer has to take our last bytes before its transport is cut."""

LINGER_S: Final = LINGER_NS / SECOND_NS
LINGER_BYTES: Final = 65_536
"""Bytes that are read and thrown away while the peer of a failed handshake reads why."""

REST_S: Final = 0.1
"""Pause of an accept loop when the system is out of descriptors."""

GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
"""Exceptions of a stream whose peer has gone."""


class ByteStream(Protocol):
    """The part of a trio stream that is used here."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Some bytes, b"" at the end."""

    async def send_all(self, data: bytes) -> None:
        """Send everything."""

    async def aclose(self) -> None:
        """Close."""


@final
class StreamChannel(Channel):
    """Wakes the two tasks of a connection over `stream` when there is something to do."""

    def __init__(self, stream: ByteStream, layer: Layer | None = None) -> None:
        self.stream = stream
        self.layer = layer
        self.scope = trio.CancelScope()
        self.why = "closed"
        # The connection while the peer has not taken everything that was sent.
        self.sending: Connection | None = None
        self._wanted = trio.Event()
        self._awake = trio.Event()
        # What a layer makes leaves in the order in which it was made.
        self._turn = trio.Lock()

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
        """Cancel the tasks that serve the connection."""
        self.why = why
        self.scope.cancel()
        return True

    async def wanted(self) -> None:
        """Wait for the next flush."""
        await self._wanted.wait()
        self._wanted = trio.Event()

    async def awake(self) -> None:
        """Wait until the connection wants to read again."""
        await self._awake.wait()
        self._awake = trio.Event()

    async def send(self, data: bytes) -> None:
        """Send what the layer makes of bytes of the connection."""
        async with self._turn:
            await self.stream.send_all(data if self.layer is None else self.layer.send(data))

    async def answer(self, layer: Layer) -> None:
        """Send what the layer has to say by itself. Without that it does not wait for a peer that does not read."""
        if layer.has_own():
            async with self._turn:
                await self.stream.send_all(layer.take_own())

    async def close(self) -> None:
        """Say goodbye as the layer's protocol wants it, and close the stream."""
        layer = self.layer
        if layer is not None:
            with suppress(*GONE):
                await self.stream.send_all(layer.close())
            if layer.failure and not layer.ready and isinstance(self.stream, trio.SocketStream):
                await linger(self.stream)
        await self.stream.aclose()


async def linger(stream: trio.SocketStream) -> None:
    """Give the peer of a failed handshake LINGER_S to read what we said; the caller closes the transport."""
    with suppress(*GONE, OSError):
        await stream.send_eof()
        left = LINGER_BYTES
        with trio.move_on_after(LINGER_S):
            while left > 0:
                data = await stream.receive_some(left)
                if not data:
                    break
                left -= len(data)


async def serve_stream(
    context: RouterContext,
    stream: ByteStream,
    connection: Connection,
    layer: Layer | None = None,
) -> None:
    """Run one connection over `stream` until either side ends it; closes the stream."""
    channel = StreamChannel(stream, layer)
    connection.outbox.channel = channel
    await _serve(context, channel, connection)


async def _serve(
    context: RouterContext,
    channel: StreamChannel,
    connection: Connection,
    failed: Callable[[str], None] | None = None,
) -> None:
    """Run one connection; `failed` is called where the handshake of its layer fails."""
    context.streams += 1
    try:
        with channel.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_write, context, connection, channel)
                channel.why = await _read(context, connection, channel)
                if connection.closing:
                    # What we have to say last (a DISCONNECT with its reason) leaves before the transport goes.
                    nursery.cancel_scope.deadline = trio.current_time() + GOODBYE_S
                    channel.flush()
                else:
                    nursery.cancel_scope.cancel()
    finally:
        context.streams -= 1
        # A stranger gets no time for a last answer: its place is needed at once.
        crowded_out = channel.scope.cancel_called and connection.stranger and not connection.closing
        context.barrier.lose(connection, channel.why)
        flush_ready(context)
        connection.outbox.channel = None
        channel.sending = None
        layer = channel.layer
        if layer is not None and layer.failure and not layer.ready and failed is not None:
            failed(layer.failure)
        if connection.stuck:
            connection.stuck_with(0)
        with trio.move_on_after(0.0 if crowded_out else GOODBYE_S, shield=True):
            try:
                await channel.close()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                context.barrier.caught(error, CONNECTION, connection.peer, "", "is closed")


async def _read(context: RouterContext, connection: Connection, channel: StreamChannel) -> str:
    layer = channel.layer
    try:
        while not connection.closing:
            try:
                data = bytes(await channel.stream.receive_some(RECEIVE_BYTES))
                if layer is not None:
                    found = await _unwrap(connection, channel, layer, data)
                else:
                    found = data
            except GONE as error:
                return tls_reason(error)
            if found:
                context.now_ns = time.monotonic_ns()
                context.wall_ns = time.time_ns()
                connection.feed(found)
                flush_ready(context)
                while connection.paused and not connection.closing:
                    await channel.awake()
            if not data or (layer is not None and layer.ended):
                return (layer.failure if layer is not None else "") or "closed by peer"
    except Exception as error:  # noqa: BLE001 - given to the barrier
        context.barrier.end(connection, error)
        return LOST
    return "closed"


async def _unwrap(
    connection: Connection, channel: StreamChannel, layer: Layer, data: bytes
) -> bytes:
    """Take received bytes, b"" for the end, through the layer; returns those for the connection."""
    if not data:
        layer.finish()
        return b""
    found = layer.unwrap(connection, data)
    await channel.answer(layer)
    return found


async def _write(context: RouterContext, connection: Connection, channel: StreamChannel) -> None:
    outbox = connection.outbox
    try:
        while True:
            while outbox.size:
                data = outbox.take(SEND_BYTES)
                channel.sending = connection
                try:
                    await channel.send(data)
                except GONE:
                    channel.cut("closed")
                    return
                channel.sending = None
                outbox.has_left(len(data))
                if connection.stuck:
                    connection.stuck_with(outbox.size)
                if connection.choked:
                    connection.eased()
            if connection.closing:
                channel.cut("closed")
                return
            await channel.wanted()
    except Exception as error:  # noqa: BLE001 - given to the barrier
        context.barrier.end(connection, error)


async def serve_streams(
    router: Router,
    sock: socket.socket,
    acceptor: Acceptor,
    most: int | trio.CapacityLimiter,
    nursery: trio.Nursery,
) -> None:
    """Accept for ever; each connection runs in tasks of its own.

    Beyond `most` connections at a time, a new one is closed at once; with a limiter this bound may change meanwhile.
    """
    places = trio.CapacityLimiter(most) if isinstance(most, int) else most
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    spare = SpareDescriptor()
    try:
        async with listener:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    # Out of descriptors or buffers: let connections end before trying again.
                    if router.pre_login_limits.out_of_descriptors(is_shortage(error)):
                        spare.refuse(sock)
                    await trio.sleep(REST_S)
                    continue
                try:
                    _take(router, acceptor, stream, places, nursery)
                except Exception as error:  # noqa: BLE001 - given to the barrier
                    stream.socket.close()
                    barrier = router.context.barrier
                    barrier.caught(error, LISTENER, "", "", "one connection is closed")
    finally:
        spare.close()


def _take(
    router: Router,
    acceptor: Acceptor,
    stream: trio.SocketStream,
    places: trio.CapacityLimiter,
    nursery: trio.Nursery,
) -> None:
    """Serve an accepted connection, if there is a place for it."""
    limits = router.pre_login_limits
    try:
        peer = stream.socket.getpeername()
    except OSError:
        # The peer has gone already.
        stream.socket.close()
        return
    router.context.now_ns = time.monotonic_ns()
    layer = acceptor.layer()
    strangers = limits.plain if layer is None else limits.shaken
    # The number is negative where the bound was lowered.
    if places.available_tokens <= 0 or not limits.has_place(strangers, peer_text(peer)):
        stream.socket.close()
        return
    connection = acceptor.accepted(peer_text(peer))
    channel = StreamChannel(stream, layer)
    connection.outbox.channel = channel
    strangers.enter(connection.origin, channel)
    connection.placed(strangers, channel)
    # Here, so that its descriptor is counted before the next connection is accepted.
    limits.open += 1
    nursery.start_soon(
        _serve_one, router, acceptor, channel, connection, places, shown_address(peer)
    )


async def _serve_one(
    router: Router,
    acceptor: Acceptor,
    channel: StreamChannel,
    connection: Connection,
    places: trio.CapacityLimiter,
    peer: str,
) -> None:

    def failed(why: str) -> None:
        router.protocol_errors += 1
        acceptor.handshake_failed(peer, why)

    try:
        async with places:
            await _serve(router.context, channel, connection, failed)
    except Exception as error:  # noqa: BLE001 - given to the barrier
        barrier = router.context.barrier
        barrier.caught(error, LISTENER, "", "", "one connection is closed")
    finally:
        connection.leave_strangers()
        router.pre_login_limits.open -= 1
        # Whatever ended it, a stop in the middle of a handshake included.
        channel.stream.socket.close()  # type: ignore[attr-defined]

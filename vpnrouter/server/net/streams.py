"""Serves connections that the nested epoll cannot: TLS, and MQTT over WebSocket (MQTT 5, 6).

Two trio tasks a connection, one reading, one writing; what they feed is the same connection object.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, Protocol, final
from urllib.parse import urlsplit

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, RejectConnection, Request
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from vpnrouter.core.fault_barrier import CONNECTION, LOST
from vpnrouter.core.outbox import Channel
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.server.net.tls import tls_reason
from vpnrouter.wire.websocket import BINARY, NORMAL, WebSocketDecoder, close_frame, frame_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext


SUBPROTOCOL: Final = "mqtt"
"""The name clients must offer (MQTT-6.0.0-3)."""

END_OF_HEAD: Final = b"\r\n\r\n"
"""Ends the head of an HTTP request (RFC 9112, 2.1)."""

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403

RECEIVE_BYTES: Final = 65_536

ANY_ORIGIN: Final = "*"
SAME_HOST: Final = "same-host"
"""Words that a listener's `allowed_origins` may have besides origins."""

TRANSPORT: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
"""Exceptions of the stream below when the peer has gone."""


def origin_allowed(origin: str, host: str, allowed: Sequence[str]) -> bool:
    """True when a page of `origin` may open a WebSocket to `host` (RFC 6455, 4.2.2; RFC 6454, 7).

    `host` is the request's Host, with or without a port.
    """
    if ANY_ORIGIN in allowed or origin.lower() in [each.lower() for each in allowed]:
        return True
    if SAME_HOST not in allowed or "://" not in origin:
        return False
    name = _name(origin)
    return name is not None and name == _name(f"//{host}")


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        # An origin or a host that cannot be parsed matches nothing.
        return None


@final
class WebSocketStream:
    """The bytes inside the binary frames of one WebSocket."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._decoder = WebSocketDecoder()
        self._received = b""
        self._sending = trio.Lock()

    @property
    def inner(self) -> ByteStream:
        """The stream below."""
        return self._stream

    async def handshake(self, allowed_origins: Sequence[str] = (ANY_ORIGIN,)) -> bool:
        """Answer the upgrade request; False when it is refused.

        It is refused when it is no WebSocket request, lacks the subprotocol `mqtt`, has an `Origin` that is not
        allowed, or cannot be read by the library.
        """
        upgrade = WSConnection(ConnectionType.SERVER)
        request = b""
        while True:
            data = bytes(await self._stream.receive_some(RECEIVE_BYTES))
            known = len(request)
            request += data
            end = request.find(END_OF_HEAD, max(0, known - len(END_OF_HEAD)))
            if end >= 0:
                # Frames that came with the request are not for the library.
                end += len(END_OF_HEAD)
                self._received = self._decoder.receive(request[end:])
                data = request[known:end]
            try:
                upgrade.receive_data(data or None)
                for event in upgrade.events():
                    if isinstance(event, Request):
                        return await self._answer(upgrade, event, allowed_origins)
            except TRANSPORT:
                raise
            except RemoteProtocolError as error:
                if error.event_hint is not None:
                    await self._send(upgrade.send(error.event_hint))
                return False
            except Exception:  # noqa: BLE001 - the library reads some headers as if they were always ASCII
                await self._reject(upgrade, BAD_REQUEST)
                return False
            if not data:
                return False

    async def _answer(
        self, upgrade: WSConnection, request: Request, allowed_origins: Sequence[str]
    ) -> bool:
        if SUBPROTOCOL not in request.subprotocols:
            await self._reject(upgrade, BAD_REQUEST)
            return False
        origins = [value for name, value in request.extra_headers if name.lower() == b"origin"]
        for origin in origins:
            if not origin_allowed(origin.decode("latin-1"), request.host, allowed_origins):
                await self._reject(upgrade, FORBIDDEN)
                return False
        await self._send(upgrade.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
        return True

    async def _reject(self, upgrade: WSConnection, status_code: int) -> None:
        # No answer may be possible any more: the connection is closed all the same.
        with contextlib.suppress(LocalProtocolError):
            await self._send(upgrade.send(RejectConnection(status_code=status_code)))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Bytes of the next binary frames; b"" when the peer closed, or sent what is not allowed."""
        received = self._received
        self._received = b""
        while True:
            if replies := self._decoder.take_replies():
                await self._send(replies)
            if received or self._decoder.ended:
                return received
            data = await self._stream.receive_some(max_bytes)
            if not data:
                return b""
            received = self._decoder.receive(bytes(data))

    async def send_all(self, data: bytes) -> None:
        """Send `data` as one binary frame."""
        if self._decoder.ended:
            raise trio.ClosedResourceError("the WebSocket is closed")
        await self._send(frame_head(BINARY, len(data)) + data)

    async def aclose(self) -> None:
        """Close the WebSocket politely, then the stream."""
        if not self._decoder.ended:
            self._decoder.ended = True
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._send(close_frame(NORMAL))
        await self._stream.aclose()

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            await self._stream.send_all(data)


SEND_BYTES: Final = 262_144

GOODBYE_S: Final = 5.0
"""Seconds a peer has to take our last bytes before its transport is cut."""


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
        """Wait for the next flush."""
        await self._wanted.wait()
        self._wanted = trio.Event()

    async def awake(self) -> None:
        """Wait until the connection wants to read again."""
        await self._awake.wait()
        self._awake = trio.Event()


async def serve_stream(context: RouterContext, stream: ByteStream, connection: Connection) -> None:
    """Run one connection over `stream` until either side ends it; closes the stream."""
    channel = StreamChannel(stream)
    connection.outbox.channel = channel
    context.streams += 1
    try:
        async with trio.open_nursery() as nursery:
            channel.scope = nursery.cancel_scope
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
        channel.scope = None
        # A stranger gets no time for a last answer: its place is needed at once.
        stranger = connection.stranger and not connection.closing
        context.barrier.lose(connection, channel.why)
        flush_ready(context)
        connection.outbox.channel = None
        channel.sending = None
        if connection.stuck:
            connection.stuck_with(0)
        with trio.move_on_after(0.0 if stranger else GOODBYE_S, shield=True):
            try:
                await stream.aclose()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                context.barrier.caught(error, CONNECTION, connection.peer, "", "is closed")


async def _read(context: RouterContext, connection: Connection, channel: StreamChannel) -> str:
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
            context.now_ns = time.monotonic_ns()
            context.wall_ns = time.time_ns()
            connection.feed(data)
            flush_ready(context)
            while connection.paused and not connection.closing:
                await channel.awake()
    except Exception as error:  # noqa: BLE001 - given to the barrier
        context.barrier.end(connection, error)
        return LOST
    return "closed"


async def _write(context: RouterContext, connection: Connection, channel: StreamChannel) -> None:
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

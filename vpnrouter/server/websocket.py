"""MQTT over WebSocket (MQTT 5, 6): a byte stream made of binary frames, on top of any trio stream."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.server.streams import ByteStream

SUBPROTOCOL: Final = "mqtt"
"""The name clients must offer (MQTT-6.0.0-3)."""

NORMAL: Final = 1000
UNSUPPORTED_DATA: Final = 1003

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
        self._ws = WSConnection(ConnectionType.SERVER)
        self._pending: list[bytes] = []
        self._ended = False
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
        while True:
            data = await self._stream.receive_some(RECEIVE_BYTES)
            try:
                self._ws.receive_data(bytes(data) if data else None)
                for event in self._ws.events():
                    if isinstance(event, Request):
                        return await self._answer(event, allowed_origins)
            except TRANSPORT:
                raise
            except RemoteProtocolError as error:
                if error.event_hint is not None:
                    await self._say(self._ws.send(error.event_hint))
                return False
            except Exception:  # noqa: BLE001 - the library reads some headers as if they were always ASCII
                await self._reject(BAD_REQUEST)
                return False
            if not data:
                return False

    async def _answer(self, request: Request, allowed_origins: Sequence[str]) -> bool:
        if SUBPROTOCOL not in request.subprotocols:
            await self._reject(BAD_REQUEST)
            return False
        origins = [value for name, value in request.extra_headers if name.lower() == b"origin"]
        for origin in origins:
            if not origin_allowed(origin.decode("latin-1"), request.host, allowed_origins):
                await self._reject(FORBIDDEN)
                return False
        await self._say(self._ws.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
        return True

    async def _reject(self, status_code: int) -> None:
        # No answer may be possible any more: the connection is closed all the same.
        with contextlib.suppress(LocalProtocolError):
            await self._say(self._ws.send(RejectConnection(status_code=status_code)))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Bytes of the next binary frames; b"" when the peer closed, or sent something that cannot be read."""
        while not self._pending and not self._ended:
            data = await self._stream.receive_some(max_bytes)
            try:
                self._ws.receive_data(bytes(data) if data else None)
                await self._handle()
            except TRANSPORT:
                raise
            except Exception:  # noqa: BLE001 - RemoteProtocolError, and what the library does not make one
                self._ended = True
            if not data:
                self._ended = True
        joined = b"".join(self._pending)
        self._pending.clear()
        return joined

    async def _handle(self) -> None:
        for event in self._ws.events():
            if isinstance(event, BytesMessage):
                if event.data:
                    self._pending.append(bytes(event.data))
            elif isinstance(event, TextMessage):
                # MQTT-6.0.0-1: any other data frame closes the connection.
                await self._say(self._ws.send(CloseConnection(code=UNSUPPORTED_DATA)))
                self._ended = True
            elif isinstance(event, Ping):
                await self._say(self._ws.send(event.response()))
            elif isinstance(event, CloseConnection):
                await self._say(self._ws.send(event.response()))
                self._ended = True

    async def send_all(self, data: bytes) -> None:
        """Send `data` as one binary frame."""
        try:
            frame = self._ws.send(BytesMessage(data=data))
        except LocalProtocolError as error:
            raise trio.ClosedResourceError from error
        await self._say(frame)

    async def aclose(self) -> None:
        """Close the WebSocket politely, then the stream."""
        if not self._ended:
            self._ended = True
            gone = (LocalProtocolError, trio.BrokenResourceError, trio.ClosedResourceError)
            with contextlib.suppress(*gone):
                await self._say(self._ws.send(CloseConnection(code=NORMAL)))
        await self._stream.aclose()

    async def _say(self, data: bytes) -> None:
        async with self._sending:
            await self._stream.send_all(data)

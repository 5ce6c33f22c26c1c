"""MQTT over WebSocket (MQTT 5, 6): a byte stream made of binary frames, on top of any trio stream."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, final

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
    from vpnrouter.server.streams import ByteStream

SUBPROTOCOL: Final = "mqtt"
"""The name clients must offer (MQTT-6.0.0-3)."""

NORMAL: Final = 1000
UNSUPPORTED_DATA: Final = 1003

RECEIVE_BYTES: Final = 65_536


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

    async def handshake(self) -> bool:
        """Answer the upgrade request; False when it is refused (no `mqtt` subprotocol, not a WebSocket)."""
        while True:
            data = await self._stream.receive_some(RECEIVE_BYTES)
            try:
                self._ws.receive_data(bytes(data) if data else None)
                for event in self._ws.events():
                    if isinstance(event, Request):
                        if SUBPROTOCOL not in event.subprotocols:
                            await self._say(self._ws.send(RejectConnection(status_code=400)))
                            return False
                        await self._say(self._ws.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
                        return True
            except RemoteProtocolError as error:
                if error.event_hint is not None:
                    await self._say(self._ws.send(error.event_hint))
                return False
            if not data:
                return False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Bytes of the next binary frames; b"" when the peer closed."""
        while not self._pending and not self._ended:
            data = await self._stream.receive_some(max_bytes)
            try:
                self._ws.receive_data(bytes(data) if data else None)
                await self._handle()
            except (RemoteProtocolError, LocalProtocolError):
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

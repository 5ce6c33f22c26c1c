"""Hypercorn's server for one connection: HTTP/1.1 alone, and telling whether it waits for a request.

Nobody needs HTTP/2 here: browsers take it with TLS and ALPN only, which no listener offers. What is left are
peers that begin with it, or ask for it in a header (h2c) through a proxy that does not look into what
follows. Requests that are reset as soon as they are made would cost the router more than the peer, and
Hypercorn ends such a connection with an error of its own for a body that comes after the answer, a path that
is not ASCII, or a CONNECT. Nor is WebSocket spoken: there, frames that come too early did the same.
"""

from math import inf
from typing import TYPE_CHECKING, final

import h11
import trio
from hypercorn.events import Event, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer

if TYPE_CHECKING:
    from hypercorn.config import Config
    from hypercorn.trio.worker_context import WorkerContext
    from hypercorn.typing import AppWrapper

    from vpnrouter.server.management import Place


@final
class Http1Server(TCPServer):
    """Serves one connection, which has `place`, with HTTP/1.1: a request for anything else is one like all."""

    def __init__(
        self,
        app: "AppWrapper",
        config: "Config",
        context: "WorkerContext",
        stream: trio.SSLStream[trio.SocketStream],
        place: "Place",
    ) -> None:
        super().__init__(app, config, context, {}, stream)
        self._place = place

    @property
    def protocol(self) -> ProtocolWrapper:
        """The protocol that serves the connection; TCPServer.run sets it."""
        return self._protocol

    @protocol.setter
    def protocol(self, made: ProtocolWrapper) -> None:
        if isinstance(made.protocol, H11Protocol):
            _speak_http_alone(made.protocol)
        self._protocol = made

    async def protocol_send(self, event: Event) -> None:
        """Note since when the connection is idle, and let TCPServer act on the event."""
        if isinstance(event, Updated):
            self._place.waiting_since = trio.current_time() if event.idle else inf
        await super().protocol_send(event)


def _speak_http_alone(protocol: H11Protocol) -> None:
    create = protocol._create_stream  # noqa: SLF001 - it has no switch for that

    async def stay(_: h11.Request) -> None:
        """Do nothing in place of the search for HTTP/2."""

    async def plainly(request: h11.Request) -> None:
        """Create the stream without the field Upgrade, which a server may ignore (RFC 9110 §7.8)."""
        fields = [(name, value) for name, value in request.headers if name != b"upgrade"]
        await create(
            h11.Request(
                method=request.method,
                target=request.target,
                headers=fields,
                http_version=request.http_version,
            )
        )

    protocol._check_protocol = stay  # type: ignore[method-assign, assignment]  # noqa: SLF001
    protocol._create_stream = plainly  # type: ignore[method-assign]  # noqa: SLF001

"""Bind listeners and give each accepted socket the connection its protocol wants."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.errors import OperationError
from vpnrouter.server.acceptor import Acceptor, peer_text
from vpnrouter.server.streams import serve_stream
from vpnrouter.server.tls import listener_context
from vpnrouter.server.websocket import WebSocketStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from vpnrouter.bridges.acceptor import LinkDoor
    from vpnrouter.config.listeners import Listener
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Router

STREAMED: Final = frozenset({"mqtts", "ws", "wss", "links"})
"""Protocols that cannot stand in the nested epoll."""

SERVED: Final = frozenset({"mqtt", "link"}) | STREAMED
"""Protocols that this version serves."""

BACKLOG: Final = 1024
"""Connections the kernel holds while the router is busy."""

HANDSHAKE_S: Final = 10.0
"""Seconds for a TLS or WebSocket handshake; the same bound as for a silent client."""

REST_S: Final = 0.1
"""Pause of an accept loop when the system is out of descriptors."""


@final
class MqttAcceptor(Acceptor):
    """MQTT over plain TCP. `msg_vpn` is "" where usernames choose the VPN."""

    def __init__(self, router: Router, msg_vpn: str) -> None:
        self.router = router
        self.msg_vpn = msg_vpn

    def accepted(self, peer: str) -> Connection:
        """See Acceptor.accepted."""
        return MqttConnection(self.router, peer, self.msg_vpn)


@final
class LinkAcceptor(Acceptor):
    """Bridges of other routers over plain TCP."""

    def __init__(self, door: LinkDoor) -> None:
        self.door = door

    def accepted(self, peer: str) -> Connection:
        """See Acceptor.accepted."""
        return self.door.connection(peer)


class BoundListener(NamedTuple):
    """A listener of the configuration with its socket, address as bound, and TLS context if any."""

    written: Listener
    sock: socket.socket
    address: str
    context: ssl.SSLContext | None


def bind_all(listeners: Sequence[Listener]) -> list[BoundListener]:
    """Bind every enabled listener that this version serves, in order.

    Raises OperationError when one address cannot be bound or a certificate not be used; the others
    are closed again then.
    """
    bound: list[BoundListener] = []
    try:
        for listener in listeners:
            if not listener.enabled or listener.protocol not in SERVED:
                continue
            context = None if listener.tls is None else listener_context(listener.tls)
            sock = bind(listener.address.host, listener.address.port)
            bound.append(BoundListener(listener, sock, shown_address(sock), context))
    except BaseException:
        for earlier in bound:
            earlier.sock.close()
        raise
    return bound


def bind(host: str, port: int) -> socket.socket:
    """A listening, non-blocking TCP socket; port 0 lets the system choose.

    Raises OperationError naming the address when it cannot be bound.
    """
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OperationError(f"cannot listen on {shown}: {error.strerror or error}") from error
    except UnicodeError as error:
        # A label above 63 characters or an empty one: no name that could be looked up.
        raise OperationError(f"cannot listen on {shown}: not a host name") from error
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise OperationError(f"cannot listen on {shown}: {error.strerror or error}") from error
    return sock


def shown_address(sock: socket.socket) -> str:
    """HOST:PORT as bound, IPv6 in brackets."""
    address = sock.getsockname()
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def serve_streams(
    router: Router,
    sock: socket.socket,
    acceptor: Acceptor,
    context: ssl.SSLContext | None,
    websocket: bool,
    most: int,
    nursery: trio.Nursery,
) -> None:
    """Accept for ever; each connection runs in tasks of its own (TLS, WebSocket, no epoll).

    Beyond `most` connections at a time, a new one is closed at once.
    """
    places = trio.CapacityLimiter(most)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    async with listener:
        while True:
            try:
                stream = await listener.accept()
            except OSError:
                # Out of descriptors or buffers: let connections end before trying again.
                await trio.sleep(REST_S)
                continue
            if places.available_tokens:
                nursery.start_soon(_serve_one, router, stream, acceptor, context, websocket, places)
            else:
                await trio.aclose_forcefully(stream)


async def _serve_one(
    router: Router,
    socket_stream: trio.SocketStream,
    acceptor: Acceptor,
    context: ssl.SSLContext | None,
    websocket: bool,
    places: trio.CapacityLimiter,
) -> None:
    async with places:
        await _serve_placed(router, socket_stream, acceptor, context, websocket)


async def _serve_placed(
    router: Router,
    socket_stream: trio.SocketStream,
    acceptor: Acceptor,
    context: ssl.SSLContext | None,
    websocket: bool,
) -> None:
    try:
        peer = peer_text(socket_stream.socket.getpeername())
        with trio.fail_after(HANDSHAKE_S):
            stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] | WebSocketStream = (
                socket_stream
            )
            if context is not None:
                secured = trio.SSLStream(
                    socket_stream, context, server_side=True, https_compatible=websocket
                )
                await secured.do_handshake()
                stream = secured
            if websocket:
                wrapped = WebSocketStream(stream)
                if not await wrapped.handshake():
                    await trio.aclose_forcefully(socket_stream)
                    return
                stream = wrapped
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
        # A stranger who could not shake hands: nothing was promised to him, nobody else is hurt.
        router.protocol_errors += 1
        await trio.aclose_forcefully(socket_stream)
        return
    await serve_stream(router.plane, stream, acceptor.accepted(peer))

"""Where a connection comes from and how it is encrypted, asked when somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.server.handshake import Secured


def shown_address(host: str, port: int) -> str:
    """`HOST:PORT`, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def transport_of(connection: Connection) -> tuple[str, str]:
    """Address of the peer and TLS version (such as `TLSv1.3`, "" for none) of a connection.

    The address is `HOST:PORT` while the socket is open, and what the connection itself knows where it is not
    or there never was one.
    """
    channel: Any = connection.outbox.channel
    sock = getattr(channel, "sock", None)
    version = ""
    stream = getattr(channel, "stream", None)
    while stream is not None and sock is None:
        if isinstance(stream, trio.SSLStream):
            version = _version(stream)
            stream = stream.transport_stream
        elif isinstance(stream, trio.SocketStream):
            sock = stream.socket
        else:
            # A WebSocket.
            stream = getattr(stream, "inner", None)
    try:
        address = None if sock is None else sock.getpeername()
    except OSError:
        address = None
    if isinstance(address, tuple) and len(address) >= 2:
        return shown_address(address[0], address[1]), version
    return connection.peer, version


def _version(stream: Secured) -> str:
    try:
        return str(stream.version() or "")
    except (trio.NeedHandshakeError, ValueError):
        return ""

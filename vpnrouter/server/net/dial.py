"""Connects to a remote router: name lookup, connect and TLS handshake; and names the ends of a connection."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, Final

import trio

from vpnrouter.config.locations import Locations, refusal
from vpnrouter.errors import OperationError
from vpnrouter.server.net.streams import serve_stream
from vpnrouter.server.net.tls import binding_of, client_context, secure
from vpnrouter.settings.bridge import DEFAULT_CIPHERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext
    from vpnrouter.server.net.reactor import Host
    from vpnrouter.server.net.tls import Secured
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication
    from vpnrouter.settings.message_vpn import TlsServerCert

    Addresses = Sequence[tuple[int, int, int, str, object]]


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


CONNECT_S: Final = 10.0
"""Seconds for looking a name up, for connecting and for TLS, each: a dead remote holds up nothing but
its bridge."""

LOOKUPS: Final = 16
"""Names looked up at once. Threads of their own: name servers that hang must not take those that verify
passwords and write traces."""


class TlsSettings:
    """How a connection is encrypted: what the remote's certificate must be, which one is shown, and which cipher
    suites are offered. `name` is the name that the certificate must have, "" for the host that is dialled.
    """

    def __init__(
        self,
        server_cert: TlsServerCert,
        client_cert: ClientCertRemoteAuthentication | None,
        name: str = "",
        ciphers: str = DEFAULT_CIPHERS,
    ) -> None:
        self.name = name
        self.ciphers = ciphers
        self.server_cert = server_cert
        self.client_cert = client_cert


class Connector:
    """How bridges reach their remotes; `streams` is where TLS connections are served."""

    def __init__(self, router_context: RouterContext, host: Host, streams: trio.Nursery) -> None:
        self._context = router_context
        self._host = host
        self._streams = streams
        self._lookups = trio.CapacityLimiter(LOOKUPS)
        self.locations = Locations()
        """Which locations from the management API may be dialled (config/locations.py)."""

    def set_clocks(self) -> None:
        """Set the times of the router's context before a connection is made."""
        self._host.set_clocks()

    async def open(
        self,
        host: str,
        port: int,
        tls: TlsSettings | None,
        resolved: Callable[[], None],
        asked: tuple[str, str] = ("", ""),
    ) -> socket.socket | Secured:
        """A connection to HOST:PORT, encrypted where there is `tls`; `resolved` is called in between.

        `asked` are the message VPN and the location of the bridge. A location that is not allowed is not dialled,
        and the error does not tell what is there.

        Raises OperationError that says in one line what failed.
        """
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        found = await self._look_up(host, port)
        resolved()
        if self.locations.asks(*asked):
            # The addresses that were checked are dialled: no second look-up can bring others.
            found = [one for one in found if self.locations.allow(host, _ip(one), port)]
            if not found:
                raise OperationError(refusal(asked[1]))
        try:
            sock = await _connect(found)
        except (OSError, trio.TooSlowError) as error:
            raise OperationError(f"cannot connect to {shown}: {_why(error)}") from error
        if tls is None:
            return sock
        context = client_context(tls.server_cert, tls.client_cert, tls.ciphers)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        try:
            with trio.fail_after(CONNECT_S):
                return await secure(stream, context, tls.name or host)
        except trio.TooSlowError as error:
            raise OperationError(f"cannot shake hands with {shown}: {_why(error)}") from error
        except OperationError as error:
            raise OperationError(f"{shown}: {error}") from error

    def serve(self, transport: socket.socket | Secured, connection: Connection) -> None:
        """Serve what `open` gave."""
        if isinstance(transport, socket.socket):
            self._host.add(transport, connection)
        else:
            connection.binding = binding_of(transport)
            self._streams.start_soon(serve_stream, self._context, transport, connection)

    def ends(self, transport: socket.socket | Secured, dialled: str) -> tuple[str, str]:
        """IP address and port of the peer, and IP address of this end; `dialled` and "" where they are not known."""
        sock = (
            transport if isinstance(transport, socket.socket) else transport.transport_stream.socket
        )
        try:
            peer, own = sock.getpeername(), sock.getsockname()
        except OSError:
            # The connection is lost already.
            return dialled, ""
        host, port = str(peer[0]), int(peer[1])
        return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}"), str(own[0])

    async def drop(self, transport: socket.socket | Secured) -> None:
        """Close what `open` returned and is not needed."""
        if isinstance(transport, socket.socket):
            transport.close()
        else:
            await trio.aclose_forcefully(transport)

    async def _look_up(self, host: str, port: int) -> Addresses:
        try:
            # A literal address needs no name server and no thread.
            return socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except (OSError, UnicodeError):
            pass
        try:
            with trio.fail_after(CONNECT_S):
                return await trio.to_thread.run_sync(
                    _names, host, port, abandon_on_cancel=True, limiter=self._lookups
                )
        except (OSError, UnicodeError, trio.TooSlowError) as error:
            raise OperationError(f"cannot look up {host}: {_why(error)}") from error


def _ip(found: tuple[int, int, int, str, object]) -> str:
    address = found[4]
    return str(address[0]) if isinstance(address, tuple) else ""


def _names(host: str, port: int) -> Addresses:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connect(found: Addresses) -> socket.socket:
    """A connected socket to the first of the addresses that answers; they share CONNECT_S, or what is left."""
    last: OSError | trio.TooSlowError | None = None
    left_s = min(CONNECT_S, trio.current_effective_deadline() - trio.current_time())
    for family, kind, protocol, _, address in found:
        sock = trio.socket.socket(family, kind, protocol)
        try:
            # One address that swallows everything must not keep the next from being tried.
            with trio.fail_after(max(0.0, left_s) / len(found)):
                await sock.connect(address)
        except (OSError, trio.TooSlowError) as error:
            sock.close()
            last = error
            continue
        except BaseException:
            sock.close()
            raise
        return socket.socket(fileno=sock.detach())
    raise last or OSError("no address")


def _why(error: OSError | UnicodeError | trio.TooSlowError) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(error, UnicodeError):
        return "not a host name"
    if error.errno is not None and error.errno > 0:
        # The words of the library name the address once more.
        return os.strerror(error.errno)
    return error.strerror or str(error)

"""Connects to a remote router: name lookup, connect and TLS handshake; and names the ends of a connection."""

from __future__ import annotations

import base64
import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import h11
import trio

from vpnrouter.config.locations import Locations, refusal
from vpnrouter.errors import OperationError
from vpnrouter.server.net.layers import StackedLayer, TlsLayer, WebSocketClientLayer
from vpnrouter.server.net.reactor import shown_address
from vpnrouter.server.net.tls import DialTls, client_context
from vpnrouter.settings.bridge import DEFAULT_CIPHERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from vpnrouter.core.connection import Connection
    from vpnrouter.server.net.layers import Layer
    from vpnrouter.server.net.reactor import Host
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication
    from vpnrouter.settings.message_vpn import TlsServerCert

    Addresses = Sequence[tuple[int, int, int, str, object]]


def transport_of(connection: Connection) -> tuple[str, str]:
    """Address of the peer and TLS version (such as `TLSv1.3`, "" for none) of a connection.

    The address is `HOST:PORT` while the socket is open, and what the connection itself knows where it is not
    or there never was one.
    """
    channel: Any = connection.outbox.channel
    sock = getattr(channel, "sock", None) or getattr(
        getattr(channel, "stream", None), "socket", None
    )
    layer = getattr(channel, "layer", None)
    try:
        address = None if sock is None else sock.getpeername()
    except OSError:
        address = None
    return shown_address(address) or connection.peer, "" if layer is None else layer.version


CONNECT_S: Final = 10.0
"""Seconds for looking a name up, for connecting and for TLS, each: a dead remote holds up nothing but
its bridge."""

LOOKUPS: Final = 16
"""Names looked up at once. Threads of their own: name servers that hang must not take those that verify
passwords and write traces."""


class TlsSettings:
    """How a connection is encrypted: what the remote's certificate must be, which one is shown, and which cipher
    suites and protocols (`alpn`) are offered. `name` is the name that the certificate must have, "" for the host that
    is dialled.
    """

    def __init__(
        self,
        server_cert: TlsServerCert,
        client_cert: ClientCertRemoteAuthentication | None,
        name: str = "",
        ciphers: str = DEFAULT_CIPHERS,
        alpn: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.alpn = alpn
        self.ciphers = ciphers
        self.server_cert = server_cert
        self.client_cert = client_cert


class Proxy(NamedTuple):
    """A proxy to go by: its address, as it is written in the configuration too, and the login, "" for none."""

    host: str
    port: int
    written: str
    username: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"proxy {shown_address((self.host, self.port))}"


class Transport(NamedTuple):
    """A connected socket, and the TLS and WebSocket over it, None where it is plain."""

    sock: socket.socket
    layer: Layer | None


class WebSocketTarget(NamedTuple):
    """What is asked for over a WebSocket: the server as requests name it, the path, and the subprotocol."""

    host: str
    path: str
    subprotocol: str


class Dialler:
    """How bridges and connectors reach their remotes; `host` serves the connections."""

    def __init__(self, host: Host) -> None:
        self._host = host
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
        interface: str = "",
        proxy: Proxy | None = None,
        websocket: WebSocketTarget | None = None,
    ) -> Transport:
        """A connection to HOST:PORT, encrypted where there is `tls`; `resolved` is called in between. `interface` is an
        IP address of this machine or an interface from which to connect, "" for any. A `proxy` looks HOST up itself.
        With `websocket` the connection is one.

        `asked` are the message VPN and the location as it is written. A location that is not allowed is not dialled,
        and the error does not tell what is there.

        Raises OperationError that says in one line what failed.
        """
        shown = shown_address((host, port))
        if self.locations.forbids(*asked):
            raise OperationError(refusal(asked[1]))
        if proxy is None:
            found = await self._look_up_allowed(host, port, *asked)
        else:
            if self.locations.asks(*asked) and not self.locations.may_be_allowed(host, port):
                raise OperationError(refusal(asked[1]))
            if self.locations.forbids(asked[0], proxy.written):
                raise OperationError(refusal(proxy.written))
            found = await self._look_up_allowed(proxy.host, proxy.port, asked[0], proxy.written)
        resolved()
        way = shown if proxy is None else str(proxy)
        try:
            sock = await _connect(found, interface)
        except (OSError, trio.TooSlowError) as error:
            way = f"{way} from {interface}" if interface else way
            raise OperationError(f"cannot connect to {way}: {_why(error)}") from error
        try:
            if proxy is not None:
                await _go_through(sock, proxy, shown)
            layer: Layer | None = None
            with trio.fail_after(CONNECT_S):
                if tls is not None:
                    context = client_context(
                        tls.server_cert, tls.client_cert, tls.ciphers, tls.alpn
                    )
                    layer = await shake_hands(sock, context, tls.name or host)
                if websocket is not None:
                    layer = await _upgrade(sock, layer, websocket)
            return Transport(sock, layer)
        except trio.TooSlowError as error:
            sock.close()
            raise OperationError(f"cannot shake hands with {shown}: {_why(error)}") from error
        except OperationError as error:
            sock.close()
            raise OperationError(f"{shown}: {error}") from error
        except BaseException:
            sock.close()
            raise

    async def _look_up_allowed(
        self, host: str, port: int, msg_vpn: str, location: str
    ) -> Addresses:
        """The addresses of a host that may be dialled for a location. Raises OperationError where none may."""
        found = await self._look_up(host, port)
        if self.locations.asks(msg_vpn, location):
            # The addresses that were checked are dialled: no second look-up can bring others.
            found = [
                one for one in found if self.locations.allow(host, _ip(one), port, own=_is_own(one))
            ]
            if not found:
                raise OperationError(refusal(location))
        return found

    def serve(self, transport: Transport, connection: Connection) -> None:
        """Serve what `open` gave."""
        layer = transport.layer
        if layer is not None:
            connection.binding = layer.binding
        self._host.add(transport.sock, connection, layer)

    def ends(self, transport: Transport, dialled: str) -> tuple[str, str]:
        """IP address and port of the peer, and IP address of this end; `dialled` and "" where they are not known."""
        try:
            peer, own = transport.sock.getpeername(), transport.sock.getsockname()
        except OSError:
            # The connection is lost already.
            return dialled, ""
        return shown_address(peer), str(own[0])

    def drop(self, transport: Transport) -> None:
        """Close what `open` returned and is not needed."""
        transport.sock.close()

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


HUNG_UP: Final = (
    "the remote closed the connection without a word of TLS: the port does not speak TLS,"
    " or nobody is let in"
)
"""The reason where the peer closed before its first answer of the handshake."""

RECEIVE_BYTES: Final = 16_384


async def shake_hands(sock: socket.socket, tls: DialTls, server_name: str) -> TlsLayer:
    """Shake hands over a connected socket with the router at `server_name`, the host dialled.

    Raises OperationError with one line that says why it failed; the caller closes the socket then. A remote that
    refuses our certificate says so here with TLS 1.2, and with TLS 1.3 at the first read.
    """
    try:
        # A zone (fe80::1%eth0) and the dot of a rooted name stand in no certificate.
        layer = TlsLayer(tls.context, tls.verify, server_name.partition("%")[0].removesuffix("."))
    except ValueError as error:
        raise OperationError(f"TLS handshake failed: {server_name}: not a host name") from error
    layer.begin()
    try:
        await _begin(sock, layer, "TLS handshake failed")
    except OSError as error:
        # A plain listener of ours hangs up (LINK-11), and most others.
        why = str(error) if error.errno is None else os.strerror(error.errno)
        if isinstance(error, ConnectionError) and not layer.cipher:
            why = HUNG_UP
        raise OperationError(f"TLS handshake failed: {why}") from error
    if layer.failure:
        raise OperationError(f"TLS handshake failed: {layer.failure}")
    return layer


async def _begin(sock: socket.socket, layer: Layer, failed: str) -> None:
    """Send and receive until a layer is ready, or has ended.

    Raises OSError, and OperationError, beginning with `failed`, for a remote that says more than was asked.
    """
    sock.setblocking(False)
    while True:
        own = memoryview(layer.take_own())
        while own:
            own = own[await _ready(sock.send, trio.lowlevel.wait_writable, sock, own) :]
        if layer.ready or layer.ended:
            return
        data = await _ready(sock.recv, trio.lowlevel.wait_readable, sock, RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError("the remote closed the connection")
        if layer.receive(data):
            raise OperationError(f"{failed}: the remote spoke before it was asked")


async def _upgrade(sock: socket.socket, lower: Layer | None, target: WebSocketTarget) -> Layer:
    """Ask for a WebSocket over a connected socket, or over its TLS. Raises OperationError where there is none."""
    upper = WebSocketClientLayer(*target)
    layer = upper if lower is None else StackedLayer(upper, lower)
    try:
        await _begin(sock, layer, "no WebSocket")
    except OSError as error:
        raise OperationError(f"no WebSocket: {_why(error)}") from error
    if layer.ended:
        raise OperationError(f"no WebSocket: {layer.failure or 'the remote closed it'}")
    return layer


async def _ready(
    call: Callable[[Any], Any],
    ready: Callable[[socket.socket], Awaitable[None]],
    sock: socket.socket,
    argument: Any,  # noqa: ANN401 - bytes to be sent, or how many to receive
) -> Any:  # noqa: ANN401 - what the call returns
    """Call a method of a non-blocking socket when it is ready for it."""
    while True:
        with suppress(BlockingIOError, InterruptedError):
            return call(argument)
        await ready(sock)


def _ip(found: tuple[int, int, int, str, object]) -> str:
    address = found[4]
    return str(address[0]) if isinstance(address, tuple) else ""


def _is_own(found: tuple[int, int, int, str, object]) -> bool:
    """Return whether an address is one of this machine: what is sent there comes from the same one. Nothing is sent."""
    address: Any = found[4]
    try:
        with socket.socket(found[0], socket.SOCK_DGRAM) as sock:
            sock.connect(address)
            return bool(sock.getsockname()[0] == address[0])
    except OSError:
        return False


def _names(host: str, port: int) -> Addresses:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connect(found: Addresses, interface: str = "") -> socket.socket:
    """A connected socket to the first of the addresses that answers; they share CONNECT_S, or what is left."""
    last: OSError | trio.TooSlowError | None = None
    left_s = min(CONNECT_S, trio.current_effective_deadline() - trio.current_time())
    for family, kind, protocol, _, address in found:
        sock = trio.socket.socket(family, kind, protocol)
        try:
            # One address that swallows everything must not keep the next from being tried.
            with trio.fail_after(max(0.0, left_s) / len(found)):
                await _bind(sock, interface)
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


async def _go_through(sock: socket.socket, proxy: Proxy, target: str) -> None:
    """Have a proxy connect to HOST:PORT. Raises OperationError with one line that says why it does not."""
    http = h11.Connection(h11.CLIENT)
    headers = [("Host", target)]
    if proxy.username:
        login = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        headers.append(("Proxy-Authorization", f"Basic {login}"))
    sock.setblocking(False)
    try:
        asked = http.send(h11.Request(method="CONNECT", target=target, headers=headers)) or b""
        http.send(h11.EndOfMessage())
        with trio.fail_after(CONNECT_S):
            own = memoryview(asked)
            while own:
                own = own[await _ready(sock.send, trio.lowlevel.wait_writable, sock, own) :]
            event = http.next_event()
            while event is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
                if event is h11.NEED_DATA:
                    data = await _ready(sock.recv, trio.lowlevel.wait_readable, sock, RECEIVE_BYTES)
                    if not data:
                        raise ConnectionResetError("it closed the connection")
                    http.receive_data(data)
                event = http.next_event()
    except (OSError, h11.ProtocolError, trio.TooSlowError) as error:
        why = "no HTTP" if isinstance(error, h11.ProtocolError) else _why(error)
        raise OperationError(f"{proxy}: {why}") from error
    if not isinstance(event, h11.Response):
        raise OperationError(f"{proxy}: no HTTP")
    if not _OK <= event.status_code < _REDIRECT:
        raise OperationError(f"{proxy}: refused with status {event.status_code}")
    if http.trailing_data[0]:
        raise OperationError(f"{proxy}: {target} spoke before it was asked")


_OK: Final = 200
_REDIRECT: Final = 300


async def _bind(sock: trio.socket.SocketType, interface: str) -> None:
    """Have a socket connect from an address of this machine or from an interface; "" for any."""
    if not interface:
        return
    try:
        ip_address(interface)
    except ValueError:
        name = interface.encode()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)
    else:
        await sock.bind((interface, 0))


def _why(error: OSError | UnicodeError | trio.TooSlowError) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(error, UnicodeError):
        return "not a host name"
    if error.errno is not None and error.errno > 0:
        # The words of the library name the address once more.
        return os.strerror(error.errno)
    return error.strerror or str(error)

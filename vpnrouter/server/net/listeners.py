"""Listeners: begun, changed and stopped; each accepted socket gets the connection that its protocol wants."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter.bridges.link import LinkFactory
from vpnrouter.config.effects import Item
from vpnrouter.config.listeners import MANAGEMENT_PROTOCOLS
from vpnrouter.core.fault_barrier import LISTENER
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.outbox import Channel
from vpnrouter.core.pre_login_limits import origin_of
from vpnrouter.errors import OperationError
from vpnrouter.events.table import LISTEN_PORT
from vpnrouter.management.metrics.families import ListenerFigures
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.descriptors import SpareDescriptor, is_shortage
from vpnrouter.server.net.reactor import Acceptor, peer_text
from vpnrouter.server.net.streams import WebSocketStream, serve_stream
from vpnrouter.server.net.tls import (
    HandshakeFailures,
    Secured,
    ServerTls,
    binding_of,
    linger,
    shake_hands,
    ssl_object_of,
    tls_reason,
)
from vpnrouter.wire.link.compressed import load as load_compression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.listeners import Listener
    from vpnrouter.config.router import Management
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import PeerCertificate
    from vpnrouter.core.pre_login_limits import PendingConnections
    from vpnrouter.core.router import Router
    from vpnrouter.management.access import Access
    from vpnrouter.management.api_context import ApiContext
    from vpnrouter.server.net.reactor import Reactor


STREAMED: Final = frozenset({"mqtts", "ws", "wss", "links"})
"""Protocols that the nested epoll cannot serve."""

SERVED: Final = frozenset({"mqtt", "link"}) | STREAMED | MANAGEMENT_PROTOCOLS
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

    kind = "MQTT"

    def __init__(self, router: Router, msg_vpn: str) -> None:
        self.router = router
        self.msg_vpn = msg_vpn

    def accepted(self, peer: str) -> Connection:
        """A connection for an MQTT client."""
        return MqttConnection(self.router, peer, self.msg_vpn)


@final
class LinkAcceptor(Acceptor):
    """Bridges of other routers over plain TCP."""

    kind = "link"

    def __init__(self, door: LinkFactory) -> None:
        self.door = door

    def accepted(self, peer: str) -> Connection:
        """A connection for a link of another router."""
        return self.door.connection(peer)


@final
class Origins:
    """The web origins that may open a WebSocket on a listener; `allowed` may change while it serves."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self.allowed = allowed


class BoundListener(NamedTuple):
    """A listener of the configuration with its socket, address as bound, and TLS if any."""

    configured: Listener
    sock: socket.socket
    address: str
    context: ServerTls | None


def bind_all(listeners: Sequence[Listener]) -> list[BoundListener]:
    """Bind every enabled listener that this version serves, in order.

    Raises OperationError when one address cannot be bound or a certificate not be used; the others
    are closed again then.
    """
    bound: list[BoundListener] = []
    failures = HandshakeFailures()
    try:
        for listener in listeners:
            if not listener.enabled or listener.protocol not in SERVED:
                continue
            context = None if listener.tls is None else ServerTls(listener.tls, failures)
            sock = bind(listener.address.host, listener.address.port)
            bound.append(BoundListener(listener, sock, shown_address(sock), context))
    except BaseException:
        for earlier in bound:
            earlier.sock.close()
        raise
    return bound


def reload_tls(listeners: Sequence[BoundListener]) -> None:
    """Read the TLS files that all listeners name again; connections that are open stay so.

    Raises OperationError naming a file that cannot be used; every listener keeps what it had then, since a
    certificate may serve several of them.
    """
    fresh = [
        (bound.context, ServerTls(bound.configured.tls).context)
        for bound in listeners
        if bound.context is not None and bound.configured.tls is not None
    ]
    for tls, context in fresh:
        tls.replace(context)


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
    return _shown(sock.getsockname())


def _shown(address: tuple[str, int]) -> str:
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def serve_streams(
    router: Router,
    sock: socket.socket,
    acceptor: Acceptor,
    context: ServerTls | None,
    origins: Origins | None,
    most: int | trio.CapacityLimiter,
    nursery: trio.Nursery,
) -> None:
    """Accept for ever; each connection runs in tasks of its own (TLS, WebSocket, no epoll).

    With `origins` the listener is for WebSocket, and these origins are allowed. Beyond `most` connections at a time,
    a new one is closed at once; with a limiter this bound may change meanwhile. A connection over TLS gets the
    certificate that its peer showed.
    """
    kind = acceptor.kind if origins is None else "WebSocket"
    name = f"{kind} listener {shown_address(sock)}"
    door = _ListenerContext(router, acceptor, context, origins, name)
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
                await _take(door, stream, places, nursery)
    finally:
        spare.close()


async def _take(
    door: _ListenerContext,
    stream: trio.SocketStream,
    places: trio.CapacityLimiter,
    nursery: trio.Nursery,
) -> None:
    """Serve an accepted connection, if there is a place for it."""
    entrance = door.router.pre_login_limits
    strangers = entrance.plain if door.tls is None and door.origins is None else entrance.shaken
    try:
        peer = peer_text(stream.socket.getpeername())
    except OSError:
        # The peer has gone already.
        await trio.aclose_forcefully(stream)
        return
    door.router.context.now_ns = time.monotonic_ns()
    # The number is negative where the bound was lowered.
    if places.available_tokens <= 0 or not entrance.has_place(strangers, peer):
        await trio.aclose_forcefully(stream)
        return
    guest = _NotLoggedIn(peer, strangers)
    strangers.enter(guest.origin, guest)
    # Here, so that its descriptor is counted before the next connection is accepted.
    entrance.open += 1
    nursery.start_soon(_serve_one, door, stream, places, strangers, guest)


@final
class _NotLoggedIn(Channel):
    """A connection that is served by tasks and has not logged in."""

    def __init__(self, peer: str, strangers: PendingConnections) -> None:
        self.peer = peer
        self.origin = origin_of(peer)
        self.scope = trio.CancelScope()
        self.secured: Secured | None = None
        self._strangers = strangers

    def leave(self) -> None:
        """Give the place back: the client has logged in, or has gone."""
        self._strangers.leave(self.origin, self)

    def cut(self, why: str) -> bool:
        """Cancel the task that serves the connection."""
        self.leave()
        self.scope.cancel()
        return True


class _ListenerContext(NamedTuple):
    """What the connections of one listener share; `name` is what the listener is called in messages."""

    router: Router
    acceptor: Acceptor
    tls: ServerTls | None
    origins: Origins | None
    name: str


async def _serve_one(
    door: _ListenerContext,
    socket_stream: trio.SocketStream,
    places: trio.CapacityLimiter,
    strangers: PendingConnections,
    guest: _NotLoggedIn,
) -> None:
    try:
        with guest.scope:
            async with places:
                await _serve_placed(door, socket_stream, strangers, guest)
    except Exception as error:  # noqa: BLE001 - given to the barrier
        barrier = door.router.context.barrier
        barrier.caught(error, LISTENER, door.name, "", "one connection is closed")
    finally:
        guest.leave()
        if guest.secured is not None:
            # This is a cycle: without the deletion the memory stays until a collection of old objects.
            del guest.secured._handshook  # noqa: SLF001
        door.router.pre_login_limits.open -= 1
        # Whatever ended it, a stop in the middle of a handshake included.
        socket_stream.socket.close()


async def _serve_placed(
    door: _ListenerContext,
    socket_stream: trio.SocketStream,
    strangers: PendingConnections,
    guest: _NotLoggedIn,
) -> None:
    stream: trio.SocketStream | Secured | WebSocketStream = socket_stream
    certificate = None
    try:
        with trio.fail_after(HANDSHAKE_S):
            if door.tls is not None:
                secured = await _secure(door, door.tls, socket_stream, guest)
                if secured is None:
                    return
                stream, certificate = secured
            if door.origins is not None:
                wrapped = WebSocketStream(stream)
                if not await wrapped.handshake(door.origins.allowed):
                    door.router.protocol_errors += 1
                    return
                stream = wrapped
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
        # A stranger who could not shake hands: nothing was promised to him, nobody else is hurt.
        door.router.protocol_errors += 1
        return
    connection = door.acceptor.accepted(guest.peer)
    connection.placed(strangers, guest)
    connection.certificate = certificate
    if isinstance(stream, trio.SSLStream):
        connection.binding = binding_of(stream)
    await serve_stream(door.router.context, stream, connection)


async def _secure(
    door: _ListenerContext, tls: ServerTls, stream: trio.SocketStream, guest: _NotLoggedIn
) -> tuple[Secured, PeerCertificate | None] | None:
    """Return TLS over an accepted socket and the client's certificate, None where the handshake failed."""
    if not await stream.socket.recv(1, socket.MSG_PEEK):
        # Somebody only looked whether the port answers.
        return None
    secured = trio.SSLStream(
        stream, tls.context, server_side=True, https_compatible=door.origins is not None
    )
    guest.secured = secured
    try:
        await shake_hands(secured)
        return secured, tls.peer(ssl_object_of(secured))
    except (trio.BrokenResourceError, OperationError) as error:
        door.router.protocol_errors += 1
        why = tls_reason(error, "the client")
        tls.failures.note(door.name, _peer_shown(stream), why, trio.current_time())
    await linger(stream)
    return None


def _peer_shown(stream: trio.SocketStream) -> str:
    try:
        return _shown(stream.socket.getpeername())
    except OSError:
        return "a client that is gone"


def keyed(listeners: Iterable[Listener]) -> dict[Item, Listener]:
    """Listeners by what identifies them, as the differences of two configurations name them."""
    found: dict[Item, Listener] = {}
    for listener in listeners:
        identity = (listener.protocol, listener.bind)
        nth = sum(1 for item in found if item.identity == identity)
        found[Item(identity, nth)] = listener
    return found


def served(listeners: Iterable[Listener]) -> dict[Item, Listener]:
    """Those of `listeners` that are enabled and have a protocol that this version serves."""
    return {
        key: listener
        for key, listener in keyed(listeners).items()
        if listener.enabled and listener.protocol in SERVED
    }


@final
class OpenListener:
    """One listener that answers. What `bound.written` says of it holds; `scope` ends it where tasks do."""

    def __init__(self, bound: BoundListener) -> None:
        self.bound = bound
        self.scope = trio.CancelScope()
        self.places = trio.CapacityLimiter(bound.configured.max_connection_count)
        websocket = bound.configured.protocol in ("ws", "wss")
        self.origins = Origins(bound.configured.allowed_origins) if websocket else None
        self.acceptor: MqttAcceptor | LinkAcceptor | None = None
        self.access: Access | None = None

    @property
    def in_tasks(self) -> bool:
        """Whether it can only be served by tasks, whatever the system has for plain sockets."""
        return self.bound.configured.protocol in STREAMED | MANAGEMENT_PROTOCOLS


def load_management() -> None:
    """Load the modules of the API. It takes some hundred milliseconds, so it is done before the router says "ready"."""
    import vpnrouter.management.application
    import vpnrouter.server.net.http  # noqa: F401


@final
class ListenerSet:
    """All listeners that answer, by what identifies them; accepting runs in `nursery`.

    TLS and WebSocket connections run in `streams`; `reactor` is None where the system has no epoll, and
    plain ones run there as well. `management` and `sources` are for listeners of the management API.
    """

    def __init__(
        self,
        book: LinkRegistry,
        reactor: Reactor | None,
        nursery: trio.Nursery,
        streams: trio.Nursery,
        management: Management,
        context: ApiContext,
    ) -> None:
        self.open: dict[Item, OpenListener] = {}
        self._book = book
        self._reactor = reactor
        self._nursery = nursery
        self._streams = streams
        self._management = management
        self._context = context

    def begin(self, key: Item, bound: BoundListener) -> None:
        """Answer on a listener from now on."""
        answer = OpenListener(bound)
        self.open[key] = answer
        configured = bound.configured
        where = f"{configured.protocol} {bound.address}"
        raise_event_in(self._book.router.context, LISTEN_PORT, f"{where} up", name=where)
        if configured.protocol in MANAGEMENT_PROTOCOLS:
            load_management()
            self._nursery.start_soon(self._manage, answer)
            return
        if configured.protocol in ("link", "links"):
            load_compression()
            door = LinkFactory(self._book, tls=configured.protocol == "links")
            answer.acceptor = LinkAcceptor(door)
        else:
            answer.acceptor = MqttAcceptor(self._book.router, configured.msg_vpn or "")
        if self._reactor is None or answer.in_tasks:
            self._nursery.start_soon(self._accept, answer, answer.acceptor)
        else:
            self._reactor.listen(bound.sock, answer.acceptor, configured.max_connection_count)

    def admit(self, management: Management) -> None:
        """Let only the users of a changed configuration in from now on."""
        self._management = management
        for answer in self.open.values():
            if answer.access is not None:
                answer.access.use(management.users)

    def change(self, key: Item, bound: BoundListener) -> None:
        """Go on under another configuration of a listener that answers, not one of management."""
        answer = self.open[key]
        answer.bound = bound
        most = bound.configured.max_connection_count
        answer.places.total_tokens = most
        if answer.origins is not None:
            answer.origins.allowed = bound.configured.allowed_origins
        if isinstance(answer.acceptor, MqttAcceptor):
            answer.acceptor.msg_vpn = bound.configured.msg_vpn or ""
        if self._reactor is not None and not answer.in_tasks:
            self._reactor.bound(bound.sock, most)

    def end(self, key: Item) -> None:
        """Stop accepting on a listener and close its socket; open connections stay. Those to the management API end
        with it.
        """
        answer = self.open.pop(key)
        where = f"{answer.bound.configured.protocol} {answer.bound.address}"
        raise_event_in(self._book.router.context, LISTEN_PORT, f"{where} down", name=where)
        sock = answer.bound.sock
        if self._reactor is not None and not answer.in_tasks:
            self._reactor.unlisten(sock)
            return
        answer.scope.cancel()
        # At once, and not when its task comes to run: the address is free for another one.
        trio.lowlevel.notify_closing(sock)
        sock.close()

    def arrange(self, order: Iterable[Item]) -> None:
        """Sort `open` into the order of a configuration."""
        self.open = {key: self.open[key] for key in order if key in self.open}

    def figures(self) -> Iterator[ListenerFigures]:
        """The figures of each listener for clients and bridges that is open."""
        for answer in list(self.open.values()):
            bound = answer.bound
            configured = bound.configured
            if configured.protocol in MANAGEMENT_PROTOCOLS:
                continue
            count = answer.places.borrowed_tokens
            if self._reactor is not None and not answer.in_tasks:
                count = self._reactor.open_on(bound.sock)
            yield ListenerFigures(
                configured.protocol, bound.address, int(count), configured.max_connection_count
            )

    def port_of(self, protocol: str) -> int:
        """The port of the first listener for `protocol`, 0 where there is none."""
        for answer in self.open.values():
            if answer.bound.configured.protocol == protocol:
                return int(answer.bound.sock.getsockname()[1])
        return 0

    async def _accept(self, answer: OpenListener, acceptor: MqttAcceptor | LinkAcceptor) -> None:
        bound = answer.bound
        with answer.scope:
            if answer.scope.cancel_called:
                return
            await serve_streams(
                self._book.router,
                bound.sock,
                acceptor,
                bound.context,
                answer.origins,
                answer.places,
                self._streams,
            )

    async def _manage(self, answer: OpenListener) -> None:
        with answer.scope:
            if answer.scope.cancel_called:
                return
            from vpnrouter.management.access import Access
            from vpnrouter.management.application import build_app
            from vpnrouter.server.net.http import serve_http

            answer.access = Access.of(self._management)
            bound = answer.bound
            await serve_http(
                bound.sock,
                bound.context,
                bound.configured.max_connection_count,
                build_app(self._context, answer.access),
                self._book.router.context.barrier,
            )

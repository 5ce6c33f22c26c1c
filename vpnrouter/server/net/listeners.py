"""Listeners: begun, changed and stopped; each accepted socket gets the connection that its protocol wants."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter.bridges.link import LinkFactory
from vpnrouter.config.effects import Item
from vpnrouter.core.amqp.connection import AmqpConnection
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.errors import OperationError
from vpnrouter.events.table import CERTIFICATE_CHANGED, LISTEN_PORT, EventType
from vpnrouter.management.metrics.families import ListenerFigures
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.layers import (
    AMQP_SUBPROTOCOLS,
    MQTT_SUBPROTOCOLS,
    StackedLayer,
    TlsLayer,
    WebSocketLayer,
)
from vpnrouter.server.net.reactor import Acceptor, shown_address
from vpnrouter.server.net.streams import serve_streams
from vpnrouter.server.net.tls import HandshakeFailures, ServerTls
from vpnrouter.settings.listener import (
    AMQP_PROTOCOLS,
    CLIENT_PROTOCOLS,
    MANAGEMENT_PROTOCOLS,
    WEBSOCKET_PROTOCOLS,
    parse_stand_by,
)
from vpnrouter.wire.amqp.types import INT, Symbol, Typed
from vpnrouter.wire.link.compressed import load as load_compression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Router
    from vpnrouter.management.access import Access
    from vpnrouter.management.api_context import ApiContext
    from vpnrouter.server.net.layers import Layer
    from vpnrouter.server.net.reactor import Reactor
    from vpnrouter.settings.listener import Listener
    from vpnrouter.settings.management import Management


SERVED: Final = CLIENT_PROTOCOLS | frozenset({"link", "links"}) | MANAGEMENT_PROTOCOLS
"""Protocols that this version serves."""

BACKLOG: Final = 1024
"""Connections the kernel holds while the router is busy."""


@final
class ListenerLayers:
    """The layers of the connections of one listener: TLS, WebSocket, both or none.

    `name` is what the listener is called in messages. With `origins` the listener is for WebSocket.
    """

    def __init__(
        self,
        name: str = "",
        tls: ServerTls | None = None,
        origins: Origins | None = None,
        subprotocols: Sequence[str] = MQTT_SUBPROTOCOLS,
    ) -> None:
        self._subprotocols = subprotocols
        self._name = name
        self._tls = tls
        self._origins = origins

    def make(self) -> Layer | None:
        """Return the layer of one more connection, None where it needs none."""
        tls, origins = self._tls, self._origins
        secured = None if tls is None else TlsLayer(tls.context, tls.peer)
        if origins is None:
            return secured
        hosts = origins.hosts if tls is None else None
        websocket = WebSocketLayer(origins.allowed, self._subprotocols, hosts)
        return websocket if secured is None else StackedLayer(websocket, secured)

    def failed(self, peer: str, why: str) -> None:
        """Report a TLS handshake with `peer` that failed."""
        tls = self._tls
        if tls is not None:
            peer = peer or "a client that is gone"
            tls.failures.note(self._name, peer, why, trio.current_time())


PLAIN: Final = ListenerLayers()


class LayeredAcceptor(Acceptor):
    """Makes the connections of a listener, and their layers."""

    def __init__(self, layers: ListenerLayers) -> None:
        self._layers = layers

    def layer(self) -> Layer | None:
        """The layer of the next connection."""
        return self._layers.make()

    def handshake_failed(self, peer: str, why: str) -> None:
        """Report it."""
        self._layers.failed(peer, why)


@final
class MqttAcceptor(LayeredAcceptor):
    """MQTT. `msg_vpn` is "" where usernames choose the VPN."""

    def __init__(self, router: Router, msg_vpn: str, layers: ListenerLayers = PLAIN) -> None:
        super().__init__(layers)
        self.router = router
        self.msg_vpn = msg_vpn

    def accepted(self, peer: str) -> Connection:
        """A connection for an MQTT client."""
        return MqttConnection(self.router, peer, self.msg_vpn)


@final
class AmqpAcceptor(LayeredAcceptor):
    """AMQP 1.0. `msg_vpn` is "" where clients choose the VPN; `stand_bys` are the servers that they are told of."""

    def __init__(
        self,
        router: Router,
        msg_vpn: str,
        stand_bys: list[object],
        layers: ListenerLayers = PLAIN,
    ) -> None:
        super().__init__(layers)
        self.router = router
        self.msg_vpn = msg_vpn
        self.stand_bys = stand_bys

    def accepted(self, peer: str) -> Connection:
        """A connection for an AMQP client."""
        return AmqpConnection(self.router, peer, self.msg_vpn, self.stand_bys)


def stand_bys_of(listener: Listener) -> list[object]:
    """The servers that AMQP clients of a listener may turn to, as its clients are told of them."""
    return [
        {
            Symbol("scheme"): server.scheme,
            Symbol("hostname"): server.host,
            Symbol("network-host"): server.host,
            Symbol("port"): Typed(INT, server.port),
        }
        for server in map(parse_stand_by, listener.failover_servers)
    ]


@final
class LinkAcceptor(LayeredAcceptor):
    """Bridges of other routers."""

    def __init__(self, door: LinkFactory, layers: ListenerLayers = PLAIN) -> None:
        super().__init__(layers)
        self.door = door

    def accepted(self, peer: str) -> Connection:
        """A connection for a link of another router."""
        return self.door.connection(peer)


ClientAcceptor = MqttAcceptor | AmqpAcceptor | LinkAcceptor
"""The acceptors of all listeners but those of the management API."""


@final
class Origins:
    """The web origins that may open a WebSocket on a listener, and the names of its host; both may change."""

    def __init__(self, listener: Listener) -> None:
        self.use(listener)

    def use(self, listener: Listener) -> None:
        """Let those in that the configuration names from now on."""
        self.allowed = listener.allowed_origins
        names = (*listener.hosts, listener.address.host, socket.gethostname())
        self.hosts = frozenset(name.lower() for name in names)


class BoundListener(NamedTuple):
    """A listener of the configuration with its socket, address as bound, and TLS if any."""

    configured: Listener
    sock: socket.socket
    address: str
    context: ServerTls | None

    @property
    def name(self) -> str:
        """Its protocol and address, as events and the API call it."""
        return f"{self.configured.protocol} {self.address}"


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
            bound.append(BoundListener(listener, sock, shown_address(sock.getsockname()), context))
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
        (bound.context, ServerTls(bound.configured.tls))
        for bound in listeners
        if bound.context is not None and bound.configured.tls is not None
    ]
    for tls, other in fresh:
        tls.replace(other)


def bind(host: str, port: int) -> socket.socket:
    """A listening, non-blocking TCP socket; port 0 lets the system choose.

    Raises OperationError naming the address when it cannot be bound.
    """
    shown = shown_address((host, port))
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
    """One listener that answers. What `bound.configured` says of it holds; `scope` ends it where tasks do."""

    def __init__(self, bound: BoundListener) -> None:
        self.bound = bound
        self.scope = trio.CancelScope()
        self.places = trio.CapacityLimiter(bound.configured.max_connection_count)
        websocket = bound.configured.protocol in WEBSOCKET_PROTOCOLS
        self.origins = Origins(bound.configured) if websocket else None
        self.acceptor: ClientAcceptor | None = None
        self.access: Access | None = None

    @property
    def in_tasks(self) -> bool:
        """Whether it is served by tasks, whatever the system has for sockets."""
        return self.bound.configured.protocol in MANAGEMENT_PROTOCOLS

    def layers(self) -> ListenerLayers:
        """What stands between its sockets and their connections."""
        protocol = self.bound.configured.protocol
        is_amqp = protocol in AMQP_PROTOCOLS
        if self.origins is not None:
            kind = "WebSocket"
        elif is_amqp:
            kind = "AMQP"
        else:
            kind = "link" if protocol == "links" else "MQTT"
        name = f"{kind} listener {self.bound.address}"
        subprotocols = AMQP_SUBPROTOCOLS if is_amqp else MQTT_SUBPROTOCOLS
        return ListenerLayers(name, self.bound.context, self.origins, subprotocols)


def load_management() -> None:
    """Load the modules of the API. It takes some hundred milliseconds, so it is done before the router says "ready"."""
    import vpnrouter.management.application
    import vpnrouter.server.net.http  # noqa: F401


@final
class ListenerSet:
    """All listeners that answer, by what identifies them; accepting runs in `nursery`.

    `reactor` is None where the system has no epoll: connections run in `streams` then.
    `management` and `sources` are for listeners of the management API.
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
        self._tell(bound, "up")
        if configured.protocol in MANAGEMENT_PROTOCOLS:
            load_management()
            self._nursery.start_soon(self._manage, answer)
            return
        if configured.protocol in ("link", "links"):
            load_compression()
            door = LinkFactory(self._book, tls=configured.protocol == "links")
            answer.acceptor = LinkAcceptor(door, answer.layers())
        elif configured.protocol in AMQP_PROTOCOLS:
            answer.acceptor = AmqpAcceptor(
                self._book.router,
                configured.msg_vpn or "",
                stand_bys_of(configured),
                answer.layers(),
            )
        else:
            answer.acceptor = MqttAcceptor(
                self._book.router, configured.msg_vpn or "", answer.layers()
            )
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
        tls = bound.context
        if tls is not None and tls.is_renewed:
            tls.is_renewed = False
            until = datetime.fromtimestamp(tls.own.not_after_s, UTC)
            self._tell(
                bound,
                f"shows another certificate, valid until {until:%Y-%m-%dT%H:%M:%SZ}",
                CERTIFICATE_CHANGED,
            )
        most = bound.configured.max_connection_count
        answer.places.total_tokens = most
        if answer.origins is not None:
            answer.origins.use(bound.configured)
        if isinstance(answer.acceptor, MqttAcceptor):
            answer.acceptor.msg_vpn = bound.configured.msg_vpn or ""
        if isinstance(answer.acceptor, AmqpAcceptor):
            answer.acceptor.msg_vpn = bound.configured.msg_vpn or ""
            answer.acceptor.stand_bys = stand_bys_of(bound.configured)
        if self._reactor is not None and not answer.in_tasks:
            self._reactor.bound(bound.sock, most)

    def end(self, key: Item) -> None:
        """Stop accepting on a listener and close its socket; open connections stay. Those to the management API end
        with it.
        """
        answer = self.open.pop(key)
        self._tell(answer.bound, "down")
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

    def certificates(self) -> dict[str, int]:
        """Until when the certificate of each listener with TLS is valid, in seconds since 1970."""
        return {
            answer.bound.name: answer.bound.context.own.not_after_s
            for answer in self.open.values()
            if answer.bound.context is not None
        }

    def _tell(self, bound: BoundListener, what: str, kind: EventType = LISTEN_PORT) -> None:
        context = self._book.router.context
        raise_event_in(context, kind, f"{bound.name} {what}", name=bound.name)

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

    async def _accept(self, answer: OpenListener, acceptor: ClientAcceptor) -> None:
        bound = answer.bound
        with answer.scope:
            if answer.scope.cancel_called:
                return
            await serve_streams(
                self._book.router,
                bound.sock,
                acceptor,
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

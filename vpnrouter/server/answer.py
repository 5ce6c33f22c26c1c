"""The listeners that a running router answers on: each begun, changed and stopped, while connections last."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

from vpnrouter.bridges.link import LinkDoor
from vpnrouter.config.change import Item
from vpnrouter.events.table import LISTEN_PORT
from vpnrouter.server.listeners import (
    SERVED,
    STREAMED,
    LinkAcceptor,
    MqttAcceptor,
    Origins,
    serve_streams,
)
from vpnrouter.server.management import PROTOCOLS, answer_management, load
from vpnrouter.server.narrate import tell_of
from vpnrouter.wire.link.compressed import load as load_compression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.config.listeners import Listener
    from vpnrouter.config.management import Management
    from vpnrouter.management.access import Access
    from vpnrouter.management.sources import Sources
    from vpnrouter.server.listeners import BoundListener
    from vpnrouter.server.reactor import Reactor


def keyed(listeners: Iterable[Listener]) -> dict[Item, Listener]:
    """Listeners by what identifies them, as the differences of two configurations name them."""
    found: dict[Item, Listener] = {}
    for listener in listeners:
        identity = (listener.protocol, listener.bind)
        nth = sum(1 for item in found if item.identity == identity)
        found[Item(identity, nth)] = listener
    return found


def served(listeners: Iterable[Listener]) -> dict[Item, Listener]:
    """Those of them that are enabled and of a protocol that this version serves."""
    return {
        key: listener
        for key, listener in keyed(listeners).items()
        if listener.enabled and listener.protocol in SERVED
    }


@final
class Answer:
    """One listener that answers. What `bound.written` says of it holds; `scope` ends it where tasks do."""

    def __init__(self, bound: BoundListener) -> None:
        self.bound = bound
        self.scope = trio.CancelScope()
        self.places = trio.CapacityLimiter(bound.written.max_connection_count)
        websocket = bound.written.protocol in ("ws", "wss")
        self.origins = Origins(bound.written.allowed_origins) if websocket else None
        self.acceptor: MqttAcceptor | LinkAcceptor | None = None
        self.access: Access | None = None

    @property
    def in_tasks(self) -> bool:
        """Whether it can only be served by tasks, whatever the system has for plain sockets."""
        return self.bound.written.protocol in STREAMED | PROTOCOLS


@final
class Answering:
    """All listeners that answer, by what identifies them; accepting runs in `nursery`.

    TLS and WebSocket connections run in `streams`; `reactor` is None where the system has no epoll, and
    plain ones run there as well. `management` and `sources` are for listeners of the management API.
    """

    def __init__(
        self,
        book: LinkBook,
        reactor: Reactor | None,
        nursery: trio.Nursery,
        streams: trio.Nursery,
        management: Management,
        sources: Sources,
    ) -> None:
        self.open: dict[Item, Answer] = {}
        self._book = book
        self._reactor = reactor
        self._nursery = nursery
        self._streams = streams
        self._management = management
        self._sources = sources

    def begin(self, key: Item, bound: BoundListener) -> None:
        """Answer on a listener from now on."""
        answer = Answer(bound)
        self.open[key] = answer
        written = bound.written
        where = f"{written.protocol} {bound.address}"
        tell_of(self._book.router.plane, LISTEN_PORT, f"{where} up", name=where)
        if written.protocol in PROTOCOLS:
            load()
            self._nursery.start_soon(self._manage, answer)
            return
        if written.protocol in ("link", "links"):
            load_compression()
            door = LinkDoor(self._book, tls=written.protocol == "links")
            answer.acceptor = LinkAcceptor(door)
        else:
            answer.acceptor = MqttAcceptor(self._book.router, written.msg_vpn or "")
        if self._reactor is None or answer.in_tasks:
            self._nursery.start_soon(self._accept, answer, answer.acceptor)
        else:
            self._reactor.listen(bound.sock, answer.acceptor, written.max_connection_count)

    def admit(self, management: Management) -> None:
        """Let the users of a changed configuration in from now on, and nobody else."""
        self._management = management
        for answer in self.open.values():
            if answer.access is not None:
                answer.access.use(management.users)

    def change(self, key: Item, bound: BoundListener) -> None:
        """Go on under another configuration of a listener that answers, not one of management."""
        answer = self.open[key]
        answer.bound = bound
        most = bound.written.max_connection_count
        answer.places.total_tokens = most
        if answer.origins is not None:
            answer.origins.allowed = bound.written.allowed_origins
        if isinstance(answer.acceptor, MqttAcceptor):
            answer.acceptor.msg_vpn = bound.written.msg_vpn or ""
        if self._reactor is not None and not answer.in_tasks:
            self._reactor.bound(bound.sock, most)

    def end(self, key: Item) -> None:
        """Take no more connections on a listener and close its socket; those that are open last.

        Connections to the management API end with their listener.
        """
        answer = self.open.pop(key)
        where = f"{answer.bound.written.protocol} {answer.bound.address}"
        tell_of(self._book.router.plane, LISTEN_PORT, f"{where} down", name=where)
        sock = answer.bound.sock
        if self._reactor is not None and not answer.in_tasks:
            self._reactor.unlisten(sock)
            return
        answer.scope.cancel()
        # At once, and not when its task comes to run: the address is free for another one.
        trio.lowlevel.notify_closing(sock)
        sock.close()

    def arrange(self, order: Iterable[Item]) -> None:
        """Let `open` stand in the order of a configuration."""
        self.open = {key: self.open[key] for key in order if key in self.open}

    def port_of(self, protocol: str) -> int:
        """The port of the first listener for `protocol`, 0 where there is none."""
        for answer in self.open.values():
            if answer.bound.written.protocol == protocol:
                return int(answer.bound.sock.getsockname()[1])
        return 0

    async def _accept(self, answer: Answer, acceptor: MqttAcceptor | LinkAcceptor) -> None:
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

    async def _manage(self, answer: Answer) -> None:
        with answer.scope:
            if answer.scope.cancel_called:
                return
            async with trio.open_nursery() as serving:
                answer.access = answer_management(
                    [answer.bound],
                    self._management,
                    self._sources,
                    serving,
                    self._book.router.plane.barrier,
                )

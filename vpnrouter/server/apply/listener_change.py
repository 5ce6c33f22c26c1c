"""Applies changed listeners: what can fail comes first."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, final

from vpnrouter.errors import OperationError
from vpnrouter.server.net.listeners import (
    BACKLOG,
    BoundListener,
    bind,
    keyed,
    reload_tls,
    served,
)
from vpnrouter.server.net.reactor import shown_address
from vpnrouter.server.net.tls import ServerTls
from vpnrouter.settings.listener import MANAGEMENT_PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.config.effects import Item
    from vpnrouter.server.net.listeners import ListenerSet
    from vpnrouter.settings.listener import Listener


@final
class ListenerChange:
    """What `listeners` asks of those that answer now.

    Making it binds new addresses and reads all TLS files again, old ones included. Raises OperationError
    naming what cannot be used; everything is as before then.
    """

    def __init__(self, answering: ListenerSet, listeners: Sequence[Listener]) -> None:
        self._answering = answering
        self._quiet: list[socket.socket] = []
        self._order = list(keyed(listeners))
        wanted = served(listeners)
        self._kept: dict[Item, BoundListener] = {}
        for key, answer in answering.open.items():
            listener = wanted.get(key)
            if listener is not None and _stays(answer.bound.configured, listener):
                self._kept[key] = answer.bound._replace(configured=listener)
        self._gone = [key for key in answering.open if key not in self._kept]
        self._new: dict[Item, BoundListener] = {}
        try:
            for key, listener in wanted.items():
                if key not in self._kept:
                    self._new[key] = self._bound(listener)
            # The last that can fail, since it takes effect at once.
            reload_tls(list(self._kept.values()))
        except BaseException:
            self._undo()
            raise

    def apply(self) -> None:
        """Close the listeners that are gone, change those that stay, and open the new ones."""
        answering = self._answering
        for key in self._gone:
            answering.end(key)
        for key, bound in self._kept.items():
            answering.change(key, bound)
        for key, bound in self._new.items():
            answering.begin(key, bound)
        answering.arrange(self._order)

    def abandon(self) -> None:
        """Leave the listeners as they were; TLS files that cannot be read any more stay as they were read."""
        self._undo()
        was = [self._answering.open[key].bound for key in self._kept]
        with contextlib.suppress(OperationError):
            reload_tls(was)

    def _bound(self, listener: Listener) -> BoundListener:
        context = None if listener.tls is None else ServerTls(listener.tls)
        if context is not None:
            for answer in self._answering.open.values():
                if answer.bound.context is not None:
                    # What is told of failed handshakes is bounded for all listeners together.
                    context.failures = answer.bound.context.failures
        sock = self._socket(listener)
        return BoundListener(listener, sock, shown_address(sock.getsockname()), context)

    def _socket(self, listener: Listener) -> socket.socket:
        """A socket bound to the listener's address, if need be in the place of one that goes."""
        address = listener.address
        rivals = []
        for key in self._gone:
            bound = self._answering.open[key].bound
            if address.port and bound.configured.address == address:
                # The very same address: who waits there to be accepted is not sent away.
                return bound.sock.dup()
            if address.port == bound.sock.getsockname()[1]:
                rivals.append(bound.sock)
        try:
            return bind(address.host, address.port)
        except OperationError:
            if not rivals:
                raise
        for sock in rivals:
            # Listens no more, but can go on if the rest comes to nothing.
            sock.shutdown(socket.SHUT_RDWR)
            self._quiet.append(sock)
        return bind(address.host, address.port)

    def _undo(self) -> None:
        for bound in self._new.values():
            bound.sock.close()
        for sock in self._quiet:
            sock.listen(BACKLOG)


def _stays(before: Listener, after: Listener) -> bool:
    """Whether a listener that answers can go on as it is.

    The bound of a management listener is fixed when it begins.
    """
    if before.protocol in MANAGEMENT_PROTOCOLS:
        return before.max_connection_count == after.max_connection_count
    return True

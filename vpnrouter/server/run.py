"""Start a router, say that it is ready, serve until told to stop."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter.bridges.acceptor import LinkDoor
from vpnrouter.core.router import Router
from vpnrouter.server.assemble import build_router
from vpnrouter.server.bridge_tasks import run_bridge
from vpnrouter.server.listeners import (
    LinkAcceptor,
    MqttAcceptor,
    bind,
    serve_streams,
    shown_address,
)
from vpnrouter.server.loop import drive, keep_time
from vpnrouter.server.reactor import Acceptor, Reactor
from vpnrouter.server.signals import watch_signals
from vpnrouter.server.stop import say_goodbye
from vpnrouter.server.tls import listener_context
from vpnrouter.server.traces import keep_traces
from vpnrouter.server.verify import Verifier

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from vpnrouter.config.listeners import Listener
    from vpnrouter.config.router import RouterConfig

STREAMED: Final = frozenset({"mqtts", "ws", "wss", "links"})
"""Protocols that cannot stand in the nested epoll."""

BOUND: Final = frozenset({"mqtt", "link"}) | STREAMED
"""Protocols that this version serves."""


class Node:
    """A running router: the core, its sockets, and what a test or the CLI wants to see of it."""

    def __init__(self, router: Router, reactor: Reactor, addresses: list[tuple[str, str]]) -> None:
        self.router = router
        self.reactor = reactor
        self.addresses = addresses

    def ready_line(self) -> str:
        """`ready router=NAME mqtt=HOST:PORT …`, in the order of the configuration."""
        shown = " ".join(f"{protocol}={address}" for protocol, address in self.addresses)
        return f"ready router={self.router.name} {shown}".rstrip()


async def serve(config: RouterConfig, ready: Callable[[Node], None]) -> None:
    """Run the router of `config` until cancelled or signalled; `ready` is called once all is bound.

    Raises OperationError when an address cannot be bound or a certificate not be used; then nothing
    stays behind.
    """
    router = build_router(config, int.from_bytes(os.urandom(8), "big"), os.urandom(16))
    reactor = Reactor(router)
    reactor.set_clocks()
    async with trio.open_nursery() as nursery:
        verifier = Verifier(router, nursery)
        sockets: list[socket.socket] = []
        try:
            addresses = _bind_all(config, router, reactor, nursery, sockets)
        except BaseException:
            for sock in sockets:
                sock.close()
            nursery.cancel_scope.cancel()
            raise
        if config.trace is not None and config.trace.enabled:
            await nursery.start(keep_traces, config.trace, router)
        nursery.start_soon(drive, reactor, verifier)
        nursery.start_soon(keep_time, reactor, verifier)
        for vpn_name, vpn in config.msg_vpns.items():
            for bridge_name, bridge in vpn.bridges.items():
                nursery.start_soon(run_bridge, router, reactor, vpn_name, bridge_name, bridge)
        stopping = trio.Event()
        nursery.start_soon(watch_signals, stopping.set, _cannot_reload)
        ready(Node(router, reactor, addresses))
        try:
            await stopping.wait()
        finally:
            say_goodbye(router, reactor)
            nursery.cancel_scope.cancel()


def _cannot_reload() -> None:
    print("vpnrouter: SIGHUP: this version reads its configuration only when it starts", file=sys.stderr)


def _bind_all(
    config: RouterConfig,
    router: Router,
    reactor: Reactor,
    nursery: trio.Nursery,
    sockets: list[socket.socket],
) -> list[tuple[str, str]]:
    addresses: list[tuple[str, str]] = []
    for listener in config.listeners:
        if not listener.enabled or listener.protocol not in BOUND:
            continue
        context = None if listener.tls is None else listener_context(listener.tls)
        sock = bind(listener.address.host, listener.address.port)
        sockets.append(sock)
        addresses.append((listener.protocol, shown_address(sock)))
        acceptor = _acceptor(listener, router)
        if listener.protocol in STREAMED:
            nursery.start_soon(
                serve_streams, router, sock, acceptor, context, listener.protocol in ("ws", "wss"), nursery
            )
        else:
            reactor.listen(sock, acceptor, listener.max_connection_count)
    return addresses


def _acceptor(listener: Listener, router: Router) -> Acceptor:
    if listener.protocol in ("link", "links"):
        return LinkAcceptor(LinkDoor(router, listener.protocol == "links"))
    return MqttAcceptor(router, listener.msg_vpn or "")


def run(config: RouterConfig) -> None:
    """Serve `config` in the foreground: one ready line on stdout, a clean stop on SIGTERM and SIGINT."""
    started = time.monotonic()

    def ready(node: Node) -> None:
        print(node.ready_line(), flush=True)
        print(f"vpnrouter: up after {time.monotonic() - started:.2f} s", file=sys.stderr)

    trio.run(serve, config, ready, strict_exception_groups=False)

"""Start a router, say that it is ready, serve until told to stop."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter.bridges.acceptor import LinkDoor
from vpnrouter.server.acceptor import Acceptor
from vpnrouter.server.assemble import build_router
from vpnrouter.server.bridge_tasks import BridgeRunner
from vpnrouter.server.host import Host
from vpnrouter.server.listeners import (
    STREAMED,
    BoundListener,
    LinkAcceptor,
    MqttAcceptor,
    bind_all,
    serve_streams,
)
from vpnrouter.server.loop import drive, keep_time
from vpnrouter.server.settle import settle
from vpnrouter.server.signals import watch_signals
from vpnrouter.server.stop import say_goodbye
from vpnrouter.server.traces import keep_traces
from vpnrouter.server.verify import Verifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.router import Router


STOP_S: Final = 1.0
"""Seconds that TLS and WebSocket peers have to take their last bytes when the router stops."""


class Node:
    """A running router: the core, its sockets, and what a test or the CLI wants to see of it."""

    def __init__(
        self,
        router: Router,
        bridges: list[BridgeRunner],
        listeners: list[BoundListener],
    ) -> None:
        self.router = router
        self.bridges = bridges
        self.addresses = [(bound.written.protocol, bound.address) for bound in listeners]

    def ready_line(self) -> str:
        """`ready router=NAME mqtt=HOST:PORT …`, in the order of the configuration."""
        shown = " ".join(f"{protocol}={address}" for protocol, address in self.addresses)
        return f"ready router={self.router.name} {shown}".rstrip()


def _host(router: Router, nursery: trio.Nursery, streams: trio.Nursery, verifier: Verifier) -> Host:
    """Whatever this system has for plain sockets, running."""
    if not hasattr(select, "epoll"):
        from vpnrouter.server.tasks import TaskHost

        return TaskHost(router, nursery, streams)
    from vpnrouter.server.reactor import Reactor

    reactor = Reactor(router)
    nursery.start_soon(drive, reactor, verifier)
    return reactor


async def serve(config: RouterConfig, ready: Callable[[Node], None]) -> None:
    """Run the router of `config` until cancelled or signalled; `ready` is called once all is bound.

    Raises OperationError when an address cannot be bound or a certificate not be used; then nothing
    stays behind.
    """
    router = build_router(config, int.from_bytes(os.urandom(8), "big"), os.urandom(16))
    # All that can fail for reasons outside fails here, before the first task exists.
    bound = bind_all(config.listeners)
    # Streams end after the rest: their tasks have last words to send.
    async with trio.open_nursery() as streams:
        async with trio.open_nursery() as nursery:
            verifier = Verifier(router, nursery)
            host = _host(router, nursery, streams, verifier)
            host.set_clocks()
            for listener in bound:
                _answer(listener, router, host, nursery, streams)
            nursery.start_soon(keep_time, host, verifier)
            runners = [
                BridgeRunner(router, host, vpn_name, bridge_name, bridge)
                for vpn_name, vpn in config.msg_vpns.items()
                for bridge_name, bridge in vpn.bridges.items()
            ]
            for runner in runners:
                nursery.start_soon(runner.run)
            stopping = trio.Event()
            nursery.start_soon(watch_signals, stopping.set, _cannot_reload)
            settle()
            ready(Node(router, runners, bound))
            if config.trace is not None and config.trace.enabled:
                nursery.start_soon(keep_traces, config.trace, router)
            try:
                await stopping.wait()
            finally:
                say_goodbye(router, host, [runner.link for runner in runners])
                nursery.cancel_scope.cancel()
        streams.cancel_scope.deadline = trio.current_time() + STOP_S


def _cannot_reload() -> None:
    print(
        "vpnrouter: SIGHUP: this version reads its configuration only when it starts",
        file=sys.stderr,
    )


def _answer(
    bound: BoundListener,
    router: Router,
    host: Host,
    nursery: trio.Nursery,
    streams: trio.Nursery,
) -> None:
    """Begin to accept on one listener."""
    written = bound.written
    acceptor: Acceptor
    if written.protocol in ("link", "links"):
        acceptor = LinkAcceptor(LinkDoor(router, tls=written.protocol == "links"))
    else:
        acceptor = MqttAcceptor(router, written.msg_vpn or "")
    if written.protocol in STREAMED:
        websocket = written.protocol in ("ws", "wss")
        nursery.start_soon(
            serve_streams,
            router,
            bound.sock,
            acceptor,
            bound.context,
            websocket,
            written.max_connection_count,
            streams,
        )
    else:
        host.listen(bound.sock, acceptor, written.max_connection_count)


def run(config: RouterConfig) -> None:
    """Serve `config` in the foreground: one ready line on stdout, a clean stop on SIGTERM and SIGINT."""
    started = time.monotonic()

    def ready(node: Node) -> None:
        print(node.ready_line(), flush=True)
        print(f"vpnrouter: up after {time.monotonic() - started:.2f} s", file=sys.stderr)

    trio.run(serve, config, ready)

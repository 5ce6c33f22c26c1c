"""Starts a router, reports that it is ready, serves until a signal and stops cleanly."""

from __future__ import annotations

import codecs
import importlib
import os
import select
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.config.checks.listeners import close_to_others
from vpnrouter.config.locations import Locations
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.events.table import STARTUP
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.config.editor import ConfigEditor
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.management.status.bridges import keep_rates
from vpnrouter.server.apply.assemble import build_router, read_authorities, take_authorities
from vpnrouter.server.apply.reload import Reload
from vpnrouter.server.events.event_context import PeerLog, raise_event, raise_named
from vpnrouter.server.events.log import RouterEvents
from vpnrouter.server.net.descriptors import raise_limit
from vpnrouter.server.net.dial import Dialler, transport_of
from vpnrouter.server.net.interpreter import settle
from vpnrouter.server.net.listeners import ListenerSet, bind_all, served
from vpnrouter.server.net.loop import drive, keep_time, keep_working, restarted
from vpnrouter.server.net.reactor import Host, flush_ready
from vpnrouter.server.net.tls import HandshakeFailures
from vpnrouter.server.objects.running import Services, running_objects
from vpnrouter.server.password_verifier import PasswordVerifier
from vpnrouter.server.spool.held_counts import keep_counts
from vpnrouter.server.spool.saved_counters import SavedCounters
from vpnrouter.server.spool.spool_service import open_spool
from vpnrouter.server.traces import check_traces, keep_traces
from vpnrouter.settings.kinds import BRIDGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from vpnrouter.config.router import Loaded, RouterConfig
    from vpnrouter.core.router import Router
    from vpnrouter.server.bridges.runner import BridgeRunner
    from vpnrouter.server.net.listeners import BoundListener
    from vpnrouter.server.net.reactor import Reactor
    from vpnrouter.server.objects.running import RunningObjects
    from vpnrouter.server.spool.spool_service import SpoolService
    from vpnrouter.settings.kinds import Kind


async def watch_signals(
    stop: Callable[[], None],
    reload: Callable[[], None],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Call `stop` on SIGTERM or SIGINT and `reload` on SIGHUP, for ever; started once they are heard."""
    wanted = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP"):
        wanted.append(signal.SIGHUP)
    with trio.open_signal_receiver(*wanted) as received:
        task_status.started()
        async for number in received:
            if number in (signal.SIGTERM, signal.SIGINT):
                stop()
            else:
                reload()


@final
class SighupHandler:
    """Reads the files again after each SIGHUP; those received meanwhile are answered together by one more reading.

    `editor` is None for a router that was not started from a file.
    """

    def __init__(self, editor: ConfigEditor | None) -> None:
        self._editor = editor
        self._noted = trio.Event()

    def note(self) -> None:
        """Note one more SIGHUP."""
        self._noted.set()

    async def answer(self) -> None:
        """Reload after each SIGHUP, for ever."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            if self._editor is not None:
                await self._editor.reread()
            else:
                raise_named("SIGHUP", "this router was not started from a file")


def say_goodbye(router: Router, host: Host, objects: Iterable[RunningObjects]) -> None:
    """Disconnect everybody, let the running `objects` log out, and close all plain sockets."""
    why = "the router stops"
    for vpn in router.vpns.values():
        for subscriber in list(vpn.clients.values()):
            connection = subscriber.client_connection()
            if isinstance(connection, ClientConnection):
                try:
                    connection.put_out(why, stopping=True)
                except Exception as error:  # noqa: BLE001 - given to the barrier: the others hear why
                    router.context.barrier.end(connection, error)
    for each in objects:
        each.goodbye(why)
    # What they held is given back now: there are no later turns.
    router.context.jobs.finish()
    flush_ready(router.context)
    host.close_all()


LATE: Final = (
    "ipaddress",
    "json",
    "vpnrouter.config.document_values",
    "vpnrouter.config.error_messages",
    "vpnrouter.selectors",
    "vpnrouter.topics.mapping",
)
"""What reloads and changes through the API need beyond what has read the configuration."""

STOP_S: Final = 1.0
"""Seconds that TLS and WebSocket peers have to take their last bytes when the router stops."""


class Node:
    """A running router: the core, its sockets, and what a test or the CLI wants to see of it.

    `reload(config)` puts another checked configuration into force and returns one line for each difference;
    see `reload.Reload`. `editor` is None for a router that was not started from a file.
    """

    def __init__(
        self,
        book: LinkRegistry,
        objects: Mapping[Kind, RunningObjects],
        answering: ListenerSet,
        reload: Reload,
        editor: ConfigEditor | None = None,
    ) -> None:
        self.editor = editor
        self.book = book
        self.router = book.router
        self.bridges: Sequence[BridgeRunner] = objects[BRIDGE].running
        self.reload = reload
        self._answering = answering

    @property
    def config(self) -> RouterConfig:
        """The configuration in force."""
        return self.reload.config

    @property
    def addresses(self) -> list[tuple[str, str]]:
        """Protocol and address of each listener, in the order of the configuration."""
        answers = self._answering.open.values()
        return [(answer.bound.configured.protocol, answer.bound.address) for answer in answers]

    def ready_line(self) -> str:
        """`ready router=NAME mqtt=HOST:PORT …`, in the order of the configuration."""
        shown = " ".join(f"{protocol}={address}" for protocol, address in self.addresses)
        return f"ready router={self.router.name} {shown}".rstrip()


def _host(
    router: Router,
    nursery: trio.Nursery,
    streams: trio.Nursery,
    verifier: PasswordVerifier,
    *,
    alone: bool,
) -> tuple[Host, Reactor | None]:
    """What serves plain sockets on this system, running; and the reactor again if it is that."""
    if not hasattr(select, "epoll"):
        from vpnrouter.server.net.loop import TaskHost

        return TaskHost(router, nursery, streams), None
    from vpnrouter.server.net.reactor import Reactor

    reactor = Reactor(router)
    driving = partial(drive, reactor, verifier, alone=alone)
    nursery.start_soon(restarted, router.context.barrier, "sockets", driving)
    return reactor, reactor


class StartFiles(NamedTuple):
    """What a router was started from: the file `path` as `loaded`, with its overlay unless `overlaid` is False."""

    path: str
    loaded: Loaded
    overlaid: bool = True


CODECS: Final = ("ascii", "idna", "latin-1", "punycode", "unicode_escape", "utf-8")
"""Codecs that this router and its libraries load at their first use."""


def load_rest() -> None:
    """Load modules that would otherwise be loaded at their first use.

    At that moment there may be no descriptor or memory left, and the connection that needs the module would be
    closed. Modules for a kind of listener, for bridges or traces are loaded with the first of these.
    """
    for name in CODECS:
        codecs.lookup(name)
    for name in LATE:
        importlib.import_module(name)


async def serve(
    config: RouterConfig,
    ready: Callable[[Node], None],
    files: StartFiles | None = None,
    *,
    alone: bool = False,
) -> None:
    """Run the router of `config` until cancelled or signalled; `ready` is called once all is bound.

    With `files`, SIGHUP reads them again, and the management API can change the configuration.
    `alone` says that no other router runs in this event loop, which makes waiting cheaper (loop.py).

    Raises OperationError when an address cannot be bound or a certificate not be used; then nothing
    stays behind.
    """
    secret = os.urandom(16)
    router = build_router(config, int.from_bytes(os.urandom(8), "big"), secret)
    router.pre_login_limits.bound(raise_limit())
    events = RouterEvents(router, config)
    load_rest()
    # All that can fail for reasons outside fails here, before the first task exists.
    check_traces(config.trace)
    take_authorities(router, read_authorities(config))
    spool_service = open_spool(router, config)
    try:
        bound = bind_all(config.listeners)
    except BaseException:
        if spool_service is not None:
            spool_service.close()
        raise
    try:
        await _serve(
            config, router, events, bound, spool_service, secret, ready, files, alone=alone
        )
    finally:
        if spool_service is not None:
            spool_service.close()


async def _serve(
    config: RouterConfig,
    router: Router,
    events: RouterEvents,
    bound: list[BoundListener],
    spool_service: SpoolService | None,
    secret: bytes,
    ready: Callable[[Node], None],
    files: StartFiles | None,
    *,
    alone: bool,
) -> None:
    """Run the router until cancelled or signalled; the spool is open and all listeners are bound."""
    book = LinkRegistry(router, os.urandom(32))
    book.log = PeerLog(HandshakeFailures().note)
    # Streams end after the rest: their tasks have last words to send.
    async with trio.open_nursery() as streams:
        async with trio.open_nursery() as nursery:
            verifier = PasswordVerifier(router, nursery)
            host, reactor = _host(router, nursery, streams, verifier, alone=alone)
            host.set_clocks()
            if spool_service is not None:
                spool_service.serve_with(reactor)
            dialler = Dialler(host)
            services = Services(
                book=book, dialler=dialler, nursery=nursery, spool_service=spool_service
            )
            objects = running_objects(services)
            edge = ServerHooks(
                flush=partial(flush_ready, router.context),
                transport=transport_of,
            )
            edge.take_objects(objects)
            context = ApiContext(book=book, edge=edge)
            if reactor is not None:
                edge.accepts = reactor.accepts
                edge.turns = lambda: reactor.turns
            if spool_service is not None:
                edge.commits = spool_service.committer.figures
                context.store = spool_service.store
            answering = ListenerSet(book, reactor, nursery, streams, config.management, context)
            for key, listener in zip(served(config.listeners), bound, strict=True):
                answering.begin(key, listener)
            edge.listeners = answering.figures
            edge.certificates = answering.certificates
            barrier = router.context.barrier

            def begin(name: str, task: Callable[[], Awaitable[object]]) -> None:
                nursery.start_soon(restarted, barrier, name, task, name=name)

            begin("metrics", context.figures.keep)
            begin("time", partial(keep_time, host, verifier))
            begin("long work", partial(keep_working, host, router.context))
            reload = Reload(config, secret, services, answering, objects)
            events.follow(lambda: reload.config)
            reload.tell_ports()
            reload.begin_all()
            if spool_service is not None:
                spool, store = spool_service.spool, spool_service.store
                sheets = SavedCounters(spool, store, book, objects)
                sheets.restore_bridges()
                sheets.restore_links(store)
                spool_service.sheets = sheets
                begin("balance sheets", sheets.keep)
                begin(
                    "counts of the spool",
                    partial(keep_counts, spool_service.store, spool_service.vpns),
                )
            begin("rates of bridges", partial(keep_rates, context.bridges, edge))
            begin("rates of message VPNs", context.meters.keep)
            begin("events", partial(events.run, context.bridges.items, context.meters))
            stopping = trio.Event()
            if files is not None:
                dialler.locations = Locations(files.loaded)
                context.editor = ConfigEditor(
                    files.path,
                    files.loaded,
                    reload.prepare,
                    lambda: reload.config,
                    context.log,
                    overlaid=files.overlaid,
                )
            hangups = SighupHandler(context.editor)
            begin("reloads", hangups.answer)
            # Before anybody is told that it is ready: a signal that comes then is heard.
            await nursery.start(watch_signals, stopping.set, hangups.note)
            known = router.context
            settle(lambda: known.memory.held + known.retained.bytes_)
            ready(Node(book, objects, answering, reload, context.editor))
            if config.trace is not None and config.trace.enabled:
                begin("traces", partial(keep_traces, config.trace, router, context.traces))
            try:
                await stopping.wait()
            finally:
                edge.stopping = True
                events.stopping()
                say_goodbye(router, host, reversed(objects.values()))
                nursery.cancel_scope.cancel()
        streams.cancel_scope.deadline = trio.current_time() + STOP_S


def run(files: StartFiles) -> None:
    """Serve their configuration in the foreground: one ready line on stdout, a clean stop on SIGTERM and SIGINT."""
    started = time.monotonic()
    config = files.loaded.config
    close_to_others(config)

    def ready(node: Node) -> None:
        print(node.ready_line(), flush=True)
        raise_event(STARTUP, f"up after {time.monotonic() - started:.2f} s")

    trio.run(partial(serve, alone=True), config, ready, files)

"""Drives a router: rounds of the nested epoll, and long work in slices between them.

On systems without epoll every socket runs as trio tasks. Their host has the methods of `Reactor`, so that nothing else
needs to know.

A way through trio costs more than most gaps between two messages. So while trio has nothing to do, the
router waits in the nested epoll itself, which trio's own epoll is part of: whatever trio waits for ends
that wait as well, and so do trio's next deadline and a task that a round made runnable.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter import limits
from vpnrouter.core.fault_barrier import TASK
from vpnrouter.durations import TURN_BOUNDS_S, Durations
from vpnrouter.events.table import NOTE
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.interpreter import MEMORY
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.server.net.streams import serve_stream, serve_streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.fault_barrier import FaultBarrier
    from vpnrouter.core.router import Router
    from vpnrouter.server.net.layers import Layer
    from vpnrouter.server.net.reactor import Acceptor, Host, Reactor
    from vpnrouter.server.password_verifier import PasswordVerifier


@final
class TaskHost:
    """Serves sockets with two tasks each, in `streams`; accepts in `nursery`."""

    ticks = False

    def __init__(self, router: Router, nursery: trio.Nursery, streams: trio.Nursery) -> None:
        self._router = router
        self._context = router.context
        self._nursery = nursery
        self._streams = streams

    def listen(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        """Accept from `sock` in a task, `most` connections open at a time."""
        self._nursery.start_soon(serve_streams, self._router, sock, acceptor, most, self._streams)

    def add(self, sock: socket.socket, connection: Connection, layer: Layer | None = None) -> None:
        """Serve `sock` (connected) with tasks that feed `connection`."""
        sock.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._streams.start_soon(serve_stream, self._context, stream, connection, layer)

    def set_clocks(self) -> None:
        """Set the times of the data plane: monotonic for timers, UTC for traces."""
        self._context.now_ns = time.monotonic_ns()
        self._context.wall_ns = time.time_ns()

    def tick(self) -> None:
        """Set the clocks, run the timers that are due, and flush what is ready."""
        self.set_clocks()
        self._context.timers.run(self._context.now_ns)
        flush_ready(self._context)

    def close_all(self) -> None:
        """Flush what is ready; the tasks close their sockets when all is sent."""
        flush_ready(self._context)


ROUNDS: Final = 24
"""Rounds in a row before trio's other tasks get their turn where their wishes cannot be seen: at most some
25 ms."""

LINGER_S: Final = 0.001
"""How long the poll after a busy round waits for more where trio's wishes cannot be seen. Not while streams
are served, since their tasks would wait as well."""

RESTART_S: Final = 0.005
RESTART_MOST_S: Final = 10.0
"""Seconds before a task of the router that raised is started again; twice as long each time."""

FORGIVEN_S: Final = 60.0
"""After so many seconds a fault does not count as a repetition."""

SLICE_NS: Final = 2_000_000
"""Nanoseconds of long work between two rounds."""

HIDDEN: Final = (
    f"trio {trio.__version__} does not show the descriptor that it waits with: the router waits through trio,"
    " which makes it slower, and is no other difference"
)

TICK_S: Final = 0.1
"""Seconds between looks at the timers; keep-alives and expiries are counted in seconds."""

LOOK_S: Final = 1.0
"""Seconds between two looks whether the rounds look at the timers themselves."""


TIMERS: Final = "timers"

COLLECTION: Final = "garbage collection"

OTHERS: Final = "other tasks"
"""Work of the event loop, as metrics name it. Tasks that were given a name have that."""


@final
class RunnableTasks(trio.abc.Instrument):
    """The tasks that are scheduled and have not had their turn; counts how long turns of tasks took in `turns`.

    `own` is the task that drives the sockets, whose turn is all of theirs.
    """

    def __init__(self, own: trio.lowlevel.Task, turns: dict[str, Durations]) -> None:
        self._own = own
        self._turns = turns
        self._began_ns = 0
        self.timers = turns.setdefault(TIMERS, Durations(TURN_BOUNDS_S))
        self.collection = turns.setdefault(COLLECTION, Durations(TURN_BOUNDS_S))
        self.tasks: set[trio.lowlevel.Task] = set()
        self.tick_s = trio.current_time()
        """When the rounds look at the timers next, by trio's clock."""

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Note that a task waits for its turn."""
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Forget a task whose turn begins."""
        self.tasks.discard(task)
        self._began_ns = time.monotonic_ns()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a turn that has ended."""
        if task is self._own:
            return
        # The name that trio makes of a function has dots.
        name = OTHERS if "." in task.name else task.name
        durations = self._turns.get(name)
        if durations is None:
            durations = self._turns[name] = Durations(TURN_BOUNDS_S)
        durations.add(time.monotonic_ns() - self._began_ns)


async def restarted(
    barrier: FaultBarrier, name: str, task: Callable[[], Awaitable[object]]
) -> None:
    """Run a task of the router. One that raises is told and started again, after longer and longer pauses."""
    rest_s = RESTART_S
    while True:
        began_s = trio.current_time()
        try:
            await task()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            barrier.caught(error, TASK, name, "", "begun anew")
        else:
            return
        rest_s = RESTART_S if trio.current_time() - began_s > FORGIVEN_S else rest_s * 2
        await trio.sleep(min(rest_s, RESTART_MOST_S))


async def drive(reactor: Reactor, verifier: PasswordVerifier, *, alone: bool) -> None:
    """Serve all sockets, for ever; `alone` says that no other router shares this trio run.

    Two would each wait without seeing the other's sockets.
    """
    descriptor = _trio_epoll() if alone else -1
    if alone and descriptor < 0:
        raise_event_in(reactor.context, NOTE, HIDDEN)
    if descriptor < 0:
        await _drive_blind(reactor, verifier)
    runnable = RunnableTasks(trio.lowlevel.current_task(), reactor.turns)
    trio.lowlevel.add_instrument(runnable)
    reactor.watch(descriptor)
    reactor.ticks = True
    try:
        # Whoever was scheduled before this was looked at has had a turn after one of ours.
        await trio.lowlevel.checkpoint()
        while True:
            await trio.lowlevel.checkpoint()
            _serve(reactor, verifier, runnable)
    finally:
        trio.lowlevel.remove_instrument(runnable)
        reactor.ticks = False
        reactor.unwatch()


def _serve(reactor: Reactor, verifier: PasswordVerifier, runnable: RunnableTasks) -> None:
    """Rounds until trio has something to do.

    The timers are looked at here: a way through trio ten times a second would hold a message up each time.
    """
    until = trio.current_time() + trio.lowlevel.current_statistics().seconds_to_next_deadline
    while True:
        now_s = trio.current_time()
        if now_s >= runnable.tick_s:
            runnable.tick_s = now_s + TICK_S
            _tick(reactor)
            runnable.timers.add(time.monotonic_ns() - reactor.context.now_ns)
            MEMORY.look(runnable.collection)
        wait_s = 0.0 if runnable.tasks else max(0.0, min(until, runnable.tick_s) - now_s)
        reactor.round(wait_s)
        verifier.start_waiting()
        if reactor.wanted or runnable.tasks or trio.current_time() >= until:
            return


def _tick(reactor: Reactor) -> None:
    """Look at the timers. An exception there costs this look, and not the sockets."""
    try:
        reactor.tick()
    except Exception as error:  # noqa: BLE001 - given to the barrier
        reactor.context.barrier.caught(error, TASK, "time", "", "goes on with the next look")


def _trio_epoll() -> int:
    """Return the descriptor that trio waits with, -1 where it has none or hides it.

    trio has no public name for it. `drive` raises an event where it is hidden; tests/server/test_barrier.py notices.
    """
    try:
        manager = trio._core._run.GLOBAL_RUN_CONTEXT.runner.io_manager  # noqa: SLF001
        return int(manager._epoll.fileno())  # noqa: SLF001
    except AttributeError:
        return -1


async def _drive_blind(reactor: Reactor, verifier: PasswordVerifier) -> None:
    """Run rounds without trio's epoll; trio gets its turn after a bounded number of rounds."""
    descriptor = reactor.fileno()
    context = reactor.context
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        if not reactor.round():
            continue
        linger_s = 0.0 if context.streams else LINGER_S
        for _ in range(ROUNDS):
            if not reactor.round(linger_s):
                break
        verifier.start_waiting()


async def keep_working(host: Host, context: RouterContext) -> None:
    """Run jobs in slices until cancelled; all other work has its turn between the slices."""
    while True:
        if not len(context.jobs):
            begun = trio.Event()
            context.jobs.wake = begun.set
            await begun.wait()
        host.set_clocks()
        context.allowance = limits.TURN_WORK
        until_ns = context.now_ns + SLICE_NS
        while len(context.jobs) and time.monotonic_ns() < until_ns:
            context.jobs.step()
        flush_ready(context)
        # trio runs tasks in any order: only after two turns has each of the others, the rounds too, had one.
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()


async def keep_time(host: Host, verifier: PasswordVerifier) -> None:
    """Fire timers and look at the memory in use, until cancelled, where the rounds do not do it."""
    while True:
        if host.ticks:
            await trio.sleep(LOOK_S)
            continue
        host.tick()
        MEMORY.look()
        verifier.start_waiting()
        await trio.sleep(TICK_S)

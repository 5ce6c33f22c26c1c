"""The two tasks that drive a router: rounds of the nested epoll, and the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from vpnrouter.server.host import Host
    from vpnrouter.server.reactor import Reactor
    from vpnrouter.server.verify import Verifier

ROUNDS: Final = 64
"""Rounds in a row before trio's other tasks get their turn: some milliseconds under full load."""

TICK_S: Final = 0.1
"""Seconds between looks at the timers; keep-alives and expiries are counted in seconds."""


async def drive(reactor: Reactor, verifier: Verifier) -> None:
    """Serve all plain sockets, for ever."""
    descriptor = reactor.fileno()
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        for _ in range(ROUNDS):
            if not reactor.round():
                break
        verifier.start_waiting()


async def keep_time(host: Host, verifier: Verifier) -> None:
    """Fire timers, for ever."""
    while True:
        host.tick()
        verifier.start_waiting()
        await trio.sleep(TICK_S)

"""The two tasks that drive a router: rounds of the nested epoll, and the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from vpnrouter.server.host import Host
    from vpnrouter.server.reactor import Reactor
    from vpnrouter.server.verify import Verifier

ROUNDS: Final = 24
"""Rounds in a row before trio's other tasks get their turn: at most some 25 ms."""

LINGER_S: Final = 0.001
"""How long the poll after a busy round waits for more: a way through trio costs more than most gaps of a
busy client. Not while streams are served, since their tasks would wait as well."""

TICK_S: Final = 0.1
"""Seconds between looks at the timers; keep-alives and expiries are counted in seconds."""


async def drive(reactor: Reactor, verifier: Verifier) -> None:
    """Serve all plain sockets, for ever."""
    descriptor = reactor.fileno()
    plane = reactor.plane
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        if not reactor.round():
            continue
        linger_s = 0.0 if plane.streams else LINGER_S
        for _ in range(ROUNDS):
            if not reactor.round(linger_s):
                break
        verifier.start_waiting()


async def keep_time(host: Host, verifier: Verifier) -> None:
    """Fire timers, for ever."""
    while True:
        host.tick()
        verifier.start_waiting()
        await trio.sleep(TICK_S)

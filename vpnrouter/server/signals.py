"""SIGTERM and SIGINT stop the router; SIGHUP asks for a reload."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


async def watch_signals(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM or SIGINT and `reload` on SIGHUP, for ever."""
    wanted = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP"):
        wanted.append(signal.SIGHUP)
    with trio.open_signal_receiver(*wanted) as received:
        async for number in received:
            if number in (signal.SIGTERM, signal.SIGINT):
                stop()
            else:
                reload()

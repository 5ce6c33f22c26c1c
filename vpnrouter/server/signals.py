"""SIGTERM and SIGINT stop the router; SIGHUP asks for a reload."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.server.narrate import say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


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
class Hangups:
    """SIGHUPs, each answered by one `reread`; those that come during one by one more after it.

    `reread` is None for a router that was not started from a file.
    """

    def __init__(self, reread: Callable[[], Awaitable[object]] | None) -> None:
        self._reread = reread
        self._noted = trio.Event()

    def note(self) -> None:
        """One more came."""
        self._noted.set()

    async def answer(self) -> None:
        """Reload when asked, for ever."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            if self._reread is not None:
                await self._reread()
            else:
                say("SIGHUP", "this router was not started from a file")

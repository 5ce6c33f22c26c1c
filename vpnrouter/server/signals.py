"""SIGTERM and SIGINT stop the router; SIGHUP asks for a reload."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.server.narrate import say
from vpnrouter.server.reload import reload_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import RouterConfig


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
    """SIGHUPs, each answered by one reload of `path`; those that come during one by one more after it."""

    def __init__(self, path: str, reload: Callable[[RouterConfig], list[str]]) -> None:
        self._path = path
        self._reload = reload
        self._noted = trio.Event()

    def note(self) -> None:
        """One more came."""
        self._noted.set()

    async def answer(self) -> None:
        """Reload when asked, for ever."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            if self._path:
                await reload_file(self._path, self._reload)
            else:
                say("SIGHUP", "this router was not started from a file")

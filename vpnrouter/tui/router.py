"""One router that is looked at: its API, whether it answers, and what was seen of it."""

from collections.abc import Awaitable, Callable
from typing import final

from vpnrouter.limits import TUI_QUEUES_LOOKED_AT, TUI_ROWS
from vpnrouter.tui import paths
from vpnrouter.tui.api import DeniedError, RouterApi, UnreachableError
from vpnrouter.tui.connection import Connection
from vpnrouter.tui.store import Store

QUEUES_EVERY_S = 3.0
"""Seconds between looks at all queues for trouble: the router goes through all of them for it."""


@final
class Router:
    """`clock` gives seconds and does not jump."""

    def __init__(self, api: RouterApi, clock: Callable[[], float]) -> None:
        self.api = api
        self.clock = clock
        self.connection = Connection()
        self.store = Store()
        self.said = ""
        """Why the last look was refused, "" when it was not."""
        self._asked_who = False
        self._queues_at: float | None = None

    @property
    def label(self) -> str:
        """Its name, or where it is while that is unknown."""
        return self.store.name or self.api.url.partition("://")[2]

    async def look(self, fetch: Callable[["Router"], Awaitable[None]]) -> bool:
        """Ask for what a screen shows; False when there was no answer or no time for a try yet."""
        if not self.connection.is_due(self.clock()):
            return False
        try:
            if not self._asked_who:
                await self._ask_who()
            await fetch(self)
        except UnreachableError as error:
            self.lost(error)
            return False
        except DeniedError as error:
            self.said = str(error)
        else:
            self.said = ""
        self.connection.answered(self.clock())
        return True

    def lost(self, error: UnreachableError) -> None:
        """There was no answer; it may come back as another router."""
        self.connection.failed(self.clock(), str(error))
        self.store.meters.pause()
        self._asked_who = False

    async def _ask_who(self) -> None:
        try:
            self.store.saw_router(await self.api.one(paths.ROUTER))
        except DeniedError as error:
            # A router that does not tell its name is called by its address.
            if error.code in {401, 403, 429}:
                raise
        self._asked_who = True

    async def see_msg_vpns(self) -> None:
        """Look at all message VPNs."""
        rows = await self.api.rows(paths.MSG_VPNS, TUI_ROWS)
        self.store.saw_msg_vpns(self.clock(), rows)

    async def see_bridges(self) -> None:
        """Fetch the bridges; where there are very many, fetch those that are not up as well."""
        rows = await self.api.rows(paths.ALL_BRIDGES, TUI_ROWS)
        if len(rows) == TUI_ROWS:
            down = await self.api.rows(paths.ALL_BRIDGES, TUI_ROWS, "health!=up")
            seen = {(row["msgVpnName"], row["bridgeName"]) for row in rows}
            rows += [row for row in down if (row["msgVpnName"], row["bridgeName"]) not in seen]
        self.store.saw_bridges(self.clock(), rows)

    async def see_queues(self) -> None:
        """Look at the queues with messages, not at each look."""
        now = self.clock()
        if self._queues_at is None or now - self._queues_at >= QUEUES_EVERY_S:
            rows = await self.api.rows(paths.ALL_QUEUES, TUI_QUEUES_LOOKED_AT, "msgCount>0")
            self.store.saw_queues(now, rows)
            self._queues_at = now

"""A backup of the spool while the router runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, final

import trio

if TYPE_CHECKING:
    from vpnrouter.spool.store import Store


@final
class StoreKeeper:
    """The SpoolKeeper of a router: one backup at a time, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._one = trio.Lock()

    async def backup(self, directory: str) -> None:
        """See SpoolKeeper."""
        async with self._one:
            await trio.to_thread.run_sync(self._store.backup, Path(directory))

"""Backups of a store that is in use."""

from pathlib import Path
from typing import Any, cast

import pytest
import trio

from vpnrouter.errors import SpoolError
from vpnrouter.server.spool.spooling import StoreKeeper
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, Store


async def test_a_backup(tmp_path: Path) -> None:
    """It has what was committed before; a directory that is there already is refused."""
    store = RocksStore(tmp_path / "spool")
    batch = Batch()
    batch.puts.append((b"key", b"value"))
    store.commit(batch)
    keeper = StoreKeeper(store)
    await keeper.backup(str(tmp_path / "copy"))
    with pytest.raises(SpoolError):
        await keeper.backup(str(tmp_path / "copy"))
    store.close()
    copy = RocksStore(tmp_path / "copy", create=False)
    assert copy.get(b"key") == b"value"
    copy.close()


class Slow:
    """A store that counts backups at one time."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.directories: list[Path] = []

    def backup(self, directory: Path) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        trio.from_thread.run(trio.lowlevel.checkpoint)
        self.directories.append(directory)
        self.now -= 1


async def test_one_at_a_time() -> None:
    """The second waits for the first, and the router goes on meanwhile."""
    store: Any = Slow()
    keeper = StoreKeeper(cast("Store", store))
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(keeper.backup, name)
    assert sorted(str(path) for path in store.directories) == ["a", "b", "c"]
    assert store.most == 1

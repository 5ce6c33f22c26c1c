"""A store on disk whose power can be cut in the middle of its last commit."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, final

from vpnrouter.spool.rocks_store import RocksStore

if TYPE_CHECKING:
    from pathlib import Path

    from vpnrouter.spool.store import Batch


@final
class PowerCutRocks:
    """Commits to a real store and knows which bytes of its log the last commit wrote.

    All commits but the last count as acknowledged. Of the last, `cut` leaves as much as it is told to.
    `store` is the store; only `commit` of this class may change it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = RocksStore(directory)
        self._log = self._newest(directory)
        self._before = self._log.stat().st_size
        self._after = self._before

    @property
    def last_bytes(self) -> int:
        """Bytes of the log that the last commit wrote."""
        return self._after - self._before

    def commit(self, batch: Batch) -> None:
        """Commit a batch; the one before is acknowledged from now on."""
        log = self._newest(self.directory)
        before = log.stat().st_size
        self.store.commit(batch)
        self._log = self._newest(self.directory)
        # A full write buffer begins a new log, and the batch stands at the start of it.
        self._before = before if self._log == log else 0
        self._after = self._log.stat().st_size

    def cut(self, into: Path, kept: int, lost: tuple[int, int] = (0, 0)) -> Path:
        """Copy the store to the new directory `into` as a power cut leaves it; returns `into`.

        Of the bytes of the last commit, `kept` are there, except those from `lost[0]` to `lost[1]`,
        which read as zeros: pages reach the disk in any order.
        """
        while not self._copied(into):
            shutil.rmtree(into)
        log = into / self._log.name
        data = bytearray(log.read_bytes()[: self._before + kept])
        for place in range(lost[0], min(lost[1], kept)):
            data[self._before + place] = 0
        log.write_bytes(data)
        return into

    def _copied(self, into: Path) -> bool:
        """Copy the store; False when RocksDB wrote out a buffer or deleted a log meanwhile."""
        before = sorted(self.directory.iterdir())
        try:
            shutil.copytree(self.directory, into)
        except shutil.Error:
            return False
        return sorted(self.directory.iterdir()) == before

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    @staticmethod
    def _newest(directory: Path) -> Path:
        return max(directory.glob("*.log"), key=lambda path: int(path.stem))

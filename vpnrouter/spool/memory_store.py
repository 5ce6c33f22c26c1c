"""A store that forgets: for tests, and for a router without a spool directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.errors import SpoolError
from vpnrouter.spool.store import Batch, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@final
class MemoryStore(Store):
    """Rows in a dictionary. `store_id` is 16 bytes drawn by the caller."""

    def __init__(self, store_id: bytes) -> None:
        super().__init__()
        self.store_id = store_id
        self._rows: dict[bytes, bytes] = {}
        self._closed = False

    def commit(self, batch: Batch) -> None:
        """Make the changes."""
        self._check()
        self._rows.update(batch.puts)
        for key in batch.deletes:
            self._rows.pop(key, None)

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, or None."""
        self._check()
        return self._rows.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with `prefix`, ascending, with their values, as they are now."""
        self._check()
        # A copy first: another thread may commit while this one sorts.
        rows = list(self._rows.items())
        return iter(sorted(row for row in rows if row[0].startswith(prefix)))

    def backup(self, directory: Path) -> None:
        """Refused: what is only in memory has no files to copy."""
        raise SpoolError(f"{directory}: a spool in memory cannot be backed up")

    def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise SpoolError("the spool is closed", "closed")

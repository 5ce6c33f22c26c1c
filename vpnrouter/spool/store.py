"""What the spool needs of a store: ordered keys, atomic batches that are on disk when `commit` returns.

The store in memory forgets everything: it is for tests, and for a router without a spool directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


FORMAT: Final = 2
"""Version of everything under the keys; 2 has large values in pieces (pieces.py)."""

READABLE: Final = (1, 2)
"""Versions that can be read; a store with another one is refused.

A store of an earlier version stays what it is until the first value in pieces. A new store, and a copy that gets an
id of its own, has version `FORMAT`."""

STORE_ID_BYTES: Final = 16
SECRET_BYTES: Final = 32


@final
class Batch:
    """Changes that are made together or not at all. No key is in it twice.

    `size` counts the bytes of keys and values.
    """

    __slots__ = ("deletes", "puts", "size")

    def __init__(self) -> None:
        self.puts: list[tuple[bytes, bytes]] = []
        self.deletes: list[bytes] = []
        self.size = 0

    @property
    def empty(self) -> bool:
        """True when there is nothing to change, and so no need to commit it."""
        return not self.puts and not self.deletes

    def put(self, key: bytes, value: bytes) -> None:
        """Set `key` to `value`."""
        self.puts.append((key, value))
        self.size += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        """Remove `key`."""
        self.deletes.append(key)
        self.size += len(key)


@mypyc_attr(allow_interpreted_subclasses=True)
class Store:
    """Base of the stores. One thread commits; `get` and `scan` may be called in another one meanwhile.

    `store_id` is drawn when the store is made, and stays: 16 bytes, which peers are told. `secret` are 32 bytes that
    nobody is told: what the router signs with it, it knows again after a start. `warnings` are lines for the operator,
    which any thread may append to. `counts` are what `close` writes as by `write_counts`, unless empty. Every method
    raises SpoolError when the store cannot do it.
    """

    def __init__(self, store_id: bytes = b"") -> None:
        self.store_id = store_id
        self.secret = bytes(SECRET_BYTES)
        self.warnings: list[str] = []
        self.counts = b""

    def commit(self, batch: Batch) -> None:
        """Make the changes, all or none, and return when they survive a power cut.

        After a SpoolError the changes may be there or not, and the same batch may be committed again: that
        also brings the store back into order, where it can be.
        """
        raise AssertionError(batch)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        raise AssertionError(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys that begin with `prefix`, ascending, with their values, as of the first one."""
        raise AssertionError(prefix)

    def put_aside(self, key: bytes) -> None:
        """Keep what is left of a damaged value, where the store has a place for that. Never raises."""

    def write_counts(self, lines: bytes) -> None:
        """Keep counts of what is stored (stored_counts.py), where the store has a place for that. Never raises."""

    def backup(self, directory: Path) -> None:
        """Write a copy of one moment into a new directory; the store is in use meanwhile."""
        raise AssertionError(directory)

    def close(self) -> None:
        """Give up files and locks. May be called twice."""
        raise AssertionError(self)


@final
class MemoryStore(Store):
    """Rows in a dictionary. `store_id` is 16 bytes drawn by the caller."""

    def __init__(self, store_id: bytes) -> None:
        super().__init__(store_id)
        self._rows: dict[bytes, bytes] = {}
        self._closed = False

    def commit(self, batch: Batch) -> None:
        """Make the changes."""
        self._check()
        self._rows.update(batch.puts)
        for key in batch.deletes:
            self._rows.pop(key, None)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        self._check()
        return self._rows.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys that begin with `prefix`, ascending, with their present values."""
        self._check()
        # A copy first: another thread may commit while this one sorts.
        rows = list(self._rows.items())
        return iter(sorted(row for row in rows if row[0].startswith(prefix)))

    def backup(self, directory: Path) -> None:
        """Raise SpoolError: what is only in memory has no files to copy."""
        raise SpoolError(f"{directory}: a spool in memory cannot be backed up")

    def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise SpoolError("the spool is closed", "closed")

"""The files of a store that nobody has open, as a store that is only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.errors import SpoolError
from vpnrouter.spool.rocks_store import open_read_only, prefix_only, shown
from vpnrouter.spool.store import Store
from vpnrouter.spool.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@final
class ReadOnlyStore(Store):
    """A store of which nothing changes: a backup that is only read stays one.

    Raises SpoolError where a router that starts would.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        try:
            self._db = open_read_only(directory)
        except SpoolError:
            raise
        except Exception as error:
            raise SpoolError(f"{directory}: {error}", "corrupt") from error

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None. Raises SpoolError where it cannot be read."""
        row = next(self.scan(key), None)
        return row[1] if row is not None and row[0] == key else None

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys that begin with `prefix`, ascending, with their values.

        Raises SpoolError where they cannot be read.
        """
        try:
            # Its bound lives in `within`, which has to live as long as it does.
            within = prefix_only(prefix)
            rows = self._db.iter(within)
            rows.seek(prefix)
            yield from shown(prefix, rows, self._db.iter())
        except SpoolError:
            raise
        except Exception as error:
            raise SpoolError(str(error), "corrupt") from error

    def close(self) -> None:
        """Close the files."""
        self._db.close()


def findings(directory: Path) -> list[str]:
    """Return a line for each thing that is wrong with the store in `directory`, none if it is sound."""
    try:
        store = ReadOnlyStore(directory)
    except SpoolError as error:
        return [str(error)]
    try:
        return verify(store)
    except SpoolError as error:
        return [str(error)]
    finally:
        store.close()

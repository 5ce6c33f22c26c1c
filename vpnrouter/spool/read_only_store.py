"""The files of a store that nobody has open, as a store that is only read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import SpoolError
from vpnrouter.spool.rocks_store import open_read_only, prefix_only, shown
from vpnrouter.spool.store import Store
from vpnrouter.spool.store_files import check_names, store_files
from vpnrouter.spool.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRITTEN: Final = ("LOCK", "LOG", "rocksdict-config.json")
"""Files that are written, or made, by who opens a store."""


@final
class ReadOnlyStore(Store):
    """A store of which nothing changes: a backup that is only read stays one, also on a file system that is read-only.

    What opens a database writes its settings beside it, so this is a directory elsewhere, with links to the files.

    Raises SpoolError where a router that starts would.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._links = TemporaryDirectory(prefix="vpnrouter-spool-")
        try:
            check_names(directory)
            for name in store_files(directory):
                if name not in _WRITTEN:
                    (Path(self._links.name) / name).symlink_to(directory.absolute() / name)
            self._db = open_read_only(directory, Path(self._links.name))
        except SpoolError as error:
            self._links.cleanup()
            raise SpoolError(self._told(error), error.reason) from error
        except Exception as error:
            self._links.cleanup()
            raise SpoolError(f"{directory}: {self._told(error)}", "corrupt") from error

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
            raise SpoolError(self._told(error), "corrupt") from error

    def close(self) -> None:
        """Close the files."""
        self._db.close()
        self._links.cleanup()

    def _told(self, error: Exception) -> str:
        """Return the text of an error, with the names of the files themselves."""
        return str(error).replace(self._links.name, str(self._directory))


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

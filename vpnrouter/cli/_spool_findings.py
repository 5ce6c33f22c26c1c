"""What is wrong with the files of a spool or a backup, which stay as they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import final

from rocksdict import AccessType, Rdict

from vpnrouter.errors import SpoolError
from vpnrouter.spool.rocks_store import end_is_torn, options, prefix_only
from vpnrouter.spool.store import Store
from vpnrouter.spool.verify import verify


def findings(directory: Path) -> list[str]:
    """A line for each finding, none if the spool is sound; what cannot be read at all is a finding too."""
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


@final
class ReadOnlyStore(Store):
    """The files of a store that no router has open. A backup that is only read stays one."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        try:
            self._db = self._open(directory)
        except Exception as error:
            raise SpoolError(f"{directory}: {error}", "corrupt") from error

    def get(self, key: bytes) -> bytes | None:
        """See Store.get."""
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise SpoolError(str(error), "corrupt") from error
        return value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store.scan."""
        try:
            rows = self._db.iter(prefix_only(prefix))
            rows.seek(prefix)
            while rows.valid():
                yield rows.key(), rows.value()
                rows.next()
            rows.status()
        except Exception as error:
            raise SpoolError(str(error), "corrupt") from error

    def close(self) -> None:
        """See Store.close."""
        self._db.close()

    @staticmethod
    def _open(directory: Path) -> Rdict:
        only = AccessType.read_only()
        try:
            return Rdict(str(directory), options(False), access_type=only)
        except Exception:
            # What a power cut tore a router reads over when it starts: it was acknowledged to nobody.
            if not end_is_torn(directory):
                raise
            return Rdict(str(directory), options(True), access_type=only)

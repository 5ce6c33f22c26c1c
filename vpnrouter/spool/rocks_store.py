"""The store on disk: RocksDB in a directory of its own.

Errors of RocksDB become SpoolError with a reason; after one that a commit met, the next commit closes the
database and opens it again, since RocksDB refuses writes until then. Its options bound memory and threads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from threading import RLock
from typing import TYPE_CHECKING, Final, final

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DbClosedError,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
)

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.pieces import LOOSE, PIECE, PLACE, CutBatch, Pieces, value_of
from vpnrouter.spool.store import FORMAT, READABLE, STORE_ID_BYTES, Batch, Store
from vpnrouter.spool.write_ahead_log import (
    MARK,
    SyncMark,
    mark_in,
    mark_of,
    unread_commit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


BLOB_BYTES: Final = 4_096
"""Values from this size on are kept apart from the sorted files, so that merging those does not copy the
bodies of waiting messages again and again."""

_BLOB_FILE_BYTES: Final = 67_108_864
_TABLE_FILE_BYTES: Final = 33_554_432
_MANIFEST_BYTES: Final = 16_777_216
_INFO_LOG_BYTES: Final = 1_048_576
_INFO_LOGS: Final = 2


def options() -> Options:
    """Return options for opening a store, whose write-ahead log is read up to what is unreadable."""
    result = Options(raw_mode=True)
    result.create_if_missing(True)
    # The mode that goes together with writing over old logs: see write_ahead_log.py.
    result.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    result.set_recycle_log_file_num(limits.SPOOL_OLD_LOGS)
    table = BlockBasedOptions()
    table.set_block_cache(Cache(limits.SPOOL_CACHE_BYTES))
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    table.set_block_size(16_384)
    table.set_format_version(5)
    result.set_block_based_table_factory(table)
    result.set_write_buffer_size(limits.SPOOL_WRITE_BUFFER_BYTES)
    result.set_max_write_buffer_number(2)
    result.set_max_total_wal_size(limits.SPOOL_WAL_BYTES)
    result.set_target_file_size_base(_TABLE_FILE_BYTES)
    result.set_max_background_jobs(2)
    result.set_max_open_files(limits.SPOOL_OPEN_FILES)
    result.set_max_file_opening_threads(1)
    result.set_compression_type(DBCompressionType.lz4())
    result.set_enable_blob_files(True)
    result.set_min_blob_size(BLOB_BYTES)
    result.set_blob_file_size(_BLOB_FILE_BYTES)
    result.set_enable_blob_gc(True)
    result.set_max_manifest_file_size(_MANIFEST_BYTES)
    result.set_keep_log_file_num(_INFO_LOGS)
    result.set_max_log_file_size(_INFO_LOG_BYTES)
    result.set_stats_dump_period_sec(0)
    result.set_stats_persist_period_sec(0)
    return result


def prefix_only(prefix: bytes) -> ReadOptions:
    """Return a scan that ends with the last key that begins with `prefix`."""
    result = ReadOptions()
    shorter = prefix.rstrip(b"\xff")
    if shorter:
        result.set_iterate_upper_bound(shorter[:-1] + bytes([shorter[-1] + 1]))
    result.set_readahead_size(1_048_576)
    return result


def open_read_only(directory: Path) -> Rdict:
    """Open the files of a store without a change to them.

    Raises SpoolError "corrupt" if they lack a commit that was synced, and whatever RocksDB raises.
    """
    files = [path for path in directory.glob("*.log") if path.stem.isdigit()]
    logs = {int(path.stem): path.read_bytes() for path in files}
    database = Rdict(str(directory), options(), access_type=AccessType.read_only())
    lost = _lost(logs, mark_in(directory), database.latest_sequence_number())
    if lost:
        database.close()
        raise SpoolError(f"spool {directory}: {_TEXTS['corrupt']} ({lost})", "corrupt")
    return database


def _lost(logs: dict[int, bytes], synced: int, sequence: int) -> str:
    """Return why a store that is recovered up to the change `sequence` lacks synced commits, or ""."""
    if sequence < synced:
        return f"the write-ahead log can be read up to change {sequence}, but {synced} was synced"
    for number, log in sorted(logs.items()):
        place = unread_commit(log, number, synced != -1, sequence)
        if place != -1:
            return f"write-ahead log {number} is damaged before byte {place}"
    return ""


COPY_MARK: Final = "VPNROUTER-COPY"
"""A file in a backup. A store opened with it gets an id of its own: from here on, its spool ids mean other
messages than those of the original."""

PRESENT: Final = "CURRENT"
"""A file that each store has."""

_CLOSE_ATTEMPTS: Final = 5_000
_CLOSE_PAUSE_S: Final = 0.001
"""Seconds to wait for another holder of the database. A read takes less than a millisecond."""

_REST_S: Final = 0.0005
"""Least rest after each piece of a large value, which is as long as the piece took: others are served meanwhile (see
vpnrouter.beside)."""

_REASONS: Final = (
    ("no space left", "full"),
    ("quota exceeded", "full"),
    ("file too large", "full"),
    ("lock file", "locked"),
    ("resource temporarily unavailable", "locked"),
    ("lock hold by current process", "locked"),
    ("permission denied", "denied"),
    ("read-only file system", "denied"),
    ("operation not permitted", "denied"),
    ("corruption", "corrupt"),
)

_TEXTS: Final = {
    "full": "there is no space left for it",
    "locked": "another process, or another part of this one, has it open",
    "denied": "its files may not be read and written",
    "corrupt": "its files are damaged",
    "closed": "it is closed",
    "broken": "it does not work",
}


@final
class RocksStore(Store):
    """A store in `directory`, which is made if `create` says so.

    Raises SpoolError: "locked", "denied", "corrupt", "full", "version" if another version wrote it,
    "missing" if it is not there and is not to be made.
    """

    def __init__(self, directory: Path, create: bool = True) -> None:
        super().__init__()
        self.directory = directory
        self._format = FORMAT
        # Held while the database is written to, or exchanged for one opened anew; readers wait for that.
        self._exchange = RLock()
        # The reason of the last commit's failure.
        self._failure = ""
        self._closed = False
        if not create and not (directory / PRESENT).exists():
            raise SpoolError(f"{directory}: there is no spool", "missing")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _spool_error(directory, error) from error
        fresh = not (directory / PRESENT).exists()
        try:
            self._mark = SyncMark(directory)
        except OSError as error:
            raise _spool_error(directory, error) from error
        try:
            self._db = self._open()
        except BaseException:
            self._mark.close()
            raise
        try:
            if fresh:
                # The entry of a new directory is not on disk before its parent is.
                _sync_directory(directory.parent)
            self._pieces = self._find_pieces()
            self._identify()
        except BaseException:
            self.close()
            raise

    def commit(self, batch: Batch) -> None:
        """Write the batch and wait for the disk."""
        if self._failure and not self._closed:
            self._mend(batch.size)
        try:
            if self._pieces.needed(batch):
                self._commit_cut(self._pieces.cut(batch))
            else:
                self._write(batch.puts, batch.deletes)
            # A write that syncs by itself keeps the interpreter from everybody else while the disk works.
            self._db.flush_wal(True)
            self._mark.note(self._db.latest_sequence_number())
        except Exception as error:
            raised = self._error(error)
            self._failure = raised.reason
            raise raised from error

    def _commit_cut(self, cut: CutBatch) -> None:
        for rows in cut.ahead:
            began = time.monotonic()
            self._write(rows, [])
            time.sleep(max(_REST_S, time.monotonic() - began))
        # A commit is written only behind what is synced: see write_ahead_log.py.
        self._db.flush_wal(True)
        if cut.ahead and self._format < FORMAT:
            self._format = FORMAT
            cut.puts.append((keys.STORE, self.store_id + FORMAT.to_bytes(2, "big")))
        self._write(cut.puts, cut.deletes)
        self._pieces.done(cut)

    def _write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        """Make these changes in one write. They are on disk with the next sync of the log."""
        write_batch = WriteBatch(raw_mode=True)
        for key, value in puts:
            write_batch.put(key, value)
        for key in deletes:
            write_batch.delete(key)
        with self._exchange:
            self._db.write(write_batch)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        value = self._get(key)
        if value == b"":
            # It may be in pieces, which have to be those of the same moment as the row.
            row = next(self.scan(key), None)
            value = row[1] if row is not None and row[0] == key else None
        return value

    def _get(self, key: bytes) -> bytes | None:
        db = self._db
        try:
            value: bytes | None = db.get(key)
        except Exception as error:
            if not isinstance(error, DbClosedError) and not _borrowed(error):
                raise self._error(error) from error
            # It is being exchanged, or is gone for good.
            with self._exchange:
                try:
                    value = self._db.get(key)
                except Exception as other:
                    raise self._error(other) from other
        return value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys that begin with `prefix`, ascending, with their present values."""
        # Two views of the same moment: no write comes between them.
        with self._exchange:
            try:
                within = prefix_only(prefix)
                rows = self._db.iter(within)
                rows.seek(prefix)
                pieces = self._db.iter()
            except Exception as error:
                raise self._error(error) from error
        return self._rows(prefix, rows, pieces, within)

    def _rows(
        self, prefix: bytes, rows: RdictIter, pieces: RdictIter, within: object
    ) -> Iterator[tuple[bytes, bytes]]:
        # The bound of `rows` lives in `within`, which has to live as long as it does.
        try:
            while rows.valid():
                key, value = rows.key(), rows.value()
                if prefix < PIECE <= key:
                    # The store's own keys are the last ones.
                    break
                yield key, value or self._whole(key, pieces)
                rows.next()
            rows.status()
        except SpoolError:
            raise
        except Exception as error:
            raise self._error(error) from error

    def _whole(self, key: bytes, pieces: RdictIter) -> bytes:
        """Return the value of `key`, whose row is empty."""
        value = value_of(key, pieces)
        if value is None:
            raise SpoolError(f"spool {self.directory}: {_TEXTS['corrupt']} ({key!r})", "corrupt")
        return value

    def backup(self, directory: Path) -> None:
        """Write a copy of one moment into a new directory; the store is in use meanwhile."""
        if directory.exists():
            raise SpoolError(
                f"{directory}: it is there already, a backup goes into a new directory"
            )
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            Checkpoint(self._db).create_checkpoint(str(directory))
            _write_through(directory / MARK, mark_of(0))
            _write_through(directory / COPY_MARK, b"")
            _sync_directory(directory)
            _sync_directory(directory.parent)
        except Exception as error:
            raise _spool_error(directory, error) from error

    def close(self) -> None:
        """Close the database."""
        with self._exchange:
            self._closed = True
            self._shut()
            self._mark.close()

    def _open(self) -> Rdict:
        """Open the database, once it is certain that nothing acknowledged is lost with that."""
        try:
            if (self.directory / PRESENT).exists():
                open_read_only(self.directory).close()
            database = Rdict(str(self.directory), options(), access_type=AccessType.read_write())
            try:
                self._mark.begin(database.latest_sequence_number())
            except OSError:
                database.close()
                raise
        except SpoolError:
            raise
        except Exception as error:
            raise _spool_error(self.directory, error) from error
        return database

    def _mend(self, size: int) -> None:
        """Close the database and open it, after a failed write. Raises SpoolError if it cannot be opened.

        While a full disk has no room for what opening writes, the database stays as it is: it can be read.
        """
        free = shutil.disk_usage(self.directory).free
        if self._failure == "full" and free < limits.SPOOL_WAL_BYTES + size:
            raise SpoolError(f"spool {self.directory}: {_TEXTS['full']} ({free} bytes)", "full")
        with self._exchange:
            self._shut()
            try:
                self._db = self._open()
            except SpoolError:
                # Reading may still be possible.
                with contextlib.suppress(Exception):
                    self._db = open_read_only(self.directory)
                raise
            self._pieces = self._find_pieces()
            self._failure = ""

    def _find_pieces(self) -> Pieces:
        return Pieces(self.scan(PLACE), self._get(LOOSE) or b"")

    def _shut(self) -> None:
        """Close the database, and wait for readers that are in the middle of it."""
        for _ in range(_CLOSE_ATTEMPTS):
            try:
                self._db.close()
            except Exception as error:  # noqa: BLE001 - it tells once more of the write that failed
                if _borrowed(error):
                    time.sleep(_CLOSE_PAUSE_S)
                    continue
            return

    def _error(self, error: Exception) -> SpoolError:
        """Return an error of RocksDB as a SpoolError."""
        if isinstance(error, DbClosedError) and not self._closed:
            reason = self._failure or "broken"
            text = f"it could not be opened again after a failed write, {_TEXTS[reason]}"
            return SpoolError(f"spool {self.directory}: {text}", reason)
        return _spool_error(self.directory, error)

    def _identify(self) -> None:
        """Read the store's id, or give it one."""
        known = self.get(keys.STORE)
        if known is None:
            if next(self.scan(b""), None) is not None:
                raise SpoolError(f"{self.directory}: its files are not those of a spool", "version")
            self._name_anew()
            return
        version = int.from_bytes(known[STORE_ID_BYTES:], "big")
        if len(known) < STORE_ID_BYTES + 1 or version not in READABLE:
            raise SpoolError(
                f"{self.directory}: the spool has format {version}, this version reads {FORMAT}",
                "version",
            )
        self.store_id = known[:STORE_ID_BYTES]
        self._format = version
        mark = self.directory / COPY_MARK
        if mark.exists():
            self._name_anew()
            mark.unlink()

    def _name_anew(self) -> None:
        """Give a new store a random id."""
        self.store_id = os.urandom(STORE_ID_BYTES)
        batch = Batch()
        batch.put(keys.STORE, self.store_id + FORMAT.to_bytes(2, "big"))
        self.commit(batch)


def _spool_error(directory: Path, error: Exception) -> SpoolError:
    """Return an error of RocksDB as text for a SpoolError."""
    reason = _reason(error)
    return SpoolError(f"spool {directory}: {_TEXTS[reason]} ({error})", reason)


def _reason(error: Exception) -> str:
    if isinstance(error, DbClosedError):
        return "closed"
    text = str(error).lower()
    return next((reason for part, reason in _REASONS if part in text), "broken")


def _borrowed(error: Exception) -> bool:
    """Return whether `error` says that another thread uses the database and this one has to wait."""
    return isinstance(error, RuntimeError) and "borrowed" in str(error)


def _write_through(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

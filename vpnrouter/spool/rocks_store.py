"""The store on disk: RocksDB in a directory of its own.

Errors of RocksDB become SpoolError with a reason; after one that a commit met, the next commit closes the
database and opens it again, since RocksDB refuses writes until then. Its options bound memory and threads.

A start checks that nothing is missing of what can be known without reading everything (`open_read_only`), and is
refused otherwise. Damage that is found later stays with the value that has it: RocksDB, which stops all writing when
it meets damage while it merges files, is opened anew so that it does not (`_loosen`), and a file of large values whose
head or foot is damaged gets these again.
"""

from __future__ import annotations

import contextlib
import os
import re
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
from vpnrouter.spool.file_list import ListCopy, check_list, copy_list
from vpnrouter.spool.pieces import LOOSE, PIECE, PLACE, CutBatch, Pieces, value_of
from vpnrouter.spool.store import FORMAT, READABLE, SECRET_BYTES, STORE_ID_BYTES, Batch, Store
from vpnrouter.spool.store_files import (
    COPY_MARK,
    check_files,
    check_names,
    damaged,
    has_store,
    listed_files,
    mend_frame,
)
from vpnrouter.spool.stored_counts import write_counts
from vpnrouter.spool.write_ahead_log import (
    DAMAGED_MARK,
    MARK,
    NO_MARK,
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


def options(strict: bool = True) -> Options:
    """Return options for opening a store, whose write-ahead log is read up to what is unreadable.

    If not `strict`, RocksDB opens a store with missing files, goes on writing when merging its files fails, and does
    not collect large values, which reads all of them. It is no way to open a store for good: a full disk makes it wait.
    """
    result = Options(raw_mode=True)
    result.create_if_missing(True)
    result.set_paranoid_checks(strict)
    if not strict:
        # Files that cannot be merged must not stop the writing.
        result.set_level_zero_slowdown_writes_trigger(limits.SPOOL_UNMERGED_FILES)
        result.set_level_zero_stop_writes_trigger(limits.SPOOL_UNMERGED_FILES)
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
    result.set_enable_blob_gc(strict)
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


def open_read_only(directory: Path, links: Path | None = None, *, whole: bool = True) -> Rdict:
    """Open the files of a store without a change to them, once it is certain that none is missing or cut off.

    With `links`, a directory with links to all of them, settings are written there instead. If not `whole`, only
    commits may not be missing.

    Whoever wants to know whether a store is whole comes here: the router that starts, and the commands. Raises
    SpoolError "corrupt" for missing, cut and irregular files, and for a log that lacks a commit that was synced; else
    whatever RocksDB raises.
    """
    check_names(directory)
    wrong = check_list(directory)
    if wrong:
        raise damaged(directory, [wrong])
    logs = logs_in(directory)
    opened = str(links or directory)
    try:
        database = Rdict(opened, options(strict=whole), access_type=AccessType.read_only())
    except Exception as error:
        if _reason(error) in {"corrupt", "gone"}:
            raise damaged(directory, _missing(directory, opened) or [str(error)]) from error
        raise
    try:
        listed = listed_files(database.property_value(VERSION) or "") if whole else []
        found = check_files(directory, listed)
        mark = mark_in(directory)
        if mark == DAMAGED_MARK:
            found.append(f"{MARK}, which tells what was synced, cannot be read")
        elif mark == NO_MARK and database.get(MARKED) is not None:
            found.append(f"{MARK}, which tells what was synced, is missing")
        lost = missing_commits(logs, mark, database.latest_sequence_number())
        if lost:
            found.append(lost)
    except BaseException:
        database.close()
        raise
    if found:
        database.close()
        raise damaged(directory, found)
    return database


def _missing(directory: Path, opened: str) -> list[str]:
    """Return what is wrong with the files of a store that cannot be opened, as far as it can be known."""
    try:
        database = Rdict(opened, options(strict=False), access_type=AccessType.read_only())
    except Exception:  # noqa: BLE001 - what the first attempt met is told
        return []
    try:
        return check_files(directory, listed_files(database.property_value(VERSION) or ""))
    finally:
        database.close()


def logs_in(directory: Path) -> dict[int, bytes]:
    """Return the write-ahead logs of a store, by number. Raises OSError."""
    files = [path for path in directory.glob("*.log") if path.stem.isdigit()]
    return {int(path.stem): path.read_bytes() for path in files}


def missing_commits(logs: dict[int, bytes], synced: int, sequence: int) -> str:
    """Return why a store that is recovered up to the change `sequence` lacks synced commits, or ""."""
    if sequence < synced:
        return f"the write-ahead log can be read up to change {sequence}, but {synced} was synced"
    for number, log in sorted(logs.items()):
        place = unread_commit(log, number, synced != NO_MARK, sequence)
        if place != -1:
            return f"write-ahead log {number} is damaged before byte {place}"
    return ""


MARKED: Final = b"\xf3"
"""A key that a store has since it has the file `SYNCED` for certain."""

VERSION: Final = "rocksdb.sstables"
_MERGE_ERRORS: Final = "rocksdb.background-errors"
_COLLECT: Final = "enable_blob_garbage_collection"
_MERGE_ERROR: Final = re.compile(r"(?:Compaction|Flush) error: (.*)")
_LOG_END_BYTES: Final = 65_536

_LOOK_S: Final = 1.0
"""Seconds between two looks at whether merging files fails."""

_TRIES_S: Final = 60.0
"""Seconds for which large values are collected again, to see whether that succeeds."""

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
    ("no such file", "gone"),
    ("corruption", "corrupt"),
)

_TEXTS: Final = {
    "full": "there is no space left for it",
    "locked": "another process, or another part of this one, has it open",
    "denied": "its files may not be read and written",
    "corrupt": "its files are damaged",
    "gone": "a file of it is missing",
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
        self._list = ListCopy(directory)
        # The reason of the last commit's failure.
        self._failure = ""
        self._closed = False
        # Damage has stopped writing once: what is known of the merging of files since then.
        self._loose = False
        self._merge_errors = 0
        self._look_s = 0.0
        self._collects = False
        self._collect_s = 0.0
        self._stuck = False
        fresh = not has_store(directory)
        if not create and fresh:
            raise SpoolError(f"{directory}: there is no spool", "missing")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _spool_error(directory, error) from error
        if not fresh:
            # Not even the lock is taken of something that is no file.
            check_names(directory)
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
            if self._db.get(MARKED) is None:
                batch = Batch()
                batch.put(MARKED, b"\1")
                self.commit(batch)
        except BaseException:
            self.close()
            raise

    def commit(self, batch: Batch) -> None:
        """Write the batch and wait for the disk."""
        if self._failure and not self._closed:
            self._mend(batch.size)
        try:
            try:
                self._commit(batch)
            except Exception as error:
                if self._loose or _reason(error) not in {"corrupt", "gone"}:
                    raise
                self._loosen(error)
                self._commit(batch)
            if self._loose and time.monotonic() >= self._look_s:
                self._look()
        except Exception as error:
            raised = self._error(error)
            self._failure = raised.reason
            raise raised from error

    def _commit(self, batch: Batch) -> None:
        if self._pieces.needed(batch):
            self._commit_cut(self._pieces.cut(batch))
        else:
            self._write(batch.puts, batch.deletes)
        # A write that syncs by itself keeps the interpreter from everybody else while the disk works.
        self._db.flush_wal(True)
        with self._exchange:
            self._list.look()
        self._mark.note(self._db.latest_sequence_number())

    def _loosen(self, error: Exception) -> None:
        """Open the database so that damage, which has stopped all writing, does not do so again.

        RocksDB stops when it meets damage while it merges files. From now on it tries again every second, and the
        large values of a file with damage stay where they are.
        """
        self._loose = True
        self._mend(0)
        self._collect_s = time.monotonic() + limits.SPOOL_COLLECT_AGAIN_S
        self._warn(str(error), "some space stays taken until they are read or purged")

    def _look(self) -> None:
        """Find out whether files can be merged without collecting large values, and collect them again after a while.

        Merging then meets damage in tables only.
        """
        now = time.monotonic()
        self._look_s = now + _LOOK_S
        errors = self._db.property_int_value(_MERGE_ERRORS) or 0
        failed = errors > self._merge_errors
        self._merge_errors = errors
        if now >= self._collect_s:
            self._collects = not self._collects
            self._db.set_options({_COLLECT: "true" if self._collects else "false"})
            self._collect_s = now + (_TRIES_S if self._collects else limits.SPOOL_COLLECT_AGAIN_S)
        elif failed and self._collects:
            self._collect_s = now
        elif failed and not self._stuck:
            self._stuck = True
            self._warn(
                "", "the space of consumed messages stays taken until `vpnrouter spool repair`"
            )

    def _warn(self, why: str, effect: str) -> None:
        """Have the operator told that files cannot be merged."""
        log = self.directory / "LOG"
        with contextlib.suppress(OSError), log.open("rb") as opened:
            opened.seek(max(0, log.stat().st_size - _LOG_END_BYTES))
            found = _MERGE_ERROR.findall(opened.read().decode(errors="replace"))
            why = why or (found[-1].strip() if found else "")
        self.warnings.append(
            f"files of the message spool cannot be merged, since one is damaged ({why}): {effect}"
        )

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
                if not self._mend_frames(error):
                    raise self._unread(key, error) from error
                return self._get(key)
            # It is being exchanged, or is gone for good.
            with self._exchange:
                try:
                    value = self._db.get(key)
                except Exception as other:
                    raise self._error(other) from other
        return value

    def _unread(self, key: bytes, error: Exception) -> SpoolError:
        """Return the error of a value that cannot be read: "gone" for bodies of which only the place is lost."""
        raised = self._error(error)
        if raised.reason == "corrupt" and ".sst" in str(error) and key[:1] == keys.BODIES:
            return SpoolError(str(raised), "gone")
        return raised

    def _mend_frames(self, error: Exception) -> bool:
        """Give files of large values their heads and feet again where that is what `error` misses; return whether.

        Without these no value of the file can be read, although all of them may be sound.
        """
        if "blob" not in str(error).lower() or "CRC mismatch" in str(error).partition("footer")[0]:
            return False
        try:
            files = listed_files(self._db.property_value(VERSION) or "")
            mended = [file.name for file in files if mend_frame(self.directory / file.name, file)]
        except Exception:  # noqa: BLE001 - the error at hand is told
            return False
        for name in mended:
            self.warnings.append(
                f"head or foot of {name} in the message spool was damaged, and is mended"
            )
        return bool(mended)

    def put_aside(self, key: bytes) -> None:
        """Copy a value that is damaged, as it stands, into a directory beside the store's."""
        with contextlib.suppress(Exception):
            unverified = ReadOptions()
            unverified.set_verify_checksums(False)
            value: bytes | None = self._db.get(key, read_opt=unverified)
            folder = self.directory.with_name(f"{self.directory.name}.damaged")
            folder.mkdir(exist_ok=True)
            if value and sum(1 for _ in folder.iterdir()) < limits.SPOOL_PUT_ASIDE:
                (folder / f"unit-{keys.number_of(key)}").write_bytes(value)

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
            yield from shown(prefix, rows, pieces)
        except SpoolError as error:
            raise SpoolError(f"spool {self.directory}: {error}", error.reason) from error
        except Exception as error:
            raise self._error(error) from error

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
            copy_list(directory)
            _write_through(directory / COPY_MARK, b"")
            _sync_directory(directory)
            _sync_directory(directory.parent)
        except Exception as error:
            raise _spool_error(directory, error) from error

    def write_counts(self, lines: bytes) -> None:
        """Write the counts with the number of the last change, and the time."""
        with contextlib.suppress(Exception):
            sequence = self._db.latest_sequence_number()
            write_counts(self.directory, sequence, int(time.time()), lines)
            with self._exchange:
                self._list.look()

    def close(self) -> None:
        """Close the database."""
        with self._exchange:
            if self.counts and not self._closed:
                self.write_counts(self.counts)
            self._closed = True
            self._shut()
            self._list.close()
            self._mark.close()

    def _open(self) -> Rdict:
        """Open the database, once it is certain that nothing acknowledged is lost with that."""
        try:
            if has_store(self.directory):
                open_read_only(self.directory, whole=not self._loose).close()
            how = options(strict=not self._loose)
            database = Rdict(str(self.directory), how, access_type=AccessType.read_write())
            try:
                self._mark.begin(database.latest_sequence_number())
            except OSError:
                database.close()
                raise
        except SpoolError:
            raise
        except Exception as error:
            raise _spool_error(self.directory, error) from error
        self._merge_errors = 0
        self._list.begin()
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
            self._know_secret()
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
        self._know_secret()

    def _know_secret(self) -> None:
        """Read the store's secret, or draw it."""
        known = self.get(keys.SECRET)
        if known is None or len(known) != SECRET_BYTES:
            known = os.urandom(SECRET_BYTES)
            batch = Batch()
            batch.put(keys.SECRET, known)
            self.commit(batch)
        self.secret = known

    def _name_anew(self) -> None:
        """Give a new store a random id."""
        self.store_id = os.urandom(STORE_ID_BYTES)
        batch = Batch()
        batch.put(keys.STORE, self.store_id + FORMAT.to_bytes(2, "big"))
        batch.put(MARKED, b"\1")
        self.commit(batch)


def shown(prefix: bytes, rows: RdictIter, pieces: RdictIter) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a database from where `rows` is, without the store's own, which are the last ones.

    Values in pieces are put together; `pieces` goes through all rows. Raises SpoolError if a piece is missing, and
    whatever RocksDB raises.
    """
    while rows.valid():
        key, value = rows.key(), rows.value()
        if prefix < PIECE <= key:
            break
        whole = value or value_of(key, pieces)
        if whole is None:
            raise SpoolError(f"{_TEXTS['corrupt']} ({key!r})", "corrupt")
        yield key, whole
        rows.next()
    rows.status()


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

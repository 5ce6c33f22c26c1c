"""Takes what can be read of a damaged store into a new one, and says what is lost: for `vpnrouter spool repair`.

The damaged files stay as they are. A work directory gets links to them, in which what hinders RocksDB is put right:
its list of files is found or made again, files of large values get their head and foot, tables that cannot be read at
all are taken off the list. Then all rows that can be read are copied. What they leave without the other half, an index
without its messages for example, is deleted and counted.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple, final

from rocksdict import AccessType, DBRecoveryMode, Rdict, RdictIter, WriteBatch, WriteOptions

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.file_list import (
    add_values,
    drop_tables,
    has_list,
    name_list,
    remove_lists,
    take_copy,
    without_tables,
)
from vpnrouter.spool.rocks_store import (
    MARKED,
    VERSION,
    RocksStore,
    logs_in,
    missing_commits,
    options,
)
from vpnrouter.spool.segments import Columns, bits_set, decode_index, decode_segment
from vpnrouter.spool.store import FORMAT, STORE_ID_BYTES, Batch
from vpnrouter.spool.store_files import (
    Listed,
    check_file,
    listed_files,
    make_frame,
    mend_frame,
    mend_table,
    places_in,
    store_files,
    value_at,
    values_in,
)
from vpnrouter.spool.stored_counts import StoredCounts, read_counts
from vpnrouter.spool.write_ahead_log import last_change, mark_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_UNKNOWN: Final = -1
"""Stands for the endpoint of messages whose index is lost."""

_COPIED: Final = (".sst", ".blob")
_ROWS_BYTES: Final = 2_097_152
_SKIPPED_IDS: Final = 1 << 32
"""Ids that are never given out after a repair: some may have been, in commits that are lost."""

_FINE: Final = 64

_KINDS: Final = {
    keys.ENDPOINT: "definitions of endpoints",
    keys.MARK: "marks of what may have been delivered",
    keys.SETTLED: "acknowledgements: their messages may come again",
    keys.REDELIVERIES: "counts of redeliveries",
    keys.OUTBOUND: "packet identifiers of MQTT sessions",
    keys.INBOUND: "packet identifiers of MQTT sessions",
    keys.SESSION: "MQTT sessions",
    keys.RETAINED: "retained messages",
    keys.INDEX: "indexes of messages",
    keys.BRIDGE: "positions of bridges: messages may cross again",
    keys.WILL: "wills of MQTT clients",
    keys.KNOWN_LINK: "links of AMQP whose deliveries are known again: some may come twice",
    keys.SHEET: "counts of endpoints, bridges and connectors",
    keys.GONE: "positions of deleted bridges",
    keys.SECRET: "the secret of delivery tags: AMQP clients get again what they have not settled",
    keys.STORE: "the id of the spool: bridges may bring messages again that have crossed",
}

_IN_TABLES: Final = _KINDS | {keys.BODIES: "messages", keys.INDEX: "messages"}


class Unknown(NamedTuple):
    """What is lost, of which nobody knows how many there were; `kinds` says what it was of, as far as known."""

    what: str
    kinds: list[str]


class _Table(NamedTuple):
    """A table that cannot be read: its level, and its first and last key (b"" where they are not known)."""

    name: str
    level: int
    first: bytes
    last: bytes

    @property
    def number(self) -> int:
        return int(self.name[:-4])

    def lost(self) -> Unknown:
        """Return what it may have held."""
        first, last = self.first[:1], self.last[:1] or b"\xff"
        kinds = [text for kind, text in _IN_TABLES.items() if first <= kind <= last]
        return Unknown(f"all that {self.name} held", list(dict.fromkeys(kinds)))


@final
class Losses:
    """What a repair found: `lines` for people, and lost messages by the number of their endpoint (-1: unknown).

    `tables` counts those that cannot be read at all, `index_lost` says that segments are missing, and `unclaimed`
    counts messages that may be theirs, at most. `rows_lost` says that rows of tables are lost, `unknown` is what is
    lost and cannot be counted. `left` are messages that are in the new store, by endpoint. `counts` are those that the
    store had itself written down, None if it has none; `exact` says that nothing has changed since. `settled_lost` says
    that acknowledgements may be lost, and that consumed messages are among what is left then.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tables = 0
        self.index_lost = False
        self.rows_lost = False
        self.unclaimed = 0
        self.messages: dict[int, int] = {}
        self.unknown: list[Unknown] = []
        self.left: dict[int, int] = {}
        self.counts: StoredCounts | None = None
        self.exact = False
        self.settled_lost = False

    def add(self, endpoint: int, count: int) -> None:
        """Count lost messages of an endpoint."""
        if count:
            self.messages[endpoint] = self.messages.get(endpoint, 0) + count

    def keep(self, counts: dict[int, int]) -> None:
        """Count messages that are not lost."""
        for endpoint, count in counts.items():
            self.left[endpoint] = self.left.get(endpoint, 0) + count


def salvage(spool: Path, work: Path, fresh: Path) -> Losses:
    """Make a store of what can be read of the one in `spool`, in the new directory `fresh`; `work` is removed again.

    Nobody may have the store open. Raises SpoolError if nothing can be made of it, and OSError.
    """
    losses = Losses()
    for directory in (work, fresh):
        shutil.rmtree(directory, ignore_errors=True)
    try:
        _link(spool, work)
        losses.counts = read_counts(work)
        try:
            database = _readable(work, losses)
        except Exception as error:
            raise SpoolError(
                f"spool {spool}: nothing of it can be read ({error})", "corrupt"
            ) from error
        try:
            _tell_log(work, losses)
            rows = _Rows(work, database)
            try:
                bodies, named = _copy(rows, fresh)
            finally:
                rows.close()
        finally:
            database.close()
        losses.lines += rows.told()
        losses.unknown += rows.lost()
        losses.rows_lost = losses.tables > 0 or bool(rows.lost())
        if not named:
            losses.lines.append("the id of the spool is lost, and it gets a new one")
        if not named and not losses.rows_lost:
            # Each store has an id, so rows of it are missing, whatever the list of files says.
            losses.rows_lost = True
            losses.unknown.append(
                Unknown("all that missing files held", list(dict.fromkeys(_IN_TABLES.values())))
            )
        losses.index_lost = rows.lack(keys.INDEX)
        losses.settled_lost |= rows.lack(keys.SETTLED)
        _clean(fresh, bodies, _Kept(work), losses)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return losses


def _link(spool: Path, work: Path) -> None:
    work.mkdir(parents=True)
    for name in store_files(spool):
        path = spool / name
        if not path.is_file() or path.is_symlink() or name == "LOCK":
            continue
        if name.endswith(_COPIED):
            os.link(path, work / name)
        else:
            shutil.copyfile(path, work / name)


# -- what hinders RocksDB ------------------------------------------------------------------------------


def _readable(work: Path, losses: Losses) -> Rdict:
    """Open the files in the work directory, after everything is put right that keeps RocksDB from reading others."""
    database, tables = _listed(work, losses)
    files = listed_files(database.property_value(VERSION) or "")
    for name in sorted(tables - {file.name for file in files}):
        _add_bad(losses, _Table(name, 0, b"", b""))
    for file in files:
        if file.values >= 0:
            _mend(work, file, losses)
    mended = [
        _mend_table(work, table.name, files) for table in _unreadable_tables(work, database, files)
    ]
    if any(mended):
        database.close()
        database = _open(work)
    bad = _unreadable_tables(work, database, files)
    if not bad:
        return database
    database.close()
    for table in bad:
        _add_bad(losses, table)
    drop_tables(work, [(table.level, table.number) for table in bad])
    return _open(work)


def _listed(work: Path, losses: Losses) -> tuple[Rdict, set[str]]:
    """Open the files by the list, by its copy, or by one that is made again; with the tables that are there then."""
    wrong = name_list(work)
    if wrong:
        losses.lines.append(wrong)
    if has_list(work):
        with contextlib.suppress(Exception):
            return _open(work), set()
    if take_copy(work):
        with contextlib.suppress(Exception):
            database = _open(work)
            files = {file.name for file in listed_files(database.property_value(VERSION) or "")}
            # A copy that is behind does not name what came since.
            if {name for name in store_files(work) if name.endswith(_COPIED)} <= files:
                losses.lines.append("the list of files is damaged or missing, its copy is whole")
                return database, set()
            database.close()
    losses.lines.append(
        "the list of files is lost, and is made again from the files there; whether one is missing cannot be told"
    )
    tables = {path.name for path in work.glob("*.sst")}
    _make_list(work)
    return _open(work), tables


def _add_bad(losses: Losses, table: _Table) -> None:
    losses.tables += 1
    losses.settled_lost |= table.first[:1] <= keys.SETTLED <= (table.last[:1] or b"\xff")
    losses.lines.append(f"{table.name} cannot be read")
    losses.unknown.append(table.lost())


def _open(work: Path) -> Rdict:
    how = options(strict=False)
    how.set_wal_recovery_mode(DBRecoveryMode.skip_any_corrupted_record())
    how.set_recycle_log_file_num(0)
    return Rdict(str(work), how, access_type=AccessType.read_only())


def _make_list(work: Path) -> None:
    """Make the list of files from those there. RocksDB does so for tables; those of large values are added."""
    values = sorted(work.glob("*.blob"))
    logs = sorted(work.glob("*.log"))
    for path in [*values, *logs]:
        # What is on no list is removed by whoever opens the store.
        path.rename(path.with_suffix(".kept"))
    _make_list_of_tables(work)
    database = _open(work)
    flushed = database.latest_sequence_number()
    database.close()
    for path in logs:
        kept = path.with_suffix(".kept")
        # A log is kept for a while after its changes are in tables: it would bring back what was deleted since.
        if last_change(kept.read_bytes(), int(path.stem)) > flushed:
            kept.rename(path)
    _make_list_of_tables(work)
    for path in values:
        path.with_suffix(".kept").rename(path)
    add_values(work, [(int(path.stem), *values_in(path)) for path in values])


def _make_list_of_tables(work: Path) -> None:
    remove_lists(work)
    how = options(strict=False)
    how.set_recycle_log_file_num(0)
    Rdict.repair(str(work), how)


def _mend(work: Path, file: Listed, losses: Losses) -> None:
    """Let the values of a file be read one by one."""
    path = work / file.name
    if not path.exists():
        losses.lines.append(f"{file.name} is missing, with {file.values:,} values")
        make_frame(path, file)
        return
    wrong = check_file(work, file)
    if wrong:
        losses.lines.append(wrong)
        # The name stands for the original, which must not change.
        copy = path.with_suffix(".copy")
        shutil.copyfile(path, copy)
        copy.replace(path)
        mend_frame(path, file)


def _mend_table(work: Path, name: str, files: list[Listed]) -> bool:
    path = work / name
    if not path.exists():
        return False
    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    copy.replace(path)
    return mend_table(path, next(file for file in files if file.name == name))


def _unreadable_tables(work: Path, database: Rdict, files: list[Listed]) -> list[_Table]:
    """Return tables that are missing, have another size, or of which no end can be read."""
    bad = []
    sizes = {file.name: file.size for file in files}
    for table in database.live_files():
        name = str(table["name"]).lstrip("/")
        path = work / name
        whole = path.exists() and path.stat().st_size == sizes.get(name, -1)
        ends = (bytes(table["start_key"]), bytes(table["end_key"]))
        why = [_why(database, key) for key in ends]
        named = all(name in each for each in why)
        # Some errors name no table, and any table that cannot be opened hides the rows of all others.
        nameless = all(each and ".sst" not in each for each in why)
        if not whole or named or (nameless and not _opens(work, name)):
            bad.append(_Table(name, int(table["level"]), *ends))
    return bad


def _opens(work: Path, name: str) -> bool:
    """Return whether a table can be read where it is alone."""
    alone = work.with_name(f"{work.name}.table")
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    try:
        os.link(work / name, alone / name)
        how = options(strict=False)
        how.set_recycle_log_file_num(0)
        Rdict.repair(str(alone), how)
        # What cannot be read is moved away.
        return (alone / name).exists()
    except Exception:  # noqa: BLE001 - it is what is asked for
        return False
    finally:
        shutil.rmtree(alone, ignore_errors=True)


def _tell_log(work: Path, losses: Losses) -> None:
    """Say whether commits are lost. Rows behind what is damaged in a log are read all the same."""
    synced = mark_in(work)
    losses.exact = losses.counts is not None and losses.counts.sequence == synced
    try:
        # Only so does RocksDB end at what it cannot read.
        database = Rdict(str(work), options(), access_type=AccessType.read_only())
    except Exception:  # noqa: BLE001 - some damage is not put right
        database = Rdict(str(work), options(strict=False), access_type=AccessType.read_only())
    try:
        lost = missing_commits(logs_in(work), synced, database.latest_sequence_number())
    finally:
        database.close()
    if lost:
        losses.lines.append(lost)
        losses.unknown.append(Unknown("commits in the write-ahead log", []))
    if synced < 0:
        losses.lines.append("it cannot be told whether the end of the write-ahead log is lost")


# -- rows ----------------------------------------------------------------------------------------------


@final
class _Rows:
    """All rows of a database that can be read. What cannot be read is passed over, and told by its kind.

    A damaged block of a table keeps RocksDB from reading what other tables have there. So the rows of such a place
    are looked for once more, in the `work` directory without these tables: what their loss would leave is there in any
    case, and a row of which the damaged tables surely have nothing newer is as it was.
    """

    def __init__(self, work: Path, database: Rdict) -> None:
        self._work = work
        self._database = database
        self._tables = {
            str(table["name"]).lstrip("/"): (int(table["level"]), bytes(table["start_key"]))
            for table in database.live_files()
        }
        self._others: dict[frozenset[str], Rdict] = {}
        self._gaps: dict[bytes, int] = {}
        self._why: str = ""

    def close(self) -> None:
        """Close what was opened besides the database."""
        for database in self._others.values():
            database.close()

    def lack(self, kind: bytes) -> bool:
        """Return whether rows of a kind could not be read."""
        return kind in self._gaps

    def told(self) -> list[str]:
        """Return a line for each kind of rows that could not be read."""
        lines = []
        for kind, count in sorted(self._gaps.items()):
            if kind in _KINDS:
                lines.append(f"{count:,} places with {_KINDS[kind]} cannot be read")
        if self._why:
            lines.append(f"the last of them: {self._why}")
        return lines

    def lost(self) -> list[Unknown]:
        """Return the kinds of rows that could not be read. Bodies alone are counted by their indexes, or found."""
        kinds = [kind for kind in _IN_TABLES if kind in self._gaps and kind != keys.BODIES]
        if keys.INDEX in kinds and keys.BODIES not in self._gaps:
            # Bodies without an index are counted.
            kinds.remove(keys.INDEX)
        return [Unknown(text, []) for text in dict.fromkeys(_IN_TABLES[kind] for kind in kinds)]

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._between(self._database, frozenset(), b"", b"")

    def _between(
        self, database: Rdict, without: frozenset[str], at: bytes, end: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield what a database `without` some tables has from the key `at` on, up to `end` if it is not b""."""
        while True:
            rows = database.iter()
            rows.seek(at)
            while rows.valid():
                key = bytes(rows.key())
                if end and key >= end:
                    return
                value: bytes | None = bytes(rows.value())
                if without:
                    value = self._newest(key, bytes(rows.value()))
                if value is not None:
                    yield key, value
                at = key + b"\0"
                rows.next()
            why = _error_of(rows)
            if not why:
                return
            self._why = why
            behind = _behind(database, at)
            if end and (not behind or behind > end):
                behind = end
            damaged = without | (set(_TABLE_NAME.findall(why)) & self._tables.keys())
            if damaged == without:
                self._note(at[:1] or b"\0", at[:1] or b"\0")
            else:
                first = min(self._tables[name][1] for name in damaged - without)
                self._note(max(at, first)[:1], behind[:1] or b"\xff")
                yield from self._between(self._without(damaged), damaged, at, behind)
            if not behind or behind == end:
                return
            at = behind

    def _note(self, first: bytes, last: bytes) -> None:
        """Count a place that cannot be read, for each kind of rows that it may hold."""
        for kind in _IN_TABLES:
            if first <= kind <= last:
                self._gaps[kind] = self._gaps.get(kind, 0) + 1

    def _newest(self, key: bytes, value: bytes) -> bytes | None:
        """Return what all tables say of a key, None that it is deleted; `value` where they cannot be read."""
        try:
            newest: bytes | None = self._database.get(key)
        except Exception:  # noqa: BLE001 - damage is what it looks for
            return value
        return newest

    def _without(self, tables: frozenset[str]) -> Rdict:
        """Open the files in the work directory without some tables."""
        if tables not in self._others:
            gone = [(self._tables[name][0], int(name[:-4])) for name in tables]
            with without_tables(self._work, gone):
                self._others[tables] = _open(self._work)
        return self._others[tables]


def _error_of(rows: RdictIter) -> str:
    """Return why rows could be read no further, "" if they have ended."""
    try:
        rows.status()
    except Exception as error:  # noqa: BLE001 - it is what is asked for
        return str(error) or "unknown"
    return ""


def _why(database: Rdict, key: bytes) -> str:
    """Return why nothing can be read from `key` on, or ""."""
    rows = database.iter()
    rows.seek(key)
    return _error_of(rows)


def _behind(database: Rdict, at: bytes) -> bytes:
    """Return where rows can be read again behind `at`, or b"" if nowhere."""
    kind = at[:1] or b"\0"
    width = _WIDTHS.get(kind, 9)
    begin = int.from_bytes(at[:width].ljust(width, b"\0"), "big")
    end = kind[0] + 1 << 8 * (width - 1)
    failed = begin
    step = 0
    distance = 0
    while True:
        step += 1
        distance = distance + 1 if step <= _FINE else distance * 2
        tried = begin + distance
        if tried >= end:
            break
        if not _why(database, tried.to_bytes(width, "big")):
            return _first_readable(database, failed, tried, width)
        failed = tried
    following = bytes([kind[0] + 1])
    return following if kind[0] <= MARKED[0] else b""


def _first_readable(database: Rdict, failed: int, readable: int, width: int) -> bytes:
    while readable - failed > 1:
        middle = (failed + readable) // 2
        if _why(database, middle.to_bytes(width, "big")):
            failed = middle
        else:
            readable = middle
    return readable.to_bytes(width, "big")


_TABLE_NAME: Final = re.compile(r"\d{6,}\.sst")

_WIDTHS: Final = {
    keys.ENDPOINT: 5,
    keys.MARK: 5,
    keys.REDELIVERIES: 13,
    keys.OUTBOUND: 7,
    keys.INBOUND: 7,
}
"""Bytes of a key within which the next row is looked for."""


def _copy(rows: _Rows, fresh: Path) -> tuple[dict[int, int], bool]:
    """Write rows into a new database, and an id if they have none.

    Return how many messages there are by the first id of their segment, and whether there was an id.
    """
    fresh.mkdir(parents=True)
    bodies: dict[int, int] = {}
    unlogged = WriteOptions()
    # The stubs call this attribute a method.
    unlogged.disable_wal = True  # type: ignore[method-assign, assignment]
    named = False
    how = options()
    # What is not logged allows no old logs.
    how.set_recycle_log_file_num(0)
    database = Rdict(str(fresh), how)
    try:
        database.set_write_options(unlogged)
        batch = WriteBatch(raw_mode=True)
        size = 0
        for key, value in rows:
            if key == MARKED:
                # The new store has no such file yet.
                continue
            named = named or key == keys.STORE
            if key[:1] == keys.BODIES:
                bodies[keys.number_of(key)] = int.from_bytes(value[:2], "little")
            batch.put(key, value)
            size += len(key) + len(value)
            if size > _ROWS_BYTES:
                database.write(batch, unlogged)
                batch = WriteBatch(raw_mode=True)
                size = 0
        if not named:
            batch.put(keys.STORE, os.urandom(STORE_ID_BYTES) + FORMAT.to_bytes(2, "big"))
        database.write(batch, unlogged)
        database.flush()
    finally:
        database.close()
    return bodies, named


# -- halves --------------------------------------------------------------------------------------------


@final
class _Kept:
    """Bodies in files of large values, of which the table that said where they are is lost. Read when first asked."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._places: dict[bytes, tuple[Path, int, int]] | None = None

    def unclaimed(self, known: set[int]) -> int:
        """Return how many messages are stored in segments that are not `known`. They may have been consumed."""
        count = 0
        for key, (path, at, size) in self._read().items():
            if keys.number_of(key) not in known:
                value = value_at(path, at, key, size) or b""
                count += int.from_bytes(value[:2], "little")
        return count

    def find(self, key: bytes) -> bytes | None:
        """Return the sound value that was stored last under `key`, or None."""
        place = self._read().get(key)
        return None if place is None else value_at(place[0], place[1], key, place[2])

    def _read(self) -> dict[bytes, tuple[Path, int, int]]:
        if self._places is None:
            self._places = {}
            for path in sorted(self._work.glob("*.blob"), key=lambda each: int(each.stem)):
                for found, at, size in places_in(path):
                    if found[:1] == keys.BODIES:
                        self._places[found] = (path, at, size)
        return self._places


def _clean(fresh: Path, bodies: dict[int, int], kept: _Kept, losses: Losses) -> None:
    """Delete from the new store what has lost its other half, and count the messages that are lost with it."""
    store = RocksStore(fresh, create=False)
    try:
        batch = Batch()
        settled: dict[int, list[tuple[bytes, bytes]]] = {}
        for key, value in store.scan(keys.SETTLED):
            settled.setdefault(keys.number_of(key), []).append((key, value))
        end = 1
        indexed: set[int] = set()
        for key, value in store.scan(keys.INDEX):
            first = keys.number_of(key)
            indexed.add(first)
            columns = _columns(value)
            bitmaps = settled.pop(first, [])
            if columns is not None:
                for each, bits in bitmaps:
                    if len(bits) != columns.count + 7 >> 3:
                        batch.delete(each)
                bitmaps = [row for row in bitmaps if len(row[1]) == columns.count + 7 >> 3]
            if columns is not None and first >= end and _left(columns, bitmaps):
                end = first + columns.count
                whole = _bodies(store, first, columns, kept)
                kept_bitmaps = bitmaps if whole is None else _settle(first, columns, bitmaps, whole)
                if whole is not None and _left(columns, kept_bitmaps):
                    for each, bits in set(kept_bitmaps) - set(bitmaps):
                        batch.put(each, bits)
                    if first not in bodies:
                        found = Batch()
                        found.put(keys.bodies(first), whole)
                        store.commit(found)
                    bodies.pop(first, None)
                    losses.keep(_waiting(columns, kept_bitmaps))
                    continue
                if whole is None:
                    for endpoint, count in _waiting(columns, bitmaps).items():
                        losses.add(endpoint, count)
                bodies.pop(first, None)
            batch.delete(key)
            batch.delete(keys.bodies(first))
            for each, _ in bitmaps:
                batch.delete(each)
        if losses.tables or losses.index_lost:
            losses.unclaimed = kept.unclaimed(indexed | bodies.keys())
        for first, count in bodies.items():
            losses.add(_UNKNOWN, count)
            end = max(end, first + count)
            batch.delete(keys.bodies(first))
        for rows in settled.values():
            for each, _ in rows:
                batch.delete(each)
        known = store.get(keys.NEXT_ID) or b""
        following = max(end, keys.unpack_id(known) if len(known) == 8 else 1)
        batch.put(keys.NEXT_ID, keys.pack_id(following + _SKIPPED_IDS))
        batch.deletes = list(dict.fromkeys(batch.deletes))
        store.commit(batch)
    finally:
        store.close()


def _columns(value: bytes) -> Columns | None:
    try:
        return decode_index(value)
    except SpoolError:
        return None


def _bodies(store: RocksStore, first: int, columns: Columns, kept: _Kept) -> bytes | None:
    """Return the bodies of a segment, None where they are lost."""
    try:
        value = store.get(keys.bodies(first))
        if value is None:
            value = kept.find(keys.bodies(first))
        if value is not None and len(decode_segment(value)) == columns.count:
            return value
    except SpoolError:
        pass
    return None


def _settle(
    first: int, columns: Columns, bitmaps: list[tuple[bytes, bytes]], bodies: bytes
) -> list[tuple[bytes, bytes]]:
    """Return the bitmaps of a segment, in which what has no body is settled.

    Everybody had settled it before it was stored; where it is not, the bitmap that said so is lost.
    """
    found = {key: bytearray(value) for key, value in bitmaps}
    for place, record in enumerate(decode_segment(bodies)):
        if record:
            continue
        for endpoint in columns.sets[columns.which[place] if columns.which else 0]:
            bits = found.setdefault(
                keys.settled(endpoint, first), bytearray(columns.count + 7 >> 3)
            )
            bits[place >> 3] |= 1 << (place & 7)
    return [(key, bytes(value)) for key, value in found.items()]


def _waiting(columns: Columns, bitmaps: list[tuple[bytes, bytes]]) -> dict[int, int]:
    """Return how many messages of a segment each of its endpoints has not settled."""
    counts: dict[int, int] = {}
    for place in range(columns.count):
        for endpoint in columns.sets[columns.which[place] if columns.which else 0]:
            counts[endpoint] = counts.get(endpoint, 0) + 1
    for key, value in bitmaps:
        endpoint = keys.endpoint_of(key)
        counts[endpoint] = counts.get(endpoint, 0) - bits_set(value)
    return counts


def _left(columns: Columns, bitmaps: list[tuple[bytes, bytes]]) -> bool:
    """Return whether anything of the segment is not settled."""
    return sum(_waiting(columns, bitmaps).values()) > 0

"""Tells the true end of a write-ahead log from damage that looks like an end.

RocksDB writes over old logs, since a file that does not grow is synced in three quarters of the time. Behind its last
record such a log has what an older one left there. So recovery ends at the first record that it cannot read: one of
an older log, one that a power cut tore, or one that was damaged after it was synced. In the last case it would lose
acknowledged commits and report nothing. Two facts tell the cases apart:

- Each commit is synced before the next one is written, so at most the last one is incomplete after a power cut. Its
  pages may have reached the disk in any order: behind what cannot be read may stand other records of the same commit,
  but never the beginning of another one. Only the pieces ahead of a commit (pieces.py) are synced together.
- The `SyncMark` has the number of the last commit that was synced. Only its first writing is synced: it is exact
  after a crash of the process, and may be behind after a power cut.

The format is RocksDB's: blocks of 32 KiB; records with a checksum (4 bytes), a length (2), a kind (1) and the number
of the log (4), all little-endian; none reaches into the next block. Earlier versions of the router wrote records
without the number. The records of a batch, one or more, hold its first sequence number (8), the count of its changes
(4), and these: a kind (1), the length of the key (1 where it is below 128), the key, and so on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from typing import TYPE_CHECKING, Final, final

from vpnrouter.spool.pieces import LOOSE, PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK: Final = "SYNCED"
"""The file of the `SyncMark` in the store's directory."""

_BLOCK: Final = 32_768
_KIND_AT: Final = 6
_SEQUENCE_BYTES: Final = 8
_FIRST_CHANGE_AT: Final = 12
_LENGTH_AT: Final = 13
_FIRST_KEY_AT: Final = 14
_PUT: Final = b"\x01"

_UNREADABLE: Final = 0
_FULL: Final = 1
_FIRST: Final = 2
_MIDDLE: Final = 3
_LAST: Final = 4
_BEGINS: Final = (_FULL, _FIRST)
_ENDS: Final = (_FULL, _LAST)

_WITH_NUMBER: Final = 4
"""How much higher the kinds of records are that have the number of their log."""

_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_U32: Final = 0xFFFFFFFF


@final
class SyncMark:
    """The sequence number of the last synced change, in a file that is locked until `close`, as its directory is.

    A backup has a mark with 0; a store of an earlier version has none, and gets an empty file.

    Raises OSError; BlockingIOError if somebody else has the store open.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = -1
        self._file = os.open(directory / MARK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # Other than the lock of the database it also holds against another opening in this process.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # This lock stays whatever takes the names of the files. Not every file system has such.
            try:
                self._directory = lock_directory(directory)
            except BlockingIOError:
                raise
            except OSError:
                pass
        except BaseException:
            self.close()
            raise

    def note(self, sequence: int) -> None:
        """All changes up to this one are synced."""
        os.pwrite(self._file, mark_of(sequence), 0)

    def begin(self, sequence: int) -> None:
        """Note this as synced, and sync the file: from now on it has its length."""
        self.note(sequence)
        os.fsync(self._file)

    def close(self) -> None:
        """Unlock the store. May be called twice."""
        for opened in (self._file, self._directory):
            if opened != -1:
                with contextlib.suppress(OSError):
                    os.close(opened)
        self._file = self._directory = -1


def lock_directory(directory: Path) -> int:
    """Open a store's directory and lock it until the result is closed.

    Raises BlockingIOError if somebody has the store open, and OSError, also where directories cannot be locked.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(opened)
        raise
    return opened


def mark_of(sequence: int) -> bytes:
    """Return the content of a mark's file."""
    data = sequence.to_bytes(_SEQUENCE_BYTES, "little")
    return data + zlib.crc32(data).to_bytes(4, "little")


NO_MARK: Final = -1
DAMAGED_MARK: Final = -2


def mark_in(directory: Path) -> int:
    """Return the sequence number that the store's mark has, NO_MARK if it has none, or DAMAGED_MARK.

    A file without content is none: the store was opened for the first time, and that was cut off. Raises OSError.
    """
    try:
        data = (directory / MARK).read_bytes()
    except FileNotFoundError:
        return NO_MARK
    return number_in_mark(data) if data else NO_MARK


def number_in_mark(data: bytes) -> int:
    """Return the number that `mark_of` made `data` of, or DAMAGED_MARK."""
    number = int.from_bytes(data[:_SEQUENCE_BYTES], "little")
    return number if data == mark_of(number) else DAMAGED_MARK


def unread_commit(data: bytes, number: int, marked: bool, sequence: int) -> int:
    """Return where a log has a commit behind the change `sequence`, with which recovery ended; -1 if nowhere.

    `number` is that of the log; `marked` says whether the store has a mark. The last commit, whether incomplete or
    damaged, does not count.
    """
    log = _Log(data, number)
    earlier = _Log(data, -1)
    if earlier.kind(0) or not (marked or log.kind(0)):
        log = earlier
    return log.unread_commit(sequence)


def last_change(data: bytes, number: int) -> int:
    """Return the number of the last change that the log `number` has, -1 if it has none."""
    return max(_Log(data, number).last_change(), _Log(data, -1).last_change())


def records_in(data: bytes) -> list[bytes]:
    """Return what the records of a log without numbers hold, up to the first that cannot be read."""
    return list(_Log(data, -1).records())


def whole_records(data: bytes, at: int, *, checked: bool) -> bytes:
    """Return `data`, which is what a log without numbers has from byte `at` on, without what no whole record ends.

    A record is `checked` against its checksum, or only by its length.
    """
    begin = at % _BLOCK
    end = _Log(bytes(begin) + data, -1).whole(begin, checked=checked)
    return data[: max(0, end - begin)]


@final
class _Log:
    """The bytes of a log and how its records look; `number` is -1 where they are without it."""

    __slots__ = ("_above", "_data", "_head", "_tag")

    def __init__(self, data: bytes, number: int) -> None:
        self._data = data
        self._tag = b"" if number == -1 else (number & _U32).to_bytes(4, "little")
        self._above = _WITH_NUMBER if self._tag else 0
        self._head = _KIND_AT + 1 + len(self._tag)

    def unread_commit(self, sequence: int) -> int:
        at = self._end_of_recovery(sequence)
        # What can be read of an incomplete commit has no last record.
        commit = -1
        kind = self.kind(at)
        while kind:
            if kind in _BEGINS:
                if commit != -1:
                    return commit
                commit = at if self._is_commit(at) else -1
            if kind in _ENDS and commit != -1:
                return commit
            at = self._next(at)
            kind = self.kind(at)
        return self._commit_behind(at)

    def last_change(self) -> int:
        """Return the number of the last change in the batches that begin in the log, -1 if there are none."""
        at = 0
        last = -1
        while kind := self.kind(at):
            if kind in _BEGINS:
                head = self._begin(at, _FIRST_CHANGE_AT)
                first = int.from_bytes(head[:_SEQUENCE_BYTES], "little")
                last = max(last, first + int.from_bytes(head[_SEQUENCE_BYTES:], "little") - 1)
            at = self._next(at)
        return last

    def records(self) -> Iterator[bytes]:
        """Yield what each record holds, up to the first that cannot be read."""
        at = 0
        body = b""
        while kind := self.kind(at):
            part = self._data[at + self._head : self._end(at)]
            body = part if kind in _BEGINS else body + part
            if kind in _ENDS:
                yield body
            at = self._next(at)

    def whole(self, at: int, *, checked: bool) -> int:
        """Return where the last record ends that is whole; `checked`: and sound."""
        left = -at % _BLOCK
        if left < self._head:
            at += left
        end = at
        while self.kind(at) if checked else self._has_head(at):
            if self._data[at + _KIND_AT] - self._above in _ENDS:
                end = self._end(at)
            at = self._next(at)
        return end

    def kind(self, at: int) -> int:
        """Return the kind of the record at `at`, or _UNREADABLE."""
        if not self._has_head(at):
            return _UNREADABLE
        stored = int.from_bytes(self._data[at : at + 4], "little")
        held = checksum(self._data[at + _KIND_AT : self._end(at)]) == stored
        return self._data[at + _KIND_AT] - self._above if held else _UNREADABLE

    def _end_of_recovery(self, sequence: int) -> int:
        """Return where the first batch begins that is not recovered, or what is no batch. What is before is sound."""
        at = 0
        before = 0
        while self._has_head(at):
            if self._data[at + _KIND_AT] - self._above in _BEGINS:
                first = int.from_bytes(self._begin(at, _SEQUENCE_BYTES), "little")
                # RocksDB begins a log with a batch of no changes, and the number of the next one.
                if not before <= first <= sequence:
                    break
                before = first
            at = self._next(at)
        return at

    def _commit_behind(self, at: int) -> int:
        """Return where a commit begins behind the unreadable record at `at`, or -1."""
        data = self._data
        # Where the next record of this block begins is not certain, and what is unreadable may reach into the next one.
        uncertain = min(at - at % _BLOCK + 2 * _BLOCK, len(data))
        for place in range(at + 1, uncertain - _KIND_AT):
            if data[place + _KIND_AT] - self._above in _BEGINS and self._commits(place):
                return place
        # Every block begins with a record. To look everywhere else, too, would let payloads decide how long that takes.
        for block in range(uncertain, len(data), _BLOCK):
            place = block
            while place < block + _BLOCK and self.kind(place):
                if self._commits(place):
                    return place
                place = self._next(place)
        return -1

    def _commits(self, at: int) -> bool:
        return self.kind(at) in _BEGINS and self._is_commit(at)

    def _is_commit(self, at: int) -> bool:
        """Return whether the batch that begins here has changes, and not only pieces ahead of a commit."""
        body = self._begin(at, _FIRST_KEY_AT + 1)
        if not any(body[_SEQUENCE_BYTES:_FIRST_CHANGE_AT]):
            return False
        return body[_FIRST_CHANGE_AT:_LENGTH_AT] != _PUT or body[_FIRST_KEY_AT:] not in {
            PIECE,
            LOOSE,
        }

    def _begin(self, at: int, count: int) -> bytes:
        """Return the first bytes of the batch that begins here; it may go on in the next block."""
        body = self._data[at + self._head : min(self._end(at), at + self._head + count)]
        if len(body) < count:
            behind = self._next(at) + self._head
            body += self._data[behind : behind + count - len(body)]
        return body

    def _has_head(self, at: int) -> bool:
        """Return whether a record of this log may begin at `at`."""
        data = self._data
        return (
            0 <= at <= len(data) - self._head
            and _FULL <= data[at + _KIND_AT] - self._above <= _LAST
            and data[at + _KIND_AT + 1 : at + self._head] == self._tag
            and self._end(at) <= min(len(data), at - at % _BLOCK + _BLOCK)
        )

    def _end(self, at: int) -> int:
        return at + self._head + (self._data[at + 4] | self._data[at + 5] << 8)

    def _next(self, at: int) -> int:
        """Return where the record behind this one begins: what is shorter than a head fills the block up."""
        end = self._end(at)
        left = -end % _BLOCK
        return end + left if left < self._head else end


def write_record(size: int, data: bytes) -> bytes:
    """Return the bytes that add a record to RocksDB's list of files, a log without numbers, which has this size."""
    out = bytearray()
    kind = _FIRST
    while True:
        left = _BLOCK - (size + len(out)) % _BLOCK
        if left <= _KIND_AT:
            out += bytes(left)
            continue
        part = data[: left - _KIND_AT - 1]
        data = data[len(part) :]
        if not data:
            kind = _FULL if kind == _FIRST else _LAST
        body = bytes([kind]) + part
        out += checksum(body).to_bytes(4, "little") + len(part).to_bytes(2, "little") + body
        if not data:
            return bytes(out)
        kind = _MIDDLE


def _table() -> list[int]:
    table = []
    for number in range(256):
        value = number
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE: Final = _table()


def checksum(data: bytes) -> int:
    """Return RocksDB's masked CRC-32C, the checksum of all its files."""
    crc = _U32
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= _U32
    return ((crc >> 15 | crc << 17 & _U32) + _MASK_DELTA) & _U32

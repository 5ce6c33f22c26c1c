"""The list of a store's files, RocksDB's MANIFEST, and the copy of it that tells whether it is whole.

RocksDB adds a record to its list whenever tables come or go, and takes what it cannot read at the end of the list for
a write that a power cut tore. A list that has lost its last records therefore counts as sound: the store would start
with what it held before, and delete the files that the lost records name. So the router keeps the whole records of the
list in a file beside it, at no cost per message: after a commit it looks at the list's size, and adds to the copy what
is new and synced. The list must begin with what the copy holds.

The list is a log without numbers (write_ahead_log.py), of which each record changes the list as it was before. Its
name has a number, which is higher than that of the list before it; the file `CURRENT` names the valid one. The copy
begins with this number and a checksum, as a mark does. It is not synced: after a power cut it may hold less than the
list, and then proves less.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter.spool.write_ahead_log import (
    mark_of,
    number_in_mark,
    records_in,
    whole_records,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CURRENT: Final = "CURRENT"
"""A file that each store has: it names the list."""

LIST_COPY: Final = "MANIFEST.copy"

_FRESH: Final = "MANIFEST.new"
_LIST: Final = re.compile(r"MANIFEST-(\d+)")
_HEAD_BYTES: Final = len(mark_of(0))

_NEXT_FILE: Final = b"\x03"
_DELETED_TABLE: Final = b"\x06"
_ADDED_VALUES: Final = b"\x90\x03"


class FileList(NamedTuple):
    """The whole records of the list with this `number`."""

    number: int
    records: bytes


@final
class ListCopy:
    """Keeps the copy of the list of a store that is open. Nothing is raised: a copy that is behind proves less."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._list = -1
        self._copy = -1
        # Bytes of the list that were looked at, and that are in the copy.
        self._seen = 0
        self._end = 0

    def begin(self) -> None:
        """Begin the copy of the list that is valid now."""
        self._shut()
        try:
            number = listed_number(self._directory)
            self._list = os.open(self._directory / f"MANIFEST-{number:06}", os.O_RDONLY)
            self._seen = os.fstat(self._list).st_size
            fresh = self._directory / _FRESH
            # Whatever has taken that name, such as a pipe, is not opened.
            fresh.unlink(missing_ok=True)
            self._copy = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            os.pwrite(self._copy, mark_of(number), 0)
            self._end = 0
            self._add()
            fresh.replace(self._directory / LIST_COPY)
        except OSError:
            self._shut()

    def look(self) -> None:
        """Add to the copy what the list has got since the last time."""
        if self._list == -1:
            return
        status = os.fstat(self._list)
        if status.st_nlink == 0:
            # There is a new list, and this one was removed.
            self.begin()
        elif status.st_size != self._seen:
            self._seen = status.st_size
            with contextlib.suppress(OSError):
                self._add()

    def close(self) -> None:
        """Look for the last time. May be called twice."""
        self.look()
        self._shut()

    def _shut(self) -> None:
        for opened in (self._list, self._copy):
            if opened != -1:
                with contextlib.suppress(OSError):
                    os.close(opened)
        self._list = self._copy = -1

    def _add(self) -> None:
        new = os.pread(self._list, self._seen - self._end, self._end)
        added = whole_records(new, self._end, checked=False)
        if added:
            # What the copy holds is in the list after a power cut, too.
            os.fsync(self._list)
            os.pwrite(self._copy, added, _HEAD_BYTES + self._end)
            self._end += len(added)


def copy_list(directory: Path) -> None:
    """Give a store that nobody has open, a backup, the copy of its list."""
    copy = ListCopy(directory)
    copy.begin()
    copy.close()


def listed_number(directory: Path) -> int:
    """Return the number of the list that CURRENT names, 0 if it names none. Raises OSError if it is not there."""
    named = _LIST.fullmatch((directory / CURRENT).read_bytes().decode(errors="replace").strip())
    return int(named[1]) if named else 0


def copied_list(directory: Path, *, checked: bool = True) -> FileList | None:
    """Return the records of the copy, None if there are none; only the sound ones if `checked`.

    The copy must be a regular file.
    """
    try:
        data = (directory / LIST_COPY).read_bytes()
    except OSError:
        return None
    number = number_in_mark(data[:_HEAD_BYTES])
    records = data[_HEAD_BYTES:]
    if checked:
        records = whole_records(records, 0, checked=True)
    return FileList(number, records) if number > 0 and records else None


def check_list(directory: Path) -> str:
    """Return what is missing of the valid list as far as the copy tells, or "". CURRENT must be there.

    Whether it can be read is for RocksDB to say. Raises OSError.
    """
    number = listed_number(directory)
    copy = copied_list(directory, checked=False)
    if copy is None or not number or number > copy.number:
        return ""
    if number < copy.number:
        return f"{CURRENT} names an earlier list of files than the last one"
    path = directory / f"MANIFEST-{number:06}"
    try:
        records = path.read_bytes()
    except FileNotFoundError:
        return f"{path.name} is missing"
    if records.startswith(copy.records):
        return ""
    # It may be the copy that is damaged: checksums take their time.
    sound = copied_list(directory)
    if sound is None or records.startswith(sound.records):
        return ""
    return f"{path.name}, the list of files, is cut short or damaged"


# -- repair: on links and copies, which nobody else has open ---------------------------------------------


def name_list(directory: Path) -> str:
    """Let CURRENT name the last list; return what was wrong with it, or "". Raises OSError."""
    numbers = [
        int(named[1]) for path in directory.iterdir() if (named := _LIST.fullmatch(path.name))
    ]
    path = directory / CURRENT
    there = path.exists()
    if not numbers or (there and listed_number(directory) == max(numbers)):
        return ""
    _name(directory, max(numbers))
    return f"{CURRENT} is damaged" if there else f"{CURRENT} is missing"


def has_list(directory: Path) -> bool:
    """Return whether there is a list, of which nothing is known to be missing. Raises OSError."""
    return (directory / CURRENT).exists() and not check_list(directory)


def take_copy(directory: Path) -> bool:
    """Put the copy in the place of all lists; return whether there is one. Raises OSError."""
    copy = copied_list(directory)
    if copy is None:
        return False
    remove_lists(directory)
    (directory / f"MANIFEST-{copy.number:06}").write_bytes(copy.records)
    _name(directory, copy.number)
    return True


def remove_lists(directory: Path) -> None:
    """Remove all lists, and CURRENT. Raises OSError."""
    for path in [*directory.glob("MANIFEST-*"), directory / CURRENT]:
        path.unlink(missing_ok=True)


def _name(directory: Path, number: int) -> None:
    (directory / CURRENT).write_text(f"MANIFEST-{number:06}\n", encoding="ascii")


def add_values(directory: Path, files: list[tuple[int, int, int]]) -> None:
    """Add files of large values to the list: the number of each, how many values it has, and their bytes.

    They come ahead of the last record, which names the tables: RocksDB forgets a file of values that no table behind
    it on the list needs. Raises OSError.
    """
    path = directory / f"MANIFEST-{listed_number(directory):06}"
    data = path.read_bytes()
    *before, last = records_in(data)
    edit = b"".join(
        _ADDED_VALUES + b"".join(map(_varint, (number, count, size, 0, 0, 0)))
        for number, count, size in files
    )
    following = _NEXT_FILE + _varint(max((number for number, _, _ in files), default=0) + 1_000)
    out = b""
    for record in [*before, edit, last, following]:
        if record:
            out += write_record(len(out), record)
    path.write_bytes(out)


@contextlib.contextmanager
def without_tables(directory: Path, tables: list[tuple[int, int]]) -> Iterator[None]:
    """Take tables off the list, level and number of each, for as long as this lasts. Raises OSError."""
    path = directory / f"MANIFEST-{listed_number(directory):06}"
    size = path.stat().st_size
    drop_tables(directory, tables)
    try:
        yield
    finally:
        os.truncate(path, size)


def drop_tables(directory: Path, tables: list[tuple[int, int]]) -> None:
    """Take tables off the list, level and number of each. Raises OSError."""
    path = directory / f"MANIFEST-{listed_number(directory):06}"
    edit = b"".join(_DELETED_TABLE + _varint(level) + _varint(number) for level, number in tables)
    with path.open("ab") as file:
        file.write(write_record(path.stat().st_size, edit))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)

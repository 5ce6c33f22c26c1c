"""The files of a store on disk: their names, and whether they are whole.

RocksDB looks at a file when it needs it. So a start checks all of them at once: each file that the store lists is
there, is a regular file of the right size, and the files of large values have their head and foot, without which none
of their values can be read. What is inside is checked by RocksDB with each read.

A file of large values begins with 30 bytes that are the same in all, and ends with 32 that hold the number of values
(8 bytes) and a checksum. Between them the values stand one after the other, each with 32 bytes ahead of it: the
lengths of key and value (8 each), an expiration (8), and checksums of these (4) and of the value (4). All numbers are
little-endian.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from vpnrouter.errors import SpoolError
from vpnrouter.spool.file_list import CURRENT, LIST_COPY
from vpnrouter.spool.stored_counts import COUNTS
from vpnrouter.spool.write_ahead_log import MARK, checksum

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COPY_MARK: Final = "VPNROUTER-COPY"
"""A file in a backup. A store opened with it gets an id of its own: from here on, its spool ids mean other
messages than those of the original."""

_NAMES: Final = re.compile(
    r"\d+\.(?:sst|blob|log)|MANIFEST-\d+|OPTIONS-\d+|LOG(?:\.old\.\d+)?|CURRENT|IDENTITY|LOCK"
    rf"|rocksdict-config\.json|{MARK}|{COPY_MARK}|{COUNTS}|{LIST_COPY}"
)

_HEAD: Final = bytes.fromhex("378f240001000000") + bytes(22)
_FOOT_BEGIN: Final = bytes.fromhex("378f2400")
_TABLE_END: Final = bytes.fromhex("05000000f7cff485b741e288")
"""Version and magic number of tables (`set_format_version`)."""

_FOOT_BYTES: Final = 32
_VALUE_HEAD: Final = 32

_TABLE: Final = re.compile(r"^\s*(\d+):(\d+)\[", re.MULTILINE)
_VALUES: Final = re.compile(
    r"^blob_file_number: (\d+) total_blob_count: (\d+) total_blob_bytes: (\d+) ", re.MULTILINE
)


class Listed(NamedTuple):
    """A file that a store lists: its size, and for a file of large values how many it has (-1 for others)."""

    name: str
    size: int
    values: int


def listed_files(text: str) -> list[Listed]:
    """Return the files in RocksDB's description of a store's version (the property `rocksdb.sstables`)."""
    tables = [
        Listed(f"{int(number):06}.sst", int(size), -1) for number, size in _TABLE.findall(text)
    ]
    values = [
        Listed(f"{int(number):06}.blob", len(_HEAD) + int(size) + _FOOT_BYTES, int(count))
        for number, count, size in _VALUES.findall(text)
    ]
    return tables + values


def has_name(name: str) -> bool:
    """Return whether a store may have a file of this name."""
    return _NAMES.fullmatch(name) is not None


def store_files(directory: Path) -> list[str]:
    """Return the names of a store's files in `directory`. Raises OSError."""
    return sorted(path.name for path in directory.iterdir() if has_name(path.name))


def irregular(directory: Path) -> dict[str, str]:
    """Return each name of a store's file that stands for something else, such as a link or a pipe, and what to say.

    To open such a thing may wait for ever, or bring in files from elsewhere. Raises OSError.
    """
    return {
        name: f"{name} is not a regular file"
        for name in store_files(directory)
        if not stat.S_ISREG((directory / name).lstat().st_mode)
    }


def has_store(directory: Path) -> bool:
    """Return whether there is a store in `directory`, or what damage has left of one.

    A start that was cut off before the store was complete left nothing that counts.
    """
    try:
        names = store_files(directory)
    except OSError:
        return False
    if CURRENT in names:
        return True
    return any(
        name.endswith((".sst", ".blob"))
        or ((name.endswith(".log") or name == MARK) and (directory / name).lstat().st_size > 0)
        for name in names
    )


def check_names(directory: Path) -> None:
    """Raise SpoolError "corrupt" for a store without the file that names its list of files, or with irregular ones."""
    try:
        found = list(irregular(directory).values())
    except OSError as error:
        raise SpoolError(f"{directory}: {error.strerror or error}", "denied") from error
    if not found and not (directory / CURRENT).exists():
        found = [f"{CURRENT} is missing"]
    if found:
        raise damaged(directory, found)


def damaged(directory: Path, findings: list[str]) -> SpoolError:
    """Return the error of a store whose files are damaged, which names the way out."""
    shown = "; ".join(findings[:_SHOWN])
    more = f"; and {len(findings) - _SHOWN:,} more" if len(findings) > _SHOWN else ""
    return SpoolError(
        f"spool {directory}: its files are damaged ({shown}{more}); {WAY_OUT}", "corrupt"
    )


WAY_OUT: Final = (
    "`vpnrouter spool repair` tells what is lost, and lets the router go on without that"
)
_SHOWN: Final = 5
"""Findings that the text of an error names."""


def check_file(directory: Path, file: Listed) -> str:
    """Return what is wrong with a file that the store lists, "" if it is whole from outside. Raises OSError."""
    path = directory / file.name
    try:
        size = path.lstat().st_size
    except FileNotFoundError:
        return f"{file.name} is missing"
    if size != file.size:
        return f"{file.name} has {size:,} bytes instead of {file.size:,}"
    if file.values < 0:
        return ""
    with path.open("rb") as opened:
        head = opened.read(len(_HEAD))
        opened.seek(file.size - _FOOT_BYTES)
        foot = opened.read(_FOOT_BYTES)
    if head != _HEAD or foot != _foot(file.values):
        return f"the {'head' if head != _HEAD else 'foot'} of {file.name} is damaged"
    return ""


def check_files(directory: Path, files: list[Listed]) -> list[str]:
    """Return a line for each file that is not whole. Raises OSError."""
    return [finding for finding in (check_file(directory, file) for file in files) if finding]


def mend_frame(path: Path, file: Listed) -> bool:
    """Give a file of large values its head, its foot and its size again; return whether anything was wrong.

    Then RocksDB reads each value that is not damaged itself. Where something was cut off, the values there cannot be
    read. A file that is missing stays so. Raises OSError.
    """
    if file.values < 0 or not path.exists() or not check_file(path.parent, file):
        return False
    with path.open("r+b") as opened:
        _write_frame(opened, file)
    return True


def make_frame(path: Path, file: Listed) -> None:
    """Make a file of large values without any of them, in the place of one that is missing. Raises OSError."""
    with path.open("wb") as opened:
        _write_frame(opened, file)


def mend_table(path: Path, file: Listed) -> bool:
    """Give a table that has grown its size, and its last bytes, which are the same in all; return whether it differs.

    Raises OSError.
    """
    if path.stat().st_size < file.size:
        return False
    with path.open("r+b") as opened:
        grown = os.fstat(opened.fileno()).st_size > file.size
        opened.truncate(file.size)
        opened.seek(file.size - len(_TABLE_END))
        differs = opened.read() != _TABLE_END
        opened.seek(file.size - len(_TABLE_END))
        opened.write(_TABLE_END)
    return grown or differs


def _write_frame(opened: BinaryIO, file: Listed) -> None:
    opened.truncate(file.size)
    opened.write(_HEAD)
    opened.seek(file.size - _FOOT_BYTES)
    opened.write(_foot(file.values))
    opened.flush()
    os.fsync(opened.fileno())


def values_in(path: Path) -> tuple[int, int]:
    """Return how many values a file holds, and their bytes, as a store's list has them. Raises OSError.

    What is behind a place where no value begins does not count.
    """
    count = 0
    end = len(_HEAD)
    for _, at, size in places_in(path):
        count += 1
        end = at + size
    return count, end - len(_HEAD)


def places_in(path: Path) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key of each value in a file, where the value begins, and its bytes. Raises OSError.

    It ends where a length is damaged.
    """
    size = path.stat().st_size
    at = len(_HEAD)
    with path.open("rb") as opened:
        while at + _VALUE_HEAD <= size:
            opened.seek(at)
            head = opened.read(_VALUE_HEAD)
            key_bytes = int.from_bytes(head[:8], "little")
            value_bytes = int.from_bytes(head[8:16], "little")
            begin = at + _VALUE_HEAD + key_bytes
            if head[:4] == _FOOT_BEGIN or begin + value_bytes > size:
                return
            yield opened.read(key_bytes), begin, value_bytes
            at = begin + value_bytes


def value_at(path: Path, at: int, key: bytes, size: int) -> bytes | None:
    """Return a value of `places_in`, None if it is damaged. Raises OSError."""
    with path.open("rb") as opened:
        opened.seek(at - len(key) - _CHECKSUM_BYTES)
        stored = opened.read(_CHECKSUM_BYTES)
        data = opened.read(len(key) + size)
    whole = data[: len(key)] == key and checksum(data).to_bytes(_CHECKSUM_BYTES, "little") == stored
    return data[len(key) :] if whole else None


_CHECKSUM_BYTES: Final = 4


def _foot(values: int) -> bytes:
    foot = _FOOT_BEGIN + values.to_bytes(8, "little") + bytes(16)
    return foot + checksum(foot).to_bytes(4, "little")

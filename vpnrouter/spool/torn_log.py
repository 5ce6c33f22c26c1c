"""Tells a write-ahead log that a power cut tore from one that was damaged later.

Commits are synced one by one, so of all that a log holds only the last batch can be incomplete after a
power cut. Its pages may have reached the disk in any order: what cannot be read then may have readable
pieces of the same batch behind it, but never the beginning of another one. If there is one, the damage is
in what was once synced, and cutting the log off there would lose acknowledged messages.

The log's format is RocksDB's: blocks of 32 KiB with records of checksum (4 bytes), length (2), type (1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK: Final = 32_768
_HEAD: Final = 7
_FULL: Final = 1
_FIRST: Final = 2
_LAST: Final = 4
_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_U32: Final = 0xFFFFFFFF


def end_is_torn(directory: Path) -> bool:
    """Is the damage of the store's logs one that a power cut leaves at the end of the newest?"""
    try:
        logs = sorted(directory.glob("*.log"), key=lambda path: int(path.stem))
        data = [log.read_bytes() for log in logs]
    except (OSError, ValueError):
        return False
    return bool(data) and all(_damage(log) == -1 for log in data[:-1]) and torn(data[-1])


def torn(log: bytes) -> bool:
    """Is nothing but the last batch of this log damaged?"""
    at = _damage(log)
    if at == -1:
        return True
    # Where the next record of the block begins is not certain: it may be anywhere.
    return not any(_begins_batch(log, place) for place in range(at + 1, len(log) - _HEAD))


def _damage(log: bytes) -> int:
    """Where the first record stands that cannot be read, or -1."""
    for begin in range(0, len(log), _BLOCK):
        at = begin
        # What is shorter than a head fills the block up.
        while at + _HEAD <= min(begin + _BLOCK, len(log)):
            end = _end(log, at)
            if end == -1:
                return at
            at = end
    return -1


def _begins_batch(log: bytes, at: int) -> bool:
    return log[at + 6] in {_FULL, _FIRST} and _end(log, at) != -1


def _end(log: bytes, at: int) -> int:
    """The end of the record at `at`, or -1 if there is none that can be read."""
    end = at + _HEAD + (log[at + 4] | log[at + 5] << 8)
    # None reaches into the next block.
    if end > len(log) or (end - 1) // _BLOCK != at // _BLOCK or not _FULL <= log[at + 6] <= _LAST:
        return -1
    stored = int.from_bytes(log[at : at + 4], "little")
    return end if _checksum(log[at + 6 : end]) == stored else -1


def _table() -> list[int]:
    table = []
    for number in range(256):
        value = number
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE: Final = _table()


def _checksum(data: bytes) -> int:
    """RocksDB's masked CRC-32C."""
    crc = _U32
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= _U32
    return ((crc >> 15 | crc << 17 & _U32) + _MASK_DELTA) & _U32

"""A segment: the messages of one unit of work, packed into two values.

Bodies: count (2 bytes), length of each (4 bytes each), the records one after the other. A message that was
settled everywhere before its unit was sealed has length 0.

Index: form (1 byte), count (2), number of sets (2), then the columns size (4 bytes a message), priority (1),
lane (2), expiry (8), then the sets of endpoints (count, 2 bytes, and numbers, 4 bytes each), then which set
each message is for (2 bytes). A column whose bit in `form` is 0 has one value for all; then that value
alone is stored, for the last column none, as it is 0. All numbers are little-endian.
"""

from __future__ import annotations

import sys
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT: Final = Struct("<H")
_HEAD: Final = Struct("<BHH")
_SWAP: Final = sys.byteorder == "big"


@final
class Columns:
    """An index taken apart: a value a message in each of the arrays.

    `sizes` has type code I, `priorities` B, `lanes` H, `expires` Q. `sets` are lists of endpoint numbers,
    `which` (H) says whose turn it is for each message; it is empty if all are for the first set.
    """

    __slots__ = ("count", "expires", "lanes", "priorities", "sets", "sizes", "which")

    def __init__(
        self,
        count: int,
        sizes: array[int],
        priorities: array[int],
        lanes: array[int],
        expires: array[int],
        sets: list[list[int]],
        which: array[int],
    ) -> None:
        self.count = count
        self.sizes = sizes
        self.priorities = priorities
        self.lanes = lanes
        self.expires = expires
        self.sets = sets
        self.which = which


def encode_segment(records: list[bytes]) -> bytes:
    """The bodies of a segment: at most 65,535 records of less than 4 GiB. Raises OverflowError beyond."""
    count = len(records)
    if count > 65_535:
        raise OverflowError(f"{count} messages are too many for a segment")
    lengths = array("I", [len(record) for record in records])
    return b"".join([count.to_bytes(2, "little"), _packed(lengths), *records])


def decode_segment(data: bytes) -> list[bytes]:
    """The records of a segment, in order. Raises SpoolError if `data` is not a segment."""
    if len(data) < 2:
        raise SpoolError("a segment is cut short", "corrupt")
    count = data[0] | data[1] << 8
    at = 2 + 4 * count
    if len(data) < at:
        raise SpoolError("a segment is cut short", "corrupt")
    records: list[bytes] = []
    for length in _unpacked("I", data, 2, count):
        size: int = length
        end = at + size
        records.append(data[at:end])
        at = end
    if at != len(data):
        raise SpoolError("a segment is damaged: its lengths do not add up", "corrupt")
    return records


def encode_index(
    sizes: list[int],
    priorities: list[int],
    lanes: list[int],
    expires: list[int],
    sets: list[list[int]],
    which: list[int],
) -> bytes:
    """The index of a segment; the lists have a value a message, except `sets`.

    Raises OverflowError (or struct.error) if a value does not fit its column.
    """
    count = len(sizes)
    form = 0
    parts: list[bytes] = [b""]
    form |= _column(parts, "I", sizes, count, 1)
    form |= _column(parts, "B", priorities, count, 2)
    form |= _column(parts, "H", lanes, count, 4)
    form |= _column(parts, "Q", expires, count, 8)
    for members in sets:
        parts.append(_COUNT.pack(len(members)))
        parts.append(_packed(array("I", members)))
    if which.count(0) != count:
        form |= 16
        parts.append(_packed(array("H", which)))
    parts[0] = _HEAD.pack(form, count, len(sets))
    return b"".join(parts)


def decode_index(data: bytes) -> Columns:
    """The columns of an index. Raises SpoolError if `data` is not one."""
    if len(data) < _HEAD.size + 15:
        raise SpoolError("the index of a segment is cut short", "corrupt")
    form = data[0]
    count = data[1] | data[2] << 8
    many = data[3] | data[4] << 8
    at = _HEAD.size
    columns: list[array[int]] = []
    for bit, code, width in ((1, "I", 4), (2, "B", 1), (4, "H", 2), (8, "Q", 8)):
        if form & bit:
            columns.append(_unpacked(code, data, at, count))
            at += width * count
        else:
            columns.append(_unpacked(code, data, at, 1) * count)
            at += width
    sets: list[list[int]] = []
    for _ in range(many):
        size = int.from_bytes(data[at : at + 2], "little")
        sets.append(_unpacked("I", data, at + 2, size).tolist())
        at += 2 + 4 * size
    which = array("H")
    if form & 16:
        which = _unpacked("H", data, at, count)
        at += 2 * count
        if which and max(which) >= many:
            raise SpoolError("the index of a segment is damaged: a set is missing", "corrupt")
    if at != len(data) or not count or not many or form > 31:
        raise SpoolError("the index of a segment is damaged", "corrupt")
    return Columns(count, columns[0], columns[1], columns[2], columns[3], sets, which)


def _column(parts: list[bytes], code: str, values: list[int], count: int, bit: int) -> int:
    """Add a column to `parts`; returns its bit of the form."""
    if values.count(values[0]) == count:
        parts.append(_packed(array(code, values[:1])))
        return 0
    parts.append(_packed(array(code, values)))
    return bit


def _packed(numbers: array[int]) -> bytes:
    if _SWAP:
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(code: str, data: bytes, at: int, count: int) -> array[int]:
    """`count` numbers that begin at `at`. Raises SpoolError if there are not as many."""
    numbers: array[int] = array(code)
    end = at + numbers.itemsize * count
    if end > len(data):
        raise SpoolError("the index of a segment is cut short", "corrupt")
    numbers.frombytes(data[at:end])
    if _SWAP:
        numbers.byteswap()
    return numbers


def bits_set(bitmap: Sequence[int]) -> int:
    """How many bits of a bitmap are set."""
    return int.from_bytes(bitmap, "little").bit_count()

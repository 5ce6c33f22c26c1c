"""Which segments the store holds: 14 bytes each in memory, whatever their number."""

from __future__ import annotations

from array import array
from typing import Final, final

from mypy_extensions import i64

CHUNK: Final = 1_024
_FEW: Final = CHUNK // 4
_PARTS: Final = 1 << 15


@final
class _Chunk:
    """A run of segments. `counts` has `_PARTS` set for a segment that has bitmaps in the store."""

    __slots__ = ("counts", "firsts", "left")

    def __init__(self) -> None:
        self.firsts: array[int] = array("Q")
        self.counts: array[int] = array("H")
        self.left: array[int] = array("I")


@final
class SegmentTable:
    """Segments by the spool id of their first message, ascending.

    `seek` finds one and leaves what is known of it in `first`, `count` (messages), `left` (memberships that
    are not settled) and `parts` (bitmaps of it are in the store).
    """

    __slots__ = ("_at", "_chunk", "_chunks", "_size", "count", "first", "left", "parts")

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = [_Chunk()]
        self._chunk = 0
        self._at: i64 = 0
        self._size = 0
        self.first = 0
        self.count = 0
        self.left = 0
        self.parts = False

    def __len__(self) -> int:
        return self._size

    def append(self, first: int, count: int, left: int, parts: bool = False) -> None:
        """Add a segment behind all others; `count` is at most 32,767."""
        chunk = self._chunks[-1]
        if len(chunk.firsts) >= CHUNK:
            chunk = _Chunk()
            self._chunks.append(chunk)
        chunk.firsts.append(first)
        chunk.counts.append(count | _PARTS if parts else count)
        chunk.left.append(left)
        self._size += 1

    def find(self, number: int) -> int:
        """The first id of the segment that has the message `number`. Raises KeyError if it is gone."""
        if not self.seek(number):
            raise KeyError(number)
        return self.first

    def seek(self, number: int) -> bool:
        """Find the segment that has the message `number`; returns whether there is one."""
        if not self._size:
            return False
        wanted: i64 = number
        low: i64 = 0
        high: i64 = len(self._chunks)
        while high - low > 1:
            middle: i64 = (low + high) >> 1
            begin: i64 = self._chunks[middle].firsts[0]
            if begin <= wanted:
                low = middle
            else:
                high = middle
        chunk = self._chunks[low]
        firsts = chunk.firsts
        self._chunk = int(low)
        low = 0
        high = len(firsts)
        while high - low > 1:
            middle = (low + high) >> 1
            begin = firsts[middle]
            if begin <= wanted:
                low = middle
            else:
                high = middle
        begin = firsts[low]
        count: i64 = chunk.counts[low]
        has_parts = (count & _PARTS) != 0
        count &= _PARTS - 1
        if not begin <= wanted < begin + count:
            return False
        self._at = low
        self.first = int(begin)
        self.count = int(count)
        self.left = chunk.left[low]
        self.parts = has_parts
        return True

    def update(self, first: int, left: int, parts: bool) -> None:
        """Note what is left of a segment, and whether it has bitmaps. Raises KeyError if it is gone."""
        self.find(first)
        chunk = self._chunks[self._chunk]
        chunk.left[self._at] = left
        chunk.counts[self._at] = self.count | _PARTS if parts else self.count
        self.left = left
        self.parts = parts

    def remove(self, first: int) -> None:
        """Forget a segment. Raises KeyError if it is gone."""
        self.find(first)
        chunk = self._chunks[self._chunk]
        del chunk.firsts[self._at]
        del chunk.counts[self._at]
        del chunk.left[self._at]
        self._size -= 1
        if len(chunk.firsts) <= _FEW:
            self._merge(self._chunk)

    def firsts(self) -> list[int]:
        """The first ids of all segments, ascending."""
        return [first for chunk in self._chunks for first in chunk.firsts]

    def _merge(self, at: int) -> None:
        """Bring a chunk with few segments together with a neighbour."""
        if len(self._chunks) > 1 and not self._chunks[at].firsts:
            del self._chunks[at]
        elif at == 0 or not self._join(at - 1):
            self._join(at)

    def _join(self, at: int) -> bool:
        """Make one chunk of this and the next if they are short; returns whether it did."""
        if at + 1 >= len(self._chunks):
            return False
        one = self._chunks[at]
        other = self._chunks[at + 1]
        if len(one.firsts) + len(other.firsts) > CHUNK // 2:
            return False
        both = _Chunk()
        both.firsts = one.firsts + other.firsts
        both.counts = one.counts + other.counts
        both.left = one.left + other.left
        self._chunks[at] = both
        del self._chunks[at + 1]
        return True

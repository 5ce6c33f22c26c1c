"""Spool ids in ascending order, eight bytes each: what waits in an endpoint."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, final

from mypy_extensions import i64

CHUNK: Final = 1_024
"""Ids in a full chunk: taking one out of its middle moves at most 8 KiB."""

_FEW: Final = CHUNK // 4


@final
class IdQueue:
    """A sorted set of ids (0 … 2**62) in chunks; `first()` and `append` cost the same at any length."""

    __slots__ = ("_chunks", "_count", "_head", "_last")

    def __init__(self) -> None:
        # No chunk is empty, except for the only one of an empty queue. Of the first chunk, the
        # places before `_head` are taken off already.
        self._chunks: list[array[int]] = [array("Q")]
        self._head = 0
        self._count = 0
        self._last = -1

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        if not self._count or number > self._last:
            return False
        chunk = self._chunk_of(number)
        ids = self._chunks[chunk]
        at = bisect_left(ids, number, self._head if chunk == 0 else 0)
        return at < len(ids) and ids[at] == number

    def append(self, number: int) -> None:
        """Add an id that is higher than all others. Raises ValueError if it is not."""
        if self._count and number <= self._last:
            raise ValueError(f"{number} does not come after {self._last}")
        ids = self._chunks[-1]
        if len(ids) >= CHUNK:
            ids = array("Q")
            self._chunks.append(ids)
        ids.append(number)
        self._last = number
        self._count += 1

    def extend(self, numbers: array[int]) -> None:
        """Add ids (type code Q) that ascend and are higher than all others. Raises ValueError if not higher."""
        total = len(numbers)
        if not total:
            return
        if self._count and numbers[0] <= self._last:
            raise ValueError(f"{numbers[0]} does not come after {self._last}")
        at = 0
        while at < total:
            ids = self._chunks[-1]
            if len(ids) >= CHUNK:
                ids = array("Q")
                self._chunks.append(ids)
            end = min(total, at + CHUNK - len(ids))
            ids.extend(numbers[at:end])
            at = end
        self._last = numbers[-1]
        self._count += total

    def add(self, number: int) -> None:
        """Add an id wherever it belongs; one that is there stays there once."""
        if not self._count or number > self._last:
            self.append(number)
            return
        chunk = self._chunk_of(number)
        ids = self._chunks[chunk]
        head = self._head if chunk == 0 else 0
        at = bisect_left(ids, number, head)
        if at < len(ids) and ids[at] == number:
            return
        self._count += 1
        if head and at == head:
            self._head -= 1
            ids[head - 1] = number
            return
        ids.insert(at, number)
        if len(ids) > CHUNK:
            half = len(ids) // 2
            self._chunks.insert(chunk + 1, ids[half:])
            self._chunks[chunk] = ids[:half]
            if chunk == 0 and self._head >= half:
                # All that is left of the first half was taken off.
                self._head -= half
                del self._chunks[0]

    def first(self) -> int:
        """The lowest id. Raises IndexError if there is none."""
        if not self._count:
            raise IndexError("no id waits")
        number: int = self._chunks[0][self._head]
        return number

    def last(self) -> int:
        """The highest id. Raises IndexError if there is none."""
        if not self._count:
            raise IndexError("no id waits")
        return self._last

    def popleft(self) -> int:
        """Take off the lowest id. Raises IndexError if there is none."""
        number = self.first()
        self._behead()
        return number

    def remove(self, number: int) -> bool:
        """Take out an id; returns whether it was there."""
        if not self._count or number > self._last:
            return False
        ids = self._chunks[0]
        head = self._head
        if ids[head] == number:
            self._behead()
            return True
        chunk = self._chunk_of(number)
        if chunk:
            ids = self._chunks[chunk]
            head = 0
        at = bisect_left(ids, number, head)
        if at == len(ids) or ids[at] != number:
            return False
        del ids[at]
        self._count -= 1
        if number == self._last:
            # What is left of the chunk is not empty, or the one before it has an end of its own.
            self._last = self._chunks[chunk][-1] if ids else self._chunks[chunk - 1][-1]
        if len(ids) - head <= _FEW:
            self._merge(chunk)
        return True

    def after(self, number: int, count: int) -> array[int]:
        """The lowest `count` ids that are higher than `number`, ascending (type code Q)."""
        found: array[int] = array("Q")
        if not self._count or number >= self._last:
            return found
        chunk = self._chunk_of(number)
        at = bisect_right(self._chunks[chunk], number, self._head if chunk == 0 else 0)
        while chunk < len(self._chunks) and len(found) < count:
            found += self._chunks[chunk][at : at + count - len(found)]
            chunk += 1
            at = 0
        return found

    def clear(self) -> None:
        """Take out all."""
        self._chunks = [array("Q")]
        self._head = 0
        self._count = 0
        self._last = -1

    def _behead(self) -> None:
        """Take off the lowest id."""
        ids = self._chunks[0]
        self._head += 1
        self._count -= 1
        if self._head == len(ids):
            self._head = 0
            if len(self._chunks) > 1:
                del self._chunks[0]
            else:
                self._chunks[0] = array("Q")

    def _chunk_of(self, number: int) -> int:
        """Which chunk has the id, or would have it: the last that begins at or before it."""
        wanted: i64 = number
        low: i64 = 0
        high: i64 = len(self._chunks)
        while high - low > 1:
            middle: i64 = (low + high) >> 1
            begin: i64 = self._chunks[middle][0]
            if begin <= wanted:
                low = middle
            else:
                high = middle
        return int(low)

    def _merge(self, chunk: int) -> None:
        """Bring a chunk with few ids together with a neighbour, so that chunks stay worth their overhead."""
        if not self._chunks[chunk]:
            del self._chunks[chunk]
        elif chunk == 0 or not self._join(chunk - 1):
            self._join(chunk)

    def _join(self, chunk: int) -> bool:
        """Make one chunk of this and the next if they are short; returns whether it did."""
        if chunk + 1 >= len(self._chunks):
            return False
        head = self._head if chunk == 0 else 0
        lower = self._chunks[chunk]
        upper = self._chunks[chunk + 1]
        if len(lower) - head + len(upper) > CHUNK // 2:
            return False
        # A copy, so that the room of what was taken out is given back.
        self._chunks[chunk] = lower[head:] + upper
        del self._chunks[chunk + 1]
        if chunk == 0:
            self._head = 0
        return True

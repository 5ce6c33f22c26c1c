"""Segments: the messages of one unit of work, packed into two values of the store.

Here stand the packed form, a segment that is being built, what is settled of a stored one, and the table of
all that the store holds.

A segment: the messages of one unit of work, packed into two values.

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

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.spool.store import Batch, Store


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
    """Return the bodies of a segment: at most 65,535 records of less than 4 GiB. Raises OverflowError beyond."""
    count = len(records)
    if count > 65_535:
        raise OverflowError(f"{count} messages are too many for a segment")
    lengths = array("I", [len(record) for record in records])
    return b"".join([count.to_bytes(2, "little"), _packed(lengths), *records])


def decode_segment(data: bytes) -> list[bytes]:
    """Return the records of a segment, in order. Raises SpoolError if `data` is not a segment."""
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
    """Return the index of a segment; the lists have a value a message, except `sets`.

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
    """Return the columns of an index. Raises SpoolError if `data` is not one."""
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
    """Return `count` numbers that begin at `at`. Raises SpoolError if there are not as many."""
    numbers: array[int] = array(code)
    end = at + numbers.itemsize * count
    if end > len(data):
        raise SpoolError("the index of a segment is cut short", "corrupt")
    numbers.frombytes(data[at:end])
    if _SWAP:
        numbers.byteswap()
    return numbers


def bits_set(bitmap: Sequence[int]) -> int:
    """Return how many bits of a bitmap are set."""
    return int.from_bytes(bitmap, "little").bit_count()


@final
class SettledBitmap:
    """The bitmap of one endpoint: a bit for each message of the segment, set when settled."""

    __slots__ = ("bits", "changed", "endpoint", "stored")

    def __init__(self, endpoint: int, bits: bytearray, stored: bool) -> None:
        self.endpoint = endpoint
        self.bits = bits
        self.stored = stored
        self.changed = False

    def has(self, offset: i64) -> bool:
        """Return whether the bit of the message at `offset` is set."""
        byte: i64 = self.bits[offset >> 3]
        return byte >> (offset & 7) & 1 != 0

    def set(self, offset: i64) -> None:
        """Set the bit of the message at `offset`."""
        byte: i64 = self.bits[offset >> 3]
        bit: i64 = 1 << (offset & 7)
        self.bits[offset >> 3] = byte | bit
        self.changed = True


@final
class SettledBitmaps:
    """The bitmaps of a segment. `left` counts memberships that are not settled, `unit` is the last unit
    that changed them. `cold` says that the store may have bitmaps that are not in memory.
    """

    __slots__ = ("_near", "_parts", "changed", "cold", "count", "first", "left", "unit")

    def __init__(self, first: int, count: int, left: int, cold: bool) -> None:
        self.first: i64 = first
        self.count: i64 = count
        self.left: i64 = left
        self.cold = cold
        self.changed = False
        self.unit = 0
        self._near: SettledBitmap | None = None
        self._parts: dict[int, SettledBitmap] = {}

    def settle(self, store: Store, endpoint: int, number: i64) -> bool:
        """Settle a message (its spool id) for an endpoint; returns whether it was unsettled."""
        part = self._near
        if part is None or part.endpoint != endpoint:
            part = self._part(store, endpoint)
            self._near = part
        offset: i64 = number - self.first
        if part.has(offset):
            return False
        part.set(offset)
        self.left -= 1
        return True

    def take(self, part: SettledBitmap) -> None:
        """Begin with a bitmap that is not in the store yet."""
        self._parts[part.endpoint] = part

    def write(self, batch: Batch) -> None:
        """Write the bitmaps that changed; `written` is called when the batch is complete."""
        first = int(self.first)
        for part in self._parts.values():
            if part.changed:
                batch.put(keys.settled(part.endpoint, first), bytes(part.bits))

    def written(self) -> bool:
        """Record that a batch has the changed bitmaps. Return whether the store then has a bitmap of this segment."""
        self.changed = False
        any_stored = self.cold
        for part in self._parts.values():
            if part.changed:
                part.changed = False
                part.stored = True
            any_stored = any_stored or part.stored
        return any_stored

    def erase(self, store: Store, batch: Batch) -> None:
        """Delete the segment: bodies, index, and those bitmaps that are stored.

        Where the index cannot be read, bitmaps may stay in the store; nothing reads them any more.
        """
        first = int(self.first)
        index = keys.index(first)
        batch.delete(keys.bodies(first))
        batch.delete(index)
        for part in self._parts.values():
            if part.stored:
                batch.delete(keys.settled(part.endpoint, first))
        if self.cold:
            members: set[int] = set()
            try:
                stored = store.get(index)
                if stored is not None:
                    for group in decode_index(stored).sets:
                        members.update(group)
            except SpoolError:
                return
            for endpoint in sorted(members):
                if endpoint not in self._parts:
                    # Deleting a missing key does no harm, and nothing has to be read for it.
                    batch.delete(keys.settled(endpoint, first))

    def _part(self, store: Store, endpoint: int) -> SettledBitmap:
        part = self._parts.get(endpoint)
        if part is None:
            first = int(self.first)
            size = int(self.count + 7) >> 3
            stored = store.get(keys.settled(endpoint, first)) if self.cold else None
            if stored is not None and len(stored) == size:
                part = SettledBitmap(endpoint, bytearray(stored), True)
            else:
                part = SettledBitmap(endpoint, bytearray(size), stored is not None)
            self._parts[endpoint] = part
        return part


_U16: Final = (1 << 16) - 1
_U32: Final = (1 << 32) - 1


@final
class SegmentBuilder:
    """Takes messages, and notes which memberships are settled before anything was stored.

    `first` is the spool id of its first message, `left` counts memberships, `most` is how many messages
    it takes.
    """

    __slots__ = (
        "_bytes",
        "_expires",
        "_known",
        "_lanes",
        "_last",
        "_last_number",
        "_parts",
        "_priorities",
        "_records",
        "_sets",
        "_sizes",
        "_which",
        "first",
        "left",
        "most",
    )

    def __init__(self, first: int, most: int = limits.SPOOL_SEGMENT_MESSAGES) -> None:
        self.first = first
        self.most = most
        self.left = 0
        self._bytes: i64 = 0
        self._records: list[bytes] = []
        self._sizes: list[int] = []
        self._priorities: list[int] = []
        self._lanes: list[int] = []
        self._expires: list[int] = []
        self._which: list[int] = []
        self._sets: list[list[int]] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._last: list[int] = []
        self._last_number = 0
        self._parts: dict[int, SettledBitmap] = {}

    def __len__(self) -> int:
        return len(self._records)

    def takes(self, size: int) -> bool:
        """Return whether there is room for a record of so many bytes. There is always room for the first one."""
        count = len(self._records)
        return not count or (count < self.most and self._bytes + size <= limits.SPOOL_SEGMENT_BYTES)

    def add(
        self,
        record: bytes,
        size: int,
        priority: int,
        lane: int,
        expires_ns: int,
        endpoints: list[int],
    ) -> None:
        """Add a message for `endpoints`, each of them named once, and at least one.

        Raises OverflowError or ValueError: found out here, since `index` must not fail.
        """
        if (
            not 0 <= size <= _U32
            or not 0 <= priority <= 255
            or not 0 <= lane <= _U16
            or not 0 <= expires_ns <= limits.SPOOL_EXPIRY_NS
        ):
            raise OverflowError("a message that the spool has no index for")
        if endpoints != self._last:
            if len(set(endpoints)) != len(endpoints):
                raise ValueError("an endpoint is named twice")
            last = list(endpoints)
            self._last_number = self._number(last)
            self._last = last
        elif not endpoints:
            raise ValueError("a message for no endpoint")
        self._sizes.append(size)
        self._priorities.append(priority)
        self._lanes.append(lane)
        self._expires.append(expires_ns)
        self._which.append(self._last_number)
        self._records.append(record)
        self._bytes += len(record)
        self.left += len(endpoints)

    def cut(self, count: int, left: int) -> None:
        """Undo an `add` that failed: keep the first `count` messages, with `left` memberships."""
        for column in (self._sizes, self._priorities, self._lanes, self._expires, self._which):
            del column[count:]
        for record in self._records[count:]:
            self._bytes -= len(record)
        del self._records[count:]
        self.left = left
        self._last = []

    def settle(self, endpoint: int, offset: int) -> None:
        """Record that an endpoint has settled the message at `offset`, if it is a member."""
        members = self._sets[self._which[offset]]
        if endpoint not in members:
            return
        part = self._parts.get(endpoint)
        if part is None:
            part = SettledBitmap(endpoint, bytearray(self.most + 7 >> 3), True)
            self._parts[endpoint] = part
        if part.has(offset):
            return
        part.set(offset)
        self.left -= 1
        for member in members:
            other = self._parts.get(member)
            if other is None or not other.has(offset):
                return
        self._bytes -= len(self._records[offset])
        self._records[offset] = b""

    def parts(self) -> list[SettledBitmap]:
        """Return copies of the bitmaps of settled messages, to be stored beside the index."""
        size = len(self._records) + 7 >> 3
        bitmaps: list[SettledBitmap] = []
        for part in self._parts.values():
            copy = SettledBitmap(part.endpoint, part.bits[:size], part.stored)
            copy.changed = part.changed
            bitmaps.append(copy)
        return bitmaps

    def bodies(self) -> bytes:
        """Return the value of the segment's bodies."""
        return encode_segment(self._records)

    def index(self) -> bytes:
        """Return the value of the segment's index."""
        return encode_index(
            self._sizes, self._priorities, self._lanes, self._expires, self._sets, self._which
        )

    def _number(self, members: list[int]) -> int:
        """Return the number of a set of endpoints."""
        key = tuple(members)
        number = self._known.get(key)
        if number is None:
            if len(members) > _U16:
                raise OverflowError(f"{len(members)} endpoints are too many for one message")
            number = len(self._sets)
            self._known[key] = number
            self._sets.append(members)
        return number


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
        """Return the first id of the segment that has the message `number`. Raises KeyError if it is gone."""
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
        """Record what is left of a segment, and whether it has bitmaps. Raises KeyError if it is gone."""
        self.find(first)
        chunk = self._chunks[self._chunk]
        chunk.left[self._at] = left
        chunk.counts[self._at] = self.count | _PARTS if parts else self.count
        self.left = left
        self.parts = parts

    def remove(self, first: int) -> None:
        """Remove a segment. Raises KeyError if it is gone."""
        self.find(first)
        chunk = self._chunks[self._chunk]
        del chunk.firsts[self._at]
        del chunk.counts[self._at]
        del chunk.left[self._at]
        self._size -= 1
        if len(chunk.firsts) <= _FEW:
            self._merge(self._chunk)

    def firsts(self) -> list[int]:
        """Return the first ids of all segments, ascending."""
        return [first for chunk in self._chunks for first in chunk.firsts]

    def _merge(self, at: int) -> None:
        """Merge a chunk with few segments with a neighbour."""
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

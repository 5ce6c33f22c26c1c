"""The account of guaranteed messages: who still has to settle what, and the units of work that say so.

Messages get spool ids, are added for endpoints, and are settled by each. A unit collects that and becomes
one batch for the store. Memory per segment is a row of the table; the bitmaps of partly settled segments
are held for a bounded number of them and read again for others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.recovery import Recovered, Recovery
from vpnrouter.spool.segments import (
    SegmentBuilder,
    SegmentTable,
    SettledBitmaps,
    decode_index,
    decode_segment,
)
from vpnrouter.spool.store import Batch, Store

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        """Return the lowest id. Raises IndexError if there is none."""
        if not self._count:
            raise IndexError("no id waits")
        number: int = self._chunks[0][self._head]
        return number

    def last(self) -> int:
        """Return the highest id. Raises IndexError if there is none."""
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
        """Return the lowest `count` ids that are higher than `number`, ascending (type code Q)."""
        ids: array[int] = array("Q")
        if not self._count or number >= self._last:
            return ids
        chunk = self._chunk_of(number)
        at = bisect_right(self._chunks[chunk], number, self._head if chunk == 0 else 0)
        while chunk < len(self._chunks) and len(ids) < count:
            ids += self._chunks[chunk][at : at + count - len(ids)]
            chunk += 1
            at = 0
        return ids

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
        """Return which chunk has the id, or would have it: the last that begins at or before it."""
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
        """Merge a chunk with few ids with a neighbour, so that chunks stay worth their overhead."""
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


@final
class Ledger:
    """Spool ids, memberships and units over a store. One thread uses it; another may commit its batches.

    At most one sealed batch is uncommitted at a time: `seal` takes for granted that the batch before is
    in the store. `pending` says that the unit holds anything, `pending_bytes` about how much. `next_id` is
    the id of the message added next; ids rise and never come back in the life of the store.

    The bounds are those of `vpnrouter.limits` except in tests. Raises SpoolError if the store cannot be
    read.
    """

    __slots__ = (
        "_building",
        "_full",
        "_hot",
        "_hot_segments",
        "_id_lease",
        "_lease",
        "_near",
        "_portion",
        "_sealed_first",
        "_segment_messages",
        "_state",
        "_store",
        "_table",
        "_touched",
        "_unit",
        "_unit_first",
        "faults",
        "next_id",
        "pending",
        "pending_bytes",
        "sealed",
    )

    def __init__(
        self,
        store: Store,
        segment_messages: int = limits.SPOOL_SEGMENT_MESSAGES,
        hot_segments: int = limits.SPOOL_PARTS,
        id_lease: int = limits.SPOOL_ID_LEASE,
        portion: int = limits.SPOOL_RECOVERED,
    ) -> None:
        self._store = store
        self._segment_messages = segment_messages
        self._hot_segments = hot_segments
        self._id_lease = id_lease
        self._portion = portion
        self._table = SegmentTable()
        lease = store.get(keys.NEXT_ID)
        if lease is not None and len(lease) != 8:
            raise SpoolError("the next id of the spool is damaged", "corrupt")
        self.next_id = 1 if lease is None else keys.unpack_id(lease)
        self._lease = self.next_id
        self._unit = 1
        self._unit_first: i64 = self.next_id
        self._sealed_first = self.next_id
        self._building = SegmentBuilder(self.next_id, self._segment_messages)
        self._full: list[SegmentBuilder] = []
        self._hot: dict[int, SettledBitmaps] = {}
        self._near: SettledBitmaps | None = None
        self._touched: list[SettledBitmaps] = []
        self._state: dict[bytes, bytes | None] = {}
        self.pending = False
        self.pending_bytes = 0
        # Unexpected exceptions that were handled here; the owner tells them.
        self.faults: list[Exception] = []
        # The batch that `seal` made last.
        self.sealed: Batch | None = None

    @property
    def store_id(self) -> bytes:
        """Of the store: 16 bytes that name its life."""
        return self._store.store_id

    @property
    def secret(self) -> bytes:
        """Of the store: 32 bytes that nobody else knows."""
        return self._store.secret

    def __len__(self) -> int:
        """Return the number of segments in the store."""
        return len(self._table)

    def recover(self) -> Iterator[Recovered]:
        """Yield what waits in the store, in portions. Consume it to its end before any other call.

        Each portion has messages of one endpoint, ascending, and later portions of it have higher ids.
        Raises SpoolError for what cannot be read.
        """
        recovery = Recovery(self._store, self._table, self._portion)
        yield from recovery.run()
        if recovery.next_id > self.next_id:
            raise SpoolError("the spool has messages beyond its next id", "corrupt")
        for first in recovery.spent:
            # Never written like this; nothing is lost by taking the last step here.
            self._touch(SettledBitmaps(first, 1, 0, True))

    def add(
        self,
        record: bytes,
        size: int,
        priority: int,
        lane: int,
        expires_ns: int,
        endpoints: list[int],
    ) -> int:
        """Add a message to the unit; returns its spool id.

        Args:
            record: what `encode_record` made; not empty.
            size: bytes it counts for in an endpoint, below 2**32.
            priority: 0 … 255.
            lane: 0 … 65,535.
            expires_ns: wall clock, or 0 for never.
            endpoints: numbers of those that are to have it, each once, at least one.

        Raises OverflowError or ValueError for an argument that is outside its range.
        """
        building = self._building
        cost = len(record) + 16
        number = self.next_id
        if not building.takes(len(record)):
            # Both are set together: a full segment is not the one being built.
            fresh = SegmentBuilder(number, self._segment_messages)
            full = [*self._full, building]
            self._full, self._building = full, fresh
            building = fresh
        count = len(building)
        left = building.left
        try:
            building.add(record, size, priority, lane, expires_ns, endpoints)
        except Exception:
            building.cut(count, left)
            raise
        self.next_id = number + 1
        self.pending = True
        self.pending_bytes += cost
        return number

    def settle(self, endpoint: int, number: int) -> None:
        """Record in the unit that an endpoint has settled the message `number`. Ids that are settled or gone are
        ignored.

        Raises SpoolError, and changes nothing, if the bitmaps of the segment cannot be read.
        """
        wanted: i64 = number
        if wanted >= self._unit_first:
            self._unadd(endpoint, number)
            return
        near = self._near
        if near is None or not near.first <= wanted < near.first + near.count:
            near = self._parts_of(number)
            if near is None:
                return
            self._near = near
        if near.settle(self._store, endpoint, wanted):
            self.pending = True
            self.pending_bytes += 1
            if not near.changed:
                self._touch(near)

    def put(self, key: bytes, value: bytes) -> None:
        """Set `key` to `value` with this unit. The last change of a key in a unit counts."""
        self._state[key] = value
        self.pending = True
        self.pending_bytes += len(key) + len(value)

    def delete(self, key: bytes) -> None:
        """Delete `key` with this unit."""
        self._state[key] = None
        self.pending = True
        self.pending_bytes += len(key)

    def seal(self) -> Batch:
        """End the unit and begin the next; returns what to commit, which may be nothing (`Batch.empty`).

        If this raises, the unit stays as it was.
        """
        self.sealed = None
        batch = Batch()
        touched = self._touched
        for parts in touched:
            if parts.left > 0:
                parts.write(batch)
            else:
                parts.erase(self._store, batch)
        stored: list[SegmentBuilder] = []
        early: list[SettledBitmaps | None] = []
        lease = self._lease
        if self.next_id > self._unit_first:
            for building in [*self._full, self._building]:
                # A segment of which nothing is left is not written.
                if building.left:
                    stored.append(building)
                    early.append(self._write(building, batch))
            if self.next_id > lease:
                lease = self.next_id + self._id_lease
                batch.put(keys.NEXT_ID, keys.pack_id(lease))
        for key, value in self._state.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        fresh = SegmentBuilder(self.next_id, self._segment_messages)
        # The batch is complete and must not be lost: steps that raise from here on are repeated.
        self._building, self._full, self._touched, self._state = fresh, [], [], {}
        self._lease = lease
        self._near = None
        for parts in touched:
            try:
                self._seal_part(parts)
            except Exception as error:  # noqa: BLE001 - told by who owns the ledger
                self.faults.append(error)
                self._seal_part(parts)
        for index in range(len(stored)):
            try:
                self._note(stored[index], early[index])
            except Exception as error:  # noqa: BLE001 - the same
                self.faults.append(error)
                self._note(stored[index], early[index])
        try:
            self._cool()
        except Exception as error:  # noqa: BLE001 - told by the owner of the ledger; memory is given back later
            self.faults.append(error)
        self._unit += 1
        self._sealed_first = int(self._unit_first)
        self._unit_first = self.next_id
        self.pending = False
        self.pending_bytes = 0
        self.sealed = batch
        return batch

    def read(self, number: int) -> list[tuple[int, bytes]]:
        """Return the ids and records of the whole segment that has the message `number`, ascending.

        Those of messages that are settled may be among them or not. Raises KeyError if the segment is gone
        or not committed yet, SpoolError if it cannot be read.
        """
        first = self._table.find(number)
        data = self._store.get(keys.bodies(first))
        if data is None:
            if first >= self._sealed_first:
                raise KeyError(number)
            raise SpoolError(f"segment {first}: its messages are missing", "corrupt")
        records: list[tuple[int, bytes]] = []
        for record in decode_segment(data):
            if record:
                records.append((first, record))
            first += 1
        return records

    def sizes(self, number: int) -> tuple[int, array[int]]:
        """Return the first id of the segment that has a committed message, and the sizes of all its messages.

        Their records are not read. Raises SpoolError if the index of the segment is gone or cannot be read.
        """
        data = self._store.get(keys.index(self._table.first)) if self._table.seek(number) else None
        if data is None:
            raise SpoolError(f"the spool has lost message {number}", "corrupt")
        return self._table.first, decode_index(data).sizes

    def size(self, number: int) -> int:
        """Return the size of a committed message, as `sizes` does."""
        first, sizes = self.sizes(number)
        return sizes[number - first]

    def put_aside(self, number: int) -> None:
        """Have the store keep what is left of the segment that has this message, and is damaged."""
        if self._table.seek(number):
            self._store.put_aside(keys.bodies(self._table.first))

    def _unadd(self, endpoint: int, number: int) -> None:
        """Settle a message that was added in the unit being built."""
        if number >= self.next_id:
            return
        building = self._building
        at = len(self._full) - 1
        while number < building.first:
            building = self._full[at]
            at -= 1
        building.settle(endpoint, number - building.first)

    def _parts_of(self, number: int) -> SettledBitmaps | None:
        """Return the state of the segment that has a message; None if it is gone."""
        table = self._table
        if not table.seek(number):
            return None
        parts = self._hot.get(table.first)
        if parts is None:
            parts = SettledBitmaps(table.first, table.count, table.left, table.parts)
            self._hot[table.first] = parts
        return parts

    def _touch(self, parts: SettledBitmaps) -> None:
        """Record that the unit changes the state of a segment."""
        parts.changed = True
        parts.unit = self._unit
        self._touched.append(parts)
        self.pending = True

    def _write(self, building: SegmentBuilder, batch: Batch) -> SettledBitmaps | None:
        """Put a segment into the batch. Returns the bitmaps of what was settled of it before it is stored, if any."""
        first = building.first
        batch.put(keys.bodies(first), building.bodies())
        batch.put(keys.index(first), building.index())
        settled = building.parts()
        if not settled:
            return None
        parts = SettledBitmaps(first, len(building), building.left, False)
        for part in settled:
            parts.take(part)
        parts.write(batch)
        return parts

    def _seal_part(self, parts: SettledBitmaps) -> None:
        """Record that the batch has the bitmaps of a stored segment, or its deletion. May be called again."""
        first = int(parts.first)
        if parts.left > 0:
            self._table.update(first, int(parts.left), parts.written())
            return
        parts.changed = False
        self._hot.pop(first, None)
        if self._table.seek(first):
            self._table.remove(first)

    def _note(self, building: SegmentBuilder, early: SettledBitmaps | None) -> None:
        """Record that a segment is in the batch. May be called again."""
        first = building.first
        if not self._table.seek(first):
            self._table.append(first, len(building), building.left)
        if early is not None:
            early.unit = self._unit
            # The store gets it later.
            self._hot[first] = early
            self._table.update(first, int(early.left), early.written())

    def _cool(self) -> None:
        """Forget the state of the oldest segments beyond the bound, if what it says is committed."""
        over = len(self._hot) - self._hot_segments
        if over <= 0:
            return
        for first in list(self._hot)[: over * 2]:
            if over > 0 and self._hot[first].unit < self._unit:
                del self._hot[first]
                over -= 1

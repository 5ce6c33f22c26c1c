"""What is settled of a stored segment, endpoint by endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.segment import decode_index

if TYPE_CHECKING:
    from vpnrouter.spool.store import Batch, Store


@final
class Part:
    """The bitmap of one endpoint: a bit for each message of the segment, set when settled."""

    __slots__ = ("bits", "changed", "endpoint", "stored")

    def __init__(self, endpoint: int, bits: bytearray, stored: bool) -> None:
        self.endpoint = endpoint
        self.bits = bits
        self.stored = stored
        self.changed = False

    def has(self, offset: i64) -> bool:
        """True when the bit of the message at `offset` is set."""
        there: i64 = self.bits[offset >> 3]
        return there >> (offset & 7) & 1 != 0

    def set(self, offset: i64) -> None:
        """Set the bit of the message at `offset`."""
        there: i64 = self.bits[offset >> 3]
        bit: i64 = 1 << (offset & 7)
        self.bits[offset >> 3] = there | bit
        self.changed = True


@final
class Parts:
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
        self._near: Part | None = None
        self._parts: dict[int, Part] = {}

    def settle(self, store: Store, endpoint: int, number: i64) -> bool:
        """Settle a message (its spool id) for an endpoint; returns whether that is news."""
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

    def take(self, part: Part) -> None:
        """Begin with a bitmap that is not in the store yet."""
        self._parts[part.endpoint] = part

    def write(self, batch: Batch) -> None:
        """Put the bitmaps that changed; `written` is called when the batch is complete."""
        first = int(self.first)
        for part in self._parts.values():
            if part.changed:
                batch.put(keys.settled(part.endpoint, first), bytes(part.bits))

    def written(self) -> bool:
        """Note that the changed bitmaps are in a batch. True when the store has a bitmap of this segment then."""
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

    def _part(self, store: Store, endpoint: int) -> Part:
        part = self._parts.get(endpoint)
        if part is None:
            first = int(self.first)
            size = int(self.count + 7) >> 3
            stored = store.get(keys.settled(endpoint, first)) if self.cold else None
            if stored is not None and len(stored) == size:
                part = Part(endpoint, bytearray(stored), True)
            else:
                part = Part(endpoint, bytearray(size), stored is not None)
            self._parts[endpoint] = part
        return part

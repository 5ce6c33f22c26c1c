"""What a start finds in the store: which messages wait in which endpoint."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.segments import Columns, decode_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.spool.segments import SegmentTable
    from vpnrouter.spool.store import Store


@final
class Recovered:
    """Messages that wait in one endpoint, ascending; a value a message in each array.

    `ids` has type code Q, `sizes` I (bytes), `priorities` B, `lanes` H, `expires` Q (wall clock,
    nanoseconds, 0 for never).
    """

    __slots__ = ("endpoint", "expires", "ids", "lanes", "priorities", "sizes")

    def __init__(self, endpoint: int) -> None:
        self.endpoint = endpoint
        self.ids: array[int] = array("Q")
        self.sizes: array[int] = array("I")
        self.priorities: array[int] = array("B")
        self.lanes: array[int] = array("H")
        self.expires: array[int] = array("Q")


@final
class Recovery:
    """Reads all indexes, in order, with the bitmaps beside them. Bodies are not read.

    `portion` is how many memberships are handed over at a time, and at most a segment's more.

    `next_id` is the first spool id behind the last segment; `spent` lists segments of which nothing is left.
    """

    __slots__ = (
        "_bitmap",
        "_bitmap_first",
        "_bitmaps",
        "_found",
        "_portion",
        "_store",
        "_table",
        "next_id",
        "spent",
    )

    def __init__(
        self, store: Store, table: SegmentTable, portion: int = limits.SPOOL_RECOVERED
    ) -> None:
        self._portion = portion
        self.next_id = 1
        self.spent: list[int] = []
        self._store = store
        self._table = table
        self._found: dict[int, Recovered] = {}
        self._bitmaps = store.scan(keys.SETTLED)
        self._bitmap: tuple[bytes, bytes] | None = None
        self._bitmap_first = -1
        self._advance()

    def run(self) -> Iterator[Recovered]:
        """Yield portions of what waits; several of one endpoint, ascending. It fills the table meanwhile.

        Raises SpoolError for an index that cannot be read.
        """
        count = 0
        for key, value in self._store.scan(keys.INDEX):
            count += self._take(keys.number_of(key), value)
            if count >= self._portion:
                count = 0
                yield from self._handed_over()
        yield from self._handed_over()

    def _handed_over(self) -> list[Recovered]:
        """Return the findings since the last call."""
        ready = [each for each in self._found.values() if each.ids]
        self._found = {}
        return ready

    def _take(self, first: int, value: bytes) -> int:
        """Record one segment; returns how many of its memberships are not settled."""
        try:
            columns = decode_index(value)
        except SpoolError as error:
            raise SpoolError(f"segment {first}: {error}", error.reason) from error
        if first < self.next_id:
            raise SpoolError(f"segment {first} begins before the one before it ends", "corrupt")
        self.next_id = first + columns.count
        settled = self._settled(first, columns.count)
        left = 0
        if not columns.which:
            for endpoint in columns.sets[0]:
                bitmap = settled.get(endpoint)
                if bitmap is None:
                    self._all(endpoint, first, columns)
                    left += columns.count
                else:
                    left += self._some(endpoint, first, columns, range(columns.count), bitmap)
        else:
            places: dict[int, list[int]] = {}
            for place, number in enumerate(columns.which):
                for endpoint in columns.sets[number]:
                    places.setdefault(endpoint, []).append(place)
            for endpoint, mine in places.items():
                left += self._some(endpoint, first, columns, mine, settled.get(endpoint, b""))
        if left:
            self._table.append(first, columns.count, left, bool(settled))
        else:
            self.spent.append(first)
        return left

    def _all(self, endpoint: int, first: int, columns: Columns) -> None:
        """Record that all messages of the segment wait in the endpoint."""
        recovered = self._of(endpoint)
        recovered.ids.extend(array("Q", range(first, first + columns.count)))
        recovered.sizes.extend(columns.sizes)
        recovered.priorities.extend(columns.priorities)
        recovered.lanes.extend(columns.lanes)
        recovered.expires.extend(columns.expires)

    def _some(
        self, endpoint: int, first: int, columns: Columns, places: range | list[int], bitmap: bytes
    ) -> int:
        """Record that the messages at `places` wait, except what is settled; returns how many wait."""
        recovered = self._of(endpoint)
        ids = recovered.ids
        before = len(ids)
        for place in places:
            if bitmap and bitmap[place >> 3] >> (place & 7) & 1:
                continue
            ids.append(first + place)
            recovered.sizes.append(columns.sizes[place])
            recovered.priorities.append(columns.priorities[place])
            recovered.lanes.append(columns.lanes[place])
            recovered.expires.append(columns.expires[place])
        return len(ids) - before

    def _of(self, endpoint: int) -> Recovered:
        recovered = self._found.get(endpoint)
        if recovered is None:
            recovered = Recovered(endpoint)
            self._found[endpoint] = recovered
        return recovered

    def _settled(self, first: int, count: int) -> dict[int, bytes]:
        """Return the bitmaps of a segment, by endpoint."""
        bitmaps: dict[int, bytes] = {}
        while self._bitmap_first != -1 and self._bitmap_first <= first:
            bitmap = self._bitmap
            if bitmap is not None and self._bitmap_first == first:
                key, value = bitmap
                if len(value) != count + 7 >> 3:
                    raise SpoolError(f"segment {first}: a bitmap has the wrong length", "corrupt")
                bitmaps[keys.endpoint_of(key)] = value
            self._advance()
        return bitmaps

    def _advance(self) -> None:
        """Go to the next bitmap."""
        bitmap = next(self._bitmaps, None)
        self._bitmap = bitmap
        self._bitmap_first = -1 if bitmap is None else keys.number_of(bitmap[0])

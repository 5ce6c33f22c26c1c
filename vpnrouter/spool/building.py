"""A segment that is being built: the messages of a unit of work, before it is sealed."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.spool.parts import Part
from vpnrouter.spool.segment import encode_index, encode_segment

_U16: Final = (1 << 16) - 1
_U32: Final = (1 << 32) - 1


@final
class Building:
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
        self._parts: dict[int, Part] = {}

    def __len__(self) -> int:
        return len(self._records)

    def takes(self, size: int) -> bool:
        """True when there is room for a record of so many bytes. There is always room for the first one."""
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
        """Note that an endpoint needs the message at `offset` no more, if it was to have it."""
        members = self._sets[self._which[offset]]
        if endpoint not in members:
            return
        part = self._parts.get(endpoint)
        if part is None:
            part = Part(endpoint, bytearray(self.most + 7 >> 3), True)
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

    def parts(self) -> list[Part]:
        """Copies of the bitmaps of settled messages, to be stored beside the index."""
        size = len(self._records) + 7 >> 3
        found: list[Part] = []
        for part in self._parts.values():
            copy = Part(part.endpoint, part.bits[:size], part.stored)
            copy.changed = part.changed
            found.append(copy)
        return found

    def bodies(self) -> bytes:
        """The value of the segment's bodies."""
        return encode_segment(self._records)

    def index(self) -> bytes:
        """The value of the segment's index."""
        return encode_index(
            self._sizes, self._priorities, self._lanes, self._expires, self._sets, self._which
        )

    def _number(self, members: list[int]) -> int:
        """The number of a set of endpoints."""
        key = tuple(members)
        number = self._known.get(key)
        if number is None:
            if len(members) > _U16:
                raise OverflowError(f"{len(members)} endpoints are too many for one message")
            number = len(self._sets)
            self._known[key] = number
            self._sets.append(members)
        return number

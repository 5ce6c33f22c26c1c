"""A short cut to cached routes for the batch path: no topic is cut out, no bytes are hashed.

A topic's place in the table comes from three of its eight-byte words; the route that stands there is
taken when its topic equals the bytes in the chunk. The route cache stays the one that knows: a route
is trusted only while `stamp` says that nothing was dropped from the cache since it was last found
there. Interpreted, a dictionary is cheaper, and the table is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

if TYPE_CHECKING:
    from vpnrouter.core.route import Route

WORD: Final = 8

FEWEST: Final = 256
"""Places in a new table: many message VPNs see few topics."""

MOST: Final = 65_536
"""Places in the largest table, as many as the route cache has entries."""

_MIX: Final = 0x1E3779B97F4A7C15


@final
class Slots:
    """Routes by a cheap function of their topic's bytes. `stamp` goes up when the cache drops anything."""

    __slots__ = ("_filled", "_mask", "_places", "stamp")

    def __init__(self) -> None:
        self._places: list[Route | None] = [None] * FEWEST
        self._mask: i64 = FEWEST - 1
        self._filled: i64 = 0
        self.stamp: i64 = 1

    def find(self, buf: bytes, pos: i64, size: i64) -> Route | None:
        """The route of the topic in `buf[pos:pos + size]` (at least 8 bytes), or None if not here."""
        place = self._place(buf, pos, size)
        route = self._places[place]
        if route is None:
            return None
        if route.stamp == self.stamp and _same(route.raw, buf, pos, size):
            return route
        route = self._places[place ^ 1]
        if route is not None and route.stamp == self.stamp and _same(route.raw, buf, pos, size):
            return route
        return None

    def put(self, route: Route) -> None:
        """Remember a route that was found in the cache just now."""
        size: i64 = len(route.raw)
        if self._filled > self._mask and self._mask + 1 < MOST:
            # More routes were put than there are places: they push each other out.
            self._mask = self._mask * 4 + 3
            self._places = [None] * (self._mask + 1)
            self._filled = 0
        route.stamp = self.stamp
        place = self._place(route.raw, 0, size)
        there = self._places[place]
        if there is not None and there.stamp == self.stamp:
            # Two topics may share a place: the older one moves to its neighbour.
            self._places[place ^ 1] = there
        self._places[place] = route
        self._filled += 1

    def drop(self) -> None:
        """The cache dropped something: trust no route until it is found there again."""
        self.stamp += 1
        self._filled = 0

    def _place(self, buf: bytes, pos: i64, size: i64) -> i64:
        first: i64 = read_i64_le(buf, pos)
        middle: i64 = read_i64_le(buf, pos + ((size - WORD) >> 1))
        last: i64 = read_i64_le(buf, pos + size - WORD)
        # Digits that count topics stand in high bytes, and a product only carries upwards: fold down.
        mixed: i64 = first * 3 + middle * 5 + last * _MIX
        mixed ^= mixed >> 32
        mixed *= _MIX
        mixed ^= mixed >> 32
        return mixed & self._mask


def _same(raw: bytes, buf: bytes, pos: i64, size: i64) -> bool:
    """True when `buf[pos:pos + size]` is `raw`."""
    if len(raw) != size:
        return False
    offset: i64 = 0
    last: i64 = size - WORD
    while offset < last:
        if read_i64_le(raw, offset) != read_i64_le(buf, pos + offset):
            return False
        offset += WORD
    return read_i64_le(raw, last) == read_i64_le(buf, pos + last)

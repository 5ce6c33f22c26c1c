"""Checks everything that must hold in a store, without changing it: for `vpnrouter spool verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.pieces import PIECE
from vpnrouter.spool.record import decode_record
from vpnrouter.spool.segments import (
    Columns,
    bits_set,
    decode_index,
    decode_segment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.spool.store import Store

_KEY_LENGTHS: Final = {
    keys.ENDPOINT: 5,
    keys.MARK: 5,
    keys.REDELIVERIES: 13,
    keys.OUTBOUND: 7,
    keys.INBOUND: 7,
    keys.NEXT_ID: 1,
    keys.STORE: 1,
    keys.SECRET: 1,
    keys.GONE: 1,
}
"""What is not checked value by value."""

_TEXT_KEYS: Final = (keys.SESSION, keys.RETAINED, keys.BRIDGE, keys.WILL, keys.KNOWN_LINK)
_SEGMENT_KEYS: Final = (keys.BODIES, keys.INDEX, keys.SETTLED)

_VALUE_LENGTHS: Final = {
    keys.MARK: (8,),
    keys.REDELIVERIES: (2,),
    keys.OUTBOUND: (0, 8),
    keys.NEXT_ID: (8,),
}


def verify(store: Store) -> list[str]:
    """Return what is wrong with a store nobody else works with, a line for each finding; empty if nothing is.

    Every index has its bodies and the other way round, counts agree, segments do not overlap and lie below
    the next id, bitmaps belong to live segments and to their members, something is left of each segment,
    records can be read, keys and values have their lengths. At most `limits.SPOOL_FINDINGS` lines. What is
    held in memory at a time is one segment.

    Raises SpoolError if the store itself cannot be read.
    """
    return _StoreCheck(store).run()


@final
class _StoreCheck:
    """One pass over a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._problems: list[str] = []

    def run(self) -> list[str]:
        """Check all; returns the findings."""
        self._segments()
        self._others()
        return self._problems

    def _say(self, problem: str) -> None:
        if len(self._problems) < limits.SPOOL_FINDINGS - 1:
            self._problems.append(problem)
        elif len(self._problems) == limits.SPOOL_FINDINGS - 1:
            self._problems.append("there are more findings")

    def _segments(self) -> None:
        indexes = _Rows(self._store, keys.INDEX)
        bodies = _Rows(self._store, keys.BODIES)
        bitmaps = _Rows(self._store, keys.SETTLED)
        end = 0
        while indexes.first != -1 or bodies.first != -1 or bitmaps.first != -1:
            first = min(rows.first for rows in (indexes, bodies, bitmaps) if rows.first != -1)
            index = indexes.take(first)
            body = bodies.take(first)
            bits = bitmaps.take(first)
            if not index:
                if body:
                    self._say(f"segment {first}: bodies without an index")
                if bits:
                    self._say(f"segment {first}: a bitmap without an index")
                continue
            try:
                columns = decode_index(index[0][1])
            except SpoolError as error:
                self._say(f"segment {first}: {error}")
                continue
            if first < end:
                self._say(f"segment {first}: begins before the one before it ends")
            end = first + columns.count
            settled = self._bitmaps(first, columns, bits)
            if body:
                self._bodies(first, columns, body[0][1], settled)
            elif not bodies.broken:
                self._say(f"segment {first}: an index without bodies")
            else:
                self._one_by_one(first, columns, settled)
        known = self._store.get(keys.NEXT_ID)
        if end and (known is None or int.from_bytes(known, "big") < end):
            self._say("the next id lies below the end of the last segment")

    def _one_by_one(self, first: int, columns: Columns, settled: dict[int, int]) -> None:
        """Check a segment behind one whose bodies cannot be read, or that one itself."""
        try:
            value = self._store.get(keys.bodies(first))
        except SpoolError as error:
            waiting = sum(
                not settled.get(endpoint, 0) >> place & 1
                for place in range(columns.count)
                for endpoint in _members(columns, place)
            )
            self._say(f"segment {first}: {waiting} messages cannot be read: {error}")
            return
        if value is None:
            self._say(f"segment {first}: an index without bodies")
        else:
            self._bodies(first, columns, value, settled)

    def _bodies(self, first: int, columns: Columns, value: bytes, settled: dict[int, int]) -> None:
        try:
            records = decode_segment(value)
        except SpoolError as error:
            self._say(f"segment {first}: {error}")
            return
        if len(records) != columns.count:
            self._say(f"segment {first}: {len(records)} bodies for {columns.count} messages")
            return
        for place, record in enumerate(records):
            if record:
                self._record(f"message {first + place}", record)
                continue
            # What everybody settled before it was stored has none.
            members = _members(columns, place)
            if any(not settled.get(endpoint, 0) >> place & 1 for endpoint in members):
                self._say(f"message {first + place}: no body")

    def _record(self, what: str, value: bytes) -> None:
        try:
            decode_record(value)
        except SpoolError as error:
            self._say(f"{what}: {error}")

    def _bitmaps(
        self, first: int, columns: Columns, bitmaps: list[tuple[bytes, bytes]]
    ) -> dict[int, int]:
        """Check the bitmaps of a segment; returns them as numbers, by endpoint."""
        settled: dict[int, int] = {}
        members = [_members(columns, place) for place in range(columns.count)]
        left = sum(map(len, members))
        for key, value in bitmaps:
            endpoint = keys.endpoint_of(key)
            label = f"segment {first}, endpoint {endpoint}"
            if len(value) != columns.count + 7 >> 3:
                self._say(
                    f"{label}: the bitmap has {len(value)} bytes for {columns.count} messages"
                )
                continue
            mine = sum(1 << place for place, group in enumerate(members) if endpoint in group)
            if not mine:
                self._say(f"{label}: a bitmap of an endpoint that has no message there")
            elif int.from_bytes(value, "little") & ~mine:
                self._say(f"{label}: messages are settled that it never had")
            settled[endpoint] = int.from_bytes(value, "little")
            left -= bits_set(value)
        if left <= 0:
            self._say(f"segment {first}: all of it is settled, but it is there")
        return settled

    def _others(self) -> None:
        for first in range(PIECE[0]):
            kind = bytes([first])
            # Bodies are checked already, and some may be unreadable.
            if kind != keys.BODIES:
                for key, value in self._store.scan(kind):
                    self._other(key, value)

    def _other(self, key: bytes, value: bytes) -> None:
        kind = key[:1]
        if kind in _SEGMENT_KEYS:
            if len(key) != (13 if kind == keys.SETTLED else 9):
                self._say(f"key {key.hex()}: wrong length")
        elif kind in _TEXT_KEYS:
            if b"\0" not in key:
                self._say(f"key {key.hex()}: no message VPN")
            elif kind == keys.RETAINED:
                self._record(f"retained message {key[1:]!r}", value)
        elif kind == keys.SHEET:
            if key[:2] not in {keys.SHEET_ENDPOINT, keys.SHEET_BRIDGE, keys.SHEET_CONNECTOR}:
                self._say(f"key {key.hex()}: counts of no known kind")
        elif kind not in _KEY_LENGTHS:
            self._say(f"key {key.hex()}: of no known kind")
        elif len(key) != _KEY_LENGTHS[kind]:
            self._say(f"key {key.hex()}: wrong length")
        elif len(value) not in _VALUE_LENGTHS.get(kind, (len(value),)):
            self._say(f"key {key.hex()}: its value has {len(value)} bytes")


@final
class _Rows:
    """Rows of one kind, taken by segment. `first` is the segment of the next one, -1 at the end.

    `broken`: what follows cannot be read in order.
    """

    def __init__(self, store: Store, of: bytes) -> None:
        self._of = of
        self._rows: Iterator[tuple[bytes, bytes]] = store.scan(of)
        self._next: tuple[bytes, bytes] | None = None
        self.first = -1
        self.broken = False
        self._advance()

    def take(self, first: int) -> list[tuple[bytes, bytes]]:
        """Return the rows of a segment. Segments must be taken in ascending order."""
        rows = []
        while self._next is not None and self.first == first:
            rows.append(self._next)
            self._advance()
        return rows

    def _advance(self) -> None:
        try:
            self._next = next(self._rows, None)
        except SpoolError:
            if self._of != keys.BODIES:
                raise
            self._next = None
            self.broken = True
        self.first = -1 if self._next is None else keys.number_of(self._next[0])


def _members(columns: Columns, place: int) -> list[int]:
    """Return the endpoints that the message at `place` was added for."""
    return columns.sets[columns.which[place] if columns.which else 0]

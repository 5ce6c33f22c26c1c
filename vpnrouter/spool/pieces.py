"""Large values of the store on disk, cut into pieces that are written one by one ahead of their batch.

RocksDB's write keeps the interpreter from everybody else until it is done: 9 MB take 20 to 70 ms. So what is large
in a large batch is written ahead in pieces, and the batch itself, which is synced with them, only says where they
are. Keys beyond those of `spool.keys`, which nobody but the store sees:

    0xf0 serial piece    a piece (serial u64, piece u32)
    0xf1 key             where the value of `key` is: serial u64, pieces u32, bytes u64; under `key` it is empty
    0xf2                 serials and pieces (u64, u32 each) that stand for nothing yet, or for nothing any more

A commit that is cut short leaves pieces that nothing refers to. The last key names them, and the next commit
deletes them.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocksdict import RdictIter

    from vpnrouter.spool.store import Batch

PIECE: Final = b"\xf0"
PLACE: Final = b"\xf1"
LOOSE: Final = b"\xf2"

_PIECE: Final = Struct(">cQI")
_PLACE: Final = Struct(">QIQ")
_LOOSE: Final = Struct(">QI")

Rows = list[tuple[bytes, bytes]]


class CutValue(NamedTuple):
    """Where one value is: how many pieces it has, and bytes in all."""

    serial: int
    pieces: int
    size: int


@final
class CutBatch:
    """What becomes of a batch: `ahead` is written first, one list after the other, then `puts` and `deletes`.

    `places` are those of values that were cut, `gone` keys whose value is no longer in pieces.
    """

    __slots__ = ("ahead", "deletes", "gone", "places", "puts")

    def __init__(self) -> None:
        self.ahead: list[Rows] = []
        self.puts: Rows = []
        self.deletes: list[bytes] = []
        self.places: dict[bytes, CutValue] = {}
        self.gone: list[bytes] = []


@final
class Pieces:
    """Which values of a store are in pieces. Nothing here reads or writes."""

    __slots__ = ("_loose", "_next", "places")

    def __init__(self, places: Iterable[tuple[bytes, bytes]], loose: bytes) -> None:
        self.places = {key[1:]: CutValue(*_PLACE.unpack(value)) for key, value in places}
        self._loose: list[tuple[int, int]] = list(_LOOSE.iter_unpack(loose))
        known = [place.serial for place in self.places.values()]
        self._next = 1 + max([*known, *(serial for serial, _ in self._loose)], default=0)

    def needed(self, batch: Batch) -> bool:
        """Return whether `batch` has to be cut: it is large, or the store has pieces that it may replace."""
        return batch.size > limits.SPOOL_BATCH_BYTES or bool(self.places or self._loose)

    def cut(self, batch: Batch) -> CutBatch:
        """Cut what is large in a large batch. What it replaces or deletes is deleted with its pieces."""
        result = CutBatch()
        large = batch.size > limits.SPOOL_BATCH_BYTES
        for key, value in batch.puts:
            if large and len(value) >= limits.SPOOL_CUT_BYTES:
                self._ahead(result, key, value)
            else:
                result.puts.append((key, value))
                self._replace(result, key)
        for key in batch.deletes:
            result.deletes.append(key)
            self._replace(result, key)
        for serial, count in self._loose:
            result.deletes.extend(_keys(serial, count))
        if result.ahead:
            fresh = [(place.serial, place.pieces) for place in result.places.values()]
            self._loose += fresh
            loose = b"".join(_LOOSE.pack(*each) for each in self._loose)
            result.ahead[0].insert(0, (LOOSE, loose))
        if self._loose:
            result.deletes.append(LOOSE)
        return result

    def done(self, cut: CutBatch) -> None:
        """Record that the batch is written."""
        self._loose.clear()
        self.places.update(cut.places)
        for key in cut.gone:
            self.places.pop(key, None)

    def _ahead(self, cut: CutBatch, key: bytes, value: bytes) -> None:
        most = limits.SPOOL_PIECE_BYTES
        serial = self._next
        self._next += 1
        place = CutValue(serial, -(-len(value) // most), len(value))
        for number in range(place.pieces):
            piece = value[number * most : (number + 1) * most]
            if not cut.ahead or sum(len(each) for _, each in cut.ahead[-1]) + len(piece) > most:
                cut.ahead.append([])
            cut.ahead[-1].append((_PIECE.pack(PIECE, serial, number), piece))
        before = self.places.get(key)
        if before is not None:
            cut.deletes.extend(_keys(before.serial, before.pieces))
        cut.puts.append((key, b""))
        cut.puts.append((PLACE + key, _PLACE.pack(*place)))
        cut.places[key] = place

    def _replace(self, cut: CutBatch, key: bytes) -> None:
        before = self.places.get(key)
        if before is not None:
            cut.deletes.extend(_keys(before.serial, before.pieces))
            cut.deletes.append(PLACE + key)
            cut.gone.append(key)


def _keys(serial: int, count: int) -> list[bytes]:
    return [_PIECE.pack(PIECE, serial, number) for number in range(count)]


def value_of(key: bytes, rows: RdictIter) -> bytes | None:
    """Return the value of `key`, whose own row is empty: put together if it is in pieces.

    `rows` goes through all rows of the store. Returns None if a piece is missing.
    """
    row = _row(PLACE + key, rows)
    if row is None:
        return b""
    place = CutValue(*_PLACE.unpack(row))
    pieces = [_row(each, rows) for each in _keys(place.serial, place.pieces)]
    whole = b"".join([piece for piece in pieces if piece is not None])
    return whole if len(whole) == place.size else None


def _row(key: bytes, rows: RdictIter) -> bytes | None:
    rows.seek(key)
    value: bytes | None = rows.value() if rows.valid() and rows.key() == key else None
    return value

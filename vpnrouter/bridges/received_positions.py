"""Remembers which messages of a remote queue a bridge has accepted and the sender does not know of, also on disk.

The set is written in the same commit as the messages, so a message that is sent again after a fault is recognized.
Positions are those of the remote store; sets are kept apart by store and by queue, for a bridge that moves between
remotes, or whose queue changes, may come back to what it left unfinished.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError, SpoolError
from vpnrouter.wire.link.frames import STORE_ID_BYTES
from vpnrouter.wire.link.ranges import decode_ranges, encode_ranges
from vpnrouter.wire.varint import read_varint, varint

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool


@final
class AcceptedPositions:
    """The accepted positions of one flow, stored under `key`. `is_open` while the flow is bound."""

    __slots__ = ("_dirty", "_key", "_positions", "_spool", "accepted")

    def __init__(self, spool: Spool, key: bytes, accepted: ReceivedPositions) -> None:
        self.accepted = accepted
        self._spool = spool
        self._key = key
        self._positions: PositionSet | None = None
        self._dirty = False

    @property
    def is_open(self) -> bool:
        """True when there is a queue to take from."""
        return self._positions is not None

    @property
    def count(self) -> int:
        """Positions of this queue that are taken and not forgotten."""
        return 0 if self._positions is None else self._positions.count

    def open(self, store_id: bytes, queue: str, settled: list[tuple[int, int]]) -> None:
        """Note that a flow is bound; `settled` are ranges that its sender has settled."""
        self._positions = self.accepted.of(store_id, queue)
        self.forget(settled)

    def close(self) -> None:
        """Note that no flow is bound; the accepted positions are kept."""
        self._positions = None

    def has(self, position: int) -> bool:
        """True when this message was taken before."""
        return self._positions is not None and position in self._positions

    def add(self, position: int) -> None:
        """Note that a message is in the unit being built."""
        if self._positions is not None:
            self._positions.add(position)
        self._dirty = True

    def take_back(self, position: int) -> None:
        """Note that the message is not in the unit after all."""
        if self._positions is not None:
            self._positions.remove(position, 1)

    def forget(self, ranges: list[tuple[int, int]]) -> None:
        """Forget positions that the sender never sends again."""
        if self._positions is not None:
            for first, count in ranges:
                if self._positions.remove(first, count):
                    self._dirty = True

    def write(self) -> None:
        """Put what changed into the unit being built, where the messages are."""
        if self._dirty:
            value = self.accepted.encode()
            if value:
                self._spool.ledger.put(self._key, value)
            else:
                self._spool.ledger.delete(self._key)
            # Last: if the code above raises, it is written with the next chunk of input.
            self._dirty = False


FORMAT: Final = 1
"""First byte of what is stored."""


@final
class PositionSet:
    """A set of positions as ranges, ascending and apart: what is in a row takes the room of one."""

    __slots__ = ("_counts", "_firsts", "count")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._counts: list[int] = []
        self.count = 0

    def __contains__(self, position: int) -> bool:
        at = bisect_right(self._firsts, position) - 1
        return at >= 0 and position < self._firsts[at] + self._counts[at]

    def add(self, position: int) -> bool:
        """Put one position in; False when it is there already."""
        firsts, counts = self._firsts, self._counts
        after = bisect_right(firsts, position)
        before = after - 1
        joins = False
        if before >= 0:
            end = firsts[before] + counts[before]
            if position < end:
                return False
            joins = position == end
        self.count += 1
        meets = after < len(firsts) and firsts[after] == position + 1
        if joins and meets:
            counts[before] += 1 + counts[after]
            del firsts[after], counts[after]
        elif joins:
            counts[before] += 1
        elif meets:
            firsts[after] = position
            counts[after] += 1
        else:
            firsts.insert(after, position)
            counts.insert(after, 1)
        return True

    def remove(self, first: int, count: int) -> int:
        """Take a range out. Returns how many positions were in it."""
        firsts, counts = self._firsts, self._counts
        end = first + count
        at = max(0, bisect_right(firsts, first) - 1)
        gone = 0
        while at < len(firsts) and firsts[at] < end:
            begins = firsts[at]
            ends = begins + counts[at]
            low, high = max(begins, first), min(ends, end)
            if low >= high:
                at += 1
                continue
            gone += high - low
            del firsts[at], counts[at]
            if ends > high:
                firsts.insert(at, high)
                counts.insert(at, ends - high)
            if low > begins:
                firsts.insert(at, begins)
                counts.insert(at, low - begins)
                at += 1
        self.count -= gone
        return gone

    def fill(self, first: int, count: int) -> None:
        """Put a range behind all others. Raises SpoolError when it is not behind them."""
        if self._firsts and first <= self._firsts[-1] + self._counts[-1]:
            raise SpoolError("bridge positions out of order", "corrupt")
        self._firsts.append(first)
        self._counts.append(count)
        self.count += count

    def ranges(self) -> list[tuple[int, int]]:
        """Pairs of first position and count, ascending."""
        return list(zip(self._firsts, self._counts, strict=True))


@final
class ReceivedPositions:
    """What one bridge has accepted, by store id and queue; the pair used last is the last one.

    Bounded: LINK_FLOW_STORES pairs. Beyond, the one used longest ago is forgotten.
    """

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: dict[tuple[bytes, str], PositionSet] = {}

    def of(self, store_id: bytes, queue: str) -> PositionSet:
        """The set of one store and queue, made where there is none; it counts as used now."""
        key = (store_id, queue)
        positions = self._sets.pop(key, None)
        if positions is None:
            positions = PositionSet()
        self._sets[key] = positions
        if len(self._sets) > limits.LINK_FLOW_STORES:
            # What is empty has nothing to forget.
            empty = [
                other for other, found in self._sets.items() if not found.count and other != key
            ]
            del self._sets[empty[0] if empty else next(iter(self._sets))]
        return positions

    def named(self, queue: str) -> dict[bytes, list[tuple[int, int]]]:
        """What BIND of this queue says: ranges by store id, those without positions left out (LINK-40).

        Where all together are more than a frame may name, the stores used longest ago are left out: what comes
        again from there is known all the same.
        """
        out: dict[bytes, list[tuple[int, int]]] = {}
        room = limits.LINK_FLOW_POSITIONS
        for (store_id, name), positions in reversed(self._sets.items()):
            if name == queue and positions.count:
                room -= positions.count
                if room < 0:
                    break
                out[store_id] = positions.ranges()
        return out

    def encode(self) -> bytes:
        """The value to store; b"" when nothing is accepted: the key can go."""
        out: list[bytes] = []
        for (store_id, queue), positions in self._sets.items():
            if positions.count:
                name = queue.encode("utf-8")
                ranges = encode_ranges(positions.ranges())
                out.append(store_id + varint(len(name)) + name + varint(len(ranges)) + ranges)
        return bytes((FORMAT,)) + b"".join(out) if out else b""


def decode_positions(value: bytes) -> ReceivedPositions:
    """What `ReceivedPositions.encode` made. Raises SpoolError for anything else but b""."""
    accepted = ReceivedPositions()
    if not value:
        return accepted
    try:
        if value[0] != FORMAT:
            raise SpoolError(f"bridge positions in format {value[0]}", "corrupt")
        pos = 1
        end = len(value)
        while pos < end:
            store_id = value[pos : pos + STORE_ID_BYTES]
            size, at = read_varint(value, pos + STORE_ID_BYTES, end)
            queue = value[at : at + size].decode("utf-8")
            length, at = read_varint(value, at + size, end)
            pos = at + length
            if pos > end:
                raise SpoolError("bridge positions that are cut off", "corrupt")
            positions = accepted.of(store_id, queue)
            for first, count in decode_ranges(value, at, pos):
                positions.fill(first, count)
    except (ProtocolError, UnicodeDecodeError) as error:
        raise SpoolError(f"bridge positions that cannot be read: {error}", "corrupt") from error
    return accepted

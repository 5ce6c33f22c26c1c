"""What a bridge has taken from the queue that it is bound to, as the store is to know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from vpnrouter.bridges.accepted import Accepted, Positions
    from vpnrouter.core.guaranteed.spool import Spool


@final
class Taken:
    """Changes `accepted`, which is stored under `key`. `is_open` while a flow stands."""

    __slots__ = ("_dirty", "_key", "_positions", "_spool", "accepted")

    def __init__(self, spool: Spool, key: bytes, accepted: Accepted) -> None:
        self.accepted = accepted
        self._spool = spool
        self._key = key
        self._positions: Positions | None = None
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
        """A flow stands; `settled` are ranges that its sender has settled."""
        self._positions = self.accepted.of(store_id, queue)
        self.forget(settled)

    def close(self) -> None:
        """No flow stands; what was taken is remembered."""
        self._positions = None

    def has(self, position: int) -> bool:
        """True when this message was taken before."""
        return self._positions is not None and position in self._positions

    def add(self, position: int) -> None:
        """A message is in the unit being built."""
        if self._positions is not None:
            self._positions.add(position)
        self._dirty = True

    def take_back(self, position: int) -> None:
        """The message is not in the unit after all."""
        if self._positions is not None:
            self._positions.remove(position, 1)

    def forget(self, ranges: list[tuple[int, int]]) -> None:
        """The sender never sends these again."""
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

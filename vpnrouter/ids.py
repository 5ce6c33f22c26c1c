"""Identifiers that must be unique without coordination.

A trace id is 128 bits, as W3C trace context wants it: the high half is drawn once per process by the
edge and handed in, the low half counts. A message id is the low half alone.
"""

from typing import Final, final

_MASK: Final = (1 << 64) - 1


@final
class IdSource:
    """Hands out ids; one per router. `seed` is 64 random bits drawn by the caller."""

    __slots__ = ("_next", "high")

    def __init__(self, seed: int) -> None:
        self.high = (seed & _MASK) or 1
        self._next = 0

    def next(self) -> int:
        """The next message id: 1, then 2, then 3."""
        self._next += 1
        return self._next & _MASK

"""Identifiers that must be unique without coordination.

A trace id is 128 bits, as W3C trace context wants it: the high half is drawn once per process by the
edge and handed in, the low half counts. A message id is drawn from the count by a secret.
"""

from hashlib import shake_128
from struct import Struct
from typing import Final, final

_HIGH_MASK: Final = (1 << 62) - 1
"""Of the 64 bits of a trace id's high half two are 0: compiled code keeps such a number without an object for it."""

_ID_MASK: Final = (1 << 61) - 1

_BLOCK: Final = 256
"""Message ids that one hash gives: a hash for each would cost more than the rest of a traced message."""

_IDS: Final = Struct(f">{_BLOCK}Q")


@final
class IdSource:
    """Hands out ids; one per router. `seed` is 64 random bits drawn by the caller."""

    __slots__ = ("_block", "_drawn", "_next", "_secret", "high")

    def __init__(self, seed: int) -> None:
        self.high = (seed & _HIGH_MASK) or 1
        self._next = 0
        self.draw_by(self.high.to_bytes(8, "big"))

    def draw_by(self, secret: bytes) -> None:
        """Make message ids that cannot be predicted without `secret`. Call this before the first one."""
        self._secret = secret
        self._block = -1
        self._drawn: list[int] = []

    def next(self) -> int:
        """The next number: 1, then 2, then 3."""
        self._next += 1
        return self._next

    def message_id(self, number: int) -> int:
        """The message id of what `next` gave `number`: below 2**61, and never 0, which means none.

        Without the secret, ids look random to a remote, however many it has seen. Otherwise it could predict ids and
        bring messages of its own under them first, so that the true ones would be taken for copies. Ids of two
        routers are equal so rarely that a receiver does not remember both.
        """
        block = number // _BLOCK
        if block != self._block:
            drawn = shake_128(self._secret + block.to_bytes(8, "big")).digest(_IDS.size)
            self._drawn = [(each & _ID_MASK) or 1 for each in _IDS.unpack(drawn)]
            self._block = block
        return self._drawn[number % _BLOCK]

    def new_message_id(self) -> int:
        """A message id like no other in the mesh."""
        return self.message_id(self.next())

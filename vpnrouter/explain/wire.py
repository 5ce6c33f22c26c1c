"""A connection between two routers in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection

_ALL: Final = 1 << 40


@final
class Wire:
    """Both ends of one connection; `pump` carries what they have to say."""

    def __init__(self, dialed: Connection, accepted: Connection) -> None:
        self._ends = (dialed, accepted)
        self._over = [False, False]

    @property
    def over(self) -> bool:
        """Whether both ends know that the connection is gone."""
        return all(self._over)

    def pump(self) -> bool:
        """Carry everything to the other side; False when neither end had anything."""
        moved = False
        for index, sender in enumerate(self._ends):
            receiver = self._ends[1 - index]
            data = take_all(sender)
            if data:
                moved = True
                if not receiver.closing:
                    receiver.feed(data)
            if sender.closing and not sender.outbox.size and not self._over[index]:
                moved = True
                self._end(index, "closed")
                if not self._over[1 - index]:
                    self._end(1 - index, "closed by peer")
        return moved

    def _end(self, index: int, reason: str) -> None:
        self._over[index] = True
        self._ends[index].lost(reason)


def take_all(connection: Connection) -> bytes:
    """All bytes that wait to leave over a connection that has no socket."""
    outbox = connection.outbox
    data = outbox.take(_ALL)
    outbox.dirty = False
    return data

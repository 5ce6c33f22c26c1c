"""Connections before login by address, and the bytes that they hold.

At a bound, the address that holds most makes room.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.outbox import Channel


@final
class PendingConnections:
    """Connections before login by address, each as the channel that can end it.

    There are at most `most` of them, and `most_of_address` of one address. The oldest one makes room, or with a `seed`
    a random one: where a login takes several round trips, honest clients that come faster would otherwise always close
    one another's connections.
    """

    __slots__ = ("_by_count", "_drawn", "_greatest", "_of", "count", "most", "most_of_address")

    def __init__(self, most: int, most_of_address: int, seed: int = 0) -> None:
        self.most = most
        self.most_of_address = most_of_address
        self.count = 0
        self._drawn = seed & 0x7FFF_FFFF
        self._of: dict[str, dict[Channel, None]] = {}
        # Addresses by their number of connections, so that the one with most is found at once.
        self._by_count: dict[int, dict[str, None]] = {}
        self._greatest = 0

    def of(self, origin: str) -> int:
        """The number of connections from one address."""
        own = self._of.get(origin)
        return 0 if own is None else len(own)

    def has(self, origin: str, channel: Channel) -> bool:
        """Whether this connection from `origin` is one of them."""
        own = self._of.get(origin)
        return own is not None and channel in own

    def victim(self, origin: str) -> Channel | None:
        """The connection that has to make room for one more from `origin`, None while there is a place."""
        if self.of(origin) >= self.most_of_address:
            return self._one(origin)
        return self.of_greatest() if self.count >= self.most else None

    def of_greatest(self) -> Channel | None:
        """A connection of the address that has most of them, None where there is none."""
        if self.count == 0:
            return None
        return self._one(next(iter(self._by_count[self._greatest])))

    def _one(self, origin: str) -> Channel:
        own = self._of[origin]
        index = 0
        if self._drawn:
            # The generator of Park and Miller is good enough: an attacker must only not know who is next.
            self._drawn = self._drawn * 48_271 % 0x7FFF_FFFF
            index = self._drawn % len(own)
        return next(islice(own, index, None))

    def enter(self, origin: str, channel: Channel) -> None:
        """Add a connection; the caller has made room."""
        own = self._of.get(origin)
        if own is None:
            own = self._of[origin] = {}
        own[channel] = None
        self.count += 1
        self._moved(origin, len(own) - 1, len(own))

    def leave(self, origin: str, channel: Channel) -> None:
        """Remove a connection that has logged in or has gone."""
        own = self._of.get(origin)
        if own is None or channel not in own:
            return
        del own[channel]
        self.count -= 1
        if not own:
            del self._of[origin]
        self._moved(origin, len(own) + 1, len(own))

    def _moved(self, origin: str, before: int, after: int) -> None:
        if before:
            known = self._by_count[before]
            del known[origin]
            if not known:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[origin] = None
        self._greatest = max(self._greatest, after)
        while self._greatest and self._greatest not in self._by_count:
            self._greatest -= 1


@final
class BufferedBytes:
    """Bytes that connections hold for now, bounded by `most` together; beyond, the largest one is closed.

    That is the largest one of the address that holds most.
    """

    __slots__ = ("_held", "_of", "most", "total")

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0
        self._held: dict[Connection, int] = {}
        self._of: dict[str, int] = {}

    def hold(self, connection: Connection, size: int) -> None:
        """Note that the connection holds `size` bytes now, 0 for none. This may end this connection."""
        held = self._held
        change = size - held.get(connection, 0)
        if size:
            held[connection] = size
        elif change:
            del held[connection]
        self.total += change
        origin = connection.origin
        of_origin = self._of.get(origin, 0) + change
        if of_origin:
            self._of[origin] = of_origin
        else:
            self._of.pop(origin, None)
        while self.total > self.most:
            largest = self._largest()
            if largest is None:
                break
            largest.crowded_out()
            if largest in held:
                self.hold(largest, 0)

    def _largest(self) -> Connection | None:
        most = 0
        origin = ""
        for text, size in self._of.items():
            if size > most:
                most = size
                origin = text
        most = 0
        found: Connection | None = None
        for connection, size in self._held.items():
            if size > most and connection.origin == origin:
                most = size
                found = connection
        return found

"""Bounds what waits for a peer of the management API: at a bound the oldest that waits goes, never the newest.

Whoever waits longest is the most likely to be hostile or gone: an honest client sends its request within a round trip.
What the router itself works at is never ended for another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.pre_login_limits import PendingConnections

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Channel

MADE_ROOM = "too many at once: the one that had waited longest made room"


@final
class Places:
    """`most` places, each of which is held by something that waits for its peer or that the router works at.

    The holders are counted by address. At the bound the address with most that wait loses its oldest.
    """

    __slots__ = ("_holders", "_most", "_waiting")

    def __init__(self, most: int, most_of_address: int = 0) -> None:
        self._most = most
        self._waiting = PendingConnections(most, most_of_address or most)
        self._holders: dict[Channel, str] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: Channel, origin: str, *, waits: bool = False) -> bool:
        """Give `holder` a place, for which another one may be cut. False if the router works at all of them.

        `origin` is the key of its address (`origin_of`); `waits`: it waits for its peer from the beginning.
        """
        victim = self._waiting.victim(origin)
        if victim is None and len(self._holders) >= self._most:
            victim = self._waiting.of_greatest()
            if victim is None:
                return False
        if victim is not None:
            self.leave(victim)
            victim.cut(MADE_ROOM)
        self._holders[holder] = origin
        if waits:
            self.waits(holder)
        return True

    def waits(self, holder: Channel) -> None:
        """Note that `holder` waits for its peer from now on, if it did not before."""
        origin = self._holders.get(holder)
        if origin is not None and not self._waiting.has(origin, holder):
            self._waiting.enter(origin, holder)

    def works(self, holder: Channel) -> None:
        """Note that the router works at what `holder` asked for."""
        origin = self._holders.get(holder)
        if origin is not None:
            self._waiting.leave(origin, holder)

    def leave(self, holder: Channel) -> None:
        """Take the place back, if `holder` has one."""
        self.works(holder)
        self._holders.pop(holder, None)

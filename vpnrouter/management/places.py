"""Bounds what waits for a peer of the management API: at a bound the oldest that waits goes, never the newest.

Whoever waits longest is the most likely to be hostile or gone: an honest client sends its request within a round trip.
What the router itself works at is never ended for another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

from vpnrouter.core.pending_connections import PendingConnections

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
        origin = self._holders.pop(holder, None)
        if origin is not None:
            self._waiting.leave(origin, holder)


@final
class Turns:
    """Lets those that ask begin one at a time: addresses take turns, each with its newest.

    Between two of them all other tasks run once, so a flood of requests delays its own requests alone. The oldest of an
    address has probably given up when its turn comes.
    """

    __slots__ = ("_asked", "_of")

    def __init__(self) -> None:
        self._of: dict[str, dict[Channel, trio.Event]] = {}
        self._asked = trio.Event()

    async def wait(self, holder: Channel, origin: str) -> None:
        """Return when it is the turn of `holder`, or when it has left."""
        turn = trio.Event()
        self._of.setdefault(origin, {})[holder] = turn
        self._asked.set()
        try:
            await turn.wait()
        finally:
            self.leave(holder, origin)

    def leave(self, holder: Channel, origin: str) -> None:
        """Let `holder` wait no longer, if it does."""
        own = self._of.get(origin)
        turn = None if own is None else own.pop(holder, None)
        if turn is not None:
            turn.set()
        if own is not None and not own:
            del self._of[origin]

    async def give(self) -> None:
        """Give turns until cancelled."""
        while True:
            while self._of:
                origin = next(iter(self._of))
                own = self._of.pop(origin)
                _, turn = own.popitem()
                turn.set()
                if own:
                    self._of[origin] = own
                await trio.lowlevel.checkpoint()
            self._asked = trio.Event()
            await self._asked.wait()

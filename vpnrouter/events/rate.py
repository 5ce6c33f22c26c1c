"""So that one flood does not hide everything else: a bound on the lines of each name."""

from __future__ import annotations

from typing import Final, final

SECOND_NS: Final = 1_000_000_000


@final
class RateLimit:
    """Lets `most` events a second of each name through, and counts the others. 0 lets all through.

    Names come from the table, so there are not many. Times are nanoseconds of one clock.
    """

    __slots__ = ("_began_ns", "_count", "_suppressed", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._began_ns: dict[str, int] = {}
        self._count: dict[str, int] = {}
        self._suppressed: dict[str, int] = {}

    def admits(self, name: str, now_ns: int) -> bool:
        """Whether an event of this name may be told now; one that may not is counted."""
        if not self.most:
            return True
        began_ns = self._began_ns.get(name)
        # A wall clock may have been set back.
        if began_ns is None or not 0 <= now_ns - began_ns < SECOND_NS:
            self._began_ns[name] = now_ns
            self._count[name] = 0
        count = self._count[name]
        if count >= self.most:
            self._suppressed[name] = self._suppressed.get(name, 0) + 1
            return False
        self._count[name] = count + 1
        return True

    def suppressed(self) -> dict[str, int]:
        """How many events of each name were not told since this was asked last."""
        found = self._suppressed
        self._suppressed = {}
        return found

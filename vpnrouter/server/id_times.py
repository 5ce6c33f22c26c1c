"""When messages were spooled, from their ids alone: ids rise with time."""

from __future__ import annotations

from bisect import bisect_right
from typing import final

from vpnrouter.management import limits


@final
class IdTimes:
    """Remembers when which id was the next one. Ages are as exact as the looks are close together.

    What was there before the first look is as old as that, at least.
    """

    def __init__(self, most: int = limits.METRICS_ID_TIMES) -> None:
        self._ids: list[int] = []
        self._times_ns: list[int] = []
        self._most = most

    def note(self, next_id: int, now_ns: int) -> None:
        """At `now_ns` the next message was to get `next_id`. Neither goes back."""
        ids = self._ids
        if len(ids) > 1 and ids[-1] == next_id:
            # Nothing came in between: messages from here on are younger. The first look stays.
            self._times_ns[-1] = now_ns
            return
        if len(ids) >= self._most:
            # The first and the last one stay.
            del ids[1:-1:2]
            del self._times_ns[1:-1:2]
        ids.append(next_id)
        self._times_ns.append(now_ns)

    def knows(self, number: int) -> bool:
        """Whether the message `number` came after the first look."""
        return bool(self._ids) and number >= self._ids[0]

    def age_ns(self, number: int, now_ns: int) -> int:
        """How long ago the message `number` was spooled, at most: since the last look that did not know it."""
        at = bisect_right(self._ids, number) - 1
        if not self._times_ns:
            return 0
        return max(0, now_ns - self._times_ns[max(0, at)])

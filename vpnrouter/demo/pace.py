"""How fast to publish: never further ahead of the slowest subscriber than the routers hold for it.

Direct messages are delivered at most once: what a slow client leaves lying beyond its outbox is
discarded. The flights therefore leave in windows, and the next window waits until everybody has
counted what the older ones must bring.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

WINDOW: Final = 2_000
"""Flights in a window."""

AHEAD: Final = 3
"""Windows on their way at a time: some 2 MB for one client, half of what an outbox takes."""

STALL_S: Final = 10.0
"""Seconds without any message after which a subscriber that lacks some is no longer waited for: they
are lost, which the summary tells."""


class Pace:
    """What may be published, from what has been received.

    `means[name][k]` is how many messages the first k flights mean for that subscriber.
    """

    def __init__(self, means: Mapping[str, npt.NDArray[np.int64]], flights: int) -> None:
        self._means = dict(means)
        self._flights = flights
        self._received = dict.fromkeys(means, 0)
        self._moved_s = 0.0
        self.granted = 0
        self.given_up: set[str] = set()

    def received(self, totals: Mapping[str, int], now_s: float) -> None:
        """Take note of what subscribers have counted."""
        for name, total in totals.items():
            if total != self._received[name]:
                self._received[name] = total
                self._moved_s = now_s

    def grant(self, now_s: float) -> int | None:
        """The flight up to which may now be published, when that is further than before."""
        if self.granted == self._flights:
            return None
        behind = max(0, self.granted - (AHEAD - 1) * WINDOW)
        if not self._has_all(behind, now_s):
            return None
        self._moved_s = now_s
        self.granted = min(self._flights, self.granted + WINDOW)
        return self.granted

    def complete(self, now_s: float) -> bool:
        """Whether everything is published and everybody has what is due, or is given up."""
        return self.granted == self._flights and self._has_all(self._flights, now_s)

    def _has_all(self, flights: int, now_s: float) -> bool:
        lacking = {
            name
            for name, means in self._means.items()
            if self._received[name] < means[flights] and name not in self.given_up
        }
        if lacking and now_s - self._moved_s >= STALL_S:
            self.given_up |= lacking
            lacking = set()
        return not lacking

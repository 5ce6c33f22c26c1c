"""Counts how often something took how long: what a histogram of metrics is made of."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from vpnrouter.units import SECOND_NS


class Histogram(NamedTuple):
    """How often a duration was at most each of `bounds` seconds; `counts` has one more, for all beyond."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float
    """Sum of all, in seconds."""


BOUNDS_S: Final[tuple[float, ...]] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds."""

TURN_BOUNDS_S: Final[tuple[float, ...]] = (0.0001, 0.00025, 0.0005, *BOUNDS_S[:-1])
"""Seconds; for turns of the event loop, of which nearly all are short."""


@final
class Durations:
    """Counts durations by `bounds`, seconds in ascending order. One thread adds; another may read meanwhile."""

    def __init__(self, bounds: Sequence[float] = BOUNDS_S) -> None:
        self._bounds_ns = [int(bound * SECOND_NS) for bound in bounds]
        self._least_ns = self._bounds_ns[0]
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one more duration; below 0 it counts as 0."""
        if duration_ns <= self._least_ns:
            self._counts[0] += 1
        else:
            self._counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self._total_ns += max(0, duration_ns)

    def histogram(self) -> Histogram:
        """Return the histogram of all durations until now."""
        return Histogram(self._bounds, tuple(self._counts), self._total_ns / SECOND_NS)

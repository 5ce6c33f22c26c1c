"""How long things took, counted by bounds, as metrics show it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

from vpnrouter.management.metrics.family import Histogram

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds."""

_BOUNDS_NS: Final = tuple(int(bound * 1e9) for bound in BOUNDS_S)


@final
class Durations:
    """Counts durations. One thread adds; another may read meanwhile."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._total_ns = 0

    def add(self, duration_ns: int) -> None:
        """One more; below 0 counts as 0."""
        self._counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self._total_ns += max(0, duration_ns)

    def histogram(self) -> Histogram:
        """All until now."""
        return Histogram(BOUNDS_S, tuple(self._counts), self._total_ns / 1e9)

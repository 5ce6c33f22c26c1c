"""Computes percentiles and medians."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: the smallest value such that `share` (0 < share ≤ 1) of all are at
    most it.

    `ordered` is sorted and not empty. No value is invented between two measured ones.
    """
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(ages_ns: Sequence[int]) -> dict[str, float]:
    """p50, p99, p99.9 and the greatest, in microseconds, and how many there were."""
    ordered = sorted(ages_ns)
    if not ordered:
        return {"count": 0}
    return {
        "p50_us": percentile(ordered, 0.5) / 1e3,
        "p99_us": percentile(ordered, 0.99) / 1e3,
        "p999_us": percentile(ordered, 0.999) / 1e3,
        "max_us": ordered[-1] / 1e3,
        "count": len(ordered),
    }


def median_of(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Field-wise median of rows; a field counts where it is present."""
    fields = {field: None for row in rows for field in row}
    return {
        field: statistics.median(row[field] for row in rows if field in row) for field in fields
    }

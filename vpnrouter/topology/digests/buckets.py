"""Durations as small integers: buckets that are a thirty-second of a power of two wide.

A histogram over them gives any percentile within 1.6 % of its value, and histograms add up, which
percentiles do not. Negative durations, which clocks that disagree by more than the way takes do
give, have buckets of their own below zero, so nothing is lost or hidden.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

STEPS: Final = 32
"""Buckets for each doubling."""

_EXACT: Final = STEPS
"""Durations below so many nanoseconds have a bucket each."""


def bucket(duration_ns: Column) -> Column:
    """The bucket of a duration in nanoseconds (bigint): an int; null stays null.

    A duration of 2**k to 2**(k+1) nanoseconds, k at least 5, is in bucket 32 * (k - 4) plus the five bits
    below its highest one.
    """
    size = F.abs(duration_ns)
    # The exponent comes from a logarithm, and just below a power of two it may be one too much.
    guess = F.floor(F.log2(F.greatest(size, F.lit(_EXACT)))).cast("int")
    power = guess - F.when(_shifted(size, guess) == 0, 1).otherwise(0)
    shift = power - 5
    above = (_shifted(size, shift) + shift * STEPS).cast("int")
    found = F.when(size < _EXACT, size.cast("int")).otherwise(above)
    return F.when(duration_ns < 0, -found - 1).otherwise(found)


def _shifted(value: Column, bits: Column) -> Column:
    return F.call_function("shiftright", value, bits)


def middle_ns(number: int) -> int:
    """The duration, in nanoseconds, in the middle of bucket `number`."""
    if number < 0:
        return -max(1, middle_ns(-number - 1))
    if number < _EXACT:
        return number
    shift = number // STEPS - 1
    mantissa = number - shift * STEPS
    return (mantissa << shift) + ((1 << shift) >> 1)


def percentiles(counts: Iterable[tuple[int, int]], shares: Sequence[float]) -> list[int | None]:
    """The duration, in nanoseconds, that the given shares (0.0 to 1.0) of a histogram do not exceed.

    `counts` are buckets and how many fell into each, in any order; None for each share of an empty one.
    """
    ordered = sorted((number, count) for number, count in counts if count > 0)
    total = sum(count for _, count in ordered)
    found: list[int | None] = []
    for share in shares:
        rank = max(1.0, share * total)
        passed = 0
        value: int | None = None
        for number, count in ordered:
            passed += count
            if passed >= rank:
                value = middle_ns(number)
                break
        found.append(value)
    return found

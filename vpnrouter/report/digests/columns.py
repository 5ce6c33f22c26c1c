"""Defines the columns that digests share: sums, buckets of durations, ends of bridges, clock corrections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.flows.clocks import comparable, offset_of

STEPS: Final = 32
"""Buckets for each doubling."""

_EXACT: Final = STEPS
"""Durations below so many nanoseconds have a bucket each."""


def with_bucket(frame: DataFrame, duration_ns: Column) -> DataFrame:
    """Return the frame with the column `bucket`, an int, of a duration in nanoseconds (bigint); null stays null.

    A duration of 2**k to 2**(k+1) nanoseconds, k at least 5, is in bucket 32 * (k - 4) plus the five bits
    below its highest one.
    """
    # Column by column: in one expression, Spark works out each part anew wherever it stands.
    size, power, shift = F.col("size_ns"), F.col("power"), F.col("shift")
    return (
        frame.withColumn("took_ns", duration_ns)
        .withColumn("size_ns", F.abs("took_ns"))
        .withColumn("power", F.floor(F.log2(F.greatest(size, F.lit(_EXACT)))).cast("int"))
        # The exponent comes from a logarithm, and just below a power of two it may be one too much.
        .withColumn("shift", power - F.when(_shifted(size, power) == 0, 6).otherwise(5))
        .withColumn("above", (_shifted(size, shift) + shift * STEPS).cast("int"))
        .withColumn("number", F.when(size < _EXACT, size.cast("int")).otherwise(F.col("above")))
        .withColumn(
            "bucket", F.when(F.col("took_ns") < 0, -F.col("number") - 1).otherwise(F.col("number"))
        )
    )


def _shifted(value: Column, bits: Column) -> Column:
    return F.call_function("shiftright", value, bits)


def middle_ns(number: int) -> int:
    """Return the duration, in nanoseconds, in the middle of bucket `number`."""
    if number < 0:
        return -max(1, middle_ns(-number - 1))
    if number < _EXACT:
        return number
    shift = number // STEPS - 1
    mantissa = number - shift * STEPS
    return (mantissa << shift) + ((1 << shift) >> 1)


def percentiles(counts: Iterable[tuple[int, int]], shares: Sequence[float]) -> list[int | None]:
    """Return the duration, in nanoseconds, that the given shares (0.0 to 1.0) of a histogram do not exceed.

    `counts` are buckets and how many fell into each, in any order; None for each share of an empty one.
    """
    ordered = sorted((number, count) for number, count in counts if count > 0)
    total = sum(count for _, count in ordered)
    values: list[int | None] = []
    for share in shares:
        rank = max(1.0, share * total)
        passed = 0
        value: int | None = None
        for number, count in ordered:
            passed += count
            if passed >= rank:
                value = middle_ns(number)
                break
        values.append(value)
    return values


def stands_for() -> Column:
    """Return how many trace rows a row counts as: its `count`, else one."""
    return F.coalesce(F.col("count"), F.lit(1).cast("long"))


def counted() -> Column:
    """Return the digest column `count`."""
    return F.sum(stands_for()).alias("count")


def weighed() -> Column:
    """Return the digest column `weight`: null when the weight of one row is not known."""
    known = F.count("weight") == F.count(F.lit(1))
    return F.when(known, F.sum("weight")).alias("weight")


def payload() -> Column:
    """Return the digest column `bytes`."""
    return F.coalesce(F.sum(F.col("size_bytes") * stands_for()), F.lit(0)).alias("bytes")


def stretch_of(time_ns: Column, width_ns: int) -> Column:
    """Return the begin of the stretch of `width_ns` since 1970 in which a time lies."""
    return time_ns - F.pmod(time_ns, F.lit(width_ns))


def ends(remote: Column) -> dict[str, Column]:
    """Return the columns of EDGE for a row that the remote router wrote (`remote` true) or the local one."""
    return {
        "from_router": F.when(remote, F.col("router")).otherwise(F.col("peer_router")),
        "from_vpn": F.when(remote, F.col("vpn")).otherwise(F.col("peer_vpn")),
        "to_router": F.when(remote, F.col("peer_router")).otherwise(F.col("router")),
        "to_vpn": F.when(remote, F.col("peer_vpn")).otherwise(F.col("vpn")),
        "bridge": F.coalesce(F.col("bridge"), F.lit("")),
    }


class Corrections:
    """How far the routers' clocks are apart, from rows of CLOCKS; nothing is known without any.

    Of a router that can be compared with none, nothing is taken off: half of a difference would be a wrong one.
    """

    def __init__(self, clocks: Iterable[Mapping[str, Any]] = ()) -> None:
        rows = [dict(row) for row in clocks]
        self._ahead = {name: offset for name, offset in offset_of(rows).items() if offset}
        self._group = comparable(rows)

    def between(self, first: Column, second: Column) -> Column:
        """Return how far the clock of the router `second` is ahead of that of `first`, nanoseconds; 0 where the two
        cannot be compared.
        """
        if not self._ahead:
            return F.lit(0).cast("long")
        difference = self._ahead_of(second) - self._ahead_of(first)
        return F.when(self.compare(first, second), difference).otherwise(F.lit(0).cast("long"))

    def compare(self, first: Column, second: Column) -> Column:
        """Return whether times of these two routers compare, as `one_clock` says of names."""
        same = F.coalesce(first == second, F.lit(False))
        if not self._group:
            return same
        groups = F.create_map(*(F.lit(text) for pair in self._group.items() for text in pair))
        grouped = F.element_at(groups, first) == F.element_at(groups, second)
        return same | F.coalesce(grouped, F.lit(False))

    def _ahead_of(self, router: Column) -> Column:
        pairs = [F.lit(one) for name, offset in self._ahead.items() for one in (name, offset)]
        known = F.element_at(F.create_map(*pairs), router)
        return F.coalesce(known.cast("long"), F.lit(0).cast("long"))

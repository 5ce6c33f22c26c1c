"""Defines the columns that digests share: sums, buckets of durations, ends of bridges, clock corrections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.flows.clocks import comparable, steady

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
        self._ahead = {row["router"]: row["offset_ns"] for row in steady(rows) if row["offset_ns"]}
        self._group = comparable(rows)
        self._errors: dict[str, int] = {}
        self._moving: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            if row["offset_ns"] is not None:
                router = row["router"]
                self._errors[router] = max(self._errors.get(router, 0), row["error_ns"])
                if row["first_ns"] is not None:
                    self._moving.setdefault(router, []).append(row)

    def between(self, first: Column, second: Column) -> list[Column]:
        """Return the columns that `took` needs of each pair of routers: `ahead_ns`, how far the clock of `second` is
        ahead of that of `first`, and, where clocks moved, `first_clock` and `second_clock`, null for those that did
        not. 0 and null where the two cannot be compared.
        """
        comparable_ = self.compare(first, second)
        difference = self._ahead_of(second) - self._ahead_of(first)
        ahead = F.when(comparable_, difference).otherwise(F.lit(0).cast("long"))
        if not self._moving:
            return [ahead.alias("ahead_ns")]
        clocks = F.create_map(
            *(
                part
                for router, rows in self._moving.items()
                for part in (F.lit(router), F.array(*map(_stretch, rows)))
            )
        )
        apart = comparable_ & (first != second)
        return [
            ahead.alias("ahead_ns"),
            F.when(apart, F.element_at(clocks, first)).alias("first_clock"),
            F.when(apart, F.element_at(clocks, second)).alias("second_clock"),
        ]

    def are_needed(self) -> Column:
        """Return whether the columns of `between` say anything."""
        ahead = F.col("ahead_ns") != 0
        if not self._moving:
            return ahead
        return ahead | F.col("first_clock").isNotNull() | F.col("second_clock").isNotNull()

    def took(self, first_ns: Column, second_ns: Column) -> Column:
        """Return nanoseconds from a time by the first router's clock to one by the second's, in a frame with the
        columns of `between`. Null at times for which nobody knows what a clock that moved showed.
        """
        took = second_ns - first_ns - F.coalesce(F.col("ahead_ns"), F.lit(0))
        if not self._moving:
            return took
        return (
            took
            + _ahead_at(F.col("first_clock"), first_ns)
            - _ahead_at(F.col("second_clock"), second_ns)
        )

    def compare(self, first: Column, second: Column) -> Column:
        """Return whether times of these two routers compare, as `one_clock` says of names."""
        same = F.coalesce(first == second, F.lit(False))
        if not self._group:
            return same
        groups = F.create_map(*(F.lit(text) for pair in self._group.items() for text in pair))
        grouped = F.element_at(groups, first) == F.element_at(groups, second)
        return same | F.coalesce(grouped, F.lit(False))

    def error(self, first: Column, second: Column) -> Column:
        """Return the bound of the error of the time between two routers, nanoseconds; null where they do not compare,
        0 within one.
        """
        same = F.coalesce(first == second, F.lit(False))
        nothing = F.lit(0).cast("long")
        if not self._errors:
            return F.when(same, nothing)
        both = _of(self._errors, first) + _of(self._errors, second)
        return F.when(same, nothing).when(self.compare(first, second), both)

    def _ahead_of(self, router: Column) -> Column:
        nothing = F.lit(0).cast("long")
        return F.coalesce(_of(self._ahead, router), nothing) if self._ahead else nothing


def settled_by(
    corrections: Corrections, durations: DataFrame, first: str, second: str
) -> DataFrame:
    """Return durations between two routers, columns of the frame, with `corrected` and `error_ns`."""
    routers = F.col(first), F.col(second)
    return durations.withColumns(
        {"corrected": corrections.compare(*routers), "error_ns": corrections.error(*routers)}
    )


def _of(figures: Mapping[str, int], router: Column) -> Column:
    pairs = [F.lit(one) for name, figure in figures.items() for one in (name, figure)]
    return F.element_at(F.create_map(*pairs), router).cast("long")


def _stretch(row: Mapping[str, Any]) -> Column:
    whole = (
        F.lit(row[name]).cast("long").alias(name) for name in ("first_ns", "last_ns", "offset_ns")
    )
    return F.struct(*whole, F.lit(row["drift_ppm"]).alias("drift_ppm"))


def _ahead_at(clock: Column, at_ns: Column) -> Column:
    """Return how far a clock of `Corrections.between` is ahead when it shows a time: 0 for one that did not move, null
    where that is not known.
    """
    there = F.get(F.filter(clock, lambda one: (one.first_ns <= at_ns) & (at_ns < one.last_ns)), 0)
    since = (at_ns - there["first_ns"]) * there["drift_ppm"] / F.lit(1e6)
    ahead = there["offset_ns"] + since.cast("long")
    return F.when(clock.isNull(), F.lit(0).cast("long")).otherwise(ahead)

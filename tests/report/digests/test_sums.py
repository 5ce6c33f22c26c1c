"""Columns that digests share: sums, buckets of durations, ends of bridges, corrections of clocks."""

from __future__ import annotations

from random import Random
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.digests import sums
from vpnrouter.report.digests.sums import Corrections, ends
from vpnrouter.report.schema import EDGE


def test_a_bucket_holds_durations_within_three_percent(spark: SparkSession) -> None:
    """The middle of a duration's bucket is within 1.6 % of it, on both sides of zero and of powers of two; a longer
    duration never has a smaller bucket, and what is not known has none.
    """
    random = Random(7)
    durations = [0, 1, -1, 31, 32, 33, -32, -33, 2**40, 2**40 - 1, -(2**40), 2**62 - 1]
    durations += [2**power + off for power in range(5, 62) for off in (-1, 0, 1)]
    durations += [random.randrange(-(10**12), 10**12) for _ in range(500)]
    durations += [random.randrange(-(2**k), 2**k) for k in range(1, 60) for _ in range(20)]
    frame = spark.createDataFrame([(one,) for one in [*durations, None]], "ns bigint")
    unknown, *rows = (
        frame.select("ns", sums.bucket(F.col("ns")).alias("bucket")).sort("ns").collect()
    )
    assert tuple(unknown) == (None, None)
    assert len(rows) == len(durations)
    numbers = [row["bucket"] for row in rows]
    assert numbers == sorted(numbers)
    for row in rows:
        middle = sums.middle_ns(row["bucket"])
        assert abs(middle - row["ns"]) <= max(1, abs(row["ns"]) / 64), row
        assert (row["ns"] < 0) == (row["bucket"] < 0)


def test_percentiles_are_those_of_the_ranks() -> None:
    """A percentile is the middle of the bucket in which the sample of its rank lies."""
    counts = [(20, 1), (3, 98), (10, 1), (99, 0)]
    assert sums.percentiles(counts, [0.0, 0.5, 0.98, 0.99, 1.0]) == [3, 3, 3, 10, 20]
    assert sums.percentiles([], [0.5, 0.9]) == [None, None]


def clock(router: str, reference: str | None, offset_ns: int | None) -> dict[str, Any]:
    """A row of CLOCKS."""
    return {"router": router, "reference": reference, "offset_ns": offset_ns, "error_ns": 1}


def between(spark: SparkSession, clocks: list[dict[str, Any]], *pairs: str) -> list[int]:
    """What is taken off a time from the first router of each pair, "first second", to the second."""
    ends = [tuple(pair.split()) for pair in pairs]
    frame = spark.createDataFrame(ends, "first string, second string").coalesce(1)
    found = Corrections(clocks).between(F.col("first"), F.col("second"))
    return [row[0] for row in frame.select(found).collect()]


def test_corrections_of_clocks(spark: SparkSession) -> None:
    """The difference of two offsets within a group, nothing across groups; who is not known counts as the reference."""
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("c", "a", -5), clock("d", None, None)]
    pairs = ("a b", "b a", "b c", "c c", "d b", "e d")
    assert between(spark, clocks, *pairs) == [40, -40, -45, 0, 40, 0]
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("x", "x", 0), clock("y", "x", 7)]
    assert between(spark, clocks, "a b", "y x", "b y", "a y", "b e", "e y") == [40, -7, 0, 0, 0, 0]
    assert between(spark, [], "a b") == [0]
    assert between(spark, [clock("a", "a", 0), clock("b", "a", 0)], "a b") == [0]


def test_both_ends_name_one_edge(spark: SparkSession) -> None:
    """An edge runs from the remote message VPN to the local one, whoever wrote the row."""
    rows = [(True, "edge", "blue", "core", "yellow"), (False, "core", "yellow", "edge", "blue")]
    frame = spark.createDataFrame(
        rows, "remote boolean, router string, vpn string, peer_router string, peer_vpn string"
    ).withColumn("bridge", F.lit(None).cast("string"))
    of = ends(F.col("remote"))
    found = frame.select(*(of[name] for name in EDGE)).collect()
    assert [tuple(row) for row in found] == [("edge", "blue", "core", "yellow", "")] * 2


def test_sums(spark: SparkSession) -> None:
    """A row that stands for many counts as those; one weight that is not known makes the sum unknown; a stretch holds
    its begin and not its end, before 1970 as well.
    """
    rows = [("a", None, 2.0, 10), ("a", 3, 4.0, 10), ("b", None, None, 1), ("b", 1, 1.0, None)]
    frame = spark.createDataFrame(rows, "k string, count bigint, weight double, size_bytes bigint")
    found = frame.groupBy("k").agg(sums.counted(), sums.weighed(), sums.payload()).orderBy("k")
    assert [tuple(row) for row in found.collect()] == [("a", 4, 6.0, 40), ("b", 2, None, 1)]
    times = spark.createDataFrame([(0,), (9,), (10,), (-1,)], "ns bigint")
    stretches = times.select(sums.stretch_of(F.col("ns"), 10)).collect()
    assert [row[0] for row in stretches] == [0, 0, 10, -10]

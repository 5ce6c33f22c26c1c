"""vpnrouter.report.digests.sums: what two clocks add to a time."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.digests.sums import Corrections

pytestmark = pytest.mark.spark


def clock(router: str, reference: str | None, offset_ns: int | None) -> dict[str, Any]:
    """A row of CLOCKS."""
    return {"router": router, "reference": reference, "offset_ns": offset_ns, "error_ns": 1}


def between(spark: SparkSession, clocks: list[dict[str, Any]], *pairs: str) -> list[int]:
    """What is taken off a time from the first router of each pair, "first second", to the second."""
    ends = [tuple(pair.split()) for pair in pairs]
    frame = spark.createDataFrame(ends, "first string, second string").coalesce(1)
    found = Corrections(clocks).between(F.col("first"), F.col("second"))
    return [row[0] for row in frame.select(found).collect()]


def test_one_group(spark: SparkSession) -> None:
    """The difference of two offsets; a router that is not known counts as the reference."""
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("c", "a", -5), clock("d", None, None)]
    pairs = ("a b", "b a", "b c", "c c", "d b", "e d")
    assert between(spark, clocks, *pairs) == [40, -40, -45, 0, 40, 0]


def test_groups_that_cannot_be_compared(spark: SparkSession) -> None:
    """Within a group the difference, across groups nothing, and nothing of routers in none."""
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("x", "x", 0), clock("y", "x", 7)]
    assert between(spark, clocks, "a b", "y x", "b y", "a y", "b e", "e y") == [40, -7, 0, 0, 0, 0]


def test_nothing_known(spark: SparkSession) -> None:
    """Without clocks, and with clocks that agree."""
    assert between(spark, [], "a b") == [0]
    assert between(spark, [clock("a", "a", 0), clock("b", "a", 0)], "a b") == [0]

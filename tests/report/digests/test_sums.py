import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.digests import sums

pytestmark = pytest.mark.spark


def test_sums(spark: SparkSession) -> None:
    """A row that stands for many counts as those; one weight that is not known makes the sum unknown."""
    rows = [("a", None, 2.0, 10), ("a", 3, 4.0, 10), ("b", None, None, 1), ("b", 1, 1.0, None)]
    frame = spark.createDataFrame(rows, "k string, count bigint, weight double, size_bytes bigint")
    found = frame.groupBy("k").agg(sums.counted(), sums.weighed(), sums.payload()).orderBy("k")
    assert [tuple(row) for row in found.collect()] == [("a", 4, 6.0, 40), ("b", 2, None, 1)]


def test_stretches_begin_at_1970(spark: SparkSession) -> None:
    """A stretch holds its begin and not its end, before 1970 as well."""
    frame = spark.createDataFrame([(0,), (9,), (10,), (-1,)], "ns bigint")
    found = frame.select(sums.stretch_of(F.col("ns"), 10)).collect()
    assert [row[0] for row in found] == [0, 0, 10, -10]

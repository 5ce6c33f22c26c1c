from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.digests import sums

pytestmark = pytest.mark.spark


def test_a_bucket_holds_durations_within_three_percent(spark: SparkSession) -> None:
    """The middle of a duration's bucket is within 1.6 % of it, on both sides of zero and of powers of two."""
    random = Random(7)
    durations = [0, 1, -1, 31, 32, 33, -32, -33, 2**40, 2**40 - 1, -(2**40), 2**62 - 1]
    durations += [2**power + off for power in range(5, 62) for off in (-1, 0, 1)]
    durations += [random.randrange(-(10**12), 10**12) for _ in range(500)]
    frame = spark.createDataFrame([(one,) for one in durations], "ns bigint")
    found = frame.select("ns", sums.bucket(F.col("ns")).alias("bucket")).collect()
    assert len(found) == len(durations)
    for row in found:
        middle = sums.middle_ns(row["bucket"])
        assert abs(middle - row["ns"]) <= max(1, abs(row["ns"]) / 64), row
        assert (row["ns"] < 0) == (row["bucket"] < 0)


def test_buckets_keep_the_order(spark: SparkSession) -> None:
    """A longer duration never has a smaller bucket."""
    random = Random(11)
    durations = sorted({random.randrange(-(2**k), 2**k) for k in range(1, 60) for _ in range(20)})
    frame = spark.createDataFrame([(one,) for one in durations], "ns bigint")
    rows = frame.select("ns", sums.bucket(F.col("ns")).alias("bucket")).orderBy("ns").collect()
    numbers = [row["bucket"] for row in rows]
    assert numbers == sorted(numbers)


def test_null_has_no_bucket(spark: SparkSession) -> None:
    """What is not known falls into no bucket."""
    frame = spark.createDataFrame([(None,)], "ns bigint")
    assert frame.select(sums.bucket(F.col("ns")).alias("bucket")).first() == (None,)


def test_percentiles_are_those_of_the_ranks() -> None:
    """A percentile is the middle of the bucket in which the sample of its rank lies."""
    counts = [(20, 1), (3, 98), (10, 1), (99, 0)]
    assert sums.percentiles(counts, [0.0, 0.5, 0.98, 0.99, 1.0]) == [3, 3, 3, 10, 20]
    assert sums.percentiles([], [0.5, 0.9]) == [None, None]

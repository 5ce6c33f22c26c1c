import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.digests.sums import EDGE, ends

pytestmark = pytest.mark.spark


def test_both_ends_name_one_edge(spark: SparkSession) -> None:
    """An edge runs from the remote message VPN to the local one, whoever wrote the row."""
    rows = [(True, "edge", "blue", "core", "yellow"), (False, "core", "yellow", "edge", "blue")]
    frame = spark.createDataFrame(
        rows, "remote boolean, router string, vpn string, peer_router string, peer_vpn string"
    ).withColumn("bridge", F.lit(None).cast("string"))
    of = ends(F.col("remote"))
    found = frame.select(*(of[name] for name in EDGE)).collect()
    assert [tuple(row) for row in found] == [("edge", "blue", "core", "yellow", "")] * 2

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.report.follow import router_of, stream_of
from vpnrouter.report.inventory import Span
from vpnrouter.trace.parquet import partition_value

pytestmark = pytest.mark.spark

NAMES = ["edge", "a b", "x+y", "r:1", "100%", "zürich", "a%20b", "q?=*"]


def test_the_router_stands_in_the_path(spark: SparkSession, tmp_path: Path) -> None:
    """Every name that a router may have comes out of the path of its files, as Spark gives it."""
    for name in NAMES:
        folder = tmp_path / "date=2026-03-01" / f"router={partition_value(name)}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"ts_ns": [1]}), folder / "part-1.parquet")
    files = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path))
    found = files.select(router_of(F.col("_metadata.file_path"))).collect()
    assert sorted(row[0] for row in found) == sorted(NAMES)


def test_a_single_file_cannot_be_followed(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing more will come into it."""
    file = tmp_path / "part-1.parquet"
    file.touch()
    with pytest.raises(OperationError, match="only a directory"):
        stream_of(spark, [file], Span())

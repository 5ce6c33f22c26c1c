"""Frames that Spark keeps for a while: what is held meanwhile, and that nothing is afterwards."""

import pytest
from py4j.finalizer import ThreadSafeFinalizer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.engine.kept import KeptFrames


def held(spark: SparkSession) -> int:
    """How many frames Spark keeps rows of."""
    java = spark._jsc
    assert java is not None
    return len(java.sc().getRDDStorageInfo())


@pytest.mark.parametrize("small", [False, True], ids=["as they are", "small"])
def test_rows_are_made_once_and_let_go(spark: SparkSession, small: bool) -> None:
    """Random rows stay the same within the block, in one partition if they are few; Python holds nothing of Java's."""
    before = held(spark)
    frame = spark.range(0, 1_000, 1, 4).withColumn("drawn", F.rand())
    with KeptFrames(small=small) as kept:
        rows = kept.keep(frame)
        assert sorted(rows.collect()) == sorted(rows.collect())
        assert held(spark) == before + 1
        assert len({row[0] for row in rows.select(F.spark_partition_id()).collect()}) == (
            1 if small else 4
        )
    assert held(spark) == before


def test_nothing_of_ended_queries_is_held(spark: SparkSession) -> None:
    """Java can forget their plans, and the tables that they sent to all tasks, when a block ends by an error too."""
    with KeptFrames():
        pass
    handles = len(ThreadSafeFinalizer.finalizers)

    def ask() -> None:
        with KeptFrames() as kept:
            few = kept.keep(spark.range(3))
            for _ in range(5):
                few.join(F.broadcast(few), "id").groupBy("id").count().collect()
            assert len(ThreadSafeFinalizer.finalizers) > handles
            raise InterruptedError

    with pytest.raises(InterruptedError):
        ask()
    with KeptFrames():
        pass
    assert len(ThreadSafeFinalizer.finalizers) <= handles


@pytest.mark.parametrize("key", ["number", "text"])
def test_a_few_rows_for_all_tasks_take_little_memory(spark: SparkSession, key: str) -> None:
    """A table of three rows is not a page of 64 MB, which a report with fifty of them could not hold."""

    def used() -> int:
        java = spark._jvm
        assert java is not None
        java.java.lang.System.gc()
        runtime = java.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())

    rows = spark.range(3).select(
        F.col("id").alias("number"), F.col("id").cast("string").alias("text")
    )
    before = used()
    joined = [rows.join(F.broadcast(rows), key) for _ in range(3)]
    assert [len(frame.collect()) for frame in joined] == [3, 3, 3]
    assert used() - before < 60_000_000

"""vpnrouter.report.spark: how far Spark is."""

import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.spark import Quiet, watched


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def stage(self, name: str) -> None:
        """Not called by the watcher."""
        raise AssertionError(name)

    def tasks(self, done: int, total: int) -> None:
        """Keep it."""
        self.seen.append((done, total))


@pytest.mark.spark
def test_tasks_are_told_while_a_job_runs(spark: SparkSession) -> None:
    """A job of some seconds is seen with its tasks; the watcher ends with the block."""
    heard = Heard()
    with watched(spark, heard):
        # Each of four tasks spins in Java until its second is over.
        slow = "java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', 400000000L)"
        spark.range(0, 4, 1, 4).selectExpr(slow).collect()
    assert heard.seen
    assert all(0 <= done <= total == 4 for done, total in heard.seen)
    count = len(heard.seen)
    spark.range(10).collect()
    assert len(heard.seen) == count


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The default listener writes nothing."""
    Quiet().stage("nodes")
    Quiet().tasks(1, 2)
    assert capsys.readouterr() == ("", "")

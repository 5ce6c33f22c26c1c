"""Sessions that Spark's own settings shape, that somebody else began, and servers that are not there."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.report.build import ReportRequest, build_report
from vpnrouter.report.engine.session import SparkSettings, connected_session

PROGRAM = """
import json, sys
from vpnrouter.report.engine.session import spark_session
with spark_session(sys.argv[1], conf=json.loads(sys.argv[2]), short=True) as spark:
    conf = spark.sparkContext.getConf()
    keys = ("spark.master", "spark.driver.memory", "spark.executor.memory", "spark.serializer",
        "spark.dynamicAllocation.enabled", "spark.sql.shuffle.partitions", "spark.ui.enabled")
    said = {key: conf.get(key) for key in keys}
    said["zone"] = spark.conf.get("spark.sql.session.timeZone")
    print(json.dumps(said))
"""

OURS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "1400m",
    "spark.executor.memory": "1g",
    "spark.serializer": None,
    "spark.dynamicAllocation.enabled": None,
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "zone": "UTC",
}

DEFAULTS = """
# A comment, and both ways to write a setting.
spark.master local[1]
spark.driver.memory=1g
spark.executor.memory   3g
spark.serializer org.apache.spark.serializer.KryoSerializer
spark.sql.session.timeZone Asia/Tokyo
spark.sql.shuffle.partitions 17
"""

KRYO = "org.apache.spark.serializer.KryoSerializer"
SAID = {
    "defaults": {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "3g",
        "spark.serializer": KRYO,
        "spark.sql.shuffle.partitions": "17",
    },
    "arguments": {
        "spark.master": "local[3]",
        "spark.driver.memory": "900m",
        "spark.dynamicAllocation.enabled": "false",
        "spark.sql.shuffle.partitions": "5",
    },
    "variables": {"spark.executor.memory": None},
    "options": {
        "spark.master": "local[2]",
        "spark.driver.memory": "1100m",
        "spark.serializer": KRYO,
        "spark.sql.shuffle.partitions": "3",
    },
}
"""What differs from OURS, by where it was said."""

ENVIRONMENTS = {
    "defaults": {},
    "arguments": {
        "PYSPARK_SUBMIT_ARGS": "--master local[3] --driver-memory 900m --conf"
        " spark.dynamicAllocation.enabled=false --conf spark.sql.shuffle.partitions=5 pyspark-shell"
    },
    "variables": {"SPARK_EXECUTOR_MEMORY": "3g"},
    "options": {},
}
OPTIONS = (
    '{"spark.driver.memory": "1100m", "spark.sql.shuffle.partitions": "3",'
    f' "spark.serializer": "{KRYO}"}}'
)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("where", SAID)
def test_settings_of_others_are_kept(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a file of defaults, the environment or an option says; the zone of times is the report's alone."""
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(DEFAULTS if where == "defaults" else "")
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    for key, value in ENVIRONMENTS[where].items():
        monkeypatch.setenv(key, value)
    options = ("local[2]", OPTIONS) if where == "options" else ("", "{}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == OURS | SAID[where]


@pytest.mark.long
def test_a_session_that_there_is(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A report works in it, leaves its settings as they were, and does not end it; a master of its own is refused."""
    tracefiles.write(tmp_path / "traces", "edge", [tracefiles.row("ingress", 0, "blue", topic="a")])
    asked = ReportRequest(traces=[str(tmp_path / "traces")], output=str(tmp_path / "out"))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert build_report(asked).rows == 1
        assert build_report(asked, session=spark).rows == 1
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert spark.range(3).count() == 3
    assert not (tmp_path / "out" / "spark.log").exists()
    master = ReportRequest(
        traces=asked.traces, output=asked.output, spark=SparkSettings(master="local")
    )
    with pytest.raises(OperationError, match="--master: Spark runs already"):
        build_report(master)


@pytest.mark.parametrize(
    "url",
    [
        "sc://",
        "sc://;token=secret",
        "host:15002",
        "http://host",
        "sc://127.0.0.1:99999",
        "sc:host",
        "",
    ],
)
def test_an_address_of_no_server(url: str) -> None:
    """One line says how to write one."""
    with (
        pytest.raises(
            OperationError, match="is no address of a Spark Connect server: write sc://"
        ) as told,
        connected_session(SparkSettings(connect=url)),
    ):
        pass
    assert "secret" not in str(told.value)


def test_a_server_that_is_not_there() -> None:
    """It is told at once: Spark's client would try for minutes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"sc://127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(OperationError, match=f"^cannot reach {url}: Connection refused$"),
            connected_session(SparkSettings(connect=f"{url}/;token=secret")),
        ):
            pass

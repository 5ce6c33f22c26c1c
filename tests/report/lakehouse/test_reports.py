"""Whole reports with tables of Iceberg and Delta."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from vpnrouter.report.build import ReportRequest, build_report
from vpnrouter.report.engine import session
from vpnrouter.report.lakehouse.formats import DELTA, FOLDER, ICEBERG, packages_for
from vpnrouter.report.lakehouse.iceberg import NAMESPACE
from vpnrouter.report.output import SCHEMAS, newest_table
from vpnrouter.report.schema import DATE
from vpnrouter.report.traces.span import parse_span

DAY_NS = 86_400_000_000_000


def traces(files: ModuleType, root: Path) -> None:
    """Messages over a bridge on 12 June, and fewer on the 13th."""
    for day, count in enumerate((20, 8)):
        edge, core = [], []
        for number in range(1, count + 1):
            at_edge, at_core = files.crossing(number, sent_ns=1_000, received_ns=51_000)
            edge += at_edge
            core += at_core
        for router, rows in (("edge", edge), ("core", core)):
            later = [{**row, "ts_ns": row["ts_ns"] + day * DAY_NS} for row in rows]
            files.write(root, router, later, sample=1.0, part=day)


@pytest.mark.long
def test_a_report_each_day(
    spark: SparkSession,
    tracefiles: ModuleType,
    reader: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Two days, the first of them twice: every table has what the Parquet files of both days have."""
    traces(tracefiles, tmp_path / "traces")
    output = tmp_path / "out"
    for since, until in (
        ("2013-06-12", "2013-06-13"),
        ("2013-06-13", None),
        ("2013-06-12", "2013-06-13"),
    ):
        build_report(
            ReportRequest(
                traces=[str(tmp_path / "traces")],
                output=str(output),
                span=parse_span(since, until, 0),
                formats=frozenset({"parquet", ICEBERG, DELTA}),
            ),
            session=spark,
        )
    places = {ICEBERG: output / FOLDER / NAMESPACE, DELTA: output / FOLDER}
    for name in ("nodes", "edges", "usage", "changes", "growth", "advice"):
        history = spark.read.parquet(str(output / "tables" / name)).toArrow().to_pylist()
        days = {str(row[DATE]) for row in history}
        assert days == (set() if name == "changes" else {"2013-06-12", "2013-06-13"}), name
        expected = sorted(({**row, DATE: str(row[DATE])} for row in history), key=order)
        for form, place in places.items():
            found = reader(form, place / name)
            assert sorted(found["rows"], key=order) == expected, (form, name)
            assert found["states"] == 3, (form, name)
    for place in places.values():
        assert {path.name for path in place.iterdir()} - {NAMESPACE} == SCHEMAS.keys()
    assert newest_table(output, "nodes").num_rows == 2


def order(row: dict[str, Any]) -> str:
    """A key of a row for sorting, whatever the order of its columns."""
    return repr(sorted(row.items(), key=lambda item: item[0]))


def test_packages_that_nobody_gave_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those of an option or of Spark's file of defaults; not those that came as a jar, or under another name."""
    both = packages_for({ICEBERG, DELTA, "html"})
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)

    def loaded(**conf: str) -> list[str]:
        launch = SparkConf(loadDefaults=False)
        launch.setAll([(f"spark.jars{key}", value) for key, value in conf.items()])
        session._add_packages(launch, both)
        text = launch.get("spark.jars.packages", "") or ""
        return [name.split(":")[1] for name in text.split(",") if name]

    kernel = ["delta-kernel-api", "delta-kernel-defaults"]
    iceberg = "iceberg-spark-runtime-4.1_2.13"
    assert loaded() == [*kernel, iceberg]
    assert loaded(**{".packages": "a:b:1"}) == ["b", *kernel, iceberg]
    assert loaded(**{".packages": "io.delta:delta-spark_4.2_2.13:4.4.0"}) == [
        *("delta-spark_4.2_2.13", iceberg)
    ]
    assert loaded(**{"": "/x/iceberg-spark-runtime-4.0_2.13-1.10.0.jar"}) == kernel
    (tmp_path / "spark-defaults.conf").write_text("# x\n\nspark.jars.packages = c:d:2\n")
    assert loaded() == ["d", *kernel, iceberg]
    (tmp_path / "jars" / "delta-kernel-defaults-4.4.0.jar").touch()
    assert loaded() == ["d", "delta-kernel-api", iceberg]
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages org:iceberg-spark-runtime-4.1:1 x")
    assert loaded() == ["d", "delta-kernel-api"]


def test_what_spark_has_is_not_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the packages ask for besides, and what others do not want, is left out."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    launch = SparkConf(loadDefaults=False).set("spark.jars.excludes", "a:b")
    session._add_packages(launch, packages_for({DELTA}))
    excluded = (launch.get("spark.jars.excludes") or "").split(",")
    assert excluded[0] == "a:b"
    assert "org.apache.hadoop:hadoop-client-runtime" in excluded
    plain = SparkConf(loadDefaults=False)
    session._add_packages(plain, packages_for({"html", "json", "parquet"}))
    assert plain.getAll() == []

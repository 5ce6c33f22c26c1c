"""`vpnrouter report` on clusters of Spark and on object stores: the same tables everywhere."""

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pyspark
import pytest

import vpnrouter
from vpnrouter.testing.s3_server import HANG

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOME = Path(pyspark.__file__).parent
READER = Path(__file__).parents[2] / "report" / "lakehouse" / "peer" / "read.py"
NO_PYTHON = {"PYSPARK_PYTHON": "/nowhere/python"}

JOB = """
import sys
import threading
from vpnrouter.report.build import ReportRequest, build_report
build_report(ReportRequest(traces=[sys.argv[1]], output=sys.argv[2]))
"""


def test_a_cluster_gives_the_same_report(
    cluster: Any, report: Any, tables: Any, mesh: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    """Every table is that of a local run; the executors need no Python."""
    report(mesh, tmp_path / "far", "--master", cluster.url, env=NO_PYTHON)
    assert tables(tmp_path / "far") == expected


def test_an_object_store(
    store: Any, report: Any, mesh: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    """Traces are read there, and the report is written there, as on this machine."""
    traces = store.take(mesh, "simple")
    done = report(traces, "s3a://traces/simple-report", conf=store.settings())
    assert store.tables("s3a://traces/simple-report") == expected
    assert "s3a://traces/simple-report/report.html" in done.stdout
    tables = pafs.FileSelector(f"{store.bucket}/simple-report/tables/nodes", recursive=True)
    (file,) = [found for found in store.files.get_file_info(tables) if found.is_file]
    assert re.search(r"/date=\d{4}-\d\d-\d\d/nodes\.parquet$", file.path)
    assert file.size > 0
    report(traces, tmp_path / "mixed", conf=store.settings())
    assert (tmp_path / "mixed" / "nodes.json").read_text() == expected["nodes.json"]


@pytest.mark.long
def test_lakehouse_tables_in_an_object_store(
    store: Any, report: Any, mesh: Path, lakehouse: Path, expected: dict[str, str]
) -> None:
    """Iceberg and Delta there, twice the same day, as programs of other makers read them: each table has the rows of
    one report, in two states.
    """
    traces = store.take(mesh, "harbour")
    output = "s3a://traces/harbour-report"
    conf = store.settings()
    conf["spark.jars"] += "".join(f",{jar}" for jar in lakehouse.glob("jars/*.jar"))
    for _ in range(2):
        report(traces, output, "--format", "delta,iceberg", conf=conf)
    places = {"delta": f"s3://{store.bucket}/harbour-report/lakehouse/edges"}
    metadata = f"{store.bucket}/harbour-report/lakehouse/vpnrouter/edges/metadata"
    states = [
        found.path
        for found in store.files.get_file_info(pafs.FileSelector(metadata))
        if found.path.endswith(".metadata.json")
    ]
    places["iceberg"] = f"s3a://{max(states)}"
    for form, place in places.items():
        done = subprocess.run(
            [
                *(lakehouse / "reader/bin/python", READER, form, place),
                json.dumps(store.options(form)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        day = {"date": "2013-06-12"}
        assert found["rows"] == [row | day for row in json.loads(expected["edges.json"])], form
        assert found["states"] == 2


@pytest.mark.long
def test_spark_submit(
    cluster: Any,
    store: Any,
    spark_environ: dict[str, str],
    mesh: Path,
    expected: dict[str, str],
    tmp_path: Path,
) -> None:
    """A program of two lines, with the master and the settings that spark-submit was given, and from s3a:// to s3a://."""
    traces = store.take(mesh, "submitted")
    job = tmp_path / "job.py"
    job.write_text(JOB)
    settings = store.settings() | {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
    }
    done = subprocess.run(
        [
            str(HOME / "bin" / "spark-submit"),
            *("--master", cluster.url),
            *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
            *(str(job), traces, "s3a://traces/submitted-report"),
        ],
        env=spark_environ
        | {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(vpnrouter.__file__).parents[1]),
            "PATH": os.environ["PATH"],
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert store.tables("s3a://traces/submitted-report") == expected
    assert any("Asked to launch executor" in line for line in cluster.workers[0].lines)


@pytest.mark.long
def test_spark_connect(
    connect: str,
    store: Any,
    report: Any,
    tables: Any,
    mesh: Path,
    expected: dict[str, str],
    tmp_path: Path,
) -> None:
    """No Java of this machine is used; the server reads its own paths and URIs."""
    bare = {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin"}
    report(store.take(mesh, "connected"), tmp_path / "far", "--connect", connect, env=bare)
    assert tables(tmp_path / "far") == expected
    report(mesh, tmp_path / "plain", "--connect", connect, env=bare)
    assert tables(tmp_path / "plain") == expected
    beside = ["--connect", connect, "--format", "delta"]
    wrong = report(mesh, tmp_path / "lakehouse", *beside, env=bare, code=2)
    assert "--format delta is written beside Spark's driver" in wrong.stderr
    gone = report("s3a://traces/none", tmp_path / "gone", "--connect", connect, code=1)
    assert "no such trace directory or file: s3a://traces/none" in gone.stderr
    away = report(mesh, "s3a://traces/away", "--connect", connect, code=1)
    assert "is written to a directory of this machine" in away.stderr


@pytest.mark.long
def test_a_worker_that_dies(
    cluster: Any, report: Any, tables: Any, mesh: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    """One of two is killed as soon as it works; the other one does its part as well."""

    def kill() -> None:
        worker = cluster.workers[0]
        worker.said(re.compile("(Asked) to launch executor"))
        worker.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    report(mesh, tmp_path / "far", "--master", cluster.url)
    killing.join()
    assert tables(tmp_path / "far") == expected


def _fault(name: str) -> Callable[[str], int]:
    """What the store does to requests, by their first lines."""
    seen: Counter[str] = Counter()

    def counted(key: str) -> int:
        seen[key] += 1
        return seen[key]

    def lists(line: str) -> bool:
        return "list-type" in line

    def takes_extra(line: str) -> bool:
        return line.startswith("GET") and "router=extra" in line and not lists(line)

    faults: dict[str, Callable[[str], int]] = {
        "throttles": lambda _: 503 if counted("all") % 7 == 0 else 0,
        "denies lists": lambda line: 403 if lists(line) else 0,
        "denies one file": lambda line: 403 if takes_extra(line) else 0,
        # The footer is read with the first request.
        "loses one file": lambda line: 404 if takes_extra(line) and counted(line) > 1 else 0,
        "hangs": lambda line: HANG if lists(line) else 0,
    }
    return faults[name]


ENDS = {
    "denies lists": ("cannot list s3a://traces/", "403"),
    "hangs": ("cannot list s3a://traces/", ""),
}
"""Faults with which there is no report, and what its one line says."""

SET_ASIDE = {"denies one file": "cannot be read: ", "loses one file": "damaged: "}
"""Faults that cost one file, and how the reason begins."""

SOON = {
    # The one that is the default keeps what it has read.
    "input.stream.type": "classic",
    "attempts.maximum": 1,
    "retry.limit": 2,
    "retry.interval": "100ms",
    "connection.timeout": "3s",
    "connection.request.timeout": "3s",
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["throttles", "denies lists", "denies one file", "loses one file", "hangs"]
)
def test_a_store_with_a_fault(
    name: str,
    store: Any,
    proxied: Any,
    report: Any,
    tables: Any,
    tracefiles: Any,
    mesh: Path,
    expected: dict[str, str],
    tmp_path: Path,
) -> None:
    """Each costs what it hits: one file, which is named, or the report, with one line that says why."""
    traces = store.take(mesh, name.replace(" ", "-"))
    if name in SET_ASIDE:
        extra = [tracefiles.row("ingress", 0, "pink", topic="a")]
        tracefiles.write(tmp_path / "extra", "extra", extra)
        store.take(tmp_path / "extra", name.replace(" ", "-"))
    proxy = proxied(_fault(name))
    ends = name in ENDS
    more = SOON if name != "throttles" else {}
    conf = store.settings(proxy.port, **more)
    done = report(traces, tmp_path / "far", conf=conf, code=1 if ends else 0)
    assert proxy.played > 0
    assert "Traceback" not in done.stderr
    if ends:
        told, why = ENDS[name]
        line = done.stderr.splitlines()[-1]
        assert told in line
        assert why in line
        return
    assert tables(tmp_path / "far") == expected
    aside = [line for line in done.stderr.splitlines() if "set aside" in line]
    assert len(aside) == (name in SET_ASIDE)
    if aside:
        assert "router=extra" in aside[0]
        assert f": {SET_ASIDE[name]}" in aside[0]


FILES = 130


@pytest.mark.long
def test_how_often_a_store_is_asked(
    store: Any, proxied: Any, report: Any, tracefiles: Any, tmp_path: Path
) -> None:
    """Of many small files, each is asked for once for its footer, once for what messages have in common, and once for
    all rows: not for each question of the report.
    """
    for part in range(FILES):
        rows = [tracefiles.row("ingress", 100 * part + number, "v") for number in range(5)]
        tracefiles.write(tmp_path / "in", "edge", rows, part=part, sample=1.0)
    traces = store.take(tmp_path / "in", "small")
    gate = proxied(lambda _: 0)
    done = report(traces, tmp_path / "out", "--json", conf=store.settings(gate.port))
    assert json.loads(done.stdout)["rows"] == 5 * FILES
    asked: dict[str, list[str]] = {}
    for line in gate.asked:
        method, target, _ = line.split()
        path = target.partition("?")[0]
        if path.endswith(".parquet"):
            asked.setdefault(path, []).append(method)
    assert len(asked) == FILES
    for methods in asked.values():
        assert methods[0] == "GET", (
            "the footer is read without a question whether the file is there"
        )
        assert methods.count("HEAD") <= 2
        assert len(methods) <= 5, methods

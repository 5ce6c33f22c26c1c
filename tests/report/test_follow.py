"""A report that is kept up to date while routers write traces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertSchemaEqual

from vpnrouter.errors import OperationError
from vpnrouter.report.build import ReportRequest
from vpnrouter.report.digests.columns import Corrections, middle_ns
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.flows.clocks import WHOLE_TIME
from vpnrouter.report.follow import (
    AHEAD,
    FOLDER,
    MANIFEST,
    MESSAGES,
    ROWS,
    DigestStore,
    DigestWriter,
    Follower,
    FollowTimes,
    LateRows,
    doubles,
    hops,
    message_places,
    router_of,
    stream_of,
)
from vpnrouter.report.output import newest_table
from vpnrouter.report.traces.inventory import Inventory
from vpnrouter.report.traces.span import Span
from vpnrouter.trace.parquet import partition_value

MS = 1_000_000
SECOND = 1_000_000_000


class Made:
    """A store, what fills it, and what it told."""

    def __init__(self, spark: SparkSession, folder: Path, span: Span) -> None:
        self.heard: list[Inventory] = []
        self.store = DigestStore(str(folder))
        self.digesting = DigestWriter(spark, self.store, span, SECOND, self.heard.append)
        self._spark = spark

    def rows(self, number: int, *paths: Path) -> None:
        """A batch of the first stream."""
        files = [(path.as_uri(), path.stat().st_size) for path in paths]
        listed = self._spark.createDataFrame(files, "path string, length long")
        self.digesting.rows(listed, number)

    def counts(self, name: str, event: str) -> int:
        """How many trace rows of an event a digest stands for."""
        rows = self.digesting.frame(name).where(f"event = '{event}'").collect()
        return sum(row["count"] for row in rows)


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Callable[..., Made]:
    """Makes a store in the test's folder, or opens it again."""

    def made(span: Span | None = None) -> Made:
        return Made(spark, tmp_path / "out", span or Span())

    return made


def written(files: ModuleType, root: Path, numbers: range, part: int = 0) -> list[Path]:
    """Messages that cross from edge/blue to core/yellow, in a file of each router."""
    edge: list[Any] = []
    core: list[Any] = []
    for number in numbers:
        sent, came = files.crossing(number, sent_ns=MS, received_ns=7 * MS)
        edge += sent
        core += came
    return [
        files.write(root, name, rows, part=part) for name, rows in (("edge", edge), ("co re", core))
    ]


def test_each_batch_counts_once(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A batch adds what its files hold; run again, by this process or by the next, it adds nothing."""
    first = written(tracefiles, tmp_path / "tr aces", range(1, 4))
    made = make()
    assert made.digesting.clocks() == []
    made.rows(0, *first)
    made.rows(0, *first)
    assert (made.store.taken(ROWS), made.store.taken(MESSAGES)) == (0, -1)
    assert [[Path(file.path) for file in one.files] for one in made.heard] == [sorted(first)]
    again = make()
    again.rows(0, *first)
    assert again.heard == []
    again.rows(1, *written(tracefiles, tmp_path / "tr aces", range(4, 6), part=1))
    assert [again.counts("places", one) for one in ("bridge_send", "bridge_receive")] == [5, 5]
    assert again.counts("uses", "deliver") == 5
    (way,) = again.digesting.frame("paths").collect()
    assert (way["router"], way["peer_router"], way["count"]) == ("co re", "edge", 5)
    assert {row["router"] for row in again.digesting.clocks()} == {"co re", "edge"}
    # Many files become one, and say the same.
    again.digesting.compact(1)
    files = {name: len(again.store.files(name)) for name in DIGESTS}
    assert {name for name in DIGESTS if files[name]} == {
        "places",
        "paths",
        "ages",
        "usage",
        "uses",
        "delays",
    }
    assert max(files.values()) == 1
    assert again.counts("places", "bridge_send") == 5
    for name, schema in DIGESTS.items():
        assertSchemaEqual(again.digesting.frame(name).schema, schema)


def test_only_rows_of_the_time_asked_for(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """What was before does not count."""
    made = make(Span(since_ns=tracefiles.START + 3 * SECOND))
    made.rows(0, *written(tracefiles, tmp_path / "traces", range(1, 6)))
    assert made.counts("places", "ingress") == 3


def test_what_cannot_be_read_is_named(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A cut file, one with text for times, one with damaged contents behind a sound footer; the rest counts."""
    sound = written(tracefiles, tmp_path / "traces", range(1, 4))
    rows = [tracefiles.row("ingress", at, "v", topic=f"t{at}") for at in range(3_000)]
    worse = tracefiles.write(tmp_path / "traces", "odd name", rows)
    contents = bytearray(worse.read_bytes())
    contents[8 : len(contents) // 2] = bytes(one ^ 0x5A for one in contents[8 : len(contents) // 2])
    worse.write_bytes(contents)
    assert pq.read_metadata(worse).num_rows == 3_000
    cut = sound[0].parent / "part-00009.parquet"
    cut.write_bytes(b"PAR1")
    foreign = cut.with_name("part-00010.parquet")
    texts = pa.table({"ts_ns": ["soon"], "vpn": ["blue"], "event": ["ingress"]})
    pq.write_table(texts, foreign)
    made = make()
    made.rows(0, cut, foreign, worse, *sound)
    (heard,) = made.heard
    assert [Path(one.path) for one in heard.set_aside] == [cut, foreign, worse]
    assert "column ts_ns is text, expected a whole number" in heard.set_aside[1].reason
    assert [Path(one.path) for one in heard.files] == sorted(sound)
    assert made.counts("places", "ingress") == 3
    made.rows(1, cut)
    assert (made.store.taken(ROWS), made.counts("places", "ingress")) == (1, 3)


def test_a_newer_format_is_refused(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """The batch is not taken, so that a newer program finds it."""
    row = tracefiles.row("ingress", 0, "blue")
    path = tracefiles.write(tmp_path / "traces", "edge", [row], version=99)
    made = make()
    with pytest.raises(OperationError, match="newer"):
        made.rows(0, path)
    assert (made.store.taken(ROWS), made.heard) == (-1, [])


def test_messages_that_are_complete(
    make: Callable[..., Made], frame_of: Callable[..., DataFrame], tracefiles: ModuleType
) -> None:
    """Their times and their copies, each batch once."""
    rows: dict[str, list[Any]] = {"edge": [], "core": []}
    for number in range(1, 4):
        sent, came = tracefiles.crossing(number, sent_ns=MS, received_ns=7 * MS)
        rows["edge"] += sent
        rows["core"] += came
    rows["core"].append(rows["core"][-1])
    made = make()
    for number in (0, 0, 1):
        made.digesting.messages(message_places(frame_of(rows), 10), number)
    assert (made.store.taken(ROWS), made.store.taken(MESSAGES)) == (-1, 1)
    assert made.heard == [Inventory(files=(), set_aside=())] * 2
    (hop,) = made.digesting.frame("hops").collect()
    assert hop["count"] == 6
    assert middle_ns(hop["bucket"]) == pytest.approx(6 * MS, rel=0.02)
    (double,) = made.digesting.frame("doubles").collect()
    assert (double["kind"], double["who"], double["copies"]) == ("deliver", "board", 2)


PATIENCE_S = 240.0
_PROGRAM = "from vpnrouter.cli.app import main; main()"
_OPTIONS = ("--follow", "--every=0.5", "--late=1", "--json", "--output")


class Following:
    """`vpnrouter report --follow` of `traces`, and the summaries that it prints."""

    def __init__(self, traces: Path, output: Path) -> None:
        self.summaries: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._errors = output.with_suffix(".err")
        # As in the session of all tests: rows are few, and to compile what is run a few times takes longer.
        (traces.parent / "spark-defaults.conf").write_text("spark.sql.codegen.wholeStage false\n")
        lightly = "-XX:TieredStopAtLevel=1"
        quick = {"SPARK_CONF_DIR": str(traces.parent), "JAVA_TOOL_OPTIONS": lightly}
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, "report", str(traces), *_OPTIONS, str(output)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **quick},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.summaries.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def last(self) -> dict[str, Any]:
        """The newest summary."""
        return self.summaries[-1]

    def wait_for(self, bridged: int, least: int, output: Path) -> None:
        """Until the report tells of so many crossings, and of the delays of at least so many."""

        def told() -> bool:
            return bool(self.summaries) and (
                self.last["bridged"] == bridged and _samples(output) >= least
            )

        with self._changed:
            while not told():
                assert self._reader.is_alive(), self.errors()
                assert self._changed.wait(PATIENCE_S), (self.summaries[-1:], self.errors())

    def stop(self, *, with_java: bool = False) -> int:
        """Press ^C on its terminal; its exit code. `with_java`: end all processes, as who stops a service does."""
        if with_java:
            for java in _children(self._process.pid):
                os.kill(java, signal.SIGTERM)
            self._process.terminate()
        else:
            os.killpg(self._process.pid, signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        try:
            return self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def errors(self) -> str:
        """What it said on stderr."""
        return self._errors.read_text(encoding="utf-8")


def _children(parent: int) -> list[int]:
    return [
        int(child)
        for tasks in Path(f"/proc/{parent}/task").iterdir()
        for child in (tasks / "children").read_text().split()
    ]


def _write(tracefiles: ModuleType, root: Path, numbers: range, part: int) -> None:
    edge: list[Any] = []
    core: list[Any] = []
    for number in numbers:
        sent, came = tracefiles.crossing(number, sent_ns=1_000, received_ns=2_000_000)
        edge += sent
        core += came
    tracefiles.write(root, "edge", edge, part=part, sample=1.0)
    tracefiles.write(root, "core", core, part=part, sample=1.0)


def _samples(output: Path) -> int:
    edges = newest_table(output, "edges").to_pylist()
    return sum(row["latency_samples"] for row in edges)


@pytest.mark.long
@pytest.mark.spark
def test_a_followed_report(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Files that come in are in the report, each once, over a restart as well. A damaged one is named, and
    one of a newer format ends it in one line.
    """
    traces, output = tmp_path / "traces", tmp_path / "out"
    _write(tracefiles, traces, range(1, 21), 0)
    following = Following(traces, output)
    try:
        following.wait_for(20, 0, output)
        assert (output / "report.html").exists()
    finally:
        code = following.stop(with_java=True)
    assert code == 0, following.errors()
    assert "Traceback" not in following.errors()
    assert following.summaries[-1]["bridged"] == 20
    _write(tracefiles, traces, range(101, 111), 1)
    bad = traces / "date=2013-06-12" / "router=edge" / "part-9.parquet"
    bad.write_bytes(b"PAR1 this is none PAR1")
    again = Following(traces, output)
    try:
        # What entered first is done with when later messages have moved the watermark past it.
        again.wait_for(30, 20, output)
        aside = [one["path"] for one in again.last["set_aside"]]
        assert _samples(output) <= 30, "each is counted once"
        row = tracefiles.row("ingress", 0, "blue", client="c")
        tracefiles.write(traces, "edge", [row], part=7, version=99)
    finally:
        code = again.ended()
    assert code == 1
    assert aside == [str(bad)]
    named = [line for line in again.errors().splitlines() if line.startswith("set aside: ")]
    assert [line.split(": ")[1] for line in named] == [str(bad)], "once, not with each report"
    told = [line for line in again.errors().splitlines() if line.startswith("vpnrouter:")]
    assert len(told) == 1
    assert "newer" in told[0]


CLOCKS = [
    {"router": "edge", "reference": "edge", "offset_ns": 0, "error_ns": 0, **WHOLE_TIME},
    {"router": "core", "reference": "edge", "offset_ns": 2 * MS, "error_ns": 1, **WHOLE_TIME},
]


def _crossing(number: int, bridge: str = "b", copies: int = 1) -> dict[str, list[dict[str, Any]]]:
    """A message from edge/blue to core/yellow in 5 ms, by a clock that is 2 ms ahead there."""
    of = {"trace_id": f"{number:032x}", "message_id": number, "origin_ts_ns": number * MS}
    sent = {**of, "event": "bridge_send", "ts_ns": number * MS, "vpn": "blue", "bridge": bridge}
    came = {**of, "event": "bridge_receive", "ts_ns": (number + 7) * MS, "vpn": "yellow"}
    got = {**of, "event": "deliver", "ts_ns": (number + 8) * MS, "vpn": "yellow", "client": "c"}
    return {
        "edge": [{**sent, "peer_router": "core", "peer_vpn": "yellow"}],
        "core": [
            {**came, "bridge": bridge, "peer_router": "edge", "peer_vpn": "blue"},
            *[got] * copies,
        ],
    }


def test_messages_met(frame_of: Callable[..., DataFrame]) -> None:
    """Times over bridges, what came twice, and what came by two ways."""
    rows: dict[str, list[dict[str, Any]]] = {"edge": [], "core": []}
    for one in (
        _crossing(1),
        _crossing(2, copies=3),
        _crossing(3),
        _crossing(3, bridge="c", copies=0),
    ):
        for router, listed in one.items():
            rows[router] += listed
    together = message_places(frame_of(rows), 10).persist()
    took = {
        row["bridge"]: (middle_ns(row["bucket"]), row["count"])
        for row in hops(together, Corrections(CLOCKS)).collect()
    }
    assert took == {
        "b": (pytest.approx(5 * MS, rel=0.02), 3),
        "c": (pytest.approx(5 * MS, rel=0.02), 1),
    }
    found = {row["kind"]: row.asDict() for row in doubles(together).collect()}
    assert found.keys() == {"deliver", "two_ways"}
    assert (found["deliver"]["who"], found["deliver"]["copies"]) == ("c", 2)
    two = found["two_ways"]
    assert (two["who"], two["other"], two["copies"]) == ("edge/blue:b", "edge/blue:c", 1)


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
        stream_of(spark, [str(file)], Span())


def test_rows_that_came_too_late_are_told() -> None:
    """Each batch of Spark's progress once; what was left out gives a sentence for each reason."""

    def batch(number: int, late: int, ahead: int) -> dict[str, Any]:
        return {
            "batchId": number,
            "stateOperators": [{"numRowsDroppedByWatermark": late}],
            "observedMetrics": {AHEAD: {AHEAD: ahead}},
        }

    rows = LateRows()
    assert not rows.add([batch(0, 0, 0)])
    assert rows.notes() == []
    assert rows.add([batch(0, 0, 0), batch(1, 1, 0)])
    assert not rows.add([batch(0, 0, 0), batch(1, 1, 0)])
    assert rows.add([batch(2, 3, 1_000), {**batch(3, 0, 0), "observedMetrics": {}}])
    late, ahead = rows.notes()
    assert late.startswith("4 rows of the traces came later than --late allows.")
    assert ahead.startswith("1,000 rows of the traces are of messages that entered in the future")


def _table(*values: int) -> pa.Table:
    return pa.table({"count": pa.array(values, pa.int64())})


def _held(store: DigestStore) -> list[int]:
    return [
        value for path in store.files("paths") for value in pq.read_table(path)["count"].to_pylist()
    ]


def test_what_a_crash_left_is_no_part_of_it(tmp_path: Path) -> None:
    """A file that was written and never named in the manifest goes, and its batch is taken when it comes again."""
    DigestStore(str(tmp_path)).add("rows", 0, {"paths": _table(1)})
    pq.write_table(_table(9), tmp_path / FOLDER / "paths-rows-1.parquet")
    store = DigestStore(str(tmp_path))
    assert sorted(path.name for path in (tmp_path / FOLDER).glob("*.parquet")) == [
        "paths-rows-0.parquet"
    ]
    assert store.add("rows", 1, {"paths": _table(2)})
    assert _held(store) == [1, 2]


def test_many_files_become_one(tmp_path: Path) -> None:
    """What was added while the sum was made stays beside it."""
    store = DigestStore(str(tmp_path))
    store.add("rows", 0, {"paths": _table(1)})
    store.add("rows", 1, {"paths": _table(2)})
    old = store.files("paths")
    store.add("rows", 2, {"paths": _table(4)})
    store.replace("paths", old, _table(3))
    assert _held(store) == [3, 4]
    store.replace("paths", store.files("paths"), _table(7))
    assert _held(DigestStore(str(tmp_path))) == [7]
    assert len(list((tmp_path / FOLDER).glob("*.parquet"))) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "files": {}, "batches"'])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    """The error says where it is and what to do."""
    DigestStore(str(tmp_path))
    (tmp_path / FOLDER / MANIFEST).write_text(text)
    with pytest.raises(OperationError, match=r"manifest\.json is damaged"):
        DigestStore(str(tmp_path))


@pytest.mark.parametrize(("form", "told"), [(99, "a newer"), (1, "an older")])
def test_a_store_of_another_format_is_refused(tmp_path: Path, form: int, told: str) -> None:
    """Guessing at it would be wrong without saying so."""
    DigestStore(str(tmp_path))
    other = {"format": form, "batches": {}, "files": {}}
    (tmp_path / FOLDER / MANIFEST).write_text(json.dumps(other))
    with pytest.raises(OperationError, match=f"{told} vpnrouter than this one: remove"):
        DigestStore(str(tmp_path))


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    """Rows that were counted and are gone cannot be had again."""
    store = DigestStore(str(tmp_path))
    store.add("rows", 0, {"paths": _table(1)})
    Path(store.files("paths")[0]).unlink()
    with pytest.raises(OperationError, match=r"lacks paths-rows-0\.parquet"):
        DigestStore(str(tmp_path))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """One line says which."""
    (tmp_path / FOLDER).write_text("a file stands here")
    with pytest.raises(OperationError, match="cannot write to"):
        DigestStore(str(tmp_path))


def test_lakehouse_tables_are_not_followed(tmp_path: Path) -> None:
    """Each of them would keep a state for every few seconds; nothing is started or written."""
    request = ReportRequest(
        traces=[str(tmp_path)], output=str(tmp_path / "out"), formats=frozenset({"html", "delta"})
    )
    follower = Follower(request, FollowTimes(), NoProgress(), lambda _: None)
    with pytest.raises(OperationError, match="lakehouse tables keep each state"):
        follower.run(lambda: True)
    assert not (tmp_path / "out").exists()

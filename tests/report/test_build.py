"""From trace files to a report: the order of the rules, damaged files, and what is refused before Spark starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.report import build, jobs
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.build import ReportRequest, build_report
from vpnrouter.report.change.configured import Configured, ConfiguredBridge, ConfiguredVpn
from vpnrouter.report.digests.digest import Digests
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.engine.session import SparkSettings
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.output import SCHEMAS, newest_table
from vpnrouter.report.schema import rows_of, worst_first
from vpnrouter.report.traces.inventory import Inventory, take_inventory
from vpnrouter.report.traces.span import Span

SECOND: Final = 1_000_000_000
BLUE: Final = ("edge", "blue")
YELLOW: Final = ("core", "yellow")
RED: Final = ("core", "red")


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, digested_mesh: Digests) -> tuple[Analysis, list[str]]:
    """The digests beside configurations, which name another filter and another message VPN, and beside an empty time
    before; and the stages.
    """
    vpns = dict.fromkeys((BLUE, YELLOW, RED), ConfiguredVpn(True, True, "x.yaml:1:1"))
    fares = ConfiguredBridge(
        goal=YELLOW,
        name="fares",
        enabled=True,
        sources=(BLUE,),
        elsewhere=False,
        filters=frozenset({"a/>", "seats/>"}),
        where="x.yaml:2:2",
    )
    mesh = Configured(frozenset({"edge", "core"}), vpns, {(YELLOW, "fares"): fares}, ("a note",))
    tables: dict[str, Any] = {name: [] for name in SCHEMAS}
    before = Analysis(tables=tables, findings=[], topic_count=0, width_ns=SECOND, span=(0, SECOND))
    stages: list[str] = []
    return analyse(spark, digested_mesh, SECOND, stages.append, mesh, before), stages


def test_an_analysis_has_all_tables(analysed: tuple[Analysis, list[str]]) -> None:
    """Each has rows with exactly the columns of its schema, and the stages are named in order."""
    analysis, stages = analysed
    assert analysis.tables.keys() == SCHEMAS.keys()
    for name, rows in analysis.tables.items():
        assert rows, name
        assert all(row.keys() == set(SCHEMAS[name].names) for row in rows), name
    assert (analysis.topic_count, analysis.width_ns, analysis.span[0]) == (8, SECOND, 0)
    assert analysis.seconds == pytest.approx(1_001.2, abs=0.01)
    assert stages[-3:] == ["configurations", "changes", "advice"]


def test_all_rules_have_run(analysed: tuple[Analysis, list[str]]) -> None:
    """Findings of traffic, subscriptions, structure and configurations stand together, the worst first."""
    analysis, _ = analysed
    (edge,) = [row for row in analysis.tables["edges"] if row["bridge"] == "fares"]
    assert (edge["messages"], edge["latency_samples"], edge["configured"]) == (5, 5, True)
    assert analysis.findings == worst_first(analysis.findings)
    assert analysis.tables["findings"] == rows_of(analysis.findings)
    kinds = {one.kind for one in analysis.findings}
    assert {"black_hole", "cut_bridge", "duplicate", "wasted_crossing"} <= kinds
    drift = [one for one in analysis.findings if one.kind.startswith(("missing", "unknown"))]
    assert {(one.kind, one.vpn, one.topic) for one in drift} == {
        ("missing_vpn", "red", None),
        ("missing_subscription", "yellow", "seats/>"),
        ("unknown_bridge", "yellow", None),
        ("unknown_bridge", "blue", None),
    }
    assert analysis.notes[0] == "a note"
    assert "no given file describes router north" in analysis.notes[1]
    changed = {(row["what"], row["change"]) for row in analysis.tables["changes"]}
    assert changed == {(what, "new") for what in ("vpn", "bridge", "finding")}


MINUTE = 60_000_000_000
START = 1_371_000_000_000_000_000


class Stages(NoProgress):
    """Keeps the names of the stages."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str) -> None:
        """Keep it."""
        self.names.append(name)


def traces(files: ModuleType, root: Path, numbers: range = range(1, 21), part: int = 0) -> None:
    """Messages at edge/blue, a second apart, every second of which crosses to core/yellow."""
    edge = []
    core = []
    for number in numbers:
        times = {"sent_ns": 1_000, "received_ns": 51_000} if number % 2 == 0 else {}
        at_edge, at_core = files.crossing(number, f"flights/{number % 3}", **times)
        edge += at_edge
        core += at_core
    at = numbers[0] * 1_000_000_000
    lost = {"reason": "slow", "client": "c", "topic": "flights/0", "mode": "direct"}
    edge.append(files.row("discard", at, "blue", **lost))
    files.write(root, "edge", edge, sample=1.0, part=part)
    files.write(root, "core", core, sample=1.0, part=part)


def spoil(path: Path) -> None:
    """Damage a file's contents and leave its footer whole."""
    contents = bytearray(path.read_bytes())
    for at in range(8, len(contents) // 2):
        contents[at] ^= 0x5A
    path.write_bytes(contents)
    assert pq.read_metadata(path).num_rows > 0


def spoiled(files: ModuleType, root: Path, router: str, *, at_ns: int = 0, part: int = 9) -> Path:
    """A file whose footer is sound and whose contents are not."""
    rows = [files.row("ingress", at_ns + at, "green", topic=f"t{at}") for at in range(3_000)]
    path: Path = files.write(root, router, rows, part=part)
    spoil(path)
    return path


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Reports take the session of all tests; what they asked of theirs is kept."""
    asked: list[dict[str, Any]] = []

    @contextmanager
    def session(master: str, *, log: Path, **more: Any) -> Iterator[SparkSession]:
        log.write_text("Java says something")
        asked.append({"master": master, **more})
        yield spark

    monkeypatch.setattr(build, "spark_session", session)
    monkeypatch.setattr(build, "surrounding_session", lambda: None)
    return asked


def test_a_whole_report(
    shared: list[dict[str, Any]], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Figures, tables and page agree with the rows written; a file that only Spark finds damaged is set aside."""
    traces(tracefiles, tmp_path / "traces")
    empty = tmp_path / "traces/part-2.parquet"
    empty.write_bytes(b"")
    bad = spoiled(tracefiles, tmp_path / "traces", "odd name")
    heard = Stages()
    asked = ReportRequest(
        traces=[str(tmp_path / "traces")],
        output=str(tmp_path / "out"),
        spark=SparkSettings(master="local[7]"),
    )
    summary = build_report(asked, heard)
    assert [(one["master"], one["short"]) for one in shared] == [("local[7]", True)]
    assert heard.names[:2] == ["trace files", "Spark starts"]
    assert heard.names[-2:] == ["advice", "page"]
    assert (heard.names.count("Spark starts"), heard.names.count("advice")) == (1, 1)
    assert (summary.files, summary.rows) == (2, 51)
    assert summary.set_aside == [
        {"path": str(empty), "reason": "empty: no bytes"},
        {"path": str(bad), "reason": "damaged: its contents cannot be read"},
    ]
    assert (summary.ingress, summary.bridged, summary.delivered) == (20, 10, 10)
    assert (summary.discarded, summary.topics, summary.vpns, summary.bridges) == (1, 6, 2, 1)
    assert json.loads((tmp_path / "out/summary.json").read_text()) == asdict(summary)
    (edge,) = newest_table(tmp_path / "out", "edges").to_pylist()
    assert (edge["bridge"], edge["messages"], edge["latency_samples"]) == ("fares", 10, 10)
    assert edge["configured"] is None
    assert json.loads((tmp_path / "out/changes.json").read_text()) == []
    assert edge["latency_p50_ns"] == pytest.approx(50_000, rel=0.02)
    assert sum(row["ingress"] for row in json.loads((tmp_path / "out/timeline.json").read_text()))
    assert Path(summary.page).read_text().startswith("<!doctype html>")
    assert not (tmp_path / "out/spark.log").exists()


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    "scheme",
    [pytest.param("", id="path"), pytest.param("file://", marks=pytest.mark.long, id="URI")],
)
def test_asyncapi_documents(tracefiles: ModuleType, tmp_path: Path, scheme: str) -> None:
    """One for each message VPN, of the time asked for, by the storage of its place."""
    asked = odd_report(tracefiles, tmp_path)
    asked = replace(
        asked,
        span=Span(since_ns=START + 11 * SECOND - 1),
        against=Span(until_ns=START + 11 * SECOND - 1),
        asyncapi=f"{scheme}{tmp_path}/docs",
    )
    heard = Stages()
    build_report(asked, heard)
    assert heard.names.count("channels") == 1
    assert heard.names[-1] == "AsyncAPI documents"
    docs = tmp_path / "docs"
    found = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.yaml"))
    assert found == ["core/yellow.yaml", "edge/blue.yaml"]
    document = yaml.safe_load((docs / "edge/blue.yaml").read_text())
    channel = document["channels"]["topic.flights.0"]
    assert channel["x-vpnrouter-senders"]["clients"]["names"] == [
        {"name": "publisher", "messages-traced": 3}
    ]
    assert channel["x-vpnrouter-receivers"]["bridges"]["names"] == [
        {"name": "fares", "router": "core", "vpn": "yellow", "messages-traced": 2}
    ]
    observed = document["info"]["x-vpnrouter-observed"]
    assert (observed["messages"], observed["sampling"]) == (
        10,
        {"here": 1.0, "least": 1.0, "most": 1.0},
    )


@pytest.mark.long
@pytest.mark.usefixtures("shared")
def test_asyncapi_documents_are_asked_for(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A name that is no part of a path is encoded; without the option there is no document, and no job for it."""
    asked = odd_report(tracefiles, tmp_path)
    build_report(replace(asked, asyncapi=f"{tmp_path}/docs"))
    assert (tmp_path / "docs/odd/%2E.%2Fa%20b.yaml").exists()
    heard = Stages()
    build_report(asked, heard)
    assert not {"channels", "AsyncAPI documents"} & {*heard.names}


def odd_report(tracefiles: ModuleType, tmp_path: Path) -> ReportRequest:
    """Ask for a report on traces of which one message VPN has an odd name."""
    traces(tracefiles, tmp_path / "traces")
    odd = [tracefiles.row("ingress", 5 * SECOND, "../a b", topic="t", mode="direct", client="c")]
    tracefiles.write(tmp_path / "traces", "odd", odd, sample=0.5)
    return ReportRequest(
        traces=[str(tmp_path / "traces")],
        output=str(tmp_path / "out"),
        formats=frozenset({"json"}),
    )


@pytest.mark.usefixtures("shared")
def test_one_time_against_another(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Only rows of the span count, changes are against the other time, and its damaged file is named."""
    root = tmp_path / "traces"
    traces(tracefiles, root)
    traces(tracefiles, root, range(61, 71), part=1)
    up = {"bridge": "fares", "peer_router": "edge", "peer_vpn": "blue"}
    tracefiles.write(root, "core", [tracefiles.row("link_up", 0, "yellow", **up)], part=2)
    bad = spoiled(tracefiles, root, "north", at_ns=0)
    asked = ReportRequest(
        traces=[str(root)],
        output=str(tmp_path / "out"),
        span=Span(since_ns=START + MINUTE),
        against=Span(until_ns=START + MINUTE),
        formats=frozenset({"json"}),
    )
    summary = build_report(asked)
    assert (summary.ingress, summary.bridged, summary.page) == (10, 5, "")
    assert [one["path"] for one in summary.set_aside] == [str(bad)]
    changes = json.loads((tmp_path / "out/changes.json").read_text())
    assert {row["what"] for row in changes} <= {"vpn", "bridge", "topic", "finding"}
    # A link that came up before is up from the begin on, though its row lies outside.
    (link,) = json.loads((tmp_path / "out/links.json").read_text())
    assert (link["up_ns"], link["down_ns"]) == (START + MINUTE, None)
    (edge,) = json.loads((tmp_path / "out/edges.json").read_text())
    assert (edge["messages"], edge["latency_samples"]) == (5, 5)


@pytest.mark.usefixtures("shared")
def test_a_time_in_which_nothing_was(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Files that span the time asked for without a row in it give an empty report, page and all."""
    rows = [tracefiles.row("ingress", at, "blue", topic="t") for at in (0, 10 * MINUTE)]
    tracefiles.write(tmp_path / "traces", "edge", rows)
    span = Span(since_ns=START + MINUTE, until_ns=START + 2 * MINUTE)
    asked = ReportRequest(
        traces=[str(tmp_path / "traces")], output=str(tmp_path / "out"), span=span
    )
    summary = build_report(asked)
    assert (summary.vpns, summary.ingress, summary.errors) == (0, 0, 0)
    assert Path(summary.page).read_text().startswith("<!doctype html>")


def test_damaged_files_end_the_report_when_they_are_all(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound of restarts the report gives up; with no file left it says that."""
    assert jobs.REPORT_DAMAGED_FILES == limits.REPORT_DAMAGED_FILES
    for part in (1, 2):
        spoiled(tracefiles, tmp_path / "traces", "edge", at_ns=part, part=part)
    inventory = take_inventory([str(tmp_path / "traces")])
    asked = ReportRequest(traces=[], output=str(tmp_path / "out"))
    with pytest.raises(OperationError, match="nothing to report on") as refused:
        run_jobs(spark, inventory, asked, NoProgress())
    assert len(str(refused.value).splitlines()) == 3
    monkeypatch.setattr(jobs, "REPORT_DAMAGED_FILES", 1)
    with pytest.raises(OperationError, match="more than 1 damaged trace files"):
        run_jobs(spark, inventory, asked, NoProgress())


def test_nothing_to_report_on_is_said_before_spark_starts(tmp_path: Path) -> None:
    """An empty directory, and one with damaged files only, are refused with every file named."""
    asked = ReportRequest(traces=[str(tmp_path)], output=str(tmp_path / "out"))
    with pytest.raises(OperationError, match="nothing to report on"):
        build_report(asked)
    for number in range(12):
        (tmp_path / f"part-{number:02}.parquet").write_bytes(b"")
    with pytest.raises(OperationError) as refused:
        build_report(asked)
    lines = str(refused.value).splitlines()
    assert len(lines) == 12
    assert lines[1].endswith("part-00.parquet: empty: no bytes")
    assert lines[-1].strip() == "and 2 more"
    assert not (tmp_path / "out").exists()


def test_a_time_without_files_is_said_before_spark_starts(
    tracefiles: ModuleType, tmp_path: Path
) -> None:
    """The time asked for, and the one to compare with."""
    traces(tracefiles, tmp_path / "traces")
    later = ReportRequest(
        traces=[str(tmp_path / "traces")],
        output=str(tmp_path / "out"),
        span=Span(since_ns=START + MINUTE),
    )
    with pytest.raises(OperationError, match="2 files lie before the time asked for"):
        build_report(later)
    compared = ReportRequest(
        traces=[str(tmp_path / "traces")],
        output=str(tmp_path / "out"),
        against=Span(until_ns=START),
    )
    with pytest.raises(OperationError, match="nothing to compare with"):
        build_report(compared)
    assert not (tmp_path / "out").exists()


def test_a_failure_of_spark_keeps_the_log(
    tracefiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, which names the file with what Java said; where there is none, the line alone."""

    @contextmanager
    def session(*_: Any, log: Path, **__: Any) -> Iterator[SparkSession]:
        if kept:
            log.write_text("Java says something")
        raise OperationError("Spark failed: somehow")
        yield

    monkeypatch.setattr(build, "spark_session", session)
    monkeypatch.setattr(build, "surrounding_session", lambda: None)
    traces(tracefiles, tmp_path / "traces")
    asked = ReportRequest(traces=[str(tmp_path / "traces")], output=str(tmp_path / "out"))
    for kept in (False, True):
        with pytest.raises(OperationError) as failed:
            build_report(asked)
        log = tmp_path / "out/spark.log"
        told = f"Spark failed: somehow (Java's output: {log})" if kept else "Spark failed: somehow"
        assert str(failed.value) == told
        assert log.exists() is kept


def test_an_output_that_cannot_be(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A file stands where the report should go: said before Spark starts."""
    traces(tracefiles, tmp_path / "traces")
    (tmp_path / "file").write_text("")
    asked = ReportRequest(traces=[str(tmp_path / "traces")], output=str(tmp_path / "file" / "out"))
    with pytest.raises(OperationError, match="cannot write to"):
        build_report(asked)


def test_groupings_grow_with_the_traces(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A partition per million rows, between the two bounds."""
    traces(tracefiles, tmp_path, range(1, 3))
    (file, *_) = take_inventory([str(tmp_path)]).files

    def partitions(rows: int) -> int:
        grown = type(file)(**{**vars(file), "rows": rows})
        return jobs.partitions_for(Inventory(files=(grown,), set_aside=()))

    assert partitions(5) == limits.REPORT_SHUFFLE_PARTITIONS
    assert partitions(50_000_000) == 50
    assert partitions(10**12) == limits.REPORT_SHUFFLE_PARTITIONS_MOST

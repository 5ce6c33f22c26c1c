"""The files of a report: tables as Parquet and JSON, the summary in figures, and the shapes they are declared in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructType

from vpnrouter.errors import OperationError
from vpnrouter.report import output, schema
from vpnrouter.report.analysis import Analysis
from vpnrouter.report.output import (
    FORMATS,
    SCHEMAS,
    Output,
    Summary,
    contents_of,
    newest_table,
    summary_of,
    write_report,
)
from vpnrouter.report.page.contents import Contents
from vpnrouter.report.schema import (
    ERROR,
    FINDINGS,
    INFO,
    WARNING,
    Finding,
    Rows,
    rows_of,
    struct,
    worst_first,
)
from vpnrouter.report.traces.footers import SetAside, TraceFile
from vpnrouter.report.traces.inventory import Inventory


def test_a_finding_is_a_row_of_the_table() -> None:
    """The same names in the same order; what is not given is null."""
    assert [field.name for field in fields(Finding)] == FINDINGS.names
    (row,) = rows_of([Finding(kind="loop", severity=ERROR, router="a", detail="Round.")])
    assert list(row) == FINDINGS.names
    assert {name: value for name, value in row.items() if value is not None} == {
        "kind": "loop",
        "severity": "error",
        "router": "a",
        "detail": "Round.",
    }


def test_the_worst_comes_first() -> None:
    """By severity, kind, messages, value, then place and topic, whatever the order they come in."""
    ordered = [
        Finding(kind="stalled_bridge", severity=ERROR),
        Finding(kind="black_hole", severity=WARNING, messages=9, router="z"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="a", topic="a"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="a", topic="b"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="b", topic="a"),
        Finding(kind="black_hole", severity=WARNING, router="a"),
        Finding(kind="clock_skew", severity=WARNING, router="z", value=-9.0),
        Finding(kind="clock_skew", severity=WARNING, router="b", value=2.0),
        Finding(kind="clock_skew", severity=WARNING, router="a", value=-1.0),
        Finding(kind="two_ways", severity=WARNING, messages=99),
        Finding(kind="articulation", severity=INFO, messages=1_000),
    ]
    assert worst_first(reversed(ordered)) == ordered


Make = Callable[..., dict[str, Any]]
START = 1_371_000_000_000_000_000
DAY = date(2013, 6, 12)


@pytest.fixture
def analysis(node: Make, edge: Make) -> Analysis:
    """Two message VPNs, a bridge and a finding; all else is empty."""
    seen = {"first_ns": START, "last_ns": START + 60_000_000_000}
    found = [Finding(kind="black_hole", severity=WARNING, router="edge", vpn="blue", topic="é")]
    return Analysis(
        tables={
            **{name: [] for name in SCHEMAS},
            "nodes": [node("edge", "blue", **seen), node("core", "yellow", **seen)],
            "edges": [
                edge("edge/blue", "core/yellow", **seen)
                | {"latency_corrected": True, "configured": None, "cut": True, "centrality": 0.5}
            ],
            "findings": rows_of(found),
        },
        findings=found,
        topic_count=7,
        width_ns=500_000_000,
        span=(START, START + 60_000_000_000),
        notes=["a note"],
    )


def written(output: Path, analysis: Analysis, *formats: str) -> Summary:
    """Write the report; its summary."""
    paged = "html" in formats
    inventory = Inventory(files=(), set_aside=())
    summary = summary_of(inventory, analysis, str(output), 1.5, paged=paged)
    write_report(Output(str(output)), summary, analysis, frozenset(formats))
    return summary


def names(output: Path) -> set[str]:
    """The files of a report."""
    return {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}


def test_every_result_table_is_written() -> None:
    """The tables are those that the schemas describe, trace rows excepted."""
    described = {
        name.lower(): value
        for name, value in vars(schema).items()
        if isinstance(value, StructType) and not name.startswith("TRACE")
    }
    assert described == SCHEMAS


def test_all_formats(analysis: Analysis, tmp_path: Path) -> None:
    """Each table twice, in the shape that the schemas say; the summary; the page."""
    written(tmp_path, analysis, *FORMATS)
    assert names(tmp_path) == {
        *(f"tables/{name}/date={DAY}/{name}.parquet" for name in SCHEMAS),
        *(f"{name}.json" for name in SCHEMAS),
        "summary.json",
        "report.html",
    }
    for name, columns in SCHEMAS.items():
        table = newest_table(tmp_path, name)
        assert table.schema.equals(to_arrow_schema(columns)), name
        assert table.to_pylist() == analysis.tables[name], name
        assert json.loads((tmp_path / f"{name}.json").read_text()) == analysis.tables[name], name


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_one_format(analysis: Analysis, tmp_path: Path, form: str) -> None:
    """Only what was asked for, and the summary always."""
    summary = written(tmp_path, analysis, form)
    files = names(tmp_path) - {"summary.json"}
    endings = {"html": {".html"}, "json": {".json"}, "parquet": {".parquet"}}
    assert {Path(name).suffix for name in files} == endings[form]
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["page"] == summary.page == (str(tmp_path / "report.html") if form == "html" else "")


def test_the_page_comes_last(analysis: Analysis, tmp_path: Path) -> None:
    """Who waits for the page finds every table; where one cannot be written there is no page."""
    (tmp_path / "summary.json").mkdir(parents=True)
    with pytest.raises(OperationError, match=r"summary\.json"):
        written(tmp_path, analysis, *FORMATS)
    assert "report.html" not in names(tmp_path)


def test_the_page_shows_the_analysis(analysis: Analysis) -> None:
    """Every table that the page knows goes into it, and what is no table as well."""
    contents = contents_of(analysis)
    no_tables = {"topic_count", "timeline_width_ns", "span", "notes"}
    assert {one.name for one in fields(Contents)} - no_tables <= SCHEMAS.keys()
    for name in {one.name for one in fields(Contents)} - no_tables:
        assert getattr(contents, name) is analysis.tables[name]
    assert (contents.topic_count, contents.timeline_width_ns) == (7, 500_000_000)
    assert (contents.span, contents.notes) == (analysis.span, ["a note"])


def file(router: str, rows: int, sample: float | None) -> TraceFile:
    """A trace file."""
    path = Path(f"/traces/{router}.parquet")
    return TraceFile(
        path=path, rows=rows, size_bytes=10, router=router, router_from="metadata", sample=sample
    )


@pytest.fixture
def nodes(node: Make) -> Rows:
    """Two message VPNs on one router, and one known only as the other end of a bridge."""
    return [
        node("edge", "blue", ingress=10, ingress_estimated=40, discarded=2, rejected=1)
        | {"delivered": 1, "delivered_estimated": 4},
        node("edge", "green", ingress=5, ingress_estimated=20, delivered=3, delivered_estimated=12),
        node("core", "yellow", traced=False),
    ]


def analysed(nodes: Rows, edges: Rows, *findings: Finding) -> Analysis:
    """An analysis of these."""
    return Analysis(
        tables={"nodes": nodes, "edges": edges, "advice": [{}, {}]},
        findings=list(findings),
        topic_count=99,
        width_ns=1,
        span=(7, 9),
        notes=["something was not judged"],
    )


def test_the_figures(nodes: Rows, edge: Make, tmp_path: Path) -> None:
    """Counts are sums over the tables; findings are counted by kind and by severity."""
    edges = [
        edge("core/yellow", "edge/blue", messages=6, messages_estimated=24),
        edge("core/yellow", "edge/green", messages=1, messages_estimated=4),
    ]
    kinds = (("loop", ERROR), ("black_hole", WARNING), ("black_hole", WARNING), ("covered", INFO))
    found = [Finding(kind=kind, severity=severity) for kind, severity in kinds]  # type: ignore[arg-type]
    bad = SetAside(path="/traces/bad.parquet", reason="damaged")
    inventory = Inventory(files=(file("edge", 30, 0.25), file("core", 12, None)), set_aside=(bad,))
    summary = summary_of(inventory, analysed(nodes, edges, *found), str(tmp_path), 1.234)
    assert (summary.files, summary.rows, summary.size_bytes) == (2, 42, 20)
    assert summary.set_aside == [{"path": "/traces/bad.parquet", "reason": "damaged"}]
    assert summary.sampling == {"edge": 0.25}
    assert (summary.routers, summary.vpns, summary.bridges, summary.topics) == (2, 3, 2, 99)
    assert (summary.ingress, summary.ingress_estimated) == (15, 60)
    assert (summary.bridged, summary.bridged_estimated) == (7, 28)
    assert (summary.delivered, summary.delivered_estimated) == (4, 16)
    assert (summary.discarded, summary.rejected) == (2, 1)
    assert summary.findings == {"loop": 1, "black_hole": 2, "covered": 1}
    assert (summary.errors, summary.warnings, summary.advice) == (1, 2, 2)
    assert (summary.first_ns, summary.last_ns, summary.seconds) == (7, 9, 1.2)
    assert summary.notes == ["something was not judged"]
    assert summary.page == str(tmp_path / "report.html")


def test_an_estimate_needs_every_rate(nodes: Rows, edge: Make, tmp_path: Path) -> None:
    """Where one message VPN or one bridge has none, the sum has none; the others keep theirs."""
    nodes[1]["ingress_estimated"] = None
    edges = [edge("core/yellow", "edge/blue", messages=6, messages_estimated=None)]
    inventory = Inventory(files=(), set_aside=())
    summary = summary_of(inventory, analysed(nodes, edges), str(tmp_path), 1.0)
    assert (summary.ingress, summary.ingress_estimated) == (15, None)
    assert (summary.bridged, summary.bridged_estimated) == (6, None)
    assert summary.delivered_estimated == 16


def test_nothing_at_all(tmp_path: Path) -> None:
    """A mesh in which nothing was seen has figures as well, and no page where none was asked for."""
    inventory = Inventory(files=(), set_aside=())
    summary = summary_of(inventory, analysed([], []), str(tmp_path), 0.0, paged=False)
    assert (summary.vpns, summary.ingress, summary.ingress_estimated) == (0, 0, 0)
    assert (summary.findings, summary.errors, summary.warnings) == ({}, 0, 0)
    assert summary.page == ""


SHAPE = struct(topic=StringType(), count=LongType())
ROWS: list[dict[str, Any]] = [
    {"topic": "a/é</script>", "count": 2**62},
    {"topic": None, "count": None},
]


def test_the_shape_says_what_columns_there_are(tmp_path: Path) -> None:
    """A column that no row has is null, and no other one is written."""
    Output(str(tmp_path)).prepare()
    Output(str(tmp_path)).parquet("topics", DAY, [{"topic": "a", "colour": "red"}], SHAPE)
    rows = newest_table(tmp_path, "topics").to_pylist()
    assert rows == [{"topic": "a", "count": None}]


def test_a_folder_of_tables_is_made_for_parquet_alone(tmp_path: Path) -> None:
    """Who wants none finds no empty folder; who has one already keeps it."""
    out = Output(str(tmp_path / "out"))
    out.prepare()
    assert list((tmp_path / "out").iterdir()) == []
    for _ in range(2):
        out.prepare()
        out.parquet("topics", DAY, ROWS, SHAPE)
        assert [path.name for path in (tmp_path / "out").iterdir()] == [output.FOLDER]


def test_an_earlier_report_is_replaced(tmp_path: Path) -> None:
    """Writing again leaves the new contents."""
    Output(str(tmp_path)).prepare()
    for rows in (1, 2):
        Output(str(tmp_path)).object("summary", {"rows": rows})
        Output(str(tmp_path)).parquet("topics", DAY, [{"count": rows}], SHAPE)
    assert json.loads((tmp_path / "summary.json").read_text()) == {"rows": 2}
    rows_now = newest_table(tmp_path, "topics").to_pylist()
    assert rows_now == [{"topic": None, "count": 2}]


def test_a_report_of_another_day_keeps_those_before(analysis: Analysis, tmp_path: Path) -> None:
    """Days are told by the last moment that a report covers, by UTC; the same day is replaced, also by no rows."""
    day_ns = 86_400_000_000_000
    midnight = START - START % day_ns + day_ns
    for last_ns, nodes in (
        (midnight - 1, analysis.tables["nodes"]),
        (midnight, analysis.tables["nodes"][:1]),
        (midnight + 5, []),
    ):
        tables = analysis.tables | {"nodes": nodes}
        later = replace(analysis, tables=tables, span=(START, last_ns))
        written(tmp_path, later, "parquet")
    days = sorted(path.name for path in (tmp_path / "tables/nodes").iterdir())
    assert days == ["date=2013-06-12", "date=2013-06-13"]
    history = pq.read_table(tmp_path / "tables/nodes").to_pylist()
    assert [row["date"] for row in history] == ["2013-06-12", "2013-06-12"]
    assert [row["vpn"] for row in history] == ["blue", "yellow"]
    assert newest_table(tmp_path, "nodes").num_rows == 0
    assert newest_table(tmp_path, "nodes").schema == to_arrow_schema(SCHEMAS["nodes"])


def test_an_output_that_cannot_be_is_one_error(tmp_path: Path) -> None:
    """A file where the directory should be, and a directory where a file should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="cannot write to"):
        Output(str(tmp_path / "file")).prepare()
    out = Output(str(tmp_path / "out"))
    (tmp_path / "out" / "page.html").mkdir(parents=True)
    with pytest.raises(OperationError, match=r"page\.html"):
        out.text("page.html", "x")
    (tmp_path / f"out/tables/topics/date={DAY}/topics.parquet").mkdir(parents=True)
    with pytest.raises(OperationError, match=r"topics\.parquet"):
        out.parquet("topics", DAY, ROWS, SHAPE)
    assert not list(tmp_path.rglob(".*"))

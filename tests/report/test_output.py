"""vpnrouter.report.output: what files a report has, by the formats asked for."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from vpnrouter.errors import OperationError
from vpnrouter.report import schema
from vpnrouter.report.analysis import Analysis
from vpnrouter.report.inventory import Inventory
from vpnrouter.report.output import (
    FORMATS,
    SCHEMAS,
    Summary,
    contents_of,
    summary_of,
    write_report,
)
from vpnrouter.report.page.figures import Contents
from vpnrouter.report.schema import WARNING, Finding, rows_of

Make = Callable[..., dict[str, Any]]
START = 1_371_000_000_000_000_000


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
    summary = summary_of(inventory, analysis, output, 1.5, paged=paged)
    write_report(output, summary, analysis, frozenset(formats))
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
        *(f"tables/{name}.parquet" for name in SCHEMAS),
        *(f"{name}.json" for name in SCHEMAS),
        "summary.json",
        "report.html",
    }
    for name, columns in SCHEMAS.items():
        table = pq.read_table(tmp_path / f"tables/{name}.parquet")
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

"""Figures do not depend on the numbers of contexts in trace files, whoever changed these files."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.digests.condense import WrongContexts, condensed
from vpnrouter.report.digests.digest import digested
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.inventory import take_inventory
from vpnrouter.report.traces.rows import read_traces

SECOND: Final = 1_000_000_000
Change = Callable[[Path], None]


def rewritten(change: Callable[[pa.Table], pa.Table]) -> Change:
    """Writes each file below a directory anew, with the metadata that it had."""

    def apply(root: Path) -> None:
        for path in sorted(root.rglob("*.parquet")):
            metadata = pq.read_metadata(path).metadata
            table = change(pq.read_table(path, partitioning=None))
            pq.write_table(table.replace_schema_metadata(metadata), path)

    return apply


def one_file(change: Change) -> Change:
    """Changes the files of one router only."""
    return lambda root: change(next(iter(sorted(root.rglob("router=*")))))


def changed(name: str, values: Callable[[pa.Table], Any]) -> Callable[[pa.Table], pa.Table]:
    """Changes a column of a table."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        field = table.schema.field(at).with_nullable(True)
        return table.set_column(at, field, pc.cast(values(table), field.type))

    return change


def bare(table: pa.Table) -> pa.Table:
    """A table without contexts."""
    return table.drop_columns(["context", "in_full"])


def hidden(table: pa.Table) -> pa.Table:
    """A table with other names of clients."""
    return changed("client", lambda t: pc.replace_substring_regex(t["client"], "[a-z]", "x"))(table)


CHANGES: Final[dict[str, tuple[Change, bool]]] = {
    "none": (lambda _: None, True),
    "one router without": (one_file(rewritten(bare)), True),
    "all without": (rewritten(bare), True),
    "every row in full": (rewritten(changed("in_full", lambda t: pa.array([True] * len(t)))), True),
    "hidden clients": (rewritten(hidden), False),
    "hidden clients of one router": (one_file(rewritten(hidden)), False),
    "first rows lost": (rewritten(lambda table: table.filter(pc.invert(table["in_full"]))), False),
    "nothing in full": (rewritten(changed("in_full", lambda t: pa.array([False] * len(t)))), False),
    "null contexts": (rewritten(changed("context", lambda t: pa.nulls(len(t)))), False),
    "contexts plus one": (rewritten(changed("context", lambda t: pc.add(t["context"], 1))), False),
    "all alike": (
        rewritten(changed("context", lambda t: pa.array([t["context"][0].as_py()] * len(t)))),
        False,
    ),
}
"""What somebody may do with files, and whether their numbers are right then."""

LONG: Final = frozenset({"all without", "every row in full", "one router without"})


@pytest.fixture(scope="module")
def traces(tracefiles: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of the mesh of all tests, at a time that can be right."""
    root = tmp_path_factory.mktemp("mesh")
    for router, rows in tracefiles.mesh_rows().items():
        moved = [
            {
                name: value + tracefiles.START
                if name in {"ts_ns", "origin_ts_ns"} and value
                else value
                for name, value in row.items()
            }
            for row in rows
        ]
        tracefiles.write(root, router, moved)
    return root


Figures = dict[str, list[str]]


def figures(spark: SparkSession, root: Path, *, with_contexts: bool = True) -> Figures:
    """The rows of all digests of the traces in a directory, in order."""
    traces = read_traces(spark, take_inventory([str(root)]), with_contexts=with_contexts)
    with digested(traces, None, SECOND, 2, NoProgress(), small=True) as digests:
        return {name: sorted(map(str, frame.collect())) for name, frame in digests.frames.items()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in CHANGES],
)
def test_figures_are_those_of_the_other_columns(
    spark: SparkSession, traces: Path, tmp_path: Path, name: str
) -> None:
    """Numbers that are not those of their rows are found out; where they are, figures are those of the texts."""
    root = tmp_path / "traces"
    shutil.copytree(traces, root)
    change, is_right = CHANGES[name]
    change(root)
    if not is_right:
        with pytest.raises(WrongContexts):
            condensed(
                read_traces(spark, take_inventory([str(root)])), SECOND, lambda _, frame: frame
            )
        return
    found, wanted = figures(spark, root), figures(spark, root, with_contexts=False)
    assert wanted["places"]
    assert found == wanted


@pytest.mark.long
def test_a_report_on_changed_files(spark: SparkSession, traces: Path, tmp_path: Path) -> None:
    """It says what these files say in their other columns."""
    root = tmp_path / "traces"
    shutil.copytree(traces, root)
    CHANGES["hidden clients"][0](root)
    request = ReportRequest(traces=[str(root)], output="nowhere")
    inventory = take_inventory(request.traces)
    analysis, left = run_jobs(spark, inventory, request, NoProgress())
    assert left == inventory
    clients = {row["client"] for row in analysis.tables["usage"]} - {None}
    assert clients
    assert all(not set(client) & set("abcdefghijklmnopqrstuvw") for client in clients)


def test_what_files_say_of_contexts_is_read(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A row has the number that its file gives it, at least 0; without one it has another, below 0."""
    row = tracefiles.row("ingress", 0, "blue", mode="direct")
    tracefiles.write(tmp_path, "with", [row, row])
    tracefiles.write(tmp_path, "without", [row, row], with_contexts=False)
    inventory = take_inventory([str(tmp_path)])
    traces = read_traces(spark, inventory)
    assert traces.rows.where("context >= 0").select("router").distinct().collect() == [("with",)]
    full = sorted(row.router for row in traces.in_full.collect())
    assert full == ["with", "without", "without"]
    made = read_traces(spark, inventory, with_contexts=False)
    assert made.rows.where("context >= 0").isEmpty()


def test_contexts_of_another_type(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A file with texts for numbers is set aside."""
    path = tracefiles.write(tmp_path, "edge", [tracefiles.row("ingress", 0, "blue")])
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("context")
    pq.write_table(table.set_column(at, "context", pa.array(["x"])), path)
    (aside,) = take_inventory([str(tmp_path)]).set_aside
    assert (
        aside.reason == "not a trace file: column context is text, expected a whole number (int64)"
    )

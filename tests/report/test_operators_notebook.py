"""The notebook of an operator's ten questions: it runs, and its answers are those of the report's tables."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import nbclient
import nbformat
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.build import ReportRequest, build_report
from vpnrouter.report.output import SCHEMAS
from vpnrouter.report.schema import EDGE, Rows
from vpnrouter.simulation.simulate import START_NS, Options, simulate
from vpnrouter.units import DAY_NS

pytestmark = pytest.mark.slow

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOK: Final = FOLDER / "operators.ipynb"
PATIENCE_S: Final = 120
DAYS: Final = ("2026-03-01", "2026-03-02")
FAULTS: Final = (
    *("black_hole", "flapping_link", "growing_queue", "head_of_line", "never_matched", "loop"),
)


def notebook() -> Any:
    """The notebook as it is committed."""
    return nbformat.read(NOTEBOOK, as_version=4)


def questions() -> dict[str, str]:
    """The SQL of each question, and of what it stands on, by the names of the cells, in order."""
    return {
        cell["id"]: re.fullmatch(r'ask\("""\n(.*)\n"""\)', cell["source"], re.DOTALL)[1]  # type: ignore[index]
        for cell in notebook()["cells"]
        if {"question", "choice"} & set(cell["metadata"].get("tags", ()))
    }


@dataclass(frozen=True)
class Made:
    """A report of two days, and what each question of the notebook answers on it with DuckDB."""

    place: Path
    answers: dict[str, list[tuple[Any, ...]]]

    def table(self, name: str, day: str = DAYS[1]) -> Rows:
        """A table of a day."""
        file = self.place / "tables" / name / f"date={day}" / f"{name}.parquet"
        rows: Rows = pq.read_table(file, partitioning=None).to_pylist()
        return rows


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The same mesh on two days: faults begin on the second one."""
    folder = tmp_path_factory.mktemp("daily")
    output = folder / "report"
    for number, faults in enumerate(((), FAULTS)):
        options = Options(
            network="sndlib/germany50",
            vpns=44,
            rows=9_000,
            seed=5,
            faults=faults,
            start_ns=START_NS + number * DAY_NS,
        )
        simulate(options, folder / str(number))
        traces = [str(folder / str(number) / "traces")]
        formats = frozenset({"parquet"})
        build_report(
            ReportRequest(traces=traces, output=str(output), formats=formats), session=spark
        )
    base = duckdb.connect()
    for name in SCHEMAS:
        files = f"{output}/tables/{name}/*/*.parquet"
        base.execute(
            f"create view {name} as from read_parquet('{files}', hive_partitioning = true)"
        )
    base.execute((FOLDER / "views.sql").read_text(encoding="utf-8"))
    return Made(output, {name: base.execute(sql).fetchall() for name, sql in questions().items()})


def test_the_notebook_runs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell, in a kernel of its own, as a reader runs it; each question has an answer with rows."""
    run = notebook()
    monkeypatch.setenv("VPNROUTER_REPORT", str(made.place))
    nbclient.NotebookClient(
        run, timeout=PATIENCE_S, resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    cells = {cell["id"]: cell for cell in run["cells"]}
    for name in (name for name in questions() if not name.endswith("-choice")):
        (output,) = cells[name]["outputs"]
        told = output["data"]["text/plain"]
        assert "│" in told, name
        assert not re.search(r"\b0 rows", told), name


def test_the_notebook_is_committed_as_it_is_written() -> None:
    """Without outputs, numbers of runs and paths, and with ten questions."""
    cells = notebook()["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert not re.search(r"/(home|root|tmp|work|Users)/", NOTEBOOK.read_text(encoding="utf-8"))
    assert sum("question" in cell["metadata"].get("tags", ()) for cell in code) == 10
    nbformat.validate(notebook())


def test_spark_answers_the_same(made: Made, spark: SparkSession) -> None:
    """The views and the questions are in SQL that both have in common."""
    session = spark.newSession()
    for name in SCHEMAS:
        read = session.read.option("mergeSchema", True).parquet(f"{made.place}/tables/{name}")
        read.createOrReplaceTempView(name)
    for view in (FOLDER / "views.sql").read_text(encoding="utf-8").split(";"):
        if view.strip():
            session.sql(view)
    for name, sql in questions().items():
        found = [tuple(row.values()) for row in session.sql(sql).toArrow().to_pylist()]
        if not name.endswith("-choice"):
            assert _rounded(found) == _rounded(made.answers[name]), name


def _rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row)
        for row in rows
    ]


def test_who_talks_most(made: Made) -> None:
    """The sums of `nodes`."""
    rows = [
        (
            *(row["router"], row["vpn"], row["ingress"] + row["delivered"]),
            row["ingress_bytes"] + row["delivered_bytes"],
        )
        for row in made.table("nodes")
        if row["traced"]
    ]
    rows.sort(key=lambda row: (-row[3], row[0], row[1]))
    assert made.answers["talkers"] == rows[:10]
    assert rows[0][3] > rows[9][3] > 0


def test_which_bridges_are_slowest(made: Made) -> None:
    """The percentiles of `edges` in milliseconds."""
    rows = [row for row in made.table("edges") if row["latency_samples"]]
    rows.sort(key=lambda row: (-row["latency_p95_ns"], *(row[name] or "" for name in EDGE)))
    expected = [
        (
            *(row[name] for name in EDGE),
            *(row[f"latency_p{share}_ns"] / 1e6 for share in (50, 95, 99)),
            row["latency_corrected"],
        )
        for row in rows[:10]
    ]
    assert _rounded(made.answers["slowest"]) == _rounded(expected)


def test_where_messages_are_lost(made: Made) -> None:
    """The sums of `discards` over places; planted faults lose some."""
    sums: Counter[tuple[str, ...]] = Counter()
    places: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in made.table("discards"):
        key = tuple(row[name] for name in ("router", "vpn", "event", "reason"))
        sums[key] += row["messages"]
        places[key].add(row["place"])
    expected = sorted(sums, key=lambda key: (-sums[key], *(part or "" for part in key)))[:20]
    assert [row[:6] for row in made.answers["lost"]] == [
        (*key, sums[key], len(places[key] - {None})) for key in expected
    ]
    assert sum(sums.values()) > 100


def test_what_changed(made: Made) -> None:
    """Bridges whose messages differ, those that came and went included."""
    before, after = (
        {tuple(row[name] for name in EDGE): row["messages"] for row in made.table("edges", day)}
        for day in DAYS
    )
    found = {row[:5]: row[5:] for row in made.answers["changed"]}
    changes = {
        key: (before.get(key), after.get(key), (after.get(key) or 0) - (before.get(key) or 0))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }
    assert len(found) == min(len(changes), 20)
    assert found.items() <= changes.items()
    largest = sorted((abs(change[2]) for change in changes.values()), reverse=True)
    assert [abs(row[2]) for row in found.values()] == largest[:20]


def test_who_uses_a_topic(made: Made) -> None:
    """The rows of the one that crosses most; it is used in more than one message VPN."""
    crossed: Counter[str] = Counter()
    for row in made.table("topics"):
        crossed[row["topic"]] += row["bridged_in"]
    wanted = min(crossed, key=lambda topic: (-crossed[topic], topic))
    names = ("router", "vpn", "published", "published_bytes", "bridged_in", "bridged_out")
    expected = {
        tuple(row[name] for name in (*names, "delivered", "discarded"))
        for row in made.table("topics")
        if row["topic"] == wanted
    }
    assert set(made.answers["topic"]) == expected
    assert len(made.answers["topic"]) == len(expected) > 1
    assert made.answers["topic"][0][2] == max(row[2] for row in expected) > 0


def test_which_queues_grow(made: Made) -> None:
    """The queues of `growth` that took on more than left them, among them the planted one."""
    names = ("router", "vpn", "endpoint", "level", "unit", "per_day", "days", "reason")
    expected = [
        tuple(row[name] for name in names)
        for row in made.table("growth")
        if row["what"] == "queue" and (row["level"] or 0) > 0
    ]
    found = made.answers["growing"]
    assert len(found) == min(len(expected), 20) > 0
    assert set(found) <= set(expected)
    growing = {
        (row["router"], row["vpn"], row["endpoint"])
        for row in made.table("findings")
        if row["kind"] == "growing_queue"
    }
    assert growing
    assert growing <= {row[:3] for row in found}


def test_which_subscriptions_never_match(made: Made) -> None:
    """The findings of that kind."""
    names = ("router", "vpn", "client", "topic", "severity", "detail")
    expected = {
        tuple(row[name] for name in names)
        for row in made.table("findings")
        if row["kind"] == "never_matched"
    }
    assert expected
    assert set(made.answers["unmatched"]) == expected
    assert len(made.answers["unmatched"]) == len(expected)


def test_who_is_cut_off(made: Made) -> None:
    """Pairs whose every way leads through the router that is the worst to lose, but for its own message VPNs."""
    losses = [
        row
        for row in made.table("what_if")
        if (row["kind"], row["effect"]) == ("router", "summary")
    ]
    worst = min(losses, key=lambda row: (-row["pairs_lost"], -row["own_per_s"], row["router"]))
    gone = worst["router"]
    through: defaultdict[tuple[str, str], set[bool]] = defaultdict(set)
    messages: Counter[tuple[str, str]] = Counter()
    for row in made.table("ways"):
        steps = row["way"].split(">")
        pair = steps[0], steps[-1]
        if gone not in {step.split("/")[0] for step in pair}:
            through[pair].add(any(step.split("/")[0] == gone for step in steps))
            messages[pair] += row["messages"]
    cut = {(*pair, messages[pair]) for pair, ways in through.items() if ways == {True}}
    found = made.answers["cut_off"]
    assert len(found) == min(len(cut), 20) > 0
    assert set(found) <= cut
    assert [row[2] for row in found] == sorted((row[2] for row in cut), reverse=True)[:20]


def test_who_pays_how_much(made: Made) -> None:
    """Sums by day, message VPN and client are those of all rows of `usage` of both days."""
    names = ("published_bytes", "delivered_bytes", "crossing_bytes")
    sums: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in (row for day in DAYS for row in made.table("usage", day)):
        for at, name in enumerate(names):
            sums[row["day"], row["router"], row["vpn"], row["client"]][at] += row[name] or 0
    found = {row[:4]: [value or 0 for value in row[4:]] for row in made.answers["bill"]}
    assert len(found) == len(made.answers["bill"])
    assert found == sums
    assert {key[0] for key in found} == set(DAYS)
    assert any(sums[2] for key, sums in found.items() if key[3] is None)


def test_which_findings_are_new(made: Made) -> None:
    """Those of the second day at places where the first one had none of the kind; planted ones are among them."""
    names = ("kind", "severity", "router", "vpn", "peer_router", "peer_vpn", "bridge")
    names += ("client", "endpoint", "topic")
    first, second = (
        {tuple(row[name] for name in names) for row in made.table("findings", day)} for day in DAYS
    )
    found = made.answers["new"]
    assert set(found) == second - first
    assert len(found) == len(second - first)
    assert {"black_hole", "growing_queue"} <= {row[0] for row in found}


def test_the_newest_day_without_findings(tmp_path: Path) -> None:
    """A table without a row of the newest day is empty in its view: it does not show what was before."""
    base = duckdb.connect()
    for name, rows in (("nodes", 2), ("findings", 1)):
        for day in DAYS[:rows]:
            folder = tmp_path / name / f"date={day}"
            folder.mkdir(parents=True)
            base.execute(f"copy (select 1 as kind) to '{folder}/{name}.parquet'")
    for name in SCHEMAS:
        source = name if (tmp_path / name).exists() else "nodes"
        base.execute(f"create view {name} as from '{tmp_path}/{source}/*/*.parquet'")
    base.execute((FOLDER / "views.sql").read_text(encoding="utf-8"))
    assert base.execute("select count(*) from findings").fetchall() == [(1,)]
    assert base.execute("select count(*) from latest_findings").fetchall() == [(0,)]
    assert base.execute("select count(*) from latest_nodes").fetchall() == [(1,)]
    assert str(base.execute("from previous_day").fetchall()[0][0]) == DAYS[0]

"""Reports from the digests of days: what they are equal to, what is read again, and what stays of a crash."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.report import build
from vpnrouter.report.analysis import Analysis
from vpnrouter.report.days import FOLDER, MANIFEST, Days, DayStore
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.inventory import take_inventory
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import LOCAL, Storages
from vpnrouter.simulation.simulate import Options, simulate
from vpnrouter.units import DAY_NS

MIDNIGHT_NS: Final = 20_500 * DAY_NS
"""2026-02-16: the first of three days."""

DATES: Final = ("2026-02-16", "2026-02-17", "2026-02-18")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of a small mesh over three days."""
    folder = tmp_path_factory.mktemp("mesh")
    options = Options(
        vpns=4, rows=2_400, seconds=3 * 86_400, start_ns=MIDNIGHT_NS, seed=11, configs=False
    )
    simulate(options, folder)
    root = folder / "traces"
    assert sorted(path.name for path in root.iterdir()) == [f"date={date}" for date in DATES]
    return root


@pytest.fixture
def taken(spark: SparkSession, tmp_path: Path) -> Callable[..., Days]:
    """Takes the days of traces for a report in this test's directory."""

    def take(traces: Path, span: Span | None = None) -> Days:
        request = ReportRequest(
            traces=[str(traces)], output=str(tmp_path / "report"), span=span or Span()
        )
        store = DayStore(request.output, LOCAL)
        days = Days(spark, request, store, Storages(), NoProgress())
        days.take()
        return days

    return take


def written(tmp_path: Path) -> dict[str, int]:
    """When the digests of each day were written."""
    folders = (tmp_path / "report" / FOLDER).iterdir()
    return {path.name: (path / MANIFEST).stat().st_mtime_ns for path in folders}


EXACT: Final = ("nodes", "topics", "usage", "links", "ways", "discards", "lengths", "vpns")
"""Tables in which no message counts that was under way at midnight, and no stretch of time."""


def analysed(spark: SparkSession, traces: Path, span: Span | None = None) -> Analysis:
    """The analysis of all rows in one go."""
    request = ReportRequest(traces=[str(traces)], output="nowhere", span=span or Span())
    inventory = take_inventory(request.traces, span=request.span)
    return run_jobs(spark, inventory, request, NoProgress())[0]


@pytest.mark.parametrize(
    "span",
    [
        pytest.param(Span(), marks=pytest.mark.long, id="all"),
        pytest.param(
            Span(since_ns=MIDNIGHT_NS + DAY_NS, until_ns=MIDNIGHT_NS + 2 * DAY_NS), id="second day"
        ),
    ],
)
def test_days_give_the_report_on_all_rows(
    spark: SparkSession, traces: Path, taken: Callable[..., Days], span: Span
) -> None:
    """Tables are equal; latencies differ by what was under way at midnight; links that were up before are known."""
    whole = analysed(spark, traces, span)
    days = taken(traces, span)
    request = ReportRequest(traces=[str(traces)], output="nowhere", span=span)
    found = days.analyse(request)
    for name in EXACT:
        assert found.tables[name] == whole.tables[name], name
    assert found.tables["nodes"]
    assert found.span == whole.span
    edges = {row["bridge"]: row["messages"] for row in whole.tables["edges"]}
    assert {row["bridge"]: row["messages"] for row in found.tables["edges"]} == edges
    samples = sum(row["latency_samples"] for row in whole.tables["edges"])
    assert sum(row["latency_samples"] for row in found.tables["edges"]) >= 0.99 * samples
    count = days.inventory(span).rows
    assert count == take_inventory([str(traces)], span=span).rows


@pytest.mark.long
def test_a_day_is_read_once(traces: Path, taken: Callable[..., Days], tmp_path: Path) -> None:
    """Files that are as they were are not opened, a late one or a lost one has its day read again, and no other."""
    root = tmp_path / "traces"
    shutil.copytree(traces, root)
    late = min((root / f"date={DATES[1]}").rglob("*.parquet"))
    hidden = late.with_name(".late")
    late.rename(hidden)
    first = taken(root)
    rows = first.inventory(Span()).rows
    before = written(tmp_path)
    assert sorted(before) == [f"date={date}" for date in DATES]
    for path in (root / f"date={DATES[0]}").rglob("*.parquet"):
        # As long as it was, and no Parquet file any more.
        path.write_bytes(bytes(path.stat().st_size))
    again = taken(root)
    assert again.inventory(Span()) == first.inventory(Span())
    assert written(tmp_path) == before
    hidden.rename(late)
    more = taken(root)
    after = written(tmp_path)
    assert {name for name, at in after.items() if at != before[name]} == {f"date={DATES[1]}"}
    assert more.inventory(Span()).rows > rows
    late.unlink()
    assert taken(root).inventory(Span()).rows == rows
    kept = [path.name for path in (tmp_path / "report" / FOLDER / f"date={DATES[1]}").iterdir()]
    assert len(kept) == len({name.partition("-")[0] for name in kept})


DAMAGES: Final[dict[str, Callable[[Path], Any]]] = {
    "no JSON": lambda day: (day / MANIFEST).write_text("{"),
    "no object": lambda day: (day / MANIFEST).write_text("[]"),
    "newer": lambda day: (day / MANIFEST).write_text(
        json.dumps({**json.loads((day / MANIFEST).read_text()), "format": 99})
    ),
    "no manifest": lambda day: (day / MANIFEST).unlink(),
    "no digest": lambda day: min(day.glob("*.parquet")).unlink(),
    "cut": lambda day: os.truncate(min(day.glob("places-*.parquet")), 100),
}


@pytest.mark.parametrize(
    "damage",
    [pytest.param(damage, id=name, marks=pytest.mark.long) for name, damage in DAMAGES.items()],
)
def test_damaged_digests_are_made_anew(
    traces: Path, taken: Callable[..., Days], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """What a crash or somebody left behind costs one day's reading."""
    root = tmp_path / "traces"
    shutil.copytree(traces / f"date={DATES[0]}", root / f"date={DATES[0]}")
    day = tmp_path / "report" / FOLDER / f"date={DATES[0]}"
    inventory = taken(root).inventory(Span())
    whole = {path.name: path.stat().st_size for path in day.iterdir()}
    damage(day)
    assert {path.name: path.stat().st_size for path in day.iterdir()} != whole
    assert taken(root).inventory(Span()) == inventory
    assert {path.name: path.stat().st_size for path in day.iterdir()} == whole
    before = written(tmp_path)
    taken(root)
    assert written(tmp_path) == before


@pytest.mark.long
def test_a_day_with_a_file_that_could_not_be_read_is_read_again(
    traces: Path, taken: Callable[..., Days], tmp_path: Path
) -> None:
    """Its store may work now, and figures are not left out for ever. One that is damaged stays set aside."""
    root = tmp_path / "traces"
    shutil.copytree(traces / f"date={DATES[0]}", root / f"date={DATES[0]}")
    rows = taken(root).inventory(Span()).rows
    manifest = tmp_path / "report" / FOLDER / f"date={DATES[0]}" / MANIFEST
    known = json.loads(manifest.read_text())
    aside = {"path": known["files"].pop()["path"], "reason": "cannot be read: 500", "same_as": ""}
    for may_pass in (False, True):
        known["set_aside"] = [{**aside, "may_pass": may_pass}]
        manifest.write_text(json.dumps(known))
        inventory = taken(root).inventory(Span())
        assert (inventory.rows == rows) is may_pass
        assert [file.reason for file in inventory.set_aside] == (
            [] if may_pass else [aside["reason"]]
        )


def test_damaged_and_undated_files(
    traces: Path, taken: Callable[..., Days], tmp_path: Path
) -> None:
    """A damaged file is set aside with its day, a copy in another day counts once, a file without a date is read."""
    root = tmp_path / "traces"
    shutil.copytree(traces / f"date={DATES[0]}", root / f"date={DATES[0]}")
    rows = taken(root).inventory(Span()).rows
    source = min((root / f"date={DATES[0]}").rglob("*.parquet"))
    shutil.copytree(source.parent, root / f"date={DATES[1]}" / source.parent.name)
    (root / f"date={DATES[2]}").mkdir()
    (root / f"date={DATES[2]}" / "part-1.parquet").write_bytes(b"no Parquet")
    other = min((traces / f"date={DATES[2]}").rglob("*.parquet"))
    shutil.copytree(other.parent, root / "loose" / other.parent.name)
    inventory = taken(root).inventory(Span())
    assert inventory.rows > rows
    reasons = sorted(file.reason for file in inventory.set_aside)
    assert len(reasons) == 2
    assert reasons[0].startswith("damaged: ")
    assert reasons[1] == f"has the contents of {source}, which count once"


@pytest.mark.long
def test_a_copy_counts_when_its_original_has_gone(
    traces: Path, taken: Callable[..., Days], tmp_path: Path
) -> None:
    """A day whose file was set aside for one of another day is read again."""
    root = tmp_path / "traces"
    source = min((traces / f"date={DATES[0]}").rglob("*.parquet"))
    for date in DATES[:2]:
        shutil.copytree(source.parent, root / f"date={date}" / source.parent.name)
    rows = taken(root).inventory(Span()).rows
    assert [file.same_as for file in taken(root).inventory(Span()).set_aside] == [
        str(path) for path in sorted((root / f"date={DATES[0]}").rglob("*.parquet"))
    ]
    shutil.rmtree(root / f"date={DATES[0]}")
    alone = taken(root).inventory(Span())
    assert alone.rows == rows
    assert not alone.set_aside


def test_files_without_a_date(traces: Path, taken: Callable[..., Days], tmp_path: Path) -> None:
    """They are refused by name where only some days are asked for, before any day is read."""
    source = min((traces / f"date={DATES[0]}").rglob("*.parquet"))
    shutil.copytree(source.parent, tmp_path / "traces" / source.parent.name)
    with pytest.raises(OperationError, match=f"and .*/{source.name} is in none"):
        taken(tmp_path / "traces", Span(since_ns=MIDNIGHT_NS))
    assert not (tmp_path / "report" / FOLDER).exists()
    assert taken(tmp_path / "traces").inventory(Span()).rows > 0


def test_only_whole_days(traces: Path, taken: Callable[..., Days]) -> None:
    """A time within a day is refused by name."""
    with pytest.raises(OperationError, match="--incremental is of whole days"):
        taken(traces, Span(since_ns=MIDNIGHT_NS + 1))


@pytest.mark.long
def test_a_whole_report(
    spark: SparkSession, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written as others are, with a comparison of two days, and again from the digests alone."""
    monkeypatch.setattr(build, "surrounding_session", lambda: spark)
    root = tmp_path / "traces"
    shutil.copytree(traces, root)
    request = ReportRequest(
        traces=[str(root)],
        output=str(tmp_path / "report"),
        span=Span(since_ns=MIDNIGHT_NS + DAY_NS, until_ns=MIDNIGHT_NS + 2 * DAY_NS),
        against=Span(since_ns=MIDNIGHT_NS, until_ns=MIDNIGHT_NS + DAY_NS),
        incremental=True,
    )
    summary = build.build_report(request)
    assert summary.rows > 0
    assert (tmp_path / "report" / "report.html").is_file()
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["rows"] == summary.rows
    before = written(tmp_path)
    assert sorted(before) == [f"date={date}" for date in DATES[:2]]
    assert build.build_report(request).rows == summary.rows
    assert written(tmp_path) == before
    # Digests that are damaged inside are made anew, with their whole day.
    for date in DATES[:2]:
        for path in (tmp_path / "report" / FOLDER / f"date={date}").glob("[pu]*.parquet"):
            data = bytearray(path.read_bytes())
            data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
            path.write_bytes(data)
    assert build.build_report(request).rows == summary.rows
    assert sorted(written(tmp_path)) == sorted(before)
    shutil.rmtree(root)
    root.mkdir()
    with pytest.raises(OperationError, match="nothing to report on"):
        build.build_report(request)

"""vpnrouter.report.analysis: from digests to all that a report says."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.change.configured import (
    Configured,
    ConfiguredBridge,
    ConfiguredVpn,
)
from vpnrouter.report.digests.digest import Digests, digested
from vpnrouter.report.output import SCHEMAS
from vpnrouter.report.schema import TRACES, rows_of, worst_first
from vpnrouter.report.spark import Quiet

pytestmark = pytest.mark.spark

SECOND: Final = 1_000_000_000
CLIENT: Final = "#bridge/core/yellow/fares"
BLUE: Final = ("edge", "blue")
YELLOW: Final = ("core", "yellow")
RED: Final = ("core", "red")


def traced(files: ModuleType) -> list[dict[str, Any]]:
    """60 messages from edge/blue to core/yellow over bridge `fares`, and 5 that nobody takes."""
    up = {"bridge": "fares", "peer_router": "core", "peer_vpn": "yellow", "client": CLIENT}
    asked = {"client": CLIENT, "topic": "flights/>", "topic_syntax": "smf"}
    edge = [files.row("link_up", 0, "blue", **up), files.row("subscribe", 0, "blue", **asked)]
    core: list[dict[str, Any]] = []
    for number in range(1, 61):
        sent, came = files.crossing(number, sent_ns=1_000, received_ns=2_000_000)
        edge += sent
        core += came
    for number in range(61, 66):
        (entered,), _ = files.crossing(number, "nobody/wants")
        lost = {"event": "discard", "reason": "no-subscription-match"}
        edge += [entered, {**entered, **lost}]
    return [
        {"weight": 2.0, **row, "router": router}
        for router, rows in (("edge", edge), ("core", core))
        for row in rows
    ]


@pytest.fixture(scope="module")
def digests(spark: SparkSession, tracefiles: ModuleType) -> Iterator[Digests]:
    """The rows, digested by seconds."""
    rows = [tuple(row.get(name) for name in TRACES.names) for row in traced(tracefiles)]
    frame = spark.createDataFrame(rows, TRACES)
    with digested(frame, frame, None, SECOND, 2, Quiet(), small=True) as made:
        yield made


@pytest.fixture(scope="module")
def plain(spark: SparkSession, digests: Digests) -> tuple[Analysis, list[str]]:
    """What the digests say by themselves, and the stages."""
    stages: list[str] = []
    return analyse(spark, digests, SECOND, stages.append), stages


@pytest.fixture(scope="module")
def compared(
    spark: SparkSession, digests: Digests, plain: tuple[Analysis, list[str]]
) -> tuple[Analysis, list[str]]:
    """The same beside configurations, which name another filter and another message VPN, and beside a time
    before without the bridge.
    """
    vpns = dict.fromkeys((BLUE, YELLOW, RED), ConfiguredVpn(True, True, "x.yaml:1:1"))
    fares = ConfiguredBridge(
        goal=YELLOW,
        name="fares",
        enabled=True,
        sources=(BLUE,),
        elsewhere=False,
        filters=frozenset({"flights/>", "seats/>"}),
        where="x.yaml:2:2",
    )
    mesh = Configured(frozenset({"edge", "core"}), vpns, {(YELLOW, "fares"): fares}, ("a note",))
    before = replace(plain[0], tables={**plain[0].tables, "edges": [], "findings": []})
    stages: list[str] = []
    return analyse(spark, digests, SECOND, stages.append, mesh, before), stages


def test_every_table_has_its_columns(
    plain: tuple[Analysis, list[str]], compared: tuple[Analysis, list[str]]
) -> None:
    """All tables are there, and each row has exactly the columns that the schema names."""
    for analysis, _ in (plain, compared):
        assert analysis.tables.keys() == SCHEMAS.keys()
        for name, rows in analysis.tables.items():
            assert all(row.keys() == set(SCHEMAS[name].names) for row in rows), name
    assert {name for name, rows in compared[0].tables.items() if not rows} == set()


def test_what_the_traces_say(plain: tuple[Analysis, list[str]], tracefiles: ModuleType) -> None:
    """Figures, the time looked at, findings worst first and the same in the table; no comparison."""
    analysis, stages = plain
    (edge,) = analysis.tables["edges"]
    assert (edge["bridge"], edge["messages"], edge["configured"]) == ("fares", 60, None)
    assert (edge["cut"], edge["latency_samples"]) == (True, 60)
    assert analysis.tables["changes"] == []
    assert analysis.topic_count == 3
    assert analysis.width_ns == SECOND
    assert analysis.span[0] == tracefiles.START
    assert analysis.seconds == pytest.approx(65.0, abs=0.01)
    assert analysis.findings == worst_first(analysis.findings)
    assert analysis.tables["findings"] == rows_of(analysis.findings)
    kinds = {one.kind for one in analysis.findings}
    assert {"black_hole", "cut_bridge"} <= kinds
    assert not {kind for kind in kinds if kind.startswith(("missing", "unknown"))}
    assert "configurations" not in stages
    assert "changes" not in stages


def test_beside_configurations_and_a_time_before(
    plain: tuple[Analysis, list[str]], compared: tuple[Analysis, list[str]]
) -> None:
    """Drift joins the findings, changes say what is new, and all else stays as it was."""
    analysis, stages = compared
    (edge,) = analysis.tables["edges"]
    assert edge["configured"] is True
    more = [one for one in analysis.findings if one not in plain[0].findings]
    assert {(one.kind, one.vpn, one.topic) for one in more} == {
        ("missing_vpn", "red", None),
        ("missing_subscription", "yellow", "seats/>"),
    }
    assert analysis.findings == worst_first(analysis.findings)
    assert analysis.tables["findings"] == rows_of(analysis.findings)
    assert analysis.notes == ["a note"]
    changed = {(row["what"], row["change"], row["bridge"]) for row in analysis.tables["changes"]}
    assert ("bridge", "new", "fares") in changed
    assert {what for what, change, _ in changed if change == "new"} == {"bridge", "finding"}
    for name in ("nodes", "rates", "latencies", "topics", "timeline", "vpns", "pairs"):
        assert analysis.tables[name] == plain[0].tables[name], name
    assert [name for name in stages if name not in plain[1]] == ["configurations", "changes"]
    assert stages[-1] == "advice"

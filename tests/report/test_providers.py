"""Connectors in traces: the table of providers, and that all other figures are the same with them and without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.digests.columns import Corrections
from vpnrouter.report.digests.condense import Condensed
from vpnrouter.report.digests.counts import delays, losses, paths
from vpnrouter.report.digests.digest import digested
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.flows import tables
from vpnrouter.report.flows.tables import providers, ways_and_lengths
from vpnrouter.report.schema import PROVIDERS, Rows
from vpnrouter.report.traces.rows import TraceRows, with_made_contexts
from vpnrouter.report.visited import bridges_on, came_by_connector, is_provider, since_provider

SECOND: Final = 1_000_000_000
BROKER: Final = "mqtt://broker.example.org:1883"
OTHER: Final = "mqtts://other.example.org:8883"
COLUMNS: Final = ("bridge", "peer_router")
Frames = Callable[[dict[str, Rows]], DataFrame]
Condense = Callable[[dict[str, Rows]], Condensed]


def event(kind: str, at: int, vpn: str, link: str = "", provider: str = "", **more: Any) -> Any:
    """A row of a message that publishers or connectors brought, or that went to them."""
    row: dict[str, Any] = {
        "event": kind,
        "vpn": vpn,
        "ts_ns": at * SECOND + at,
        "trace_id": f"{at:032x}",
        "message_id": at,
        "topic": f"t/{at % 3}",
        "mode": "direct",
        "size_bytes": 10,
        "client": f"#connector/{link}" if link else "app",
        "hops": 0,
        "origin_ts_ns": at * SECOND,
        "bridge": link or None,
        "peer_router": provider or None,
    }
    return {**row, **more}


def carried() -> dict[str, Rows]:
    """Rows of connectors: every event, mode, direction; two links to one provider, two providers, two routers."""
    rows: dict[str, Rows] = {"edge": [], "core": []}
    for at in range(1, 9):
        rows["edge"].append(event("ingress", at, "blue", "there/in", BROKER))
        rows["edge"].append(event("deliver", at, "blue", "there/out", BROKER, size_bytes=7))
    for at in range(11, 15):
        kept = {"mode": "persistent", "endpoint": "q"}
        rows["core"].append(event("ingress", at, "yellow"))
        rows["core"].append(event("enqueue", at, "yellow", client="app", **kept))
        rows["core"].append(event("deliver", at, "yellow", "far/all", OTHER, **kept))
        rows["core"].append(event("redeliver", at, "yellow", "far/all", OTHER, **kept))
        rows["core"].append(event("acknowledge", at, "yellow", client="app", **kept))
    # The same message once more, to the same client: a duplicate.
    rows["core"].append(
        event("deliver", 11, "yellow", "far/all", OTHER, mode="persistent", endpoint="q")
    )
    rows["core"].append(event("redeliver", 20, "yellow", "far/rest", BROKER, mode="persistent"))
    rows["core"].append(event("deliver", 21, "red", "far/all", OTHER))
    lost = {"reason": "no-subscription-match", "trace_id": None, "message_id": None, "count": 5}
    rows["core"].append(event("discard", 22, "yellow", "", "", **lost))
    return rows


@pytest.fixture(scope="module")
def analysed(
    spark: SparkSession, mesh_traces: DataFrame, frame_of: Frames
) -> Iterator[Callable[[str], Analysis]]:
    """`analysed(variant)`: what comes of the mesh of all tests with connectors beside its bridges, of the rows as they
    are (with), without links and providers, or as if all messages had come from a provider at first (through).
    """
    whole = mesh_traces.unionByName(frame_of(carried()))
    connector = F.col("event").isin("ingress", "deliver", "redeliver")
    bare = {name: F.when(~connector, F.col(name)).alias(name) for name in COLUMNS}
    message = F.col("mode").isNotNull()
    crossed = F.when(
        (F.col("event") == "bridge_receive"), F.concat_ws("/", "peer_router", "peer_vpn")
    )
    path = F.concat_ws(">", F.lit(BROKER), F.coalesce("path", crossed))
    through = {
        "path": F.when(message, path),
        "hops": F.when(message, F.col("hops") + 1),
    }
    variants = {
        "with": whole,
        "without": whole.withColumns(bare),
        "through": whole.withColumns(through),
    }
    with ExitStack() as cached:

        @cache
        def analyse_variant(name: str) -> Analysis:
            traces = with_made_contexts(variants[name])
            digests = cached.enter_context(
                digested(
                    TraceRows(rows=traces, in_full=traces),
                    None,
                    SECOND,
                    2,
                    NoProgress(),
                    small=True,
                )
            )
            return analyse(spark, digests, SECOND, lambda _: None)

        yield analyse_variant


@pytest.mark.long
@pytest.mark.parametrize(("other", "differ"), [("without", "providers"), ("through", "ways")])
def test_no_other_figure_changes(
    analysed: Callable[[str], Analysis], other: str, differ: str
) -> None:
    """Every other table, finding and advice is the same whether rows name links and providers or not; and whether paths
    begin at a provider or not, which the names of the ways alone tell.
    """
    one, two = analysed("with"), analysed(other)
    for name, rows in one.tables.items():
        if name != differ:
            assert rows == two.tables[name], name
    kinds = {row["kind"] for row in one.tables["findings"]}
    assert kinds >= {"duplicate", "two_ways", "black_hole"}
    assert len(one.tables["clocks"]) > 1
    assert (one.topic_count, one.span, one.notes) == (two.topic_count, two.span, two.notes)
    assert analysed("without").tables["providers"] == []
    assert [{**row, "way": f"{BROKER}>{row['way']}"} for row in one.tables["ways"]] == analysed(
        "through"
    ).tables["ways"]


def counted_apart(rows: dict[str, Rows]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The table by another way than the report's: row by row, without Spark and without digests."""
    found: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(
        lambda: {**dict.fromkeys(PROVIDERS.names[6:], 0), "times": []}
    )
    for router, listed in rows.items():
        for row in listed:
            if row["event"] not in ("ingress", "deliver", "redeliver") or not row.get("bridge"):
                continue
            way = "in" if row["event"] == "ingress" else "out"
            link = tuple(row["bridge"].split("/"))
            one = found[router, row["vpn"], *link, row["peer_router"], way]
            one["times"].append(row["ts_ns"])
            if row["event"] == "redeliver":
                one["redelivered"] += 1
                continue
            one["messages"] += 1
            one["messages_estimated"] += 2
            one["bytes"] += row["size_bytes"]
            one["direct" if row["mode"] == "direct" else "guaranteed"] += 1
    for one in found.values():
        times = one.pop("times")
        one |= {"first_ns": min(times), "last_ns": max(times)}
    return dict(found)


def test_the_table(tracefiles: Any, analysed: Callable[[str], Analysis]) -> None:
    """Each link, provider and direction as counted apart, the busiest first."""
    wanted = counted_apart(carried()) | counted_apart(tracefiles.mesh_rows())
    assert wanted["edge", "blue", "there", "in", BROKER, "in"]["messages"] == 8
    rows = analysed("with").tables["providers"]
    keys = PROVIDERS.names[:6]
    assert {tuple(row[name] for name in keys): row for row in rows} == {
        key: dict(zip(keys, key, strict=True)) | figures for key, figures in wanted.items()
    }
    counts = [row["messages"] for row in rows]
    assert counts == sorted(counts, reverse=True)


def total(event: str = "deliver", **more: Any) -> dict[str, Any]:
    """A row of `totals`."""
    row = {"router": "edge", "vpn": "blue", "event": event, "bridge": "c/l", "peer_vpn": None}
    row |= {"peer_router": BROKER, "count": 2, "direct": 2, "weight": 4.0, "bytes": 20}
    return {**row, "first_ns": 5, "last_ns": 9, **more}


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([total("bridge_send", peer_vpn="v"), total("discard"), total(bridge="")], {}),
        ([total(), total(event="redeliver", count=3, first_ns=1)], {"c/l": (2, 4, 20, 3, 1)}),
        ([total(event="redeliver", weight=None)], {"c/l": (0, 0, 0, 2, 5)}),
        ([total(weight=None)], {"c/l": (2, None, 20, 0, 5)}),
        ([total(bridge="c"), total(bridge="d/l", peer_router=None)],
         {"c/": (2, 4, 20, 0, 5), "d/l": (2, 4, 20, 0, 5)}),
        ([total(bridge="c/a", count=1), total(bridge="c/b"), total(bridge="c/c")],
         {"c/b": (2, 4, 20, 0, 5), "c/c": (2, 4, 20, 0, 5)}),
    ],
)  # fmt: skip
def test_rows_of_the_table(
    rows: Rows, wanted: dict[str, tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redeliveries are counted apart, an estimate is known or not, the busiest rows up to the bound are kept."""
    monkeypatch.setattr(tables, "REPORT_PROVIDERS", 2)
    names = ("messages", "messages_estimated", "bytes", "redelivered", "first_ns")
    found = providers(rows)
    assert all(row.keys() == set(PROVIDERS.names) for row in found)
    assert {
        f"{row['connector']}/{row['link']}": tuple(row[name] for name in names) for row in found
    } == wanted


P: Final = "mqtt://b:1883"
Q: Final = "mqtts://q.example.org:8883"


@pytest.mark.parametrize(
    ("way", "bridges", "since", "outside"),
    [
        ("a/x>b/y", 1, "a/x>b/y", False),
        (f"{P}>a/x", 0, "a/x", False),
        (f"{P}>a/x>b/y>c/z", 2, "a/x>b/y>c/z", False),
        (f"a/x>b/y>{P}>c/z>d/w", 2, "c/z>d/w", False),
        (f"{P}>a/x>{Q}>b/y>c/z", 1, "b/y>c/z", False),
        (f"a/x>{P}>{Q}>b/y", 0, "b/y", False),
        (f"a/x>b/y>{P}", 1, f"a/x>b/y>{P}", True),
        (P, 0, P, True),
        ("a/mqtt://x>b/y", 1, "a/mqtt://x>b/y", False),
    ],
)
def test_providers_in_paths(
    spark: SparkSession, way: str, bridges: int, since: str, outside: bool
) -> None:
    """How many bridges there are, where a message entered last, and whether a connector brought it just now."""
    column = F.lit(way)
    found = spark.range(1).select(
        bridges_on(column), since_provider(column), came_by_connector(column)
    )
    assert tuple(found.collect()[0]) == (bridges, since, outside)
    assert [is_provider(place) for place in way.split(">")] == [
        place in (P, Q) for place in way.split(">")
    ]


def test_ends_of_paths(condensed_of: Condense) -> None:
    """A message began where the last connector brought it in; who sent it here is the last one as ever."""
    came = {"event": "bridge_receive", "vpn": "v", "bridge": "b", "ts_ns": 5, "origin_ts_ns": 1}
    ways = {
        f"{P}>a/x": "a/x",
        f"a/x>{P}>b/y>c/z": "b/y",
        f"{P}>a/x>{Q}>b/y": "b/y",
        "a/x>b/y": "a/x",
    }
    rows = [{**came, "path": path, "hops": path.count(">") + 1} for path in ways]
    found = {row["path"]: row for row in paths(condensed_of({"r": rows})).collect()}
    for path, origin in ways.items():
        row = found[path]
        assert f"{row['origin_router']}/{row['origin_vpn']}" == origin
        assert f"{row['peer_router']}/{row['peer_vpn']}" == path.rpartition(">")[2]


def test_lengths_and_ways(digest_of: Callable[..., DataFrame]) -> None:
    """Ways name providers as they stand; hops are bridges."""
    rows = [
        {"path": path, "router": "r", "vpn": "v", "hops": path.count(">") + 1, "count": 1}
        for path in (f"{P}>a/x", f"a/x>{P}>b/y", "a/x>b/y", f"a/x>b/y>{Q}>c/z>d/w")
    ]
    found = ways_and_lengths(digest_of("paths", rows), 9).collect()
    assert {row["way"]: row["hops"] for row in found if row["way"]} == {
        f"{P}>a/x>r/v": 1,
        f"a/x>{P}>b/y>r/v": 1,
        "a/x>b/y>r/v": 2,
        f"a/x>b/y>{Q}>c/z>d/w>r/v": 3,
    }
    assert {row["hops"]: row["messages"] for row in found if not row["way"]} == {1: 2, 2: 1, 3: 1}


@pytest.mark.parametrize(
    ("hops", "path", "crossed"),
    [(0, None, False), (1, "a/x", True), (1, P, False), (3, f"a/x>b/y>{P}", False),
     (2, f"{P}>a/x", True), (2, None, True)],
)  # fmt: skip
def test_what_a_connector_brought_has_crossed_no_bridge(
    condensed_of: Condense, hops: int, path: str | None, crossed: bool
) -> None:
    """It began here, and what is lost of it was lost by no bridge."""
    row = event("deliver", 1, "v", hops=hops, path=path)
    (loss,) = losses(condensed_of({"r": [{**row, "event": "discard"}]}), SECOND).collect()
    assert loss["crossed"] is crossed
    found = delays(condensed_of({"r": [row]}), Corrections()).collect()
    assert [(one["origin_router"], one["origin_vpn"]) for one in found] == (
        [] if crossed else [("r", "v")]
    )

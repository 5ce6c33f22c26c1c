"""The tables of usage and planning of a simulated mesh, against sums over its trace rows in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import networkx as nx
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.digests.digest import Digests
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.output import contents_of, summary_of
from vpnrouter.report.page.page import page
from vpnrouter.report.planning.questions import Questions
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.schema import Rows, edge_named
from vpnrouter.report.traces.inventory import take_inventory
from vpnrouter.simulation.simulate import Options, simulate

Place = tuple[str, str]
EDGE_COLUMNS: Final = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")


@dataclass(frozen=True)
class Simulated:
    """A mesh whose routers trace everything: its rows, its report, and the page."""

    rows: Rows
    analysis: Analysis
    page: str

    def table(self, name: str) -> Rows:
        """A result table."""
        return self.analysis.tables[name]

    def of(self, *events: str) -> Iterator[dict[str, Any]]:
        """The rows of some events."""
        return (row for row in self.rows if row["event"] in events)


def rows_of(folder: Path) -> Rows:
    """All trace rows under `folder`."""
    keys = pa.schema([("date", pa.string()), ("router", pa.string())])
    partitioning = ds.partitioning(keys, flavor="hive")
    rows: Rows = ds.dataset(folder, partitioning=partitioning).to_table().to_pylist()
    return rows


def place(row: dict[str, Any], prefix: str = "") -> Place:
    """Where a row was written, or its peer or origin."""
    return row[f"{prefix}router"], row[f"{prefix}vpn"]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A mesh of 40 message VPNs, and what was asked about it."""
    folder = tmp_path_factory.mktemp("simulated")
    simulate(Options(network="sndlib/germany50", vpns=40, rows=9_000, seed=5), folder)
    request = ReportRequest(traces=[str(folder / "traces")], output=str(folder / "report"))
    inventory = take_inventory(request.traces, leave_out=request.output, span=request.span)
    analysis, inventory = run_jobs(spark, inventory, request, NoProgress())
    summary = summary_of(inventory, analysis, request.output, 1.0)
    text = page(summary.__dict__, contents_of(analysis))
    return Simulated(rows_of(folder / "traces"), analysis, text)


def test_usage_of_clients(made: Simulated) -> None:
    """Messages and bytes by day, message VPN and client."""
    expected: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in made.of("ingress", "deliver"):
        day = datetime.fromtimestamp(row["ts_ns"] // 10**9, UTC).date().isoformat()
        sums = expected[day, *place(row), row["client"]]
        at = 0 if row["event"] == "ingress" else 2
        sums[at] += 1
        sums[at + 1] += row["size_bytes"]
    names = ("published", "published_bytes", "delivered", "delivered_bytes")
    found = {
        (row["day"], row["router"], row["vpn"], row["client"]): [row[name] for name in names]
        for row in made.table("usage")
        if row["what"] == "client"
    }
    assert found == expected
    assert len({day for day, *_ in found}) > 0


def test_usage_of_bridges(made: Simulated) -> None:
    """By where messages entered, and day; all of a bridge together are its messages."""
    expected: Counter[tuple[str, ...]] = Counter()
    sizes: Counter[tuple[str, ...]] = Counter()
    for row in made.of("bridge_receive"):
        day = datetime.fromtimestamp(row["ts_ns"] // 10**9, UTC).date().isoformat()
        key = (day, *place(row, "origin_"), *place(row, "peer_"), *place(row), row["bridge"])
        expected[key] += 1
        sizes[key] += row["size_bytes"]
    used = [row for row in made.table("usage") if row["what"] == "bridge"]
    names = ("day", "router", "vpn", *EDGE_COLUMNS)
    assert {tuple(row[n] for n in names): row["crossings"] for row in used} == expected
    assert {tuple(row[n] for n in names): row["crossing_bytes"] for row in used} == sizes
    by_edge: Counter[Any] = Counter()
    for row in used:
        by_edge[edge_named(row)] += row["crossings"]
    assert by_edge == {edge_named(row): row["messages"] for row in made.table("edges")}
    assert all(row["what"] != "rest" for row in made.table("usage"))


def _deliveries(made: Simulated) -> Counter[tuple[Place, Place]]:
    """Deliveries and endpoints by where the message entered, and where it was received."""
    pairs: Counter[tuple[Place, Place]] = Counter()
    for row in made.of("deliver", "enqueue"):
        origin = place(row, "origin_") if row["origin_router"] is not None else place(row)
        pairs[origin, place(row)] += 1
    return pairs


def _graph(made: Simulated) -> Any:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(place(row) for row in made.table("nodes"))
    for row in made.table("edges"):
        ends = ((row["from_router"], row["from_vpn"]), (row["to_router"], row["to_vpn"]))
        graph.add_edge(*ends, key=row["bridge"])
    return graph


def _seen(made: Simulated) -> set[tuple[Place, Place]]:
    """The pairs between which messages crossed bridges."""
    return {(place(row, "origin_"), place(row)) for row in made.of("bridge_receive")}


def test_what_if_a_router_or_a_bridge_goes(made: Simulated) -> None:
    """Pairs are apart if no way leads from one to the other any more; their deliveries per second are lost."""
    pairs = _deliveries(made)
    crossed = _seen(made)
    seconds = made.analysis.seconds
    answered = Counter(row["kind"] for row in made.table("what_if"))
    assert answered["router"] == len({row["router"] for row in made.table("nodes")})
    assert answered["bridge"] == min(50, sum(row["messages"] > 0 for row in made.table("edges")))
    lost_any = 0
    for row in made.table("what_if"):
        if row["kind"] == "double":
            continue
        left = _graph(made)
        gone: set[Place] = set()
        if row["kind"] == "router":
            gone = {one for one in left if one[0] == row["router"]}
            left.remove_nodes_from(gone)
        else:
            left.remove_edge(place(row, "peer_"), place(row), key=row["bridge"])
        apart = [
            pair
            for pair in crossed
            if pairs[pair] and not gone & {*pair} and not nx.has_path(left, *pair)
        ]
        assert row["pairs_lost"] == len(apart), row["question"]
        assert row["lost_per_s"] == pytest.approx(sum(pairs[pair] for pair in apart) / seconds)
        own = sum(count for pair, count in pairs.items() if gone & {*pair})
        assert row["own_per_s"] == pytest.approx(own / seconds)
        lost_any += bool(apart)
    assert lost_any > 5


def test_twice_the_load(made: Simulated) -> None:
    """Each bridge gets once more what entered in the message VPN: the worst one's crossings before and after."""
    origins: Counter[Any] = Counter()
    for row in made.of("bridge_receive"):
        edge = (*place(row, "peer_"), *place(row), row["bridge"])
        origins[place(row, "origin_"), edge] += 1
    seconds = made.analysis.seconds
    doubled = [row for row in made.table("what_if") if row["kind"] == "double"]
    for row in doubled:
        mine = {edge: n for (origin, edge), n in origins.items() if origin == place(row)}
        assert row["rising"] == len(mine)
        if mine:
            edge = tuple(row[f"rise_{name}"] for name in EDGE_COLUMNS)
            more = row["after_per_s"] - row["before_per_s"]
            assert more * seconds == pytest.approx(mine[edge])
            assert row["peak_factor"] >= 1.0
    assert sum(row["exceeding"] for row in doubled) > 0


def test_blast_radius(made: Simulated) -> None:
    """Senders, receivers, clients and messages of each message VPN, from the paths in the rows."""
    senders, receivers = defaultdict(set), defaultdict(set)
    for row in made.of("bridge_receive"):
        way = [*(tuple(step.split("/", 1)) for step in row["path"].split(">")), place(row)]
        for at, one in enumerate(way):
            if at > 0:
                senders[one].add(way[0])
            if at < len(way) - 1:
                receivers[one].add(way[-1])
    clients, endpoints = defaultdict(set), defaultdict(set)
    for row in made.of("ingress", "deliver"):
        clients[place(row)].add(row["client"])
    for row in made.of("enqueue", "acknowledge"):
        endpoints[place(row)].add(row["endpoint"])
    pairs = _deliveries(made)
    for row in made.table("blast_radius"):
        here = place(row)
        others = senders[here] | receivers[here]
        assert (row["senders"], row["receivers"]) == (len(senders[here]), len(receivers[here]))
        assert row["vpns"] == len(others)
        assert row["clients"] == len(clients[here])
        assert row["endpoints"] == len(endpoints[here])
        assert row["clients_beyond"] == sum(len(clients[one]) for one in others)
        assert row["local_per_s"] == pytest.approx(pairs[here, here] / made.analysis.seconds)
        ends = sum(n for pair, n in pairs.items() if here in pair and pair[0] != pair[1])
        assert row["beyond_per_s"] >= ends / made.analysis.seconds * (1 - 1e-9)
    assert len(made.table("blast_radius")) == 40


def test_growth_of_queues(made: Simulated) -> None:
    """What a queue took on is what was enqueued less what was acknowledged and lost, times the mean size."""
    net, enqueued, sizes = Counter[Any](), Counter[Any](), Counter[Any]()
    for row in made.of("enqueue", "acknowledge", "dead_letter", "discard"):
        key = (*place(row), row["endpoint"])
        if row["event"] == "enqueue":
            enqueued[key] += 1
            sizes[key] += row["size_bytes"]
        net[key] += 1 if row["event"] == "enqueue" else -(row["count"] or 1)
    queues = [row for row in made.table("growth") if row["what"] == "queue"]
    assert queues
    for row in queues:
        key = (*place(row), row["endpoint"])
        level = max(0.0, net[key] * sizes[key] / enqueued[key])
        assert row["level"] == pytest.approx(level)
        assert row["days"] is None
        assert row["reason"]
    assert {row["bridge"] for row in made.table("growth") if row["what"] == "bridge"}


def test_the_page_has_a_place_for_each(made: Simulated) -> None:
    """With its rows, and a link at the top."""
    for name in ("usage", "what_if", "blast_radius", "growth"):
        assert f'<table class="sheet" id="{name}">' in made.page
        assert f'id="{name}-0"' in made.page
    for name in ("used", "plan"):
        assert f'href="#{name}"' in made.page
        assert f'<section id="{name}"' in made.page


def test_questions_are_answered(spark: SparkSession, digested_mesh: Digests) -> None:
    """An analysis of a report that was asked something has these answers alone."""
    asked = Questions(("core", "nobody"), ("edge/blue",))
    analysis = analyse(spark, digested_mesh, 1_000_000_000, lambda _: None, questions=asked)
    rows = [(row["kind"], row["effect"], row["question"]) for row in analysis.tables["what_if"]]
    assert rows == [
        ("asked", "summary", "without core, nobody"),
        ("asked", "summary", "double edge/blue"),
        ("asked", "rise", "double edge/blue"),
        ("asked", "rise", "double edge/blue"),
    ]

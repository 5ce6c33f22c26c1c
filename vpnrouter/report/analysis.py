"""Runs all jobs and rules on digests, in order, and gathers their tables and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_FINDINGS, REPORT_SUBSCRIPTION_FINDINGS
from vpnrouter.report.advice.advise import advise
from vpnrouter.report.asyncapi.channels import VpnChannels
from vpnrouter.report.change.compare import compare
from vpnrouter.report.change.configured import Configured, bridge_subscriptions
from vpnrouter.report.change.drift import drift
from vpnrouter.report.digests.digest import Digests
from vpnrouter.report.engine.kept import KeptFrames
from vpnrouter.report.flows.clocks import clock_ages
from vpnrouter.report.flows.tables import flows
from vpnrouter.report.flows.usage import not_attributed, usage
from vpnrouter.report.planning.plan import plan
from vpnrouter.report.planning.questions import NONE, Questions
from vpnrouter.report.rules.clocks import doubtful_clocks, moved_clocks, skewed_clocks
from vpnrouter.report.rules.context import Bridges, KnownCauses, bounded, losses_by_place
from vpnrouter.report.rules.deliveries import (
    doubles_by_place,
    duplicates,
    looped_arrivals,
    looping_paths,
    loops,
    stopped_loops,
    two_ways,
)
from vpnrouter.report.rules.endpoints import (
    black_holes,
    blockers,
    filters_held_at_end,
    partition_loads,
    skewed_partitions,
    unmatched,
)
from vpnrouter.report.rules.links import (
    active_stretches,
    flapping_links,
    hot_bridges,
    refused_bridges,
    refused_logins,
    stalled_bridges,
    unanswered_sends,
)
from vpnrouter.report.rules.queues import full_queues, growing_queues, refusals, untaken
from vpnrouter.report.schema import BRIDGE_CLIENT, Edge, Finding, Rows, rows_of, worst_first
from vpnrouter.report.structure.structure import structure
from vpnrouter.report.subscriptions.held import by_client, held
from vpnrouter.report.subscriptions.over_broad import (
    Crossing,
    crossings,
    over_broad,
    wasted,
    worst_crossings,
)
from vpnrouter.report.subscriptions.unused import grouped, never_matched, overlaps
from vpnrouter.units import SECOND_NS


def find_trouble(
    digests: Mapping[str, DataFrame], edges: Rows, links: Rows, clocks: Rows, stretch_ns: int
) -> list[Finding]:
    """Return all findings about traffic, worst first, at most REPORT_FINDINGS of a kind.

    Reads the digests places, paths, ages, uses, losses, doubles, states and endpoints. `edges`, `links` and `clocks`
    are rows of EDGES, LINKS and CLOCKS; `stretch_ns` is the length of the digests' stretches. Ten Spark jobs, and
    one more each if there are candidates for a stall or a black hole, or a clock moved.
    """
    bridges = Bridges(edges)
    losses = _rows(losses_by_place(digests["losses"]))
    ways = _rows(looping_paths(digests["paths"]))
    doubles = _rows(doubles_by_place(digests["doubles"]))
    excuses = KnownCauses(looped_arrivals(ways), losses, links)
    return bounded(
        [
            *loops(ways, losses),
            *stopped_loops(losses, bridges),
            *duplicates(doubles, excuses, bridges),
            *two_ways(doubles, excuses),
            *_black_holes(digests),
            *_stalls(digests["places"], bridges, links, clocks, stretch_ns),
            *blockers(losses, bridges),
            *hot_bridges(losses, bridges),
            *skewed_partitions(_rows(partition_loads(digests["endpoints"]))),
            *flapping_links(links),
            *refused_bridges(_rows(refused_logins(digests["states"]))),
            *full_queues(_rows(refusals(digests["losses"]))),
            *growing_queues(_rows(untaken(digests["endpoints"], digests["losses"]))),
            *skewed_clocks(clocks),
            *_clocks(digests["ages"], clocks),
        ],
        REPORT_FINDINGS,
    )


def _clocks(ages: DataFrame, clocks: Rows) -> list[Finding]:
    """Return what the ages show about clocks."""
    known = clock_ages(ages)
    return [*moved_clocks(known, clocks), *doubtful_clocks(known, clocks)]


def _black_holes(digests: Mapping[str, DataFrame]) -> list[Finding]:
    lost = _rows(unmatched(digests["uses"]))
    filters = _rows(filters_held_at_end(digests["states"], lost)) if lost else []
    return black_holes(lost, filters)


def _stalls(
    places: DataFrame, bridges: Bridges, links: Rows, clocks: Rows, width_ns: int
) -> list[Finding]:
    candidates = _rows(unanswered_sends(places, clocks, width_ns))
    if not candidates:
        return []
    lives = _rows(active_stretches(places, candidates, clocks, width_ns))
    return stalled_bridges(candidates, lives, links, bridges, width_ns)


def _rows(frame: DataFrame) -> Rows:
    rows: Rows = frame.toArrow().to_pylist()
    return rows


def find_subscriptions(
    digests: Mapping[str, DataFrame], edges: Rows, span: tuple[int, int]
) -> list[Finding]:
    """Return findings of the kinds never_matched, covered, overlapping, not_examined, over_broad, wasted_crossing.

    `digests` has STATES, USES and PLACES, `edges` are rows of EDGES, `span` is the first and last time observed
    (nanoseconds since 1970). docs/report-subscriptions.md defines the findings.
    """
    # Worked out once: the jobs that follow see rows and not how they came about.
    subscriptions = held(digests["states"], span).localCheckpoint()
    findings = overlaps(subscriptions)
    covered = {
        (finding.router, finding.vpn, finding.client, finding.topic)
        for finding in findings
        if finding.kind == "covered"
    }
    silent = [
        finding
        for finding in never_matched(subscriptions, digests, span)
        if (finding.router, finding.vpn, finding.client, finding.topic) not in covered
    ]
    return [
        *grouped(silent)[:REPORT_SUBSCRIPTION_FINDINGS],
        *_crossing(subscriptions, digests["uses"], edges),
        *[finding for finding in findings if finding.kind == "covered"][
            :REPORT_SUBSCRIPTION_FINDINGS
        ],
        *(finding for finding in findings if finding.kind != "covered"),
    ]


def _crossing(subscriptions: DataFrame, uses: DataFrame, edges: Rows) -> list[Finding]:
    """Return findings about what crosses bridges without a receiver."""
    if not edges:
        return []
    with KeptFrames() as kept:
        crossed = kept.keep(crossings(uses))
        lost = wasted(crossed, uses)
        if lost is None:
            return []
        worst = worst_crossings(crossed, lost)
    return over_broad(worst, _held_by_bridges(subscriptions, edges, worst)) if worst else []


def _held_by_bridges(
    subscriptions: DataFrame, edges: Rows, worst: Iterable[Crossing]
) -> dict[Edge, list[tuple[str, str]]]:
    """Return the subscriptions that these bridges hold, or held last."""
    clients = {crossing.edge.client for crossing in worst}
    known = by_client(edges)
    rows: Rows = (
        subscriptions.where(
            F.col("current")
            & F.col("client").startswith(BRIDGE_CLIENT)
            & F.col("client").isin(*clients)
        )
        .select("router", "vpn", "client", "filter", "syntax")
        .toArrow()
        .to_pylist()
    )
    subscriptions_by_edge: dict[Edge, list[tuple[str, str]]] = {}
    for row in rows:
        edge = known.get((row["router"], row["vpn"], row["client"]))
        if edge is not None:
            subscriptions_by_edge.setdefault(edge, []).append((row["filter"], row["syntax"]))
    return subscriptions_by_edge


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All result tables as rows by name (schemas in `vpnrouter.report.schema`).

    `topic_count` counts all topics, also those beyond the table's bound. `width_ns` is the length of a stretch of
    timeline and rates; `span` the first and last time seen, nanoseconds since 1970. `notes` are sentences about what
    could not be judged. `channels` are what AsyncAPI documents say, where these are asked for.
    """

    tables: dict[str, Rows]
    findings: list[Finding]
    topic_count: int
    width_ns: int
    span: tuple[int, int]
    notes: list[str] = field(default_factory=list)
    channels: list[VpnChannels] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The length of `span`."""
        return _seconds(self.span)


def analyse(
    spark: SparkSession,
    digests: Digests,
    width_ns: int,
    stage: Callable[[str], None],
    mesh: Configured | None = None,
    before: Analysis | None = None,
    questions: Questions = NONE,
) -> Analysis:
    """Make all tables and findings from digests whose stretches are `width_ns` long.

    Calls `stage` with the name of each part that begins. `mesh` is what was configured, `before` the analysis of a time
    to compare with; `questions` are for the table `what_if`.
    """
    frames = digests.frames
    flow_tables = flows(spark, frames, digests.clocks, stage)
    tables: dict[str, Rows] = {
        name: table.to_pylist() for name, table in flow_tables.tables.items()
    }
    nodes = tables["nodes"]
    span = _span(nodes)
    stage("usage")
    tables["usage"] = usage(frames["usage"])
    notes = not_attributed(tables["usage"], nodes)
    stage("structure")
    shape = structure(nodes, tables["edges"], tables["end_to_end"])
    edges = shape.merged(tables["edges"])
    stage("planning")
    planned = plan(frames, tables, span, width_ns, mesh, questions)
    tables |= planned.tables
    notes += planned.notes
    stage("trouble, subscriptions")
    # Side by side: planning their many small jobs keeps one core busy, and another idle.
    with ThreadPoolExecutor(1) as beside:
        about_subscriptions = beside.submit(find_subscriptions, frames, edges, span)
        findings = find_trouble(frames, edges, tables["links"], tables["clocks"], width_ns)
        findings += about_subscriptions.result()
    findings += shape.findings
    subscriptions = bridge_subscriptions(frames["states"])
    if mesh is not None:
        stage("configurations")
        drifted = drift(mesh, nodes, edges, subscriptions)
        edges = drifted.merged(edges)
        findings += drifted.findings
        notes += drifted.notes
    findings = worst_first(findings)
    tables |= {
        "edges": edges,
        "vpns": shape.vpns,
        "pairs": shape.pairs,
        "findings": rows_of(findings),
        "changes": [],
    }
    if before is not None:
        stage("changes")
        tables["changes"] = compare(before.tables, tables, before.seconds, _seconds(span))
    stage("advice")
    tables["advice"] = advise(findings, nodes, edges, shape, tables["changes"], subscriptions)
    return Analysis(
        tables=tables,
        findings=findings,
        topic_count=flow_tables.topic_count,
        width_ns=width_ns,
        span=span,
        notes=notes,
    )


def _seconds(span: tuple[int, int]) -> float:
    return (span[1] - span[0]) / SECOND_NS


def _span(nodes: Rows) -> tuple[int, int]:
    """Return the first and the last time of any message VPN; (0, 0) without any."""
    active = [row for row in nodes if row["first_ns"] is not None]
    if not active:
        return 0, 0
    return min(row["first_ns"] for row in active), max(row["last_ns"] for row in active)

"""From digests to everything that a report says: tables, findings, advice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from vpnrouter.topology.advice.advise import advise
from vpnrouter.topology.change.compare import compare
from vpnrouter.topology.change.configured import Configured, asked_by_bridges
from vpnrouter.topology.change.drift import drift
from vpnrouter.topology.digests.digest import Digests
from vpnrouter.topology.findings import Finding, rows_of, worst_first
from vpnrouter.topology.flows.derive import flows
from vpnrouter.topology.structure.structure import structure
from vpnrouter.topology.subscriptions.subscriptions import find_subscriptions
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.trouble import find_trouble

_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All result tables as rows by name (schemas in `vpnrouter.topology.schema`).

    `topic_count` counts all topics, of which the table has the busiest. `width_ns` is the length of a stretch of
    timeline and rates; `span` the first and last time that anything was seen, nanoseconds since 1970. `notes`
    are sentences about what could not be judged.
    """

    tables: dict[str, Rows]
    findings: list[Finding]
    topic_count: int
    width_ns: int
    span: tuple[int, int]
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long the time looked at is."""
        return (self.span[1] - self.span[0]) / _SECOND_NS


def analyse(
    spark: SparkSession,
    digests: Digests,
    width_ns: int,
    stage: Callable[[str], None],
    mesh: Configured | None = None,
    before: Analysis | None = None,
) -> Analysis:
    """Derive everything from digests whose stretches are `width_ns` long.

    `stage` hears what begins, `mesh` is what was configured, `before` an earlier time to compare with.
    """
    frames = digests.frames
    found = flows(spark, frames, digests.clocks, stage)
    tables: dict[str, Rows] = {name: table.to_pylist() for name, table in found.tables.items()}
    nodes = tables["nodes"]
    span = _span(nodes)
    stage("structure")
    shape = structure(nodes, tables["edges"], spark, tables["end_to_end"])
    edges = shape.merged(tables["edges"])
    stage("trouble, subscriptions")
    # Side by side: planning their many small jobs keeps one core busy, and another idle.
    with ThreadPoolExecutor(1) as beside:
        about_subscriptions = beside.submit(find_subscriptions, frames, edges, span)
        findings = find_trouble(frames, edges, tables["links"], tables["clocks"], width_ns)
        findings += about_subscriptions.result()
    findings += shape.findings
    notes: list[str] = []
    asked = asked_by_bridges(frames["states"])
    if mesh is not None:
        stage("configurations")
        drifted = drift(mesh, nodes, edges, asked)
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
        seconds = (span[1] - span[0]) / _SECOND_NS
        tables["changes"] = compare(before.tables, tables, before.seconds, seconds)
    stage("advice")
    tables["advice"] = advise(findings, nodes, edges, shape, tables["changes"], asked)
    return Analysis(
        tables=tables,
        findings=findings,
        topic_count=found.topic_count,
        width_ns=width_ns,
        span=span,
        notes=notes,
    )


def _span(nodes: Rows) -> tuple[int, int]:
    """First and last time that any message VPN was seen; (0, 0) when none was."""
    seen = [row for row in nodes if row["first_ns"] is not None]
    if not seen:
        return 0, 0
    return min(row["first_ns"] for row in seen), max(row["last_ns"] for row in seen)

"""A report in figures."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from vpnrouter.topology.analysis import Analysis
from vpnrouter.topology.input.inventory import Inventory
from vpnrouter.topology.page.page import PAGE
from vpnrouter.topology.tables import Rows


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a report found, in figures; `summary.json` is the same.

    Counts are of traced events; those named `_estimated` are scaled by the sampling rates, and
    None where a rate is not known. `findings` counts them by kind. `page` is "" where none was asked for.
    """

    files: int
    rows: int
    size_bytes: int
    set_aside: list[dict[str, str]]
    sampling: dict[str, float]
    routers: int
    vpns: int
    bridges: int
    topics: int
    ingress: int
    ingress_estimated: int | None
    bridged: int
    bridged_estimated: int | None
    delivered: int
    delivered_estimated: int | None
    discarded: int
    rejected: int
    findings: dict[str, int]
    errors: int
    warnings: int
    advice: int
    first_ns: int
    last_ns: int
    seconds: float
    notes: list[str]
    page: str


def summary_of(
    inventory: Inventory,
    analysis: Analysis,
    output: Path,
    seconds: float,
    *,
    paged: bool = True,
) -> Summary:
    """The figures of an analysis of an inventory that took `seconds`; the report goes to `output`.

    `paged`: a page is among its files.
    """
    nodes = analysis.tables["nodes"]
    edges = analysis.tables["edges"]
    traced = [node for node in nodes if node["traced"]]
    severities = Counter(one.severity for one in analysis.findings)
    first_ns, last_ns = analysis.span
    return Summary(
        files=len(inventory.files),
        rows=inventory.rows,
        size_bytes=inventory.size_bytes,
        set_aside=[{"path": str(one.path), "reason": one.reason} for one in inventory.set_aside],
        sampling=inventory.sampling(),
        routers=len({node["router"] for node in nodes}),
        vpns=len(nodes),
        bridges=len(edges),
        topics=analysis.topic_count,
        ingress=_total(nodes, "ingress"),
        ingress_estimated=_estimate(traced, "ingress_estimated"),
        bridged=_total(edges, "messages"),
        bridged_estimated=_estimate(edges, "messages_estimated"),
        delivered=_total(nodes, "delivered"),
        delivered_estimated=_estimate(traced, "delivered_estimated"),
        discarded=_total(nodes, "discarded"),
        rejected=_total(nodes, "rejected"),
        findings=dict(Counter(one.kind for one in analysis.findings)),
        errors=severities["error"],
        warnings=severities["warning"],
        advice=len(analysis.tables["advice"]),
        first_ns=first_ns,
        last_ns=last_ns,
        seconds=round(seconds, 1),
        notes=analysis.notes,
        page=str(output / PAGE) if paged else "",
    )


def _total(rows: Rows, name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _estimate(rows: Rows, name: str) -> int | None:
    values = [row[name] for row in rows]
    return None if None in values else sum(values)

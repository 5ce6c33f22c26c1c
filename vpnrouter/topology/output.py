"""Writes a report: its figures, its tables and its page."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from vpnrouter.topology import schema, tables
from vpnrouter.topology.analysis import Analysis
from vpnrouter.topology.input.inventory import Inventory
from vpnrouter.topology.page.contents import Contents
from vpnrouter.topology.page.page import PAGE, page
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


HTML: Final = "html"
JSON: Final = "json"
PARQUET: Final = "parquet"
FORMATS: Final = frozenset({HTML, JSON, PARQUET})

SCHEMAS: Final = {
    "nodes": schema.NODES,
    "edges": schema.EDGES,
    "rates": schema.RATES,
    "latencies": schema.LATENCIES,
    "end_to_end": schema.END_TO_END,
    "clocks": schema.CLOCKS,
    "links": schema.LINKS,
    "ways": schema.WAYS,
    "lengths": schema.LENGTHS,
    "topics": schema.TOPICS,
    "discards": schema.DISCARDS,
    "timeline": schema.TIMELINE,
    "vpns": schema.VPNS,
    "pairs": schema.PAIRS,
    "changes": schema.CHANGES,
    "findings": schema.FINDINGS,
    "advice": schema.ADVICE,
}
"""Every result table by the name of its files."""


def write_report(
    output: Path, summary: Summary, analysis: Analysis, formats: frozenset[str]
) -> None:
    """Write the tables in the formats asked for, `summary.json`, and the page last.

    Each file takes the place of an older one in one step.

    Raises:
        OperationError: a file cannot be written.
    """
    tables.prepare(output, parquet=PARQUET in formats)
    for name, columns in SCHEMAS.items():
        rows = analysis.tables[name]
        if PARQUET in formats:
            tables.write_parquet(output, name, rows, columns)
        if JSON in formats:
            tables.write_rows(output, name, rows)
    figures = asdict(summary)
    tables.write_object(output, "summary", figures)
    if HTML in formats:
        tables.write_text(output / PAGE, page(figures, contents_of(analysis)))


def contents_of(analysis: Analysis) -> Contents:
    """What the page is made of."""
    known = {one.name for one in fields(Contents)}
    return Contents(
        **{name: rows for name, rows in analysis.tables.items() if name in known},
        topic_count=analysis.topic_count,
        timeline_width_ns=analysis.width_ns,
        span=analysis.span,
        notes=analysis.notes,
    )

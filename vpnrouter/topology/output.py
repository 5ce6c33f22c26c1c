"""Writes a report: its tables, its figures and its page."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from vpnrouter.topology import schema, tables
from vpnrouter.topology.analysis import Analysis
from vpnrouter.topology.page.contents import Contents
from vpnrouter.topology.page.page import PAGE, page
from vpnrouter.topology.summary import Summary

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

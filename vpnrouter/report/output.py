"""Writes a report: its figures, its tables as Parquet and JSON from the driver, and its page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from vpnrouter.limits import REPORT_LAKEHOUSE_AT_A_TIME
from vpnrouter.report import schema
from vpnrouter.report.analysis import Analysis
from vpnrouter.report.lakehouse.formats import Lakehouse
from vpnrouter.report.page.contents import Contents
from vpnrouter.report.page.page import PAGE, page
from vpnrouter.report.schema import DATE, Rows
from vpnrouter.report.traces.inventory import Inventory
from vpnrouter.report.traces.storage import LOCAL, Storage, below
from vpnrouter.units import SECOND_NS

FOLDER: Final = "tables"
"""Directory of the Parquet files under a report's output directory."""


def day_of(analysis: Analysis) -> date:
    """Return the last day that an analysis covers, UTC; 1970-01-01 where nothing was seen."""
    return datetime.fromtimestamp(analysis.span[1] // SECOND_NS, UTC).date()


def newest_table(report: Path, name: str) -> pa.Table:
    """Return a table of the latest day in a report's directory on this machine, without the column `date`.

    Raises:
        ValueError: there is none.
    """
    newest = max((report / FOLDER / name).glob(f"{DATE}=*/{name}.parquet"))
    return pq.read_table(newest, partitioning=None)


def parquet_of(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


class Output:
    """The directory of a report, `place` on `storage`. Each file replaces an older one in one step.

    All methods raise an OperationError where a file cannot be written.
    """

    def __init__(self, place: str, storage: Storage = LOCAL) -> None:
        self.place = place
        self.storage = storage

    def prepare(self) -> None:
        """Make the directory."""
        self.storage.make(self.place)

    def parquet(self, name: str, day: date, rows: Rows, columns: StructType) -> None:
        """Write `tables/NAME/date=DAY/NAME.parquet` with these columns, in the place of an older one of that day."""
        table = pa.Table.from_pylist(rows, schema=to_arrow_schema(columns))
        self._write(f"{FOLDER}/{name}/{DATE}={day}/{name}.parquet", parquet_of(table))

    def rows(self, name: str, rows: Rows) -> None:
        """Write `NAME.json`, a list of objects."""
        self.text(f"{name}.json", _listed(rows))

    def object(self, name: str, value: Mapping[str, Any]) -> None:
        """Write `NAME.json` with one object."""
        self.text(f"{name}.json", json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def text(self, name: str, text: str) -> None:
        """Write a text file."""
        self._write(name, text.encode(errors="replace"))

    def _write(self, name: str, data: bytes) -> None:
        self.storage.write(below(self.place, name), data)


def _listed(rows: Rows) -> str:
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n" if rows else "[]\n"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of a report, as `summary.json` has them.

    Counts are of traced events; `*_estimated` are scaled by the sampling rates, None where a rate is not known.
    `findings` counts them by kind. `page` is "" without a page.
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
    output: str,
    seconds: float,
    *,
    paged: bool = True,
) -> Summary:
    """Return the figures of an analysis of an inventory that took `seconds`; the report goes to `output`.

    `paged`: a page is among its files.
    """
    nodes = analysis.tables["nodes"]
    edges = analysis.tables["edges"]
    traced = [node for node in nodes if node["traced"]]
    severities = Counter(finding.severity for finding in analysis.findings)
    first_ns, last_ns = analysis.span
    return Summary(
        files=len(inventory.files),
        rows=inventory.rows,
        size_bytes=inventory.size_bytes,
        set_aside=[{"path": file.path, "reason": file.reason} for file in inventory.set_aside],
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
        findings=dict(Counter(finding.kind for finding in analysis.findings)),
        errors=severities["error"],
        warnings=severities["warning"],
        advice=len(analysis.tables["advice"]),
        first_ns=first_ns,
        last_ns=last_ns,
        seconds=round(seconds, 1),
        notes=analysis.notes,
        page=below(output, PAGE) if paged else "",
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
"""What a report is written as, where nothing else is asked for; `lakehouse.formats` has more."""

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
    "providers": schema.PROVIDERS,
    "timeline": schema.TIMELINE,
    "usage": schema.USAGE,
    "vpns": schema.VPNS,
    "pairs": schema.PAIRS,
    "what_if": schema.WHAT_IF,
    "blast_radius": schema.BLAST_RADIUS,
    "growth": schema.GROWTH,
    "changes": schema.CHANGES,
    "findings": schema.FINDINGS,
    "advice": schema.ADVICE,
}
"""Every result table by the name of its files."""


def write_report(
    output: Output,
    summary: Summary,
    analysis: Analysis,
    formats: frozenset[str],
    lakehouses: Iterable[Lakehouse] = (),
) -> None:
    """Write the tables in the requested formats and to the lakehouses, `summary.json`, and the page last.

    Raises:
        OperationError: a file cannot be written.
    """
    output.prepare()
    day = day_of(analysis)
    for name, columns in SCHEMAS.items():
        rows = analysis.tables[name]
        if PARQUET in formats:
            output.parquet(name, day, rows, columns)
        if JSON in formats:
            output.rows(name, rows)
    with ThreadPoolExecutor(REPORT_LAKEHOUSE_AT_A_TIME) as writers:
        done = [
            writers.submit(lakehouse.replace, name, day, analysis.tables[name], columns)
            for lakehouse in lakehouses
            for name, columns in SCHEMAS.items()
        ]
        for one in done:
            one.result()
    figures = asdict(summary)
    output.object("summary", figures)
    if HTML in formats:
        output.text(PAGE, page(figures, contents_of(analysis)))


def contents_of(analysis: Analysis) -> Contents:
    """Return the page's contents from an analysis."""
    known = {field.name for field in fields(Contents)}
    return Contents(
        **{name: rows for name, rows in analysis.tables.items() if name in known},
        topic_count=analysis.topic_count,
        timeline_width_ns=analysis.width_ns,
        span=analysis.span,
        notes=analysis.notes,
    )

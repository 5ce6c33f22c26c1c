"""From trace files to a report: inventory, Spark jobs, tables, page."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.topology import tables
from vpnrouter.topology.engine.progress import Progress, Quiet, watched
from vpnrouter.topology.engine.session import DamagedTraceFile, spark_errors, spark_session
from vpnrouter.topology.flows.discards import discards, worst
from vpnrouter.topology.flows.edges import edges
from vpnrouter.topology.flows.nodes import nodes, with_far_ends
from vpnrouter.topology.flows.stretches import width_for
from vpnrouter.topology.flows.timeline import timeline
from vpnrouter.topology.flows.topics import busiest, topics
from vpnrouter.topology.input.inventory import Inventory, take_inventory
from vpnrouter.topology.input.read import read_traces
from vpnrouter.topology.limits import (
    REPORT_DAMAGED_FILES,
    REPORT_DISCARDS,
    REPORT_SHUFFLE_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS_MOST,
    REPORT_TOPICS,
)
from vpnrouter.topology.page.page import PAGE, Findings, page
from vpnrouter.topology.schema import EDGES

_LOG: Final = "spark.log"
_ROWS_PER_PARTITION: Final = 1_000_000
_SHORT_ROWS: Final = 15_000_000
"""Up to here, measured, Java is done sooner when it compiles lightly."""
_NAMED_AT_MOST: Final = 10


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a report found, in figures; `summary.json` is the same.

    Counts are of traced events; those named `_estimated` are scaled by the sampling rates, and
    None where a rate is not known.
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
    first_ns: int
    last_ns: int
    seconds: float
    page: str


def build_report(
    traces: Sequence[Path],
    output: Path,
    master: str = "local[*]",
    progress: Progress | None = None,
) -> Summary:
    """Read the traces, write the report into `output` and say what it holds.

    Files: `report.html`, `summary.json`, and for each of nodes, edges, topics, discards and
    timeline `NAME.json` and `tables/NAME.parquet`. Damaged files are set aside and named, also
    where only Spark finds them out.

    Raises:
        OperationError: nothing to report on, a file of a newer trace format, no Java, a failure of
        Spark (then
            `spark.log` stays in `output`), or the output cannot be written.
    """
    begun = time.monotonic()
    teller = progress or Quiet()
    teller.stage("trace files")
    inventory = take_inventory(traces, leave_out=output)
    _require_rows(inventory)
    tables.prepare(output)
    log = output / _LOG
    teller.stage("Spark starts")
    try:
        with spark_session(
            master,
            log=log,
            shuffle_partitions=partitions_for(inventory),
            short=inventory.rows < _SHORT_ROWS,
        ) as spark:
            findings, inventory = run_jobs(spark, inventory, output, teller)
    except OperationError as error:
        raise OperationError(
            f"{error} (Java's output: {log})" if log.exists() else str(error)
        ) from None
    log.unlink(missing_ok=True)
    teller.stage("page")
    summary = _summary(inventory, findings, output, time.monotonic() - begun)
    tables.write_object(output, "summary", asdict(summary))
    tables.write_text(output / PAGE, page(asdict(summary), findings))
    return summary


def run_jobs(
    spark: SparkSession, inventory: Inventory, output: Path, progress: Progress
) -> tuple[Findings, Inventory]:
    """Run all jobs and write their tables; each time Spark stumbles over a file, again without it.

    Returns the tables and what is left of the inventory.

    Raises:
        OperationError: no file is left, too many are damaged, Spark failed, or the output cannot be
            written.
    """
    for _ in range(REPORT_DAMAGED_FILES):
        try:
            with spark_errors(), watched(spark, progress):
                return _findings(spark, inventory, output, progress), inventory
        except DamagedTraceFile as damaged:
            if all(file.path != damaged.path for file in inventory.files):
                raise
            inventory = inventory.without(damaged.path, "damaged: its contents cannot be read")
            _require_rows(inventory)
    raise OperationError(
        f"more than {REPORT_DAMAGED_FILES} damaged trace files, the last one "
        f"{inventory.set_aside[-1].path}"
    )


def _findings(
    spark: SparkSession, inventory: Inventory, output: Path, progress: Progress
) -> Findings:
    rows = read_traces(spark, inventory)

    def done(stage: str, name: str, job: Callable[[], DataFrame]) -> tables.Rows:
        progress.stage(stage)
        return tables.write_table(output, name, job().toArrow())

    progress.stage("bridges")
    edge_table = edges(rows).toArrow()
    edge_rows = tables.write_table(output, "edges", edge_table)
    small_edges = spark.createDataFrame(edge_table, EDGES)
    node_rows = done("message VPNs", "nodes", lambda: with_far_ends(nodes(rows), small_edges))
    seen = Observation()
    counted = topics(rows).observe(seen, F.count(F.lit(1)).alias("topics"))
    topic_rows = done("topics", "topics", lambda: busiest(counted, REPORT_TOPICS))
    discard_rows = done("discards", "discards", lambda: worst(discards(rows), REPORT_DISCARDS))
    first_ns, last_ns = _span(node_rows)
    width_ns = width_for(last_ns - first_ns)
    timeline_rows = done("timeline", "timeline", lambda: timeline(rows, width_ns))
    return Findings(
        nodes=node_rows,
        edges=edge_rows,
        topics=topic_rows,
        topic_count=int(seen.get["topics"]),
        discards=discard_rows,
        timeline=timeline_rows,
        timeline_width_ns=width_ns,
    )


def _summary(inventory: Inventory, findings: Findings, output: Path, seconds: float) -> Summary:
    def total(name: str) -> int:
        return sum(node[name] or 0 for node in findings.nodes)

    def estimate(rows: list[dict[str, Any]], name: str) -> int | None:
        values = [row[name] for row in rows]
        return None if None in values else sum(values)

    traced = [node for node in findings.nodes if node["traced"]]

    first_ns, last_ns = _span(findings.nodes)
    return Summary(
        files=len(inventory.files),
        rows=inventory.rows,
        size_bytes=inventory.size_bytes,
        set_aside=[{"path": str(one.path), "reason": one.reason} for one in inventory.set_aside],
        sampling=inventory.sampling(),
        routers=len({node["router"] for node in findings.nodes}),
        vpns=len(findings.nodes),
        bridges=len(findings.edges),
        topics=findings.topic_count,
        ingress=total("ingress"),
        ingress_estimated=estimate(traced, "ingress_estimated"),
        bridged=sum(edge["messages"] for edge in findings.edges),
        bridged_estimated=estimate(findings.edges, "messages_estimated"),
        delivered=total("delivered"),
        delivered_estimated=estimate(traced, "delivered_estimated"),
        discarded=total("discarded"),
        rejected=total("rejected"),
        first_ns=first_ns,
        last_ns=last_ns,
        seconds=round(seconds, 1),
        page=str(output / PAGE),
    )


def _span(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """First and last time that any message VPN was seen; (0, 0) when none was."""
    seen = [row for row in rows if row["first_ns"] is not None]
    if not seen:
        return 0, 0
    return min(row["first_ns"] for row in seen), max(row["last_ns"] for row in seen)


def _require_rows(inventory: Inventory) -> None:
    if inventory.files:
        return
    named = [f"{one.path}: {one.reason}" for one in inventory.set_aside[:_NAMED_AT_MOST]]
    more = len(inventory.set_aside) - len(named)
    lines = ["nothing to report on: no readable trace file", *named]
    raise OperationError("\n  ".join(lines + ([f"and {more} more"] if more > 0 else [])))


def partitions_for(inventory: Inventory) -> int:
    """Partitions for Spark's groupings: one per million rows, within bounds."""
    wanted = inventory.rows // _ROWS_PER_PARTITION
    return max(REPORT_SHUFFLE_PARTITIONS, min(wanted, REPORT_SHUFFLE_PARTITIONS_MOST))

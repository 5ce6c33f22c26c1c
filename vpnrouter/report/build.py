"""Builds a report from trace files: inventory, digests, analysis, tables, page."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.limits import (
    REPORT_DAMAGED_FILES,
    REPORT_FOLLOW_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS_MOST,
)
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.change.configured import Configured
from vpnrouter.report.digests.digest import digested
from vpnrouter.report.flows.collect import width_for
from vpnrouter.report.inventory import Inventory, Span, take_inventory
from vpnrouter.report.output import (
    FORMATS,
    HTML,
    Summary,
    summary_of,
    write_report,
)
from vpnrouter.report.spark import (
    DamagedTraceFile,
    NoProgress,
    Progress,
    read_traces,
    read_until,
    spark_errors,
    spark_session,
    watched,
    wrong_times,
)

_LOG: Final = "spark.log"
_ROWS_PER_PARTITION: Final = 1_000_000
_SHORT_ROWS: Final = 2_000_000
"""Up to here, measured, Java is done sooner when it compiles lightly."""
_NAMED_AT_MOST: Final = 10


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What to report on.

    `traces` are directories and single files; `span` is the time to report on, `against` another one to compare it
    with; `mesh` is what is configured. `formats` are of FORMATS.
    """

    traces: Sequence[Path]
    output: Path
    master: str = "local[*]"
    span: Span = field(default_factory=Span)
    against: Span | None = None
    mesh: Configured | None = None
    formats: frozenset[str] = FORMATS


def build_report(request: ReportRequest, progress: Progress | None = None) -> Summary:
    """Read the traces, write the report into `request.output` and return its figures.

    docs/report.md lists the files. Damaged files are set aside and named, also those that only Spark finds.

    Raises:
        OperationError: nothing to report on, a file of a newer trace format, no Java, a failure of
            Spark (then `spark.log` stays in the output), or the output cannot be written.
    """
    begin_s = time.monotonic()
    listener = progress or NoProgress()
    listener.stage("trace files")
    inventory = take_inventory(request.traces, leave_out=request.output, span=request.span)
    require_rows(inventory)
    compared = _inventory_before(request)
    with spark_for(request, inventory, listener) as spark:
        before = None
        if compared is not None:
            then = replace(request, span=request.against or Span(), against=None, mesh=None)
            before, compared = run_jobs(spark, compared, then, listener)
            inventory = inventory.without_any(compared.set_aside)
            require_rows(inventory)
        analysis, inventory = run_jobs(spark, inventory, request, listener, before)
    listener.stage("page")
    seconds = time.monotonic() - begin_s
    paged = HTML in request.formats
    summary = summary_of(inventory, analysis, request.output, seconds, paged=paged)
    write_report(request.output, summary, analysis, request.formats)
    return summary


@contextmanager
def spark_for(
    request: ReportRequest, inventory: Inventory, progress: Progress, *, lasting: bool = False
) -> Iterator[SparkSession]:
    """Start a session for an inventory. Java's log stays in the output if Spark fails. `lasting` is for a session that
    runs on: it starts slower and works faster.

    Raises:
        OperationError: the output cannot be written, or Spark failed.
    """
    try:
        request.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationError(
            f"cannot write a report to {request.output}: {error.strerror}"
        ) from error
    log = request.output / _LOG
    progress.stage("Spark starts")
    try:
        with spark_session(
            request.master,
            log=log,
            shuffle_partitions=REPORT_FOLLOW_PARTITIONS if lasting else REPORT_SHUFFLE_PARTITIONS,
            short=inventory.rows < _SHORT_ROWS and not lasting,
        ) as spark:
            yield spark
    except OperationError as error:
        raise OperationError(
            f"{error} (Java's output: {log})" if log.exists() else str(error)
        ) from None
    except KeyboardInterrupt:
        log.unlink(missing_ok=True)
        raise
    log.unlink(missing_ok=True)


def run_jobs(
    spark: SparkSession,
    inventory: Inventory,
    request: ReportRequest,
    progress: Progress,
    before: Analysis | None = None,
) -> tuple[Analysis, Inventory]:
    """Run all jobs, again without a file whenever Spark cannot read it.

    Returns the analysis and what is left of the inventory.

    Raises:
        OperationError: no file is left, too many are damaged, or Spark failed.
    """
    for _ in range(REPORT_DAMAGED_FILES):
        try:
            with spark_errors(), watched(spark, progress):
                return _analysed(spark, inventory, request, progress, before), inventory
        except DamagedTraceFile as damaged:
            known = (*inventory.files, *inventory.earlier)
            if all(file.path != damaged.path for file in known):
                raise
            inventory = inventory.without(damaged.path, "damaged: its contents cannot be read")
            require_rows(inventory)
    raise OperationError(
        f"more than {REPORT_DAMAGED_FILES} damaged trace files, the last one "
        f"{inventory.set_aside[-1].path}"
    )


def _analysed(
    spark: SparkSession,
    inventory: Inventory,
    request: ReportRequest,
    progress: Progress,
    before: Analysis | None,
) -> Analysis:
    traces = read_traces(spark, inventory, request.span)
    first_ns, last_ns = inventory.times()
    if first_ns is None or last_ns is None:
        ends = traces.agg(F.min("ts_ns"), F.max("ts_ns")).first()
        first_ns, last_ns = (ends[0] or 0, ends[1] or 0) if ends is not None else (0, 0)
    first_ns = max(first_ns, request.span.since_ns or first_ns)
    last_ns = min(last_ns, request.span.until_ns or last_ns)
    width_ns = width_for(last_ns - first_ns)
    earlier = read_until(spark, inventory, request.span)
    partitions = partitions_for(inventory)
    small = inventory.rows < _SHORT_ROWS
    with digested(
        traces,
        earlier,
        request.span.since_ns,
        width_ns,
        partitions,
        progress,
        small=small,
        hosts=inventory.hosts(),
    ) as digests:
        analysis = analyse(spark, digests, width_ns, progress.stage, request.mesh, before)
    return replace(analysis, notes=[*wrong_times(spark, inventory), *analysis.notes])


def _inventory_before(request: ReportRequest) -> Inventory | None:
    """Return the inventory of the time to compare with, if one is requested.

    Raises:
        OperationError: there is no readable trace file of that time.
    """
    if request.against is None:
        return None
    inventory = take_inventory(request.traces, leave_out=request.output, span=request.against)
    if not inventory.files:
        raise OperationError("nothing to compare with: no readable trace file in the time before")
    return inventory


def require_rows(inventory: Inventory) -> None:
    """Refuse an inventory without a readable file.

    Raises:
        OperationError: there is none; it names what was set aside.
    """
    if inventory.files:
        return
    named = [f"{file.path}: {file.reason}" for file in inventory.set_aside[:_NAMED_AT_MOST]]
    more = len(inventory.set_aside) - len(named)
    if inventory.earlier:
        named.append(f"{len(inventory.earlier)} files lie before the time asked for")
    if more > 0:
        named.append(f"and {more} more")
    raise OperationError("nothing to report on: no readable trace file", named)


def partitions_for(inventory: Inventory) -> int:
    """Return the number of partitions of the one grouping that moves rows: one per million rows, within bounds."""
    count = inventory.rows // _ROWS_PER_PARTITION
    return max(REPORT_SHUFFLE_PARTITIONS, min(count, REPORT_SHUFFLE_PARTITIONS_MOST))

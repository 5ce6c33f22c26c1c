"""Runs the jobs of a report on an inventory of trace files: digests, analysis, and again without damaged files."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.limits import (
    REPORT_DAMAGED_FILES,
    REPORT_KEPT_BYTES,
    REPORT_SHUFFLE_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS_MOST,
)
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.asyncapi.collect import vpn_channels
from vpnrouter.report.digests.condense import WrongContexts
from vpnrouter.report.digests.digest import Digests, digested
from vpnrouter.report.engine.failures import DamagedTraceFile, spark_errors
from vpnrouter.report.engine.kept import KeptFrames
from vpnrouter.report.engine.progress import Progress, watched
from vpnrouter.report.flows.collect import width_for
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.inventory import Inventory
from vpnrouter.report.traces.rows import TraceRows, read_traces, wrong_times
from vpnrouter.report.traces.span import Span

SHORT_ROWS: Final = 2_000_000
"""Up to here, measured, Java is done sooner when it compiles lightly."""

_ROWS_PER_PARTITION: Final = 1_000_000
_NAMED_AT_MOST: Final = 10
_MANY_FILES: Final = 100
_TINY_BYTES: Final = 1 << 18

T = TypeVar("T")


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

    def work(left: Inventory) -> Analysis:
        require_rows(left)
        with watched(spark, progress):
            return _analysed(spark, left, request, progress, before)

    return without_damaged(inventory, work)


def without_damaged(inventory: Inventory, work: Callable[[Inventory], T]) -> tuple[T, Inventory]:
    """Return what `work` makes of an inventory, and what is left of it: again without a file whenever Spark cannot read
    it.

    Raises:
        OperationError: too many files are damaged, or Spark failed.
    """
    for _ in range(REPORT_DAMAGED_FILES):
        try:
            with spark_errors():
                return work(inventory), inventory
        except DamagedTraceFile as damaged:
            known = (*inventory.files, *inventory.earlier)
            if all(file.path != damaged.path for file in known):
                raise
            inventory = inventory.without(damaged.path, "damaged: its contents cannot be read")
    raise OperationError(
        f"more than {REPORT_DAMAGED_FILES} damaged trace files, the last one "
        f"{inventory.set_aside[-1].path}"
    )


@contextmanager
def digested_files(
    spark: SparkSession,
    inventory: Inventory,
    span: Span,
    width_ns: int | None,
    progress: Progress,
) -> Iterator[tuple[Digests, int, TraceRows]]:
    """Yield the digests of the rows of an inventory that lie in `span`, the length of their stretches, and the rows.

    Without `width_ns`, stretches suit the time of the rows.
    """
    with ExitStack() as stack:
        traces = read_traces(spark, inventory, span)
        if width_ns is None:
            width_ns = _width_of(inventory, span, traces)

        def enter(rows: TraceRows) -> Digests:
            if _are_tiny(inventory):
                stack.enter_context(KeptFrames()).keep(rows.rows)
            return stack.enter_context(
                digested(
                    rows,
                    span.since_ns,
                    width_ns,
                    partitions_for(inventory),
                    progress,
                    small=inventory.rows < SHORT_ROWS,
                    hosts=inventory.hosts(),
                )
            )

        try:
            digests = enter(traces)
        except WrongContexts:
            traces = read_traces(spark, inventory, span, with_contexts=False)
            digests = enter(traces)
        yield digests, width_ns, traces


def _width_of(inventory: Inventory, span: Span, traces: TraceRows) -> int:
    first_ns, last_ns = inventory.times()
    if first_ns is None or last_ns is None:
        ends = traces.rows.agg(F.min("ts_ns"), F.max("ts_ns")).first()
        first_ns, last_ns = (ends[0] or 0, ends[1] or 0) if ends is not None else (0, 0)
    return width_for(
        min(last_ns, span.until_ns or last_ns) - max(first_ns, span.since_ns or first_ns)
    )


def _analysed(
    spark: SparkSession,
    inventory: Inventory,
    request: ReportRequest,
    progress: Progress,
    before: Analysis | None,
) -> Analysis:
    with digested_files(spark, inventory, request.span, None, progress) as found:
        digests, width_ns, traces = found
        analysis = analyse(
            spark, digests, width_ns, progress.stage, request.mesh, before, request.questions
        )
        channels = []
        if request.asyncapi is not None:
            progress.stage("channels")
            nodes = analysis.tables["nodes"]
            channels = vpn_channels(spark, digests.frames["uses"], traces.rows, nodes)
    rows = digests.rows if request.span == Span() else None
    notes = [*wrong_times(spark, inventory, rows), *analysis.notes]
    return replace(analysis, notes=notes, channels=channels)


def _are_tiny(inventory: Inventory) -> bool:
    """Return whether to open the files costs more than to read them, and their rows have room as a whole."""
    many = len(inventory.files)
    size = inventory.size_bytes
    return many >= _MANY_FILES and size / many < _TINY_BYTES and size < REPORT_KEPT_BYTES


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

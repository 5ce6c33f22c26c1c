"""Builds a report from trace files: inventory, digests, analysis, tables, page."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.limits import (
    REPORT_DAMAGED_FILES,
    REPORT_FOLLOW_PARTITIONS,
    REPORT_KEPT_BYTES,
    REPORT_SHUFFLE_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS_MOST,
)
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.asyncapi.collect import vpn_channels
from vpnrouter.report.asyncapi.document import Observed
from vpnrouter.report.asyncapi.write import write_documents
from vpnrouter.report.change.configured import Configured
from vpnrouter.report.digests.condense import WrongContexts
from vpnrouter.report.digests.digest import digested
from vpnrouter.report.engine.failures import DamagedTraceFile, spark_errors
from vpnrouter.report.engine.progress import NoProgress, Progress, watched
from vpnrouter.report.engine.remote import is_beside, remote_storage
from vpnrouter.report.engine.session import (
    SparkSettings,
    adopted_session,
    connected_session,
    spark_session,
    surrounding_session,
)
from vpnrouter.report.flows.collect import width_for
from vpnrouter.report.lakehouse.delta import DeltaTables
from vpnrouter.report.lakehouse.iceberg import IcebergTables
from vpnrouter.report.lakehouse.library import (
    DELTA,
    FOLDER,
    ICEBERG,
    LAKEHOUSE,
    Lakehouse,
    packages_for,
)
from vpnrouter.report.output import (
    FORMATS,
    HTML,
    Output,
    Summary,
    summary_of,
    write_report,
)
from vpnrouter.report.planning.questions import NONE, Questions
from vpnrouter.report.traces.inventory import Inventory, take_inventory
from vpnrouter.report.traces.rows import TraceRows, read_traces, wrong_times
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import LOCAL, Storages, below, is_uri

_LOG: Final = "spark.log"
_ROWS_PER_PARTITION: Final = 1_000_000
_SHORT_ROWS: Final = 2_000_000
"""Up to here, measured, Java is done sooner when it compiles lightly."""
_NAMED_AT_MOST: Final = 10
_MANY_FILES: Final = 100
_TINY_BYTES: Final = 1 << 18


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What to report on.

    `traces` are places of directories and single files, `output` is the place of the report (`traces.storage`); `span`
    is the time to report on, `against` another one to compare it with; `mesh` is what is configured. `questions` are
    for the table `what_if`. `formats` are of FORMATS and LAKEHOUSE; `catalog` is that of Iceberg tables, `NAME` or
    `NAME.NAMESPACE`, where it is not the report's own. `asyncapi` is the place of the AsyncAPI documents; without one
    there are none.
    """

    traces: Sequence[str]
    output: str
    spark: SparkSettings = field(default_factory=SparkSettings)
    span: Span = field(default_factory=Span)
    against: Span | None = None
    mesh: Configured | None = None
    questions: Questions = NONE
    formats: frozenset[str] = FORMATS
    catalog: str = ""
    asyncapi: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether all traces can be read without Spark."""
        return not self.spark.connect and not any(map(is_uri, self.traces))


def build_report(
    request: ReportRequest,
    progress: Progress | None = None,
    session: SparkSession | None = None,
) -> Summary:
    """Read the traces, write the report into `request.output` and return its figures.

    docs/report.md lists the files. Damaged files are set aside and named, also those that only Spark finds. `session`
    is one that the caller has; without it, that of spark-submit or a notebook is used, or one is started.

    Raises:
        OperationError: nothing to report on, a file of a newer trace format, no Java, a failure of
            Spark (then the log of Java stays, and is named), or the output cannot be written.
    """
    begin_s = time.monotonic()
    listener = progress or NoProgress()
    inventories = None
    if request.is_here and session is None:
        listener.stage("trace files")
        inventories = take_inventories(request, Storages())
    with engine_for(request, inventories, listener, session=session) as engine:
        if inventories is None:
            listener.stage("trace files")
            inventories = take_inventories(request, engine.traces)
        inventory, compared = inventories
        before = None
        if compared is not None:
            then = replace(
                request, span=request.against or Span(), against=None, mesh=None, asyncapi=None
            )
            before, compared = run_jobs(engine.spark, compared, then, listener)
            inventory = inventory.without_any(compared.set_aside)
            require_rows(inventory)
        analysis, inventory = run_jobs(engine.spark, inventory, request, listener, before)
        listener.stage("page")
        seconds = time.monotonic() - begin_s
        paged = HTML in request.formats
        summary = summary_of(inventory, analysis, request.output, seconds, paged=paged)
        write_report(engine.output, summary, analysis, request.formats, engine.lakehouses)
        if engine.documents is not None:
            listener.stage("AsyncAPI documents")
            observed = Observed(span=analysis.span, sampling=inventory.sampling())
            write_documents(engine.documents.text, analysis.channels, observed)
    return summary


Inventories = tuple[Inventory, Inventory | None]
"""Of the time to report on, and of the time to compare with."""


def take_inventories(request: ReportRequest, storages: Storages) -> Inventories:
    """Return the inventories of a request.

    Raises:
        OperationError: nothing to report on or to compare with, or a file of a newer trace format.
    """
    inventory = _inventory_of(request, request.span, storages)
    require_rows(inventory)
    if request.against is None:
        return inventory, None
    compared = _inventory_of(request, request.against, storages)
    if not compared.files:
        raise OperationError("nothing to compare with: no readable trace file in the time before")
    return inventory, compared


def _inventory_of(request: ReportRequest, span: Span, storages: Storages) -> Inventory:
    return take_inventory(request.traces, leave_out=request.output, span=span, storages=storages)


@dataclass(frozen=True)
class Engine:
    """A session of Spark, where the traces are that it reads, and where the report, the AsyncAPI documents and tables
    of other formats go.
    """

    spark: SparkSession
    traces: Storages
    output: Output
    documents: Output | None = None
    lakehouses: tuple[Lakehouse, ...] = ()


@contextmanager
def engine_for(
    request: ReportRequest,
    inventories: Inventories | None,
    progress: Progress,
    *,
    lasting: bool = False,
    session: SparkSession | None = None,
) -> Iterator[Engine]:
    """Begin a session for the inventories, which are None where Spark lists them. Java's log stays where Spark fails.
    `lasting` is for a session that runs on: it starts slower and works faster. `session` is one that the caller has.

    Raises:
        OperationError: the output cannot be written, or Spark failed.
    """
    places = [place for place in (request.output, request.asyncapi) if place is not None]
    for place in places:
        if not is_uri(place):
            LOCAL.make(place)
    progress.stage("Spark starts")
    given = session or (None if request.spark.connect else surrounding_session())
    rows = None if inventories is None else inventories[0].rows
    with ExitStack() as cleanup:
        if given is not None:
            if request.spark.master:
                raise OperationError("--master: Spark runs already, with a master of its own")
            spark = cleanup.enter_context(adopted_session(given))
        elif request.spark.connect:
            spark = cleanup.enter_context(connected_session(request.spark))
        else:
            short = rows is not None and rows < _SHORT_ROWS and not lasting
            spark = cleanup.enter_context(_started(request, lasting=lasting, short=short))
        remote = remote_storage(spark)
        storages = Storages(remote, elsewhere=not is_beside(spark))
        outputs = [Output(place, remote if is_uri(place) else LOCAL) for place in places]
        for output in outputs:
            # Before hours of work, and not after them.
            output.prepare()
        lakehouses = tuple(
            cleanup.enter_context(closing(one)) for one in _lakehouses(spark, request, outputs[0])
        )
        documents = outputs[1] if request.asyncapi is not None else None
        yield Engine(spark, storages, outputs[0], documents, lakehouses)


def _lakehouses(spark: SparkSession, request: ReportRequest, output: Output) -> Iterator[Lakehouse]:
    """Yield what writes the tables in the formats of lakehouses.

    Raises:
        OperationError: the session is one of Spark Connect, its Java has no library of the format, or there is no such
            catalog.
    """
    asked = request.formats & LAKEHOUSE
    if asked and not is_beside(spark):
        raise OperationError(
            f"--format {min(asked)} is written beside Spark's driver: not with Spark Connect"
        )
    place = below(output.place, FOLDER)
    if ICEBERG in asked:
        yield IcebergTables(spark, place, request.catalog)
    if DELTA in asked:
        yield DeltaTables(spark, place, output.storage)


@contextmanager
def _started(request: ReportRequest, *, lasting: bool, short: bool) -> Iterator[SparkSession]:
    """Start Spark; its log is beside the report, or under a name for temporary files where that is elsewhere."""
    folder = Path(tempfile.gettempdir() if is_uri(request.output) else request.output)
    log = folder / (f"vpnrouter-{os.getpid()}-{_LOG}" if is_uri(request.output) else _LOG)
    try:
        with spark_session(
            request.spark.master,
            conf=request.spark.conf,
            log=log,
            shuffle_partitions=REPORT_FOLLOW_PARTITIONS if lasting else REPORT_SHUFFLE_PARTITIONS,
            short=short,
            packages=packages_for(request.formats),
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
    try:
        return _analysed_rows(spark, inventory, request, progress, before, traces)
    except WrongContexts:
        traces = read_traces(spark, inventory, request.span, with_contexts=False)
        return _analysed_rows(spark, inventory, request, progress, before, traces)


def _analysed_rows(
    spark: SparkSession,
    inventory: Inventory,
    request: ReportRequest,
    progress: Progress,
    before: Analysis | None,
    traces: TraceRows,
) -> Analysis:
    first_ns, last_ns = inventory.times()
    if first_ns is None or last_ns is None:
        ends = traces.rows.agg(F.min("ts_ns"), F.max("ts_ns")).first()
        first_ns, last_ns = (ends[0] or 0, ends[1] or 0) if ends is not None else (0, 0)
    first_ns = max(first_ns, request.span.since_ns or first_ns)
    last_ns = min(last_ns, request.span.until_ns or last_ns)
    width_ns = width_for(last_ns - first_ns)
    partitions = partitions_for(inventory)
    small = inventory.rows < _SHORT_ROWS
    with (
        _kept(traces.rows) if _are_tiny(inventory) else nullcontext(),
        digested(
            traces,
            request.span.since_ns,
            width_ns,
            partitions,
            progress,
            small=small,
            hosts=inventory.hosts(),
        ) as digests,
    ):
        analysis = analyse(
            spark, digests, width_ns, progress.stage, request.mesh, before, request.questions
        )
        channels = []
        if request.asyncapi is not None:
            progress.stage("channels")
            nodes = analysis.tables["nodes"]
            channels = vpn_channels(spark, digests.frames["uses"], traces.rows, nodes)
    notes = [*wrong_times(spark, inventory), *analysis.notes]
    return replace(analysis, notes=notes, channels=channels)


def _are_tiny(inventory: Inventory) -> bool:
    """Return whether to open the files costs more than to read them, and their rows have room as a whole."""
    many = len(inventory.files)
    size = inventory.size_bytes
    return many >= _MANY_FILES and size / many < _TINY_BYTES and size < REPORT_KEPT_BYTES


@contextmanager
def _kept(rows: DataFrame) -> Iterator[None]:
    """Let Spark keep rows once they were read, in memory and on disk, while the block runs."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        rows.unpersist()


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

"""Builds a report from trace files: inventory, digests, analysis, tables, page."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.limits import (
    REPORT_FOLLOW_PARTITIONS,
    REPORT_SHUFFLE_PARTITIONS,
)
from vpnrouter.report.analysis import Analysis
from vpnrouter.report.asyncapi.document import Observed
from vpnrouter.report.asyncapi.write import write_documents
from vpnrouter.report.days import Days, DayStore
from vpnrouter.report.engine.failures import JavaEnded
from vpnrouter.report.engine.progress import NoProgress, Progress
from vpnrouter.report.engine.remote import is_beside, remote_storage
from vpnrouter.report.engine.session import (
    adopted_session,
    connected_session,
    spark_session,
    surrounding_session,
)
from vpnrouter.report.jobs import SHORT_ROWS, require_rows, run_jobs
from vpnrouter.report.lakehouse.delta import DeltaTables
from vpnrouter.report.lakehouse.formats import (
    DELTA,
    FOLDER,
    ICEBERG,
    LAKEHOUSE,
    Lakehouse,
    packages_for,
)
from vpnrouter.report.lakehouse.iceberg import IcebergTables
from vpnrouter.report.output import (
    HTML,
    Output,
    Summary,
    summary_of,
    write_report,
)
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.inventory import Inventory, take_inventory
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import LOCAL, Storages, below, is_uri

__all__ = ["Engine", "ReportRequest", "build_report", "engine_for"]

_LOG: Final = "spark.log"


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
    if request.is_here and session is None and not request.incremental:
        listener.stage("trace files")
        inventories = take_inventories(request, Storages())
    with engine_for(request, inventories, listener, session=session) as engine:
        if request.incremental:
            analysis, inventory = _analysed_days(engine, request, listener)
        else:
            analysis, inventory = _analysed(engine, request, inventories, listener)
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


def require_compared(inventory: Inventory) -> None:
    """Refuse an inventory to compare with that has no readable file.

    Raises:
        OperationError: there is none.
    """
    if not inventory.files:
        raise OperationError("nothing to compare with: no readable trace file in the time before")


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
    require_compared(compared)
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


def _analysed(
    engine: Engine, request: ReportRequest, inventories: Inventories | None, progress: Progress
) -> tuple[Analysis, Inventory]:
    """Return the analysis of all rows, and the files that they are of."""
    if inventories is None:
        progress.stage("trace files")
        inventories = take_inventories(request, engine.traces)
    inventory, compared = inventories
    before = None
    if compared is not None:
        before, compared = run_jobs(engine.spark, compared, _before(request), progress)
        inventory = inventory.without_any(compared.set_aside)
        require_rows(inventory)
    return run_jobs(engine.spark, inventory, request, progress, before)


def _analysed_days(
    engine: Engine, request: ReportRequest, progress: Progress
) -> tuple[Analysis, Inventory]:
    """Return the analysis of the digests of days, and the files that they are of."""
    if not is_uri(request.output) and not is_beside(engine.spark):
        raise OperationError(
            "--incremental: Spark works elsewhere, and reads digests from an --output that is a URI"
        )
    store = DayStore(request.output, engine.output.storage)
    days = Days(engine.spark, request, store, engine.traces, progress)
    days.take()
    inventory = days.inventory(request.span)
    require_rows(inventory)
    before = None
    if request.against is not None:
        require_compared(days.inventory(request.against))
        before = days.analyse(_before(request))
    return days.analyse(request, before), inventory


def _before(request: ReportRequest) -> ReportRequest:
    """Return a request for the time to compare with."""
    return replace(request, span=request.against or Span(), against=None, mesh=None, asyncapi=None)


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
            short = rows is not None and rows < SHORT_ROWS and not lasting
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
        kind = JavaEnded if isinstance(error, JavaEnded) else OperationError
        raise kind(f"{error} (Java's output: {log})" if log.exists() else str(error)) from None
    except KeyboardInterrupt:
        log.unlink(missing_ok=True)
        raise
    log.unlink(missing_ok=True)

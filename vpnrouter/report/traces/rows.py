"""Reads trace files as one frame of rows, each with how many messages it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.report.digests.columns import stands_for
from vpnrouter.report.engine.listed import are_far, read_listed
from vpnrouter.report.engine.remote import escaped, is_beside
from vpnrouter.report.page.contents import moment
from vpnrouter.report.schema import TRACE_FILE, TRACE_READ, TRACES, conform
from vpnrouter.report.subscriptions.held import DIALECTS
from vpnrouter.report.traces.footers import TraceFile
from vpnrouter.report.traces.inventory import Inventory, credible_times
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import StoredFile
from vpnrouter.report.visited import came_by_connector
from vpnrouter.trace.events import EVENT_NAMES, FIRST_WITHOUT_MESSAGE
from vpnrouter.trace.schema import CONTEXT, CONTEXT_DIGITS, CONTEXT_SEPARATOR

_SIGN_BIT: Final = -(1 << 63)

_RATES: Final = StructType(
    [
        StructField("origin", StringType()),
        StructField("since_ns", LongType()),
        StructField("until_ns", LongType()),
        StructField("rate", DoubleType()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """How many messages rows of one context stand for, from columns of CONTEXT.

    `each` is how many each row stands for, null where that is not known; where `by_count` is true, rows stand for as
    many as their column `count` says, or for one.
    """

    each: Column
    by_count: Column

    def of(self, rows: Column, count: Column) -> Column:
        """Return the weight, a double, of `rows` rows whose counts are `count` in all."""
        return F.when(self.by_count, count.cast("double")).otherwise(self.each * rows)


@dataclass(frozen=True, kw_only=True)
class TraceRows:
    """Trace rows, as digests take them.

    `rows` are those to report on, with the schema TRACES. `in_full` has the schema TRACE_FILE: at least one row of each
    context of them, and all rows that concern no message, those of earlier times too. `weighing` is None where what a
    row stands for depends on its time: `rows` have it in the column `weight`.
    """

    rows: DataFrame
    in_full: DataFrame
    weighing: Weighing | None = None


def read_traces(
    spark: SparkSession,
    inventory: Inventory,
    span: Span | None = None,
    *,
    with_contexts: bool = True,
) -> TraceRows:
    """Return the rows of all files in `inventory` that lie in `span`, and what is known of earlier ones.

    `with_contexts`: what files say about contexts is taken as it is; else all contexts are made of the other columns.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    bounds = span or Span()
    # Whatever footers say: in a damaged file they may be wrong.
    rows = _rows_of(spark, inventory.files, with_contexts=with_contexts).where(_is_credible())
    if bounds.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= bounds.since_ns)
    if bounds.until_ns is not None:
        rows = rows.where(F.col("ts_ns") < bounds.until_ns)
    weighing = _weighing(inventory)
    if weighing is not None:
        rows = rows.withColumn("weight", weighing.of(F.lit(1), stands_for()))
    else:
        rows = _weighed_by_time(spark, rows, inventory)
    return TraceRows(
        rows=conform(rows, TRACES),
        in_full=_in_full(spark, inventory, bounds, with_contexts=with_contexts),
        weighing=weighing,
    )


def _in_full(
    spark: SparkSession, inventory: Inventory, span: Span, *, with_contexts: bool
) -> DataFrame:
    """Return `TraceRows.in_full`: rows that concern a message at any time, since they tell a context."""
    files = (*inventory.earlier, *inventory.files)
    rows = _rows_of(spark, files, with_contexts=with_contexts).where("in_full")
    in_time = _is_credible()
    if span.until_ns is not None:
        in_time &= F.col("ts_ns") < span.until_ns
    concerns_none = F.col("event").isin(*EVENT_NAMES[FIRST_WITHOUT_MESSAGE:])
    return rows.where(in_time | ~concerns_none)


def wrong_times(spark: SparkSession, inventory: Inventory, rows: int | None = None) -> list[str]:
    """Return a sentence for each router with rows whose time cannot be right, which `read_traces` leaves out.

    `rows` is how many rows `read_traces` had of all files, None where it had those of a span. Where files have more,
    all of them are searched; else only those whose footers show such times.
    """
    is_short = rows is not None and rows < inventory.rows
    searched = (*inventory.files, *inventory.earlier) if is_short else inventory.doubtful()
    if not searched:
        return []
    found = (
        _rows_of(spark, searched)
        .where(~F.coalesce(_is_credible(), F.lit(False)))
        .groupBy("router")
        .agg(F.count(F.lit(1)).alias("rows"), F.min("ts_ns").alias("one"))
        .orderBy("router")
        .toArrow()
        .to_pylist()
    )
    return [
        f"Left out: {row['rows']:,} row{'s' if row['rows'] > 1 else ''} of router {row['router']}"
        + (
            " without a time."
            if row["one"] is None
            else f" with a time that cannot be right, such as {moment(row['one'])} UTC."
        )
        for row in found
    ]


def _is_credible() -> Column:
    since_ns, until_ns = credible_times()
    return (F.col("ts_ns") >= since_ns) & (F.col("ts_ns") < until_ns)


def _rows_of(
    spark: SparkSession, files: Sequence[TraceFile], *, with_contexts: bool = True
) -> DataFrame:
    """Return the rows of files, with the schema TRACE_FILE.

    Raises:
        OperationError: there is no file.
    """
    if not files:
        raise OperationError("no readable trace file")
    groups: dict[tuple[bool, tuple[str, ...]], list[StoredFile]] = {}
    for file in files:
        group = (with_contexts and file.has_contexts, _source(file))
        groups.setdefault(group, []).append(StoredFile(file.path, file.size_bytes))
    frames = []
    for (has_contexts, source), some in groups.items():
        frame = _read(spark, some, source)
        frames.append(frame if has_contexts else with_made_contexts(frame))
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows


def with_made_contexts(rows: DataFrame) -> DataFrame:
    """Return rows with contexts that are made of the other columns, and below 0 to be told from those of files."""
    made = F.xxhash64(*CONTEXT).bitwiseOR(F.lit(_SIGN_BIT))
    return rows.withColumns({"context": made, "in_full": F.lit(True)})


def wrong_context() -> Column:
    """Return whether the context of a row is one of a file, and not the one that `trace.schema` defines."""
    values = (F.coalesce(F.col(name).cast("string"), F.lit("")) for name in CONTEXT)
    digest = F.sha2(F.concat_ws(CONTEXT_SEPARATOR, *values), 256)
    right = F.conv(F.substring(digest, 1, CONTEXT_DIGITS), 16, 10).cast("long")
    stated = F.coalesce(F.col("context"), F.lit(0).cast("long"))
    return F.when(stated >= 0, stated != right).otherwise(F.lit(False))


def _source(file: TraceFile) -> tuple[str, ...]:
    """Return how the rows of a file come by their router, and what is needed for it: equal for files read
    together.
    """
    if file.router_from == "column":
        return "column", ""
    if file.router_from == "metadata":
        return "metadata", file.router or ""
    base, _, name = file.path.rpartition("/")[0].rpartition("/")
    keys: list[str] = []
    while "=" in name:
        key, _, value = name.partition("=")
        keys.append(key if value else "")
        base, _, name = base.rpartition("/")
    base = f"{base}/{name}"
    if not _are_partitions(keys):
        return "metadata", file.router or ""
    # Spark refuses to read files together whose directories name different columns.
    return "directory", base, *keys


def _are_partitions(keys: list[str]) -> bool:
    """Return whether Spark takes directories with these keys for columns, and for none that the files have."""
    lowered = {key.lower() for key in keys}
    unlike = "" not in lowered and len(lowered) == len(keys)
    return unlike and not (lowered - {"router"}) & set(TRACE_FILE.names)


def _read(spark: SparkSession, files: list[StoredFile], source: tuple[str, ...]) -> DataFrame:
    how, detail, *_ = source
    inside = [field for field in TRACE_READ.fields if how != "metadata" or field.name != "router"]
    reader = spark.read.schema(StructType(inside))
    if how != "directory":
        reader = reader.option("recursiveFileLookup", "true")
    if is_beside(spark) and are_far(file.path for file in files):
        frame = read_listed(reader, files)
    else:
        if how == "directory":
            # With a declared type the name stays text: a router may be called 2013 or 007.
            reader = reader.option("basePath", detail)
        frame = reader.parquet(*(escaped(file.path) for file in files))
    if how == "metadata":
        frame = frame.withColumn("router", F.lit(detail))
    # Without what else the directories name, such as `date`.
    return narrowed(frame)


def narrowed(frame: DataFrame) -> DataFrame:
    """Return the columns of TRACE_FILE from those of TRACE_READ; an integer that does not fit, or that no router writes
    and sums would overflow with, is null, and so is a dialect of filters that is not known.
    """
    columns = []
    for field in TRACE_FILE.fields:
        value = F.col(field.name)
        if field.name in _BOUNDS:
            least, beyond = _BOUNDS[field.name]
            value = F.when((value >= least) & (value < beyond), value)
        if field.name == "topic_syntax":
            value = F.when(value.isin(*DIALECTS), value)
        columns.append(value.try_cast(field.dataType).alias(field.name))
    return frame.select(*columns)


_BOUNDS: Final = {
    "size_bytes": (0, 1 << 32),
    "count": (1, 1 << 30),
    "origin_ts_ns": (0, 1 << 62),
    "since_ingress_ns": (0, 1 << 62),
    "hops": (0, 1 << 16),
    "partition": (0, 1 << 16),
}
"""The least value that a router writes, and one that none does."""


def _weighing(inventory: Inventory) -> Weighing | None:
    """Return how rows are weighed by the sampling rate of the router where the message entered; None where one router's
    rate has changed.

    What has crossed no bridge, or came by a connector, entered here. Other rows that do not name the router of entry
    can only be weighed if all routers trace at one rate. Events that a router records of every message stand for
    themselves.
    """
    by_router: dict[str, float] = {}
    for rate in inventory.rates():
        if rate.router in by_router:
            return None
        by_router[rate.router] = rate.rate
    distinct = set(by_router.values())
    constant = inventory.sampling()
    if not distinct:
        each = F.lit(None).cast(DoubleType())
    elif len(distinct) == 1 and all(file.router in constant for file in inventory.files):
        each = F.lit(1.0 / distinct.pop())
    else:
        pairs = [F.lit(one) for router, rate in by_router.items() for one in (router, 1.0 / rate)]
        each = F.element_at(F.create_map(*pairs), _entered())
    # Where all is traced, a row that stands for several is as good as these.
    return Weighing(each=each, by_count=_by_count(inventory, whole=distinct == {1.0}))


def _entered() -> Column:
    """Return the router where the message of a row entered, null where that is not known."""
    local = (F.col("event") == "ingress") | (F.col("hops") == 0) | came_by_connector(F.col("path"))
    return F.when(local, F.col("router")).otherwise(F.col("origin_router"))


def _weighed_by_time(spark: SparkSession, rows: DataFrame, inventory: Inventory) -> DataFrame:
    """Add `weight`, by the sampling rate that the router where the message entered had then."""
    rates = inventory.rates()
    # As an Arrow table, Spark takes it without a Python process of its own.
    columns = zip(
        *((rate.router, rate.since_ns, rate.until_ns, rate.rate) for rate in rates), strict=True
    )
    table = spark.createDataFrame(pa.table(list(map(list, columns)), names=_RATES.names), _RATES)
    at_ns = F.coalesce(F.col("origin_ts_ns"), F.col("ts_ns"))
    within = (at_ns >= F.col("since_ns")) & (at_ns < F.col("until_ns"))
    weighing = Weighing(each=F.lit(1.0) / F.col("rate"), by_count=_by_count(inventory, whole=False))
    joined = rows.join(F.broadcast(table), (_entered() == F.col("origin")) & within, "left")
    return joined.withColumn("weight", weighing.of(F.lit(1), stands_for()))


def _by_count(inventory: Inventory, *, whole: bool) -> Column:
    """Return whether a row is of an event that its router records of every message; `whole`: every row counts as one,
    where there are such events.
    """
    always = inventory.always()
    if not always:
        return F.lit(False)
    if whole:
        return F.lit(True)
    alike: dict[frozenset[str], list[str]] = {}
    for router, events in always.items():
        alike.setdefault(events, []).append(router)
    recorded = F.lit(False)
    for events, routers in alike.items():
        recorded |= F.col("event").isin(*sorted(events)) & F.col("router").isin(*sorted(routers))
    return recorded

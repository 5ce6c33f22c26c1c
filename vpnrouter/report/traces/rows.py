"""Reads trace files as one frame of rows, each with how many messages it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.report.engine.remote import escaped
from vpnrouter.report.page.contents import moment
from vpnrouter.report.schema import TRACE_FILE, TRACE_READ, TRACES, conform
from vpnrouter.report.traces.footers import TraceFile
from vpnrouter.report.traces.inventory import Inventory, credible_times
from vpnrouter.report.traces.span import Span
from vpnrouter.report.visited import came_by_connector

_RATES: Final = StructType(
    [
        StructField("origin", StringType()),
        StructField("since_ns", LongType()),
        StructField("until_ns", LongType()),
        StructField("rate", DoubleType()),
    ]
)


def read_traces(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """Return the rows of all files in `inventory` that lie in `span`, with the schema TRACES.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    bounds = span or Span()
    rows = _read_files(spark, inventory, inventory.files)
    if bounds.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= bounds.since_ns)
    return _until(rows, bounds)


def read_until(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """Return the rows of `read_traces`, and all rows before as well.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    files = (*inventory.earlier, *inventory.files)
    return _until(_read_files(spark, inventory, files), span or Span())


def _until(rows: DataFrame, span: Span) -> DataFrame:
    return rows if span.until_ns is None else rows.where(F.col("ts_ns") < span.until_ns)


def wrong_times(spark: SparkSession, inventory: Inventory) -> list[str]:
    """Return a sentence for each router with rows whose time cannot be right, which `read_traces` leaves out."""
    doubtful = inventory.doubtful()
    if not doubtful:
        return []
    found = (
        _rows_of(spark, doubtful)
        .where(~_is_credible())
        .groupBy("router")
        .agg(F.count(F.lit(1)).alias("rows"), F.min("ts_ns").alias("one"))
        .orderBy("router")
        .toArrow()
        .to_pylist()
    )
    return [
        f"Left out: {row['rows']:,} row{'s' if row['rows'] > 1 else ''} of router {row['router']} with a time that"
        f" cannot be right, such as {moment(row['one'])} UTC."
        for row in found
    ]


def _is_credible() -> Column:
    since_ns, until_ns = credible_times()
    return (F.col("ts_ns") >= since_ns) & (F.col("ts_ns") < until_ns)


def _read_files(spark: SparkSession, inventory: Inventory, files: Sequence[TraceFile]) -> DataFrame:
    if not files:
        raise OperationError("no readable trace file")
    rows = _rows_of(spark, files)
    if inventory.doubtful():
        rows = rows.where(_is_credible())
    return conform(_weighted(spark, rows, inventory), TRACES)


def _rows_of(spark: SparkSession, files: Sequence[TraceFile]) -> DataFrame:
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault(_source(file), []).append(file.path)
    frames = [_read(spark, paths, source) for source, paths in groups.items()]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows


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


def _read(spark: SparkSession, paths: list[str], source: tuple[str, ...]) -> DataFrame:
    how, detail, *_ = source
    inside = [field for field in TRACE_READ.fields if how != "metadata" or field.name != "router"]
    reader = spark.read.schema(StructType(inside))
    if how == "directory":
        # With a declared type the name stays text: a router may be called 2013 or 007.
        reader = reader.option("basePath", detail)
    else:
        reader = reader.option("recursiveFileLookup", "true")
    frame = reader.parquet(*(escaped(path) for path in paths))
    if how == "metadata":
        frame = frame.withColumn("router", F.lit(detail))
    # Without what else the directories name, such as `date`.
    return narrowed(frame)


def narrowed(frame: DataFrame) -> DataFrame:
    """Return the columns of TRACE_FILE from those of TRACE_READ; an integer that does not fit is null."""
    return frame.select(
        *(F.col(field.name).try_cast(field.dataType) for field in TRACE_FILE.fields)
    )


def _weighted(spark: SparkSession, rows: DataFrame, inventory: Inventory) -> DataFrame:
    """Add `weight`, by the sampling rate that the router where the message entered had then.

    What has crossed no bridge, or came by a connector, entered here. Other rows that do not name the router of entry
    can only be weighed if all routers trace at one rate. Events that a router records of every message stand for
    themselves.
    """
    rates = inventory.rates()
    if not rates:
        return rows.withColumn("weight", F.lit(None).cast(DoubleType()))
    constant = inventory.sampling()
    known = all(file.router in constant for file in inventory.files)
    if len({rate.rate for rate in rates}) == 1 and known:
        rate = rates[0].rate
        return rows.withColumn("weight", _itself(inventory, F.lit(1.0 / rate), whole=rate == 1.0))
    # As an Arrow table, Spark takes it without a Python process of its own.
    columns = zip(
        *((rate.router, rate.since_ns, rate.until_ns, rate.rate) for rate in rates), strict=True
    )
    table = spark.createDataFrame(pa.table(list(map(list, columns)), names=_RATES.names), _RATES)
    local = (F.col("event") == "ingress") | (F.col("hops") == 0) | came_by_connector(F.col("path"))
    entered = F.when(local, F.col("router")).otherwise(F.col("origin_router"))
    at_ns = F.coalesce(F.col("origin_ts_ns"), F.col("ts_ns"))
    within = (at_ns >= F.col("since_ns")) & (at_ns < F.col("until_ns"))
    return rows.join(F.broadcast(table), (entered == F.col("origin")) & within, "left").withColumn(
        "weight", _itself(inventory, F.lit(1.0) / F.col("rate"), whole=False)
    )


def _itself(inventory: Inventory, weight: Column, *, whole: bool) -> Column:
    """Return `weight` of a sampled row; for an event that is always recorded, how many messages the row stands for."""
    always = inventory.always()
    if not always:
        return weight
    stands_for = F.coalesce(F.col("count"), F.lit(1)).cast("double")
    if whole:
        return stands_for
    alike: dict[frozenset[str], list[str]] = {}
    for router, events in always.items():
        alike.setdefault(events, []).append(router)
    recorded = F.lit(False)
    for events, routers in alike.items():
        recorded |= F.col("event").isin(*sorted(events)) & F.col("router").isin(*sorted(routers))
    return F.when(recorded, stands_for).otherwise(weight)

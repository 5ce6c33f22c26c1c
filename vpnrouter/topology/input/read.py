"""Turns an inventory of trace files into the one frame that all jobs take."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.topology.input.inventory import Inventory, Span, TraceFile
from vpnrouter.topology.schema import TRACE_FILE, TRACES, conform

_GLOB: Final = re.compile(r"[\\\[\]{}*?]")
"""What would be taken for a pattern in a path."""

_RATES: Final = StructType([StructField("origin", StringType()), StructField("rate", DoubleType())])


def read_traces(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """The rows of all files in `inventory` that lie in `span`, with the schema TRACES.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    asked = span or Span()
    rows = _read_files(spark, inventory, inventory.files)
    if asked.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= asked.since_ns)
    return _until(rows, asked)


def read_until(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """As `read_traces`, and all rows before as well.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    files = (*inventory.earlier, *inventory.files)
    return _until(_read_files(spark, inventory, files), span or Span())


def _until(rows: DataFrame, span: Span) -> DataFrame:
    return rows if span.until_ns is None else rows.where(F.col("ts_ns") < span.until_ns)


def _read_files(spark: SparkSession, inventory: Inventory, files: Sequence[TraceFile]) -> DataFrame:
    if not files:
        raise OperationError("no readable trace file")
    groups: dict[tuple[str, str], list[Path]] = {}
    for file in files:
        groups.setdefault(_source(file), []).append(file.path)
    frames = [_read(spark, paths, source) for source, paths in groups.items()]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return conform(_weighted(spark, rows, inventory), TRACES)


def _source(file: TraceFile) -> tuple[str, str]:
    """How the rows of a file come by their router, and what is needed for it: equal for files read
    together.
    """
    if file.router_from == "column":
        return "column", ""
    if file.router_from == "metadata":
        return "metadata", file.router or ""
    base = file.path.parent
    while "=" in base.name:
        base = base.parent
    return "directory", str(base)


def _read(spark: SparkSession, paths: list[Path], source: tuple[str, str]) -> DataFrame:
    how, detail = source
    inside = [field for field in TRACE_FILE.fields if how != "metadata" or field.name != "router"]
    reader = spark.read.schema(StructType(inside))
    if how == "directory":
        # With a declared type the name stays text: a router may be called 2013 or 007.
        reader = reader.option("basePath", detail)
    else:
        reader = reader.option("recursiveFileLookup", "true")
    frame = reader.parquet(*(_GLOB.sub(r"\\\g<0>", str(path)) for path in paths))
    if how == "metadata":
        frame = frame.withColumn("router", F.lit(detail))
    # Without what else the directories name, such as `date`.
    return frame.select(*TRACE_FILE.names)


def _weighted(spark: SparkSession, rows: DataFrame, inventory: Inventory) -> DataFrame:
    """Add `weight`: whether to trace was decided where the message entered, at that router's rate.

    Rows that do not say where that was can only be weighed when all routers trace at one rate. Events that
    a router records of every message stand for themselves.
    """
    rates = inventory.sampling()
    if not rates:
        return rows.withColumn("weight", F.lit(None).cast(DoubleType()))
    known = all(file.router in rates for file in inventory.files)
    if len(set(rates.values())) == 1 and known:
        rate = next(iter(rates.values()))
        return rows.withColumn("weight", _itself(inventory, F.lit(1.0 / rate), whole=rate == 1.0))
    # As an Arrow table, Spark takes it without a Python process of its own.
    listed = pa.table([list(rates), list(rates.values())], names=_RATES.names)
    table = spark.createDataFrame(listed, _RATES)
    ingress = F.col("event") == "ingress"
    entered = F.when(ingress, F.col("router")).otherwise(F.col("origin_router"))
    return rows.join(F.broadcast(table), entered == F.col("origin"), "left").withColumn(
        "weight", _itself(inventory, F.lit(1.0) / F.col("rate"), whole=False)
    )


def _itself(inventory: Inventory, weight: Column, *, whole: bool) -> Column:
    """`weight` of a picked row; of an event that is always recorded how many messages it stands for."""
    always = inventory.always()
    if not always:
        return weight
    stands_for = F.coalesce(F.col("count"), F.lit(1)).cast("double")
    if whole:
        return stands_for
    return F.when(F.col("event").isin(*sorted(always)), stands_for).otherwise(weight)

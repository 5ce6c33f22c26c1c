"""Trace files as a stream: each complete file once, in the order in which they came."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_FOLLOW_FILES
from vpnrouter.topology.input.span import Span
from vpnrouter.topology.schema import TRACE_FILE

_INSIDE = StructType([field for field in TRACE_FILE.fields if field.name != "router"])

# What Spark says of files whatever they hold; the contents are not read unless asked for.
_FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)


def files_of(spark: SparkSession, roots: Sequence[Path]) -> DataFrame:
    """The files under `roots` and those that will come: a column `path`, as URIs, sound or not.

    Raises:
        OperationError: a root is no directory.
    """
    _require_directories(roots)
    frames = [_listed(spark, "binaryFile", _FILES).load(str(root.resolve())) for root in roots]
    return _together(frames).select("path")


def stream_of(spark: SparkSession, roots: Sequence[Path], span: Span) -> DataFrame:
    """The rows of all trace files under `roots` and of those that will come, from `span.since_ns` on.

    Columns of TRACE_FILE. Files whose contents cannot be read are passed over: who takes the batches names them.

    Raises:
        OperationError: a root is no directory.
    """
    _require_directories(roots)
    frames = [
        _listed(spark, "parquet", _INSIDE)
        .option("ignoreCorruptFiles", "true")
        .load(str(root.resolve()))
        .withColumn("router", router_of(F.col("_metadata.file_path")))
        for root in roots
    ]
    rows = _together(frames)
    if span.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= span.since_ns)
    return rows


def _require_directories(roots: Sequence[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            raise OperationError(f"only a directory can be followed, not {root}")


def _listed(spark: SparkSession, form: str, schema: StructType) -> DataStreamReader:
    return (
        spark.readStream.format(form)
        .schema(schema)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", REPORT_FOLLOW_FILES)
        .option("ignoreMissingFiles", "true")
        .option("pathGlobFilter", "part-*.parquet")
    )


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows


def router_of(path: Column) -> Column:
    """The router in the path of a file, given as Spark does: as a URI, of a name that is escaped already."""
    escaped = F.regexp_extract(path, "/router=([^/]+)/[^/]+$", 1)
    return _decoded(_decoded(escaped))


def _decoded(text: Column) -> Column:
    # What decodes forms takes a plus for a space.
    return F.url_decode(F.regexp_replace(text, r"\+", "%2B"))

"""vpnrouter.report.schema: the frames' shapes."""

import pytest
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import IntegerType, LongType, StringType
from pyspark.testing import assertSchemaEqual

from vpnrouter.report import schema
from vpnrouter.report.output import SCHEMAS
from vpnrouter.trace.schema import COLUMNS

KINDS = {"int64": LongType(), "int32": IntegerType(), "string": StringType()}


def test_a_trace_row_is_what_routers_write() -> None:
    """The declared columns are those of the trace format, in order and type."""
    declared = [(field.name, field.dataType) for field in schema.TRACE_FILE.fields]
    assert declared == [(column.name, KINDS[column.type]) for column in COLUMNS]


def test_a_row_of_the_jobs_has_a_weight() -> None:
    """What jobs take is a trace row and how many messages it stands for."""
    assert [*schema.TRACE_FILE.names, "weight"] == schema.TRACES.names


def test_every_table_names_its_columns_once() -> None:
    """In each result table all names differ, and every column may be null."""
    for name, table in SCHEMAS.items():
        assert len(set(table.names)) == len(table.names), name
        assert all(field.nullable for field in table.fields), name


@pytest.mark.spark
def test_an_estimate_needs_every_weight(spark: SparkSession) -> None:
    """The sum of weights where all are known, null where one is not, 0 where no row counts."""
    rows = [
        ("a", True, 2.5),
        ("a", True, 2.5),
        ("a", False, None),
        ("b", True, None),
        ("c", False, 1.0),
    ]
    frame = spark.createDataFrame(rows, "name string, counts boolean, weight double")
    found = frame.groupBy("name").agg(
        schema.estimate_where(functions.col("counts")).alias("estimate"),
        schema.count_where(functions.col("counts")).alias("count"),
    )
    assert {row.name: (row.estimate, row["count"]) for row in found.collect()} == {
        "a": (5, 2),
        "b": (None, 1),
        "c": (0, 0),
    }


@pytest.mark.spark
def test_conform_orders_and_casts(spark: SparkSession) -> None:
    """Columns get the declared order and type, and no other stays."""
    frame = spark.createDataFrame([(1, "x", 2)], "discarded int, more string, start_ns int")
    full = frame.withColumns(
        {name: functions.lit(0) for name in ("ingress", "bridged", "delivered")}
    )
    assertSchemaEqual(schema.conform(full, schema.TIMELINE).schema, schema.TIMELINE)

"""Tables of Iceberg and Delta: what a day's report puts in them, as a program of other makers reads it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from vpnrouter.errors import OperationError
from vpnrouter.report.lakehouse.formats import DELTA, ICEBERG, java_of
from vpnrouter.report.lakehouse.iceberg import IcebergTables
from vpnrouter.report.meanings import meaning_of
from vpnrouter.report.output import SCHEMAS
from vpnrouter.report.schema import Rows, struct

pytestmark = pytest.mark.slow

FIRST, SECOND, THIRD = (date(2026, 3, day) for day in (1, 2, 3))
SHAPE = struct(way=StringType(), messages=LongType())
VALUES: dict[str, Any] = {
    "string": "é/</>\n",
    "bigint": 2**62,
    "int": -(2**31),
    "double": 0.1,
    "boolean": False,
}
NAMES = {"string": "string", "bigint": "long", "int": "int", "double": "double"} | {
    "boolean": "boolean"
}
"""Types as both formats have them, by Spark's names."""


def plain(tables: Any, name: str = "ways") -> list[tuple[Any, ...]]:
    """The rows of a table in order, each in the order of its columns."""
    return sorted((tuple(row.values()) for row in tables.read(name)["rows"]), key=repr)


def write(tables: Any, day: date, *rows: tuple[str | None, int | None]) -> None:
    """Put these rows into `ways`."""
    listed: Rows = [{"way": way, "messages": messages} for way, messages in rows]
    with closing(tables.open()) as lakehouse:
        lakehouse.replace("ways", day, listed, SHAPE)


def test_a_day_is_replaced_and_others_stay(tables: Any) -> None:
    """Also by no rows; each report is one state of the table, so that no reader sees half of one."""
    write(tables, FIRST, ("a", 1), ("b", 2))
    write(tables, SECOND, ("a", 3))
    assert plain(tables) == [("a", 1, "2026-03-01"), ("a", 3, "2026-03-02"), ("b", 2, "2026-03-01")]
    write(tables, FIRST, ("c", 4), (None, None))
    assert plain(tables) == [
        ("a", 3, "2026-03-02"),
        ("c", 4, "2026-03-01"),
        (None, None, "2026-03-01"),
    ]
    write(tables, SECOND)
    assert plain(tables) == [("c", 4, "2026-03-01"), (None, None, "2026-03-01")]
    assert tables.read("ways")["states"] == 4


@pytest.mark.parametrize("name", ["edges", "growth", "findings", "pairs"])
def test_a_table_of_a_report(tables: Any, name: str) -> None:
    """Every column with its type and meaning, every value as it is, and a table without a row."""
    columns = SCHEMAS[name]
    full = {field.name: VALUES[field.dataType.simpleString()] for field in columns.fields}
    with closing(tables.open()) as lakehouse:
        lakehouse.replace(name, FIRST, [], columns)
        empty = tables.read(name)
        lakehouse.replace(name, FIRST, [full, dict.fromkeys(full)], columns)
    found = tables.read(name)
    assert empty["rows"] == []
    assert sorted(found["rows"], key=repr) == sorted(
        [full | {"date": "2026-03-01"}, dict.fromkeys(full) | {"date": "2026-03-01"}], key=repr
    )
    expected = [[one.name, NAMES[one.dataType.simpleString()]] for one in columns.fields]
    assert (
        found["columns"]
        == empty["columns"]
        == [
            [column, kind, meaning_of(name, column)]
            for column, kind in [*expected, ["date", "date"]]
        ]
    )


def test_a_table_of_another_version(tables: Any) -> None:
    """A column that it lacks is added, in one step with the rows; one that it has more is null, and stays."""
    write(tables, FIRST, ("a", 1))
    wider = StructType([*SHAPE.fields]).add("bytes", LongType())
    with closing(tables.open()) as lakehouse:
        lakehouse.replace("ways", SECOND, [{"way": "b", "messages": 2, "bytes": 7}], wider)
    assert tables.read("ways")["states"] == 2
    for number in range(12):
        # Delta makes a checkpoint of the tenth state.
        write(tables, THIRD, ("c", number))
    assert {row["way"]: row.get("bytes") for row in tables.read("ways")["rows"]} == {
        "a": None,
        "b": 7,
        "c": None,
    }
    assert [name for name, _, _ in tables.read("ways")["columns"]] == [
        *("way", "messages", "date", "bytes")
    ]


def test_a_column_of_another_type_is_refused(tables: Any) -> None:
    """One line names it, and the table stays as it was."""
    write(tables, FIRST, ("a", 1))
    other = struct(way=StringType(), messages=DoubleType())
    with (
        closing(tables.open()) as lakehouse,
        pytest.raises(OperationError, match=r"ways of .* has the column messages as long"),
    ):
        lakehouse.replace("ways", FIRST, [{"way": "b", "messages": 0.5}], other)
    assert plain(tables) == [("a", 1, "2026-03-01")]


def test_two_reports_at_once(tables: Any) -> None:
    """Rows of a day are those of one report, whole, whichever was later; one that cannot be written says so."""
    write(tables, FIRST, ("a", 0), ("b", 0))
    refused: list[OperationError] = []
    begin = threading.Barrier(2, timeout=60)

    def report(number: int) -> None:
        for turn in range(6):
            begin.wait()
            mark = 10 * turn + number
            try:
                write(tables, FIRST, ("a", mark), ("b", mark))
            except OperationError as error:
                refused.append(error)

    threads = [threading.Thread(target=report, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = plain(tables)
    assert [row[0] for row in rows] == ["a", "b"]
    assert len({row[1] for row in rows}) == 1
    assert tables.read("ways")["states"] == 13 - len(refused)
    # Reports wait for each other where a lock can make them; a catalog lets the faster one go on.
    assert len(refused) <= (0 if tables.form == "delta" else 6)
    assert all(str(one).startswith(f"cannot write the {tables.form.title()}") for one in refused)


def test_a_place_that_cannot_be_written(tables: Any) -> None:
    """One line with the place."""
    tables.place.write_text("a file")
    with pytest.raises(
        OperationError, match=rf"cannot (write|open) .*{re.escape(tables.place.name)}"
    ):
        write(tables, FIRST, ("a", 1))


@pytest.mark.usefixtures("libraries")
def test_a_catalog_of_sparks_settings(
    spark: SparkSession, reader: Callable[[str, Path], dict[str, Any]], tmp_path: Path
) -> None:
    """It has the tables in the namespace that is named, else in `vpnrouter`."""
    spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
    spark.conf.set("spark.sql.catalog.lake.warehouse", str(tmp_path / "theirs"))
    spark.conf.set("spark.sql.catalog.lake.hadoop.fs.file.impl.disable.cache", "true")
    row = {"way": "a", "messages": 1}
    for name, folder in (("lake", "vpnrouter"), ("lake.ops.daily", "ops/daily")):
        with closing(IcebergTables(spark, str(tmp_path / "unused"), name)) as lakehouse:
            lakehouse.replace("ways", FIRST, [row], SHAPE)
        found = reader(ICEBERG, tmp_path / "theirs" / folder / "ways")
        assert found["rows"] == [row | {"date": "2026-03-01"}]
    assert not (tmp_path / "unused").exists()
    with pytest.raises(OperationError, match=r"--catalog pond: Spark's settings name no catalog"):
        IcebergTables(spark, str(tmp_path), "pond")
    spark.conf.set("spark.sql.catalog.broken.type", "neither")
    with pytest.raises(OperationError, match=r"cannot open the Iceberg catalog broken\.a"):
        IcebergTables(spark, str(tmp_path), "broken.a")


@pytest.mark.parametrize("form", [DELTA, ICEBERG])
def test_a_spark_without_the_library(spark: SparkSession, form: str) -> None:
    """It is told which package brings it."""
    with pytest.raises(OperationError, match=rf"no library for --format {form}.*--packages \S+:\d"):
        java_of(spark, form, "org.example.Nothing")

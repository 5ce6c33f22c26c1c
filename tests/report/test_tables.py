"""vpnrouter.report.output: the report's files for programs."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType

from vpnrouter.errors import OperationError
from vpnrouter.report import output
from vpnrouter.report.schema import struct

SHAPE = struct(topic=StringType(), count=LongType())
ROWS: list[dict[str, Any]] = [
    {"topic": "a/é</script>", "count": 2**62},
    {"topic": None, "count": None},
]


def test_both_files_say_the_same(tmp_path: Path) -> None:
    """What is written as Parquet and as JSON comes back as the rows, and nothing else is left."""
    output.prepare(tmp_path / "out")
    output.write_parquet(tmp_path / "out", "topics", ROWS, SHAPE)
    output.write_rows(tmp_path / "out", "topics", ROWS)
    found = pq.read_table(tmp_path / "out/tables/topics.parquet")
    assert found.to_pylist() == ROWS
    assert found.schema.types == [pa.string(), pa.int64()]
    assert json.loads((tmp_path / "out/topics.json").read_text()) == ROWS
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == [
        "tables",
        "topics.json",
        "topics.parquet",
    ]


def test_the_shape_says_what_columns_there_are(tmp_path: Path) -> None:
    """A column that no row has is null, and no other one is written."""
    output.prepare(tmp_path)
    output.write_parquet(tmp_path, "topics", [{"topic": "a", "colour": "red"}], SHAPE)
    rows = pq.read_table(tmp_path / "tables/topics.parquet").to_pylist()
    assert rows == [{"topic": "a", "count": None}]


def test_an_empty_table_keeps_its_shape(tmp_path: Path) -> None:
    """No rows are valid JSON, and Parquet still names the columns."""
    output.prepare(tmp_path)
    output.write_rows(tmp_path, "topics", [])
    output.write_parquet(tmp_path, "topics", [], SHAPE)
    assert json.loads((tmp_path / "topics.json").read_text()) == []
    found = pq.read_table(tmp_path / "tables/topics.parquet")
    assert (found.num_rows, found.column_names) == (0, SHAPE.names)


def test_a_folder_of_tables_is_made_for_parquet_alone(tmp_path: Path) -> None:
    """Who wants none finds no empty folder; who has one already keeps it."""
    output.prepare(tmp_path / "out", parquet=False)
    assert list((tmp_path / "out").iterdir()) == []
    output.prepare(tmp_path / "out")
    output.prepare(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [output.FOLDER]


def test_an_earlier_report_is_replaced(tmp_path: Path) -> None:
    """Writing again leaves the new contents."""
    output.prepare(tmp_path)
    for rows in (1, 2):
        output.write_object(tmp_path, "summary", {"rows": rows})
        output.write_parquet(tmp_path, "topics", [{"count": rows}], SHAPE)
    assert json.loads((tmp_path / "summary.json").read_text()) == {"rows": 2}
    rows_now = pq.read_table(tmp_path / "tables/topics.parquet").to_pylist()
    assert rows_now == [{"topic": None, "count": 2}]


def test_an_output_that_cannot_be_is_one_error(tmp_path: Path) -> None:
    """A file where the directory should be, and a directory where a file should be."""
    (tmp_path / "file").write_text("")
    for parquet in (True, False):
        with pytest.raises(OperationError, match="cannot write a report to"):
            output.prepare(tmp_path / "file", parquet=parquet)
    (tmp_path / "out" / "page.html").mkdir(parents=True)
    with pytest.raises(OperationError, match=r"page\.html"):
        output.write_text(tmp_path / "out" / "page.html", "x")
    output.prepare(tmp_path / "out")
    (tmp_path / "out/tables/topics.parquet").mkdir()
    with pytest.raises(OperationError, match=r"topics\.parquet"):
        output.write_parquet(tmp_path / "out", "topics", ROWS, SHAPE)
    assert not list(tmp_path.rglob(".*"))

"""vpnrouter.topology.tables: the report's files for programs."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.topology import tables

ROWS = [{"topic": "a/é</script>", "count": 1}, {"topic": None, "count": None}]


def test_a_table_is_written_twice_and_returned(tmp_path: Path) -> None:
    """The Parquet file, the JSON file and the returned rows say the same."""
    tables.prepare(tmp_path / "out")
    assert tables.write_table(tmp_path / "out", "topics", pa.Table.from_pylist(ROWS)) == ROWS
    assert pq.read_table(tmp_path / "out/tables/topics.parquet").to_pylist() == ROWS
    assert json.loads((tmp_path / "out/topics.json").read_text()) == ROWS
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == [
        "tables",
        "topics.json",
        "topics.parquet",
    ]


def test_an_empty_table_is_an_empty_list(tmp_path: Path) -> None:
    """No rows are valid JSON as well."""
    tables.prepare(tmp_path)
    tables.write_table(tmp_path, "topics", pa.Table.from_pylist([], pa.schema([("a", pa.int64())])))
    assert json.loads((tmp_path / "topics.json").read_text()) == []


def test_an_earlier_report_is_replaced(tmp_path: Path) -> None:
    """Writing again leaves the new contents."""
    tables.prepare(tmp_path)
    tables.write_object(tmp_path, "summary", {"rows": 1})
    tables.write_object(tmp_path, "summary", {"rows": 2})
    assert json.loads((tmp_path / "summary.json").read_text()) == {"rows": 2}


def test_an_output_that_cannot_be_is_one_error(tmp_path: Path) -> None:
    """A file where the directory should be, and a directory where a file should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="cannot write a report to"):
        tables.prepare(tmp_path / "file")
    (tmp_path / "out" / "page.html").mkdir(parents=True)
    with pytest.raises(OperationError, match=r"page\.html"):
        tables.write_text(tmp_path / "out" / "page.html", "x")
    tables.prepare(tmp_path / "out")
    (tmp_path / "out/tables/nodes.parquet").mkdir()
    with pytest.raises(OperationError, match=r"nodes\.parquet"):
        tables.write_table(tmp_path / "out", "nodes", pa.Table.from_pylist(ROWS))
    assert not list(tmp_path.rglob(".*"))

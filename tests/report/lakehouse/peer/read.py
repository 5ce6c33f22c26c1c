"""Prints a table of Iceberg or Delta as JSON, read by a program that shares nothing with the writer: FORMAT PLACE and
options of its file system as JSON. The place of an Iceberg table may be that of its metadata.
"""

import json
import os
import re
import sys
from pathlib import Path

OPTIONS = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}


def newest(table: Path) -> Path:
    """The metadata of an Iceberg table in a catalog that is a directory."""
    found = table.glob("metadata/v*.metadata.json")
    return max(found, key=lambda path: int(re.findall(r"\d+", path.name)[0]))


def iceberg(place: str) -> "tuple[list[dict], list[list[str]], int]":
    """The rows, the columns with types and comments, and the number of states."""
    from pyiceberg.table import StaticTable

    metadata = place if place.endswith(".json") else str(newest(Path(place)))
    table = StaticTable.from_metadata(metadata, OPTIONS)
    columns = [[one.name, str(one.field_type), one.doc or ""] for one in table.schema().fields]
    assert [field.name for field in table.spec().fields] == ["date"]
    return table.scan().to_arrow().to_pylist(), columns, len(table.metadata.snapshots)


def delta(place: str) -> "tuple[list[dict], list[list[str]], int]":
    """The same of a Delta table."""
    from deltalake import DeltaTable

    table = DeltaTable(place, storage_options=OPTIONS)
    assert table.metadata().partition_columns == ["date"]
    fields = json.loads(table.schema().to_json())["fields"]
    types = {"integer": "int"}
    columns = [
        [one["name"], types.get(one["type"], one["type"]), one["metadata"].get("comment", "")]
        for one in fields
    ]
    return table.to_pyarrow_table().to_pylist(), columns, table.version() + 1


rows, columns, states = {"iceberg": iceberg, "delta": delta}[sys.argv[1]](sys.argv[2])
json.dump({"rows": rows, "columns": columns, "states": states}, sys.stdout, default=str)
sys.stdout.flush()
# Threads of deltalake do not like the end of Python.
os._exit(0)

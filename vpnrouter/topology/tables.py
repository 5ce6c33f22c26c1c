"""Writes the report's small tables as Parquet and JSON, from the driver: no shared output folder
is needed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from vpnrouter.errors import OperationError

FOLDER: Final = "tables"
"""Directory of the Parquet files under a report's output directory."""

Rows = list[dict[str, Any]]


def prepare(output: Path, *, parquet: bool = True) -> None:
    """Make the output directory and, for Parquet, its folder of tables.

    Raises:
        OperationError: it cannot be made.
    """
    try:
        (output / FOLDER if parquet else output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationError(f"cannot write a report to {output}: {error.strerror}") from error


def write_parquet(output: Path, name: str, rows: Rows, schema: StructType) -> None:
    """Write `tables/NAME.parquet` with the columns of `schema`.

    Raises:
        OperationError: the file cannot be written.
    """
    partial = output / FOLDER / f".{name}.parquet"
    try:
        table = pa.Table.from_pylist(rows, schema=to_arrow_schema(schema))
        pq.write_table(table, partial, compression="zstd")
        partial.replace(output / FOLDER / f"{name}.parquet")
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OperationError(f"cannot write {name}.parquet: {error.strerror}") from error


def write_rows(output: Path, name: str, rows: Rows) -> None:
    """Write `NAME.json`, a list of objects.

    Raises:
        OperationError: the file cannot be written.
    """
    write_text(output / f"{name}.json", _listed(rows))


def write_object(output: Path, name: str, value: Mapping[str, Any]) -> None:
    """Write `NAME.json` with one object.

    Raises:
        OperationError: the file cannot be written.
    """
    write_text(output / f"{name}.json", json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a whole file under a hidden name first, so that a reader sees the old one or the new
    one.

    Raises:
        OperationError: the file cannot be written.
    """
    partial = path.with_name(f".{path.name}")
    try:
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OperationError(f"cannot write {path}: {error.strerror}") from error


def _listed(rows: Rows) -> str:
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n" if rows else "[]\n"

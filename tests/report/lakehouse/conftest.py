"""Tables of Iceberg and Delta, and programs of other makers that read them, as `.ci/peers` installs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.lakehouse.delta import DeltaTables
from vpnrouter.report.lakehouse.formats import DELTA, ICEBERG, Lakehouse
from vpnrouter.report.lakehouse.iceberg import NAMESPACE, IcebergTables
from vpnrouter.report.traces.storage import LOCAL

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parents[2] / ".peers" / "lakehouse"
PATIENCE_S = 120


class Tables:
    """The tables of a format in a directory."""

    def __init__(self, spark: SparkSession, form: str, place: Path) -> None:
        self._spark = spark
        self.form = form
        self.place = place

    def open(self) -> Lakehouse:
        """Open them for writing."""
        if self.form == DELTA:
            return DeltaTables(self._spark, str(self.place), LOCAL)
        return IcebergTables(self._spark, str(self.place))

    def read(self, name: str) -> dict[str, Any]:
        """A table's `rows`, its `columns` (name, type, comment) and the number of its `states`."""
        folder = self.place / NAMESPACE / name if self.form == ICEBERG else self.place / name
        return read_table(self.form, folder)


def read_table(form: str, place: Path) -> dict[str, Any]:
    """What the other program says of a table."""
    done = subprocess.run(
        [INSTALLED / "reader/bin/python", HERE / "peer/read.py", form, str(place)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def libraries() -> Path:
    """Skips where the libraries are missing."""
    if not (INSTALLED / "done").exists():
        pytest.skip(f"{INSTALLED / 'done'} is missing: run .ci/peers")
    return INSTALLED


@pytest.fixture(params=[DELTA, ICEBERG])
def tables(
    request: pytest.FixtureRequest, spark: SparkSession, libraries: Path, tmp_path: Path
) -> Tables:
    """The tables of each format in a directory with an odd name."""
    assert libraries.exists()
    return Tables(spark, request.param, tmp_path / "of a b+é")


@pytest.fixture
def reader(libraries: Path) -> Callable[[str, Path], dict[str, Any]]:
    """Reads a table of a format at a place."""
    assert libraries.exists()
    return read_table

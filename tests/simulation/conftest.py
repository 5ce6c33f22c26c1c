"""One simulation with every fault and one with none, made once, and its rows."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from vpnrouter.simulation.faults.kinds import KINDS
from vpnrouter.simulation.simulate import Options, simulate

NETWORK = "sndlib/germany50"


@dataclass(frozen=True)
class Made:
    """A simulation: where it is, its truth as it stands in the file, its rows."""

    folder: Path
    truth: dict[str, Any]
    rows: list[dict[str, Any]]

    def of(self, event: str) -> list[dict[str, Any]]:
        """The rows of one event."""
        return [row for row in self.rows if row["event"] == event]

    def faults(self, kind: str) -> list[dict[str, Any]]:
        """The faults of one kind."""
        return [fault for fault in self.truth["faults"] if fault["kind"] == kind]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """All trace rows under `folder`/traces, file after file."""
    keys = pa.schema([("date", pa.string()), ("router", pa.string())])
    partitioning = ds.partitioning(keys, flavor="hive")
    table = ds.dataset(folder / "traces", partitioning=partitioning).to_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def make(folder: Path, **options: Any) -> Made:
    """Simulate into `folder`."""
    simulate(Options(**{"network": NETWORK, **options}), folder)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return Made(folder, truth, rows_of(folder))


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A mesh without faults."""
    return make(tmp_path_factory.mktemp("calm"), vpns=30, rows=6_000)


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A mesh with a fault of every kind."""
    folder = tmp_path_factory.mktemp("faulty")
    return make(folder, vpns=90, rows=25_000, faults=tuple(KINDS), seed=3)

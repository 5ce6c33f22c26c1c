"""One Spark session for all tests here, and trace files to feed it."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from vpnrouter.topology.schema import TRACES
from vpnrouter.topology.session import spark_session

Row = Mapping[str, Any]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark session, ended with the tests."""
    with spark_session("local[2]", shuffle_partitions=2, short=True) as session:
        yield session


@pytest.fixture(scope="session")
def tracefiles() -> ModuleType:
    """The generator of trace files that stands beside these tests."""
    return _beside("tracefiles")


def _beside(name: str) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def frame_of(spark: SparkSession) -> Callable[[dict[str, list[Row]]], DataFrame]:
    """Makes the frame that jobs take from rows by router, without files; every row weighs 2."""

    def make(by_router: dict[str, list[Row]]) -> DataFrame:
        names = TRACES.names
        rows = [
            tuple({"weight": 2.0, **row, "router": router}.get(name) for name in names)
            for router, listed in by_router.items()
            for row in listed
        ]
        return spark.createDataFrame(rows, TRACES)

    return make

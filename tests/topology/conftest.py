"""One Spark session for all tests here, and trace files to feed it."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from vpnrouter.topology.session import spark_session


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

"""What the tests of the demonstration share: some real flights, and both routers running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from vpnrouter.demo.progress import claimed
from vpnrouter.demo.routers import Routers, running_routers
from vpnrouter.demo.scenario import Flights, read_flights

SOME = 3_000


@pytest.fixture(scope="session")
def flights() -> Flights:
    """The first flights of the year; every remote subscription takes some of them."""
    return read_flights(SOME)


@pytest.fixture(scope="session")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routers]:
    """Both routers with the bridge up."""
    with (
        claimed(tmp_path_factory.mktemp("demo") / "out") as folder,
        running_routers(folder) as running,
    ):
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A claimed output directory."""
    with claimed(tmp_path / "out") as claim:
        yield claim

"""A router that stands still (standing.py), and clients of an application that tells of it."""

import importlib.util
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from vpnrouter.spool.rocks_store import RocksStore


def _loaded(name: str) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    if name not in sys.modules:
        place = Path(__file__).with_name(f"{name.removeprefix('management_')}.py")
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


_routers = _loaded("management_routers")
"""The tests here import it as management_routers."""


@pytest.fixture
def here(tmp_path: Path) -> Any:
    """A router of three message VPNs with three bridges, queues and clients (`HERE` in routers.py)."""
    return _routers.here_and_far(tmp_path)


@pytest.fixture
def stored(here: Any, tmp_path: Path) -> Iterator[Path]:
    """A folder with the spool on disk that `here` has to back up."""
    folder = tmp_path / "stored"
    folder.mkdir()
    here.context.store = RocksStore(folder / "spool")
    yield folder
    here.context.store.close()


PLACE = Path(__file__).with_name("standing.py")


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def still(standing: ModuleType) -> Any:
    """A Monitor of three bridges in two of three message VPNs."""
    return standing.three_bridges()


@pytest.fixture
def opened(standing: ModuleType) -> Callable[..., Any]:
    """Opens clients of an application: `async with` it, given a Monitor, users and the peer."""

    @asynccontextmanager
    async def run(
        monitor: Any, users: Any = None, peer: str = "127.0.0.1", **more: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        app = standing.application(monitor, users)
        transport = httpx.ASGITransport(app, client=(peer, 50_000), raise_app_exceptions=False)
        settings = {"base_url": "http://localhost:8080", "trust_env": False} | more
        async with httpx.AsyncClient(transport=transport, **settings) as client:
            yield client

    return run

"""A router that stands still (standing.py), and clients of an application that tells of it."""

import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

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

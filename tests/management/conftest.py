"""Routers in memory (routers.py), and clients of their API."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

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

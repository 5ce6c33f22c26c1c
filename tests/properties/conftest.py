"""The router in memory (world.py) for the properties."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from tests.core.world import World

PLACE = Path(__file__).parents[1] / "core" / "world.py"


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """The module world.py."""
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location("core_world", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def world(kit: ModuleType) -> World:
    """A router with one message VPN, blue, in which everything is allowed."""
    return cast("World", kit.World())

"""The spool in memory (spool_world.py) for the tests of this folder; each ends with a check of BALANCE."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from vpnrouter.build_info import build_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.guaranteed.spool_world import SpoolWorld

# Compiled functions cannot be traced, and what cannot run there is not collected there.
collect_ignore = [] if build_kind() == "pure" else ["test_planted_in_endpoint.py"]

PLACE = Path(__file__).parent / "spool_world.py"


@pytest.fixture(scope="session")
def spool_kit() -> ModuleType:
    """The module spool_world.py."""
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location("spool_world", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def world(spool_kit: ModuleType) -> Iterator[SpoolWorld]:
    """A message VPN with a spool; nothing may be unaccounted for in the end."""
    world = cast("SpoolWorld", spool_kit.SpoolWorld())
    yield world
    world.check()
    world.commit()
    world.check()
    if all(row[4] for row in world.made) and not any(one.deleted for one in world.endpoints):
        # A restart finds the same number everywhere.
        before = [endpoint.spooled_count for endpoint in world.endpoints]
        assert [endpoint.spooled_count for endpoint in world.restart()] == before
        world.check()

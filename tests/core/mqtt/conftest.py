"""The router in memory with a spool (spooled.py) for the tests of this folder."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.mqtt.spooled import SpooledWorld

PLACE = Path(__file__).parent / "spooled.py"


@pytest.fixture(scope="session")
def spooled() -> ModuleType:
    """The module spooled.py."""
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location("core_mqtt_spooled", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["core_mqtt_spooled"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def router(spooled: ModuleType) -> Iterator[SpooledWorld]:
    """A router with a spool and one message VPN, blue, in which everything is allowed.

    At the end of the test clients give back all memory that counted for them.
    """
    made = cast("SpooledWorld", spooled.SpooledWorld())
    yield made
    assert made.balance() == (0, 0)

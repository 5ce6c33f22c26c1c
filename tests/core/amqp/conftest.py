"""A router in memory with a spool (core/mqtt/spooled.py), and AMQP clients of it (amqp_peer.py)."""

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

HERE = Path(__file__).parent


def _load(name: str, path: Path) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def spooled() -> ModuleType:
    """The module spooled.py."""
    return _load("core_amqp_spooled", HERE.parent / "mqtt" / "spooled.py")


@pytest.fixture(scope="session")
def amqp() -> ModuleType:
    """The module amqp_peer.py."""
    return _load("core_amqp_peer", HERE / "amqp_peer.py")


@pytest.fixture
def router(spooled: ModuleType) -> Iterator[SpooledWorld]:
    """A router with a spool and one message VPN, blue, in which everything is allowed.

    At the end of the test clients give back all memory that counted for them.
    """
    made = cast("SpooledWorld", spooled.SpooledWorld())
    yield made
    assert made.balance() == (0, 0)

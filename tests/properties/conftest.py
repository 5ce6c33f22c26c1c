"""The router in memory for the properties."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from vpnrouter.testing import memory

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """The router in memory."""
    return memory


@pytest.fixture
def world(kit: ModuleType) -> MemoryRouter:
    """A router with one message VPN, blue, in which everything is allowed."""
    return cast("MemoryRouter", kit.MemoryRouter())

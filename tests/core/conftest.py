"""The router in memory for the tests of this folder."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from vpnrouter.build_info import build_kind
from vpnrouter.testing import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.testing.memory import MemoryRouter


collect_ignore = [] if build_kind() == "pure" else ["test_backpressure_calls.py"]


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """The router in memory."""
    return memory


@pytest.fixture
def world(kit: ModuleType) -> Iterator[MemoryRouter]:
    """A router with one message VPN, blue, in which everything is allowed.

    At the end of the test clients give back all memory that counted for them.
    """
    made = cast("MemoryRouter", kit.MemoryRouter())
    yield made
    assert made.balance() == (0, 0)

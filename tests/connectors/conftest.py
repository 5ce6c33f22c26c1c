"""A connector in memory, and its provider, which is played by the test: packets in, packets out."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from vpnrouter.testing.modules import load_module

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def spooled() -> ModuleType:
    """A router in memory with a spool."""
    return load_module("connectors_spooled", HERE.parent / "core" / "mqtt" / "spooled.py")


@pytest.fixture(scope="session")
def kit(spooled: ModuleType) -> ModuleType:
    """The module connected.py."""
    assert spooled is not None
    return load_module("connectors_connected", HERE / "connected.py")


@pytest.fixture
def connected(kit: ModuleType, spooled: ModuleType) -> Callable[..., Any]:
    """`connected(links, …)`: a connector with these links in a new router."""

    def make(links: dict[str, Any], **more: Any) -> Any:
        return cast("Any", kit).Connected(spooled.SpooledWorld(), links, **more)

    return make


@pytest.fixture(scope="session")
def amqp_kit(kit: ModuleType) -> ModuleType:
    """The module amqp_connected.py."""
    assert kit is not None
    return load_module("connectors_amqp_connected", HERE / "amqp_connected.py")


@pytest.fixture
def amqp_connected(amqp_kit: ModuleType, spooled: ModuleType) -> Callable[..., Any]:
    """`amqp_connected(links, …)`: a connector to a provider of AMQP with these links in a new router."""

    def make(links: dict[str, Any], **provider: Any) -> Any:
        return cast("Any", amqp_kit).AmqpConnected(spooled.SpooledWorld(), links, **provider)

    return make

"""A router in memory with a spool (core/mqtt/spooled.py), and AMQP clients of it (amqp_peer.py)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from vpnrouter.testing.modules import load_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def spooled() -> ModuleType:
    """The module spooled.py."""
    return load_module("core_amqp_spooled", HERE.parent / "mqtt" / "spooled.py")


@pytest.fixture(scope="session")
def amqp() -> ModuleType:
    """The module amqp_peer.py."""
    return load_module("core_amqp_peer", HERE / "amqp_peer.py")


@pytest.fixture
def router(spooled: ModuleType) -> Iterator[SpooledWorld]:
    """A router with a spool and one message VPN, blue, in which everything is allowed.

    At the end of the test clients give back all memory that counted for them.
    """
    made = cast("SpooledWorld", spooled.SpooledWorld())
    yield made
    assert made.balance() == (0, 0)


@pytest.fixture
def join(router: SpooledWorld, amqp: ModuleType) -> Callable[..., Peer]:
    """Makes clients that are logged in and have a session."""

    def make(container: str = "me", **more: Any) -> Peer:
        peer: Peer = amqp.Peer(router)
        peer.join(container, **more)
        return peer

    return make

"""How far a bridge in memory comes with what its remote listens on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.explain.mesh import MemoryMesh

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

WALL_NS = 1_700_000_000_000_000_000
OPEN = (
    "{authentication: {basic: {enabled: false}},"
    " client_profiles: {default: {allow_bridge_connections_enabled: true}}}"
)
BRIDGE = (
    "msg_vpns: {v: {bridges: {b: {remote_authentication: {basic: {client_username: u}},"
    " remote_msg_vpns: [{name: v, router: far, location: '192.0.2.1:7'}]}}}}\n"
)


def test_an_address_that_is_translated_on_its_way(configured: Callable[..., Loaded]) -> None:
    """A remote that names its router means it, wherever it listens; one without a listener is not reached."""
    near = configured(BRIDGE, "near")
    for listeners, why in (
        ("listeners: [{protocol: link, bind: '10.0.0.1:55555'}]\n", ""),
        ("", "router far has no link listener"),
    ):
        far = configured(f"{listeners}msg_vpns: {{v: {OPEN}}}\n", "far")
        (bridge,) = MemoryMesh([near, far], WALL_NS).bridges
        assert bridge.why == why
        assert bridge.up is not bool(why)

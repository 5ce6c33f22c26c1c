"""Why a bridge in memory is down."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

import pytest

from vpnrouter.explain.mesh import MemoryMesh

REMOTE = "remote_msg_vpns: [{name: blue, router: edge, location: '127.0.0.1:55555'}]"
BRIDGE = (
    "msg_vpns: {v: {bridges: {b: {remote_authentication: {basic: {client_username: u}}, %s}}}}\n"
)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (f"enabled: false, {REMOTE}", "the bridge is disabled"),
        (REMOTE.replace("}]", ", enabled: false}]"), "all its remote message VPNs are disabled"),
        (REMOTE.replace("name: blue", "name: red"), "403 Message VPN Not Allowed"),
        (REMOTE.replace("edge", "far"), "no given file describes router far"),
        (
            REMOTE.replace("}]", ", tls_enabled: true}]"),
            "the listener 127.0.0.1:55555 of router edge does not speak TLS",
        ),
    ],
)
def test_why_it_is_down(
    pair: Callable[..., list[Loaded]], configured: Callable[..., Loaded], written: str, why: str
) -> None:
    """In the words of the configuration or of the remote."""
    mesh = [pair()[0], configured(BRIDGE % written, "third")]
    (bridge,) = MemoryMesh(mesh, 1_700_000_000_000_000_000).bridges
    assert not bridge.up
    assert bridge.why == why

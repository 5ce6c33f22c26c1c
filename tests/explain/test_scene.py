"""Who is behind a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.mesh_index import MeshIndex, client_of
from vpnrouter.explain.why_bridge import Visit


def test_bridges_of_a_message_vpn(pair: Callable[..., list[Loaded]]) -> None:
    """Those that lead out of it, and the link that serves them."""
    index = MeshIndex(MemoryMesh(pair(), 1_700_000_000_000_000_000))
    (bridge,) = index.bridges_out_of(Visit("edge", "blue", (), None))
    assert bridge is index.bridge("core", "yellow", "in")
    link = index.serving(bridge)
    assert link is not None
    assert link.peer_router == "core"
    assert index.bridges_out_of(Visit("core", "yellow", (), None)) == []
    assert (client_of("#mqtt/c"), client_of("q")) == ("c", "")


def test_nothing_is_known_without_a_mesh() -> None:
    """No rule, no route."""
    index = MeshIndex(None)
    visit = Visit("edge", "blue", (), None)
    assert (index.loaded("edge"), index.route(visit), index.vpn(visit)) == (None, None, None)

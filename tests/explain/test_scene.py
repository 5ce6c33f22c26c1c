"""Who is behind a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

from vpnrouter.explain.scene import Scene, client_of
from vpnrouter.explain.twin import Twin
from vpnrouter.explain.why_bridge import Visit


def test_bridges_of_a_message_vpn(pair: Callable[..., list[Loaded]]) -> None:
    """Those that lead out of it, and the link that serves them."""
    scene = Scene(Twin(pair(), 1_700_000_000_000_000_000))
    (bridge,) = scene.bridges_out_of(Visit("edge", "blue", (), None))
    assert bridge is scene.bridge("core", "yellow", "in")
    link = scene.serving(bridge)
    assert link is not None
    assert link.peer_router == "core"
    assert scene.bridges_out_of(Visit("core", "yellow", (), None)) == []
    assert (client_of("#mqtt/c"), client_of("q")) == ("c", "")


def test_nothing_is_known_without_a_mesh() -> None:
    """No rule, no route."""
    scene = Scene(None)
    visit = Visit("edge", "blue", (), None)
    assert (scene.loaded("edge"), scene.route(visit), scene.vpn(visit)) == (None, None, None)

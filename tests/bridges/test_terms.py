"""What a bridge asks of its remote message VPN."""

from typing import Any

from vpnrouter import limits
from vpnrouter.bridges.half_events import HalfCallbacks
from vpnrouter.bridges.remote_settings import RemoteSettings
from vpnrouter.wire.link.frames import BASIC


def test_defaults() -> None:
    """Where nothing is said, a bridge has the product's hop limit and heartbeat, and no selectors."""
    terms = RemoteSettings("b", "blue", "", "", "", [])
    assert (terms.max_ttl, terms.heartbeat_ms) == (limits.HOPS, limits.LINK_HEARTBEAT_MS)
    assert (terms.scheme, terms.compress, terms.mapping) == (BASIC, False, None)
    assert terms.selectors == {}
    assert terms.selectors is not RemoteSettings("c", "blue", "", "", "", []).selectors


def test_an_owner_need_not_listen(world: Any) -> None:
    """An owner that takes no interest breaks nothing."""
    yellow, blue = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue")
    link.half.owner = HalfCallbacks()
    world.book("edge").watch("blue", link.half.owner)
    world.link(yellow, "edge", "blue", bridge="other")
    link.half.leave(0x00, "Bridge Shutdown")
    world.settle()
    assert link.half.over
    assert blue.subscription_count == 1

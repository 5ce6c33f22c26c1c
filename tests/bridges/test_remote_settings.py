"""What a bridge asks of its remote message VPN."""

from dataclasses import replace
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.half_events import HalfCallbacks
from vpnrouter.bridges.remote_settings import BridgeEnds, RemoteSettings, incompatible
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


# -- compatible ------------------------------------------------------------------------------------


LOCAL = BridgeEnds("core", "yellow", "edge", "blue", tls=False)
PEER = BridgeEnds("edge", "blue", "core", "yellow", tls=False)


def test_two_halves_that_name_each_other_fit() -> None:
    """All five tests pass, seen from either side, with TLS on both or on neither."""
    assert incompatible(LOCAL, PEER) == ()
    assert incompatible(PEER, LOCAL) == ()
    assert incompatible(replace(LOCAL, tls=True), replace(PEER, tls=True)) == ()


@pytest.mark.parametrize(
    ("peer", "told"),
    [
        (replace(PEER, remote_router="other"), "is for router 'other'"),
        (replace(PEER, router="other"), "is router 'other'"),
        (replace(PEER, remote_vpn="green"), "is for message VPN 'green'"),
        (replace(PEER, vpn="green"), "is in message VPN 'green'"),
        (replace(PEER, tls=True), "TLS"),
    ],
)
def test_each_of_the_five_tests_alone_prevents_reuse(peer: BridgeEnds, told: str) -> None:
    """One difference is one failed test, which says what differs; both sides see it."""
    failed = incompatible(LOCAL, peer)
    assert len(failed) == 1
    assert told in failed[0]
    assert len(incompatible(peer, LOCAL)) == 1


def test_an_unknown_router_name_matches_nothing() -> None:
    """A bridge configured by address only does not take any router's connection for its own."""
    assert incompatible(replace(LOCAL, remote_router=""), PEER)
    assert incompatible(LOCAL, replace(PEER, remote_router=""))
    nameless = BridgeEnds("", "yellow", "", "blue", tls=False)
    assert len(incompatible(nameless, BridgeEnds("", "blue", "", "yellow", tls=False))) == 2


def test_every_fault_is_told() -> None:
    """Nothing in common fails all five."""
    assert len(incompatible(LOCAL, BridgeEnds("a", "b", "c", "d", tls=True))) == 5

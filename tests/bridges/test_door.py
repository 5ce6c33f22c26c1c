"""Where links begin."""

from typing import Any

import pytest

from vpnrouter.bridges.half_events import HalfCallbacks
from vpnrouter.bridges.link import LinkFactory, dial
from vpnrouter.bridges.remote_settings import RemoteSettings
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode


@pytest.mark.parametrize("tls", [False, True])
def test_the_door_makes_strangers(world: Any, tls: bool) -> None:
    """A connection that was accepted has no VPN, no half and nothing to say until it heard HELLO."""
    link = LinkFactory(world.book("edge"), tls=tls).connection("192.0.2.7:1")
    assert (link.vpn, link.own_half, link.peer_half, link.dialed) == (None, None, None, False)
    assert (link.tls, link.peer, link.outbox.size) == (tls, "192.0.2.7:1", 0)


@pytest.mark.parametrize("tls", [False, True])
def test_who_dials_speaks_first(world: Any, tls: bool) -> None:
    """HELLO says who we are, what we want, and where we answer; it waits to leave at once."""
    yellow = world.vpn("yellow", "core")
    world.book("core").link_port = 1_000
    scheme = frames.BASIC if tls else frames.SCRAM
    terms = RemoteSettings(
        "b", "blue", "edge", "name", "word", [(0, ">")], compress=tls, scheme=scheme, verified=tls
    )
    half = dial(
        world.book("core"),
        yellow,
        "h:1",
        terms,
        HalfCallbacks(),
        world.record(yellow, "b"),
        tls=tls,
    )
    data = half.link.outbox.take(1 << 20)
    hello = decode(data, 0, len(data))
    assert isinstance(hello, frames.Hello)
    assert (hello.router, hello.local_vpn, hello.bridge) == ("core", "yellow", "b")
    assert (hello.remote_router, hello.remote_vpn) == ("edge", "blue")
    assert (hello.client_username, hello.password) == ("name", "word" if tls else "")
    assert (hello.scheme, len(hello.nonce)) == (scheme, 0 if tls else 24)
    assert (hello.tls, hello.resume, hello.link_port, hello.links_port) == (tls, False, 1_000, 0)
    assert hello.features == frames.REUSE | frames.RETAINED | (frames.ZSTD if tls else 0)
    assert half.link.own_half is half

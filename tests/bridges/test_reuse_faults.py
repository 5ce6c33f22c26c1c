"""Reuse that must not be: other VPNs, a half that is taken, a feature that was not agreed on, strangers."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.remote_settings import BridgeEnds
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at


def closed_with(end: Any) -> tuple[int, str]:
    """Code and reason of the CLOSE that an end said last."""
    data = end.outbox.take(1 << 30)
    found, pos = None, 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found = decode(data, pos, length)
        pos += length
    assert isinstance(found, frames.Close)
    return found.code, found.reason


def dialed(world: Any) -> Any:
    """A connection dialled by yellow on core to blue on edge."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.vpn("green", "core")
    return world.link(local, "edge", "blue")


OTHERS = {
    "another VPN there": {"vpn": "green"},
    "another VPN here": {"local_vpn": "green"},
    "another router": {"router": "third"},
}


@pytest.mark.parametrize("differs", OTHERS.values(), ids=OTHERS)
def test_a_hello_for_other_vpns(world: Any, differs: dict[str, str]) -> None:
    """The second half is between the VPNs of the first one, or the connection is closed with 0x82."""
    link = dialed(world)
    link.wire.cut = True
    asked = {"router": "edge", "local_vpn": "blue", "vpn": "yellow"} | differs
    link.dialed.feed(
        encode.hello(
            frames.Hello(asked["router"], "back", asked["local_vpn"], asked["vpn"], features=1)
        )
    )
    assert closed_with(link.dialed) == (0x82, "LINK-39: a HELLO for other VPNs")
    assert link.events.told[-1][0] == "lost"


def test_a_half_that_is_taken(pair: Any) -> None:
    """A second HELLO for the same half is out of turn, from either side."""
    both = pair()
    both.link.wire.cut = True
    for end, hello in (
        (both.link.dialed, frames.Hello("edge", "third", "blue", "yellow", features=1)),
        (both.link.accepted, frames.Hello("core", "third", "yellow", "blue", features=1)),
    ):
        end.feed(encode.hello(hello))
        assert closed_with(end)[0] == 0x82
    assert both.told.told[-1][0] == "lost"
    assert both.link.events.told[-1][0] == "lost"


def test_without_the_feature(world: Any) -> None:
    """Where reuse was not agreed on, HELLO in the other direction is closed with 0x82."""
    yellow = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue", settle=False)
    hello = decode(data := link.dialed.outbox.take(1 << 20), 0, len(data))
    hello.features = 0
    link.accepted.feed(encode.hello(hello))
    world.settle()
    assert link.up
    assert link.accepted.features == 0
    assert not link.accepted.can_attach()
    link.wire.cut = True
    link.dialed.feed(encode.hello(frames.Hello("edge", "back", "blue", "yellow")))
    assert closed_with(link.dialed)[0] == 0x82


def test_a_stranger_is_not_reused(world: Any) -> None:
    """A connection whose peer has not said HELLO, and one that we dialled, serve no other bridge."""
    link = dialed(world)
    assert not link.dialed.can_attach()
    assert link.accepted.can_attach()
    link.accepted.goodbye(0x98, "503 Disconnected By Administrator")
    assert not link.accepted.can_attach()


BLUE = BridgeEnds("edge", "blue", "core", "yellow", tls=False)

FITS: dict[str, tuple[BridgeEnds, dict[str, Any], bool]] = {
    "all five": (BLUE, {}, True),
    "peer names us": (BLUE, {"remote_router": "edge"}, True),
    "1, peer names another": (BridgeEnds("west", "blue", "core", "yellow", tls=False), {}, False),
    "2, not our remote's name": (
        BridgeEnds("edge", "blue", "west", "yellow", tls=False),
        {},
        False,
    ),
    "2, our remote's name unknown": (
        BridgeEnds("edge", "blue", "", "yellow", tls=False),
        {},
        False,
    ),
    "3, peer's bridge is for another VPN": (
        BridgeEnds("edge", "red", "core", "yellow", tls=False),
        {},
        False,
    ),
    "4, peer's bridge is in another VPN": (
        BridgeEnds("edge", "blue", "core", "green", tls=False),
        {},
        False,
    ),
    "5, TLS on one side": (BridgeEnds("edge", "blue", "core", "yellow", tls=True), {}, False),
}


@pytest.mark.parametrize(("local", "terms", "fits"), FITS.values(), ids=FITS)
def test_each_of_the_five_tests(world: Any, local: BridgeEnds, terms: Any, fits: bool) -> None:
    """One difference between what is configured and what came in, and the connection is not used."""
    yellow = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue", terms=terms)
    found = world.book("edge").reusable_links(local)
    assert found == ([link.accepted] if fits else [])

"""The times of a link that is used in both directions, paused, or over."""

from typing import Any

from vpnrouter import limits
from vpnrouter.bridges.link import LinkFactory
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.wire.link import frames


def test_a_paused_link_misses_nobody(world: Any) -> None:
    """A link that is not read on purpose is not closed for silence; read again, it is."""
    world.vpn("blue", "edge")
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", terms={"heartbeat_ms": 1_000})
    link.dialed.paused = True
    link.wire.cut = True
    world.wait(10)
    assert not link.dialed.ended
    assert link.accepted.ended
    link.dialed.resume()
    world.wait(2)
    assert link.dialed.ended
    assert link.events.told[-1] == ("lost", "408 Heartbeat Timeout")


def test_a_password_that_takes_long(world: Any) -> None:
    """A verdict on a password that does not come in time ends the handshake."""
    remote = world.vpn(
        "blue", "edge", basic=True, usernames=[ClientUsername("core", password="right")]
    )
    link = world.link(
        world.vpn("yellow", "core"),
        "edge",
        "blue",
        terms={
            "client_username": "core",
            "password": "right",
            "scheme": frames.BASIC,
            "tls": True,
            "verified": True,
        },
        listener_tls=True,
    )
    assert not link.up
    world.wait(limits.CONNECT_TIMEOUT_S + 1)
    assert link.accepted.ended
    link.accepted.password_verified(good=True)
    world.settle()
    assert remote.clients == {}


def test_no_timer_is_left(world: Any) -> None:
    """A link that is over waits for nothing: its clock is not wound again."""
    world.vpn("blue", "edge")
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", terms={"heartbeat_ms": 1_000})
    stranger = LinkFactory(world.book("edge"), tls=False).connection("192.0.2.9")
    stranger.lost("closed by peer")
    link.half.leave(0x00, "Bridge Shutdown")
    world.settle()
    said = link.dialed.control_tx_msgs, link.accepted.control_tx_msgs
    world.wait(60, step_s=1)
    assert (link.dialed.control_tx_msgs, link.accepted.control_tx_msgs) == said
    for end in (link.dialed, link.accepted, stranger):
        assert end._clock._timer is None


def test_the_first_half_decides_the_interval(world: Any, pair: Any) -> None:
    """The second half's wish does not change the heartbeat that the connection has."""
    both = pair(beyond={"heartbeat_ms": 100})
    before = both.link.accepted._clock._interval_ns
    assert before == limits.LINK_HEARTBEAT_MS * 1_000_000
    assert both.link.dialed._clock._interval_ns == before
    world.wait(60, step_s=1)
    assert both.both_ways() == (3, 3)

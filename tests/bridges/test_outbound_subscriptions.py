"""Subscriptions that bridges place in the remote VPN: codes, limits, the barrier."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import SMF
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at


def spoken(data: bytes) -> list[Any]:
    """The frames in `data`."""
    found, pos = [], 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found.append(decode(data, pos, length))
        pos += length
    return found


def heard(link: Any) -> list[Any]:
    """The frames that the acceptor sent."""
    return spoken(b"".join(link.wire.carried[1]))


def test_subscriptions_have_codes_of_their_own(world: Any) -> None:
    """What is refused is told with code and first reason; the rest is granted and the link stays."""
    acl = AclProfile("default", subscribe=TopicRule(True, [("secret/>", SMF)]))
    remote = world.vpn("blue", "edge", acl=acl)
    link = world.link(
        world.vpn("yellow", "core"), "edge", "blue", ["a/>", "secret/x", "x" + "/x" * 128, "b"]
    )
    (answer,) = [frame for frame in heard(link) if isinstance(frame, frames.Subscribed)]
    assert answer.codes == [0x00, 0x87, 0x8F, 0x00]
    assert answer.reason == "403 Subscription ACL Denied: secret/x"
    assert link.events.told[-1] == ("subscribed", "403 Subscription ACL Denied: secret/x")
    assert link.up
    assert remote.subscription_count == 2


@pytest.mark.parametrize(
    "bounds",
    [
        {"bounds": VpnLimits(max_subscription_count=2)},
        {
            "profile": ClientProfile(
                "b", allow_bridge_connections_enabled=True, max_subscription_count=2
            )
        },
    ],
    ids=["VPN", "client profile"],
)
def test_limits_on_subscriptions(world: Any, bounds: dict[str, Any]) -> None:
    """One subscription too many is refused alone; one that is there already may be repeated."""
    remote = world.vpn("blue", "edge", **bounds)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["a", "b", "c"])
    assert heard(link)[-1].codes == [0x00, 0x00, 0x97]
    assert heard(link)[-1].reason == "400 Max Num Subscriptions Exceeded: c"
    link.half.want([(1, "a"), (0, "b"), (0, "c")], {})
    world.settle()
    assert heard(link)[-1].codes == [0x00]
    assert remote.subscription_count == 2


def test_a_long_refused_filter_is_cut(world: Any) -> None:
    """A reason quotes as much of a refused filter as a reason may hold, whole characters only."""
    world.vpn("blue", "edge", bounds=VpnLimits(max_topic_bytes=250))
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["é" * 2_000])
    answer = heard(link)[-1]
    assert answer.codes == [0x8F]
    assert len(answer.reason.encode()) in range(
        limits.LINK_TEXT_BYTES - 1, limits.LINK_TEXT_BYTES + 1
    )


def test_unsubscribe_is_a_barrier(world: Any) -> None:
    """After the answer to UNSUBSCRIBE nothing comes that only those filters attracted (LINK-26)."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", ["a", "b"])
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    publisher.publish("a", b"1")
    link.dialed.say(encode.unsubscribe(frames.Unsubscribe(9, ["a", "never"])))
    link.half._pending += 1
    publisher.publish("a", b"2")
    publisher.publish("a", b"3")
    publisher.publish("b", b"4")
    # The first was published before the router heard of the change.
    assert subscriber.payloads() == [b"1", b"2", b"4"]
    assert [f.codes for f in heard(link) if isinstance(f, frames.Subscribed)][-1] == [0x00, 0x11]
    assert remote.subscription_count == 1

"""What the traces tell of an own bridge."""

from typing import Any


def traced(world: Any) -> Any:
    """A link into yellow where everything is traced at both ends."""
    for name in ("core", "edge"):
        world.router(name, sample=1.0)
    world.vpn("blue", "edge")
    return world.link(world.vpn("yellow", "core"), "edge", "blue")


def test_a_link_comes_and_goes(world: Any) -> None:
    """Up and down are told with bridge, peer and reason, at both ends."""
    link = traced(world)
    link.half.leave(0x00, "Bridge Shutdown")
    world.settle()
    for router, vpn, peer in (("core", "yellow", "blue"), ("edge", "blue", "yellow")):
        events = [e for e in world.traces(router) if e["event"].startswith("link_")]
        assert [event["event"] for event in events] == ["link_up", "link_down"]
        assert [event["context"].reason for event in events] == ["", "Bridge Shutdown"]
        assert {(e["vpn"], e["context"].peer_vpn, e["context"].bridge) for e in events} == {
            (vpn, peer, "b")
        }


def test_a_rejected_link(world: Any) -> None:
    """A refusal is told at both ends, where it came from with all of its reason; no link went down."""
    for name in ("core", "edge"):
        world.router(name, sample=1.0)
    world.link(world.vpn("yellow", "core"), "edge", "nowhere")
    for router, why in (("core", "403 Forbidden"), ("edge", "403 Message VPN Not Allowed")):
        (event,) = [e for e in world.traces(router) if e["event"].startswith("link_")]
        assert event["event"] == "link_rejected"
        assert event["context"].reason == why


def test_one_context_for_a_way(world: Any) -> None:
    """Messages that came the same way share what is written of it; those of another way do not."""
    traced(world)
    blue = world.routers["edge"].vpns["blue"]
    green = world.vpn("green", "edge")
    world.link(blue, "edge", "green", bridge="far")
    near, far = world.client(blue, "near"), world.client(green, "far")
    for client in (near, near, far, near):
        client.publish("a", b"x")
    came = [e for e in world.traces("core") if e["event"] == "bridge_receive"]
    assert [e["context"].path for e in came] == [
        "edge/blue",
        "edge/blue",
        "edge/green>edge/blue",
        "edge/blue",
    ]
    assert [e["context"].hops for e in came] == [1, 1, 2, 1]
    assert [e["context"].origin_vpn for e in came] == ["blue", "blue", "green", "blue"]


def test_without_tracing_nothing_is_told(world: Any) -> None:
    """A router that traces nothing records no event of its links."""
    world.vpn("blue", "edge")
    world.link(world.vpn("yellow", "core"), "edge", "blue")
    assert world.traces("core") == []

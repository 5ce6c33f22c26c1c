"""What a link's client sends: the visited path, loops, sizes, no-local; over random meshes too."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.link_client import (
    LinkClient,
    vpn_id,
)
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.subscriber import FRAME_MQTT5, FRAME_OWN
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.mqtt.properties import Properties

Edge = tuple[int, int]
"""A bridge: from the VPN that messages come out of to the one that has it."""


class Mesh:
    """VPNs numbered from 0 with bridges between them; VPN n lives on router n modulo `routers`."""

    def __init__(
        self, world: Any, count: int, edges: list[Edge], routers: int, max_ttl: int = limits.HOPS
    ) -> None:
        self.vpns = [world.vpn(f"v{n}", f"r{n % routers}") for n in range(count)]
        for number, (source, target) in enumerate(edges):
            world.link(
                self.vpns[target],
                self.vpns[source].context.router_name,
                f"v{source}",
                [">"],
                bridge=f"b{number}",
                terms={"max_ttl": max_ttl},
            )
        self.publishers = [world.client(vpn, "p") for vpn in self.vpns]
        self.subscribers = [world.client(vpn, "s") for vpn in self.vpns]
        for subscriber in self.subscribers:
            subscriber.subscribe("#")

    def arrivals(self) -> list[int]:
        """Messages that arrived in each VPN since the last call."""
        return [len(subscriber.take()) for subscriber in self.subscribers]


def reached(count: int, edges: list[Edge], source: int, most: int) -> list[int]:
    """1 for each VPN that some way from `source` reaches over `most` bridges or fewer, else 0."""
    found = {source}
    for _ in range(most):
        found |= {end for begin, end in edges if begin in found}
    return [int(vpn in found) for vpn in range(count)]


@st.composite
def meshes(draw: st.DrawFn) -> tuple[int, list[Edge], int, int]:
    """VPNs, bridges (parallel ones too), routers, and where the message is published."""
    count = draw(st.integers(2, 5))
    edge = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(edge.filter(lambda pair: pair[0] != pair[1]), max_size=8))
    return count, edges, draw(st.integers(1, 3)), draw(st.integers(0, count - 1))


@given(mesh=meshes(), max_ttl=st.integers(1, 4), properties=st.booleans())
def test_a_message_reaches_every_vpn_once(
    make_world: Any, mesh: tuple[int, list[Edge], int, int], max_ttl: int, properties: bool
) -> None:
    """Every VPN within the hop limit gets one copy, however many ways lead there, no other gets any."""
    count, edges, routers, source = mesh
    built = Mesh(make_world(), count, edges, routers, max_ttl)
    extra = Properties(content_type="x") if properties else None
    built.publishers[source].publish("a/b", b"x", properties=extra)
    assert built.arrivals() == reached(count, edges, source, max_ttl)


def test_the_hop_limit_ends_a_chain(world: Any) -> None:
    """A message crosses as many bridges as `max_ttl` says; the next VPN counts it as discarded."""
    built = Mesh(world, 4, [(0, 1), (1, 2), (2, 3)], 4, max_ttl=2)
    built.publishers[0].publish("a", b"x")
    assert built.arrivals() == [1, 1, 1, 0]
    assert built.vpns[3].totals().discards == {"ttl-exceeded": 1}


def client_of(world: Any, max_frame: int = limits.LINK_FRAME_BYTES) -> tuple[LinkClient, Outbox]:
    """A link's client in blue on edge, and what it sends."""
    vpn = world.vpn("blue", "edge")
    outbox = Outbox([], 1 << 20)
    client = LinkClient(vpn, "#bridge/x", outbox, "core", "yellow")
    client.bound_frames(max_frame)
    return client, outbox


def sent(outbox: Outbox) -> list[frames.Direct]:
    """The messages in an outbox."""
    found, data, pos = [], outbox.take(1 << 30), 0
    while pos < len(data):
        length = 2 + data[pos + 1]
        frame = decode(data, pos, length)
        assert isinstance(frame, frames.Direct)
        found.append(frame)
        pos += length
    return found


def test_a_plain_message_needs_no_extension(world: Any) -> None:
    """What was published here, untraced and not retained, goes as DIRECT, a client's own frame."""
    client, outbox = client_of(world)
    client.deliver(Message(b"a", b"x", b"\x01\x01"), [])
    (frame,) = sent(outbox)
    assert frame.extension is None
    assert (frame.topic, frame.properties, frame.payload) == (b"a", b"\x01\x01", b"x")


def test_a_message_from_elsewhere_carries_its_path(world: Any) -> None:
    """The path goes on with the sender's own VPN behind, one hop more (LINK-29)."""
    client, outbox = client_of(world)
    message = Message(b"a", b"x")
    message.path = ["r/1", "r/2"]
    message.hops = 3
    client.deliver(message, [])
    (frame,) = sent(outbox)
    assert frame.extension is not None
    assert frame.extension.path == ["r/1", "r/2", "edge/blue"]
    assert frame.extension.hops == 4


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda message, client: setattr(message, "source", client), "no-local-delivery"),
        (lambda message, client: setattr(message, "path", ["core/yellow"]), "loop-detected"),
        (lambda message, client: setattr(message, "hops", 255), "ttl-exceeded"),
        (lambda message, client: setattr(message, "payload", b"x" * 20_000), "msg-too-big"),
    ],
    ids=["no-local", "loop", "hops", "size"],
)
def test_what_is_not_sent(world: Any, prepare: Any, reason: str) -> None:
    """Each reason not to send is counted under its name, and nothing goes on the wire."""
    client, outbox = client_of(world, max_frame=16_384)
    message = Message(b"a", b"x")
    prepare(message, client)
    client.deliver(message, [])
    assert outbox.size == 0
    assert client.vpn.discards.counts == {reason: 1}


def test_the_peer_s_frame_bound(world: Any) -> None:
    """A frame of exactly the peer's bound goes, one byte more is discarded; the link stays (LINK-37)."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", settle=False)
    link.dialed.outbox.take(1 << 20)
    hello = frames.Hello("core", "b", "yellow", "blue", max_frame=16_384)
    link.accepted.feed(encode.hello(hello))
    link.accepted.feed(encode.subscribe(frames.Subscribe(1, [(0, ">")])))
    link.accepted.outbox.take(1 << 20)
    link.wire.cut = True
    publisher = world.client(remote, "p")
    overhead = len(encode.direct(encode.direct_body(b"a", b"", b"x" * 16_000))) - 16_000
    publisher.publish("a", b"x" * (16_384 - overhead))
    assert len(link.accepted.outbox.take(1 << 20)) == 16_384
    publisher.publish("a", b"x" * (16_384 - overhead + 1))
    assert link.accepted.outbox.take(1 << 20) == b""
    assert remote.totals().discards == {"msg-too-big": 1}
    assert link.accepted.client is not None


def test_frames_cross_in_batches_only_at_the_usual_bound(world: Any) -> None:
    """A peer with a smaller bound gets each frame looked at, the usual one whole batches."""
    assert client_of(world)[0].frame == FRAME_MQTT5
    assert client_of(world, limits.LINK_FRAME_BYTES - 1)[0].frame == FRAME_OWN


def test_a_slow_link_costs_its_own_messages_alone(world: Any) -> None:
    """Beyond the profile's outbox what a bridge does not take is discarded and counted; others go on."""
    profile = ClientProfile(
        "bridging", allow_bridge_connections_enabled=True, max_outbox_bytes=65_536
    )
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge", profile=profile)
    link = world.link(local, "edge", "blue")
    link.wire.cut = True
    beside = world.client(remote, "beside")
    beside.subscribe("#")
    publisher = world.client(remote, "p")
    for _ in range(100):
        publisher.publish("a", b"x" * 1_000)
        assert len(beside.take()) == 1
    assert link.accepted.outbox.size <= 65_536
    discarded = remote.totals().discards["transmit-congestion"]
    assert discarded + link.accepted.outbox.messages == 100
    assert discarded > 30


# -- inbound traces --------------------------------------------------------------------------------


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
        events = [e for e in world.traces(router) if e.event.startswith("link_")]
        assert [event.event for event in events] == ["link_up", "link_down"]
        assert [event.context.reason for event in events] == ["", "Bridge Shutdown"]
        assert {(e.context.vpn, e.context.peer_vpn, e.context.bridge) for e in events} == {
            (vpn, peer, "b")
        }


def test_a_rejected_link(world: Any) -> None:
    """A refusal is told at both ends, where it came from with all of its reason; no link went down."""
    for name in ("core", "edge"):
        world.router(name, sample=1.0)
    world.link(world.vpn("yellow", "core"), "edge", "nowhere")
    for router, why in (("core", "403 Forbidden"), ("edge", "403 Message VPN Not Allowed")):
        (event,) = [e for e in world.traces(router) if e.event.startswith("link_")]
        assert event.event == "link_rejected"
        assert event.context.reason == why


def test_one_context_for_a_way(world: Any) -> None:
    """Messages that came the same way share what is written of it; those of another way do not."""
    traced(world)
    blue = world.routers["edge"].vpns["blue"]
    green = world.vpn("green", "edge")
    world.link(blue, "edge", "green", bridge="far")
    near, far = world.client(blue, "near"), world.client(green, "far")
    for client in (near, near, far, near):
        client.publish("a", b"x")
    came = [e for e in world.traces("core") if e.event == "bridge_receive"]
    assert [e.context.path for e in came] == [
        "edge/blue",
        "edge/blue",
        "edge/green>edge/blue",
        "edge/blue",
    ]
    assert [e.context.hops for e in came] == [1, 1, 2, 1]
    assert [e.context.origin_vpn for e in came] == ["blue", "blue", "green", "blue"]


def test_without_tracing_nothing_is_told(world: Any) -> None:
    """A router that traces nothing records no event of its links."""
    world.vpn("blue", "edge")
    world.link(world.vpn("yellow", "core"), "edge", "blue")
    assert world.traces("core") == []


# -- loops -----------------------------------------------------------------------------------------


def test_the_longest_name() -> None:
    """A name of LINK_PATH_ENTRY_BYTES is carried; a VPN's name may have slashes."""
    assert len(vpn_id("r" * 127, "v" * 127)) == limits.LINK_PATH_ENTRY_BYTES
    assert vpn_id("r", "a/b") != vpn_id("s", "a/b")


# -- deliver to one --------------------------------------------------------------------------------


ONE = Properties(user_properties=[("deliver-to-one", "true")])


class Spread:
    """blue on edge, and bridges of these priorities to VPNs with one subscriber each; 0 is `da`."""

    def __init__(self, world: Any, *priorities: int) -> None:
        self.world = world
        self.blue = world.vpn("blue", "edge")
        self.far = []
        self.links = []
        for number, priority in enumerate(priorities):
            local = world.vpn(f"v{number}", f"r{number}")
            link = world.link(local, "edge", "blue", [])
            link.half.want([(priority << 1, ">")], {})
            world.settle()
            subscriber = world.client(local, "s")
            subscriber.subscribe("#")
            self.far.append(subscriber)
            self.links.append(link)
        self.publisher = world.client(self.blue, "p")

    def spread(self, count: int) -> list[int]:
        """How many of these messages for one consumer came to each of the far subscribers."""
        for number in range(count):
            self.publisher.publish("a", b"%d" % number, properties=ONE)
        return [len(subscriber.take()) for subscriber in self.far]


@pytest.mark.parametrize(
    ("priorities", "got"),
    [
        ((1, 2), [6, 0]),
        ((4, 3), [0, 6]),
        ((2, 2), [3, 3]),
        ((1, 1, 4), [3, 3, 0]),
        ((0, 1), [6, 6]),
        ((0, 0), [6, 6]),
        ((4,), [6]),
    ],
)
def test_the_best_priority_gets_it(world: Any, priorities: tuple[int, ...], got: list[int]) -> None:
    """One of the links of the best priority, in turn; `da` gets its copy in any case."""
    assert Spread(world, *priorities).spread(6) == got


def test_it_is_for_one_there_too(world: Any) -> None:
    """Behind the link it is for one consumer still."""
    spread = Spread(world, 1)
    second = world.client(spread.links[0].dialed.vpn, "s2")
    second.subscribe("#")
    (first,) = spread.spread(6)
    assert (first, len(second.take())) == (3, 3)


def test_not_back_over_the_link_it_came_by(world: Any) -> None:
    """A message for one consumer that came over a connection does not go back over it."""
    spread = Spread(world, 1)
    link = spread.links[0]
    world.bridge(spread.blue, link.accepted, "v0")
    publisher = world.client(link.dialed.vpn, "p")
    near = world.client(spread.blue, "near")
    publisher.publish("a", b"x", properties=ONE)
    assert spread.far[0].payloads() == [b"x"]
    assert near.take() == []
    assert spread.blue.discards.counts.get("loop-detected", 0) == 0

"""What a link's client sends: the visited path, loops, sizes, no-local; over random meshes too."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.subscriber import FRAME_MQTT5, FRAME_OWN
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.mqtt.encode import encode as mqtt_encode
from vpnrouter.wire.mqtt.packets import Publish
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


@given(
    parents=st.lists(st.integers(0, 1_000), min_size=1, max_size=7),
    both=st.booleans(),
    routers=st.integers(1, 3),
    data=st.data(),
)
def test_in_a_tree_everybody_gets_it_once(
    make_world: Any, parents: list[int], both: bool, routers: int, data: st.DataObject
) -> None:
    """Without a second way, each VPN that can be reached gets one copy, both ways bridged or not."""
    count = len(parents) + 1
    edges = [(parent % (child + 1), child + 1) for child, parent in enumerate(parents)]
    if both:
        edges += [(end, begin) for begin, end in edges]
    source = data.draw(st.integers(0, count - 1)) if both else 0
    built = Mesh(make_world(), count, edges, routers)
    built.publishers[source].publish("a/b", b"x")
    assert built.arrivals() == [1] * count


@pytest.mark.parametrize("size", [2, 3, 8, 9])
@pytest.mark.parametrize("routers", [1, 2, 9])
def test_rings(world: Any, size: int, routers: int) -> None:
    """Round a ring of any size a message goes once, up to the hop limit, and never comes back."""
    edges = [(n, (n + 1) % size) for n in range(size)]
    built = Mesh(world, size, edges, routers)
    built.publishers[0].publish("a", b"x")
    assert built.arrivals() == [1] * size
    looped = Counter[str]()
    for vpn in built.vpns:
        looped.update(vpn.totals().discards)
    assert looped == {"loop-detected": 1}


def test_both_ways_between_two_vpns(world: Any) -> None:
    """With ">" both ways a publish on either side arrives once on each, a chunk of many as well."""
    built = Mesh(world, 2, [(0, 1), (1, 0)], 2)
    for source in (0, 1):
        built.publishers[source].publish("a", b"x")
        assert built.arrivals() == [1, 1]
    frame = mqtt_encode(Publish(b"a", b"y" * 20), 5)
    built.publishers[0].connection.feed(frame * 50)
    world.settle()
    assert built.arrivals() == [50, 50]


def test_a_chain_inside_one_router(world: Any) -> None:
    """Three VPNs of one router, chained by bridges: what enters the first leaves the last, once."""
    built = Mesh(world, 3, [(0, 1), (1, 2)], 1)
    built.publishers[0].publish("a", b"x")
    assert built.arrivals() == [1, 1, 1]
    built.publishers[2].publish("a", b"x")
    assert built.arrivals() == [0, 0, 1]


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

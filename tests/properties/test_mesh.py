"""A message in any mesh of bridges comes to each message VPN once, wherever a way within the hop limits leads.

First the rule alone: SeenIds and loops.py in a model of a few lines. Then the core's own VPNs, with links
that hold what they carry until it is their turn. The oracle walks every simple path.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter.bridges.link_client import may_enter, path_for, why_not
from vpnrouter.core.duplicates import DUPLICATE, FIRST, SHORTER, SeenIds
from vpnrouter.core.forward import scan
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.ids import IdSource
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.sampler import Sampler
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.testing.memory import Client, MemoryRouter

MOST_BYTES = 1 << 30


class Mesh(NamedTuple):
    """`edges` says for each link from one VPN to another the `max_ttl` of its bridge."""

    size: int
    edges: dict[tuple[int, int], int]

    def onward(self, place: int) -> list[int]:
        """Where links lead from `place`."""
        return [end for start, end in self.edges if start == place]

    def reached(self, origin: int) -> set[int]:
        """Every VPN at the end of a simple path on which no link is one hop too many."""
        found = {origin}
        paths = [[origin]]
        while paths:
            path = paths.pop()
            for end in self.onward(path[-1]):
                if end not in path and len(path) <= self.edges[path[-1], end]:
                    found.add(end)
                    paths.append([*path, end])
        return found


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Up to eight VPNs; a ring is in it more often than not, and limits that bite."""
    size = draw(st.integers(2, 8))
    pairs = [(one, other) for one in range(size) for other in range(size) if one != other]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24))
    if draw(st.booleans()):
        chosen += [(one, (one + 1) % size) for one in range(size)]
    if draw(st.booleans()):
        limit = st.just(draw(st.integers(2, 5)))
    else:
        limit = st.sampled_from([1, 2, 3, 4, 8])
    return Mesh(size, {pair: draw(limit) for pair in dict.fromkeys(chosen)})


SHORTCUT = Mesh(4, {(0, 1): 2, (1, 2): 2, (2, 3): 2, (0, 2): 2})
"""0 > 1 > 2 > 3 is too long for 3, which only the copy over the shortcut 0 > 2 can reach."""

SLOW = 5
"""A seed under which the shortcut is the slowest link."""


class Order:
    """Whose turn it is: any link's, or always the fastest one's, so that long ways may be the quick ones."""

    def __init__(self, draws: Random, mesh: Mesh) -> None:
        self.draws = draws
        self.fair = draws.random() < 0.3
        self.speed = {edge: draws.random() for edge in mesh.edges}

    def next(self, busy: list[tuple[int, int]]) -> tuple[int, int]:
        """The link that delivers next."""
        return self.draws.choice(busy) if self.fair else max(busy, key=self.speed.__getitem__)


class Copy(NamedTuple):
    """A message on a link."""

    serial: int
    number: int
    path: list[str]
    hops: int


@example(SHORTCUT, [0], Random(SLOW))
@given(meshes(), st.lists(st.integers(0, 7), min_size=1, max_size=4), st.randoms())
def test_the_rule_alone(mesh: Mesh, origins: list[int], draws: Random) -> None:
    """Whatever the order in which links deliver."""
    seen = [SeenIds() for _ in range(mesh.size)]
    sources = [IdSource(place + 1) for place in range(mesh.size)]
    got: Counter[tuple[int, int]] = Counter()
    waiting: dict[tuple[int, int], list[Copy]] = {edge: [] for edge in mesh.edges}

    def send(place: int, copy: Copy) -> None:
        ends = mesh.onward(place)
        number = copy.number
        if len(ends) > 1 and not number:
            number = sources[place].new_message_id()
        for end in ends:
            if may_enter(copy.path, f"r/{end}"):
                path = path_for(copy.path, f"r/{place}")
                waiting[place, end].append(Copy(copy.serial, number, path, copy.hops + 1))

    for serial, origin in enumerate(origins):
        place = origin % mesh.size
        got[serial, place] += 1
        send(place, Copy(serial, 0, [], 0))
    order = Order(draws, mesh)
    while busy := [edge for edge, copies in waiting.items() if copies]:
        edge = order.next(busy)
        copy = waiting[edge].pop(0)
        _, place = edge
        if why_not(copy.path, copy.hops, f"r/{place}", mesh.edges[edge]):
            continue
        verdict = seen[place].look(copy.number, copy.hops) if copy.number else FIRST
        if verdict == FIRST:
            got[copy.serial, place] += 1
        if verdict != DUPLICATE:
            send(place, copy)
    expected = {
        (serial, place)
        for serial, origin in enumerate(origins)
        for place in mesh.reached(origin % mesh.size)
    }
    assert got == Counter(expected)


class Pipe(Subscriber):
    """Both ends of a link: the client in the VPN it attracts from, what it carries, and how it arrives."""

    def __init__(self, near: MessageVpn, far: MessageVpn, max_ttl: int) -> None:
        super().__init__(f"#bridge/{far.name}", Outbox(near.context.ready, MOST_BYTES), FRAME_MQTT5)
        self.is_link = True
        self.vpn_id = far.vpn_id
        self.near = near
        self.far = far
        self.max_ttl = max_ttl
        self.waiting: list[Message] = []
        near.subscribe(Subscription(parse_filter(">", SMF), self))

    def arrive_as(self, client: Subscriber) -> None:
        """Be `client` in the far VPN."""
        self.publisher = Publisher(self.far, client, None, 1, MOST_BYTES)
        self.publisher.sampler = Sampler(0.0, 1)
        self.publisher.path = [self.near.vpn_id]

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        assert subscriptions
        assert message.source is not self
        if not may_enter(message.path, self.vpn_id):
            return
        copy = Message(message.topic, message.payload, message.block, message.retain)
        copy.path = path_for(message.path, self.near.vpn_id)
        copy.hops = message.hops + 1
        copy.message_id = message.message_id
        self.waiting.append(copy)

    @property
    def busy(self) -> bool:
        """Is anything on the way?"""
        return bool(self.waiting or self.outbox.chunks)

    def pump(self) -> None:
        """Let what is next arrive: a batch as it left, or one message."""
        publisher = self.publisher
        if self.outbox.chunks:
            data = self.outbox.chunks.pop(0)
            assert scan(publisher, data, 0, len(data)) == len(data)
            return
        message = self.waiting.pop(0)
        message.source = publisher.subscriber
        far = self.far
        if why_not(message.path, message.hops, far.vpn_id, self.max_ttl):
            return
        verdict = FIRST
        if message.message_id:
            if far.seen is None:
                far.seen = SeenIds()
            verdict = far.seen.look(message.message_id, message.hops)
        publisher.messages += 1
        if verdict == FIRST:
            publisher.publish(message)
        elif verdict == SHORTER and far.relay(message):
            publisher.delivered += 1
        else:
            publisher.refused += 1


sendings = st.lists(
    st.tuples(
        st.integers(0, 7),
        st.integers(1, 4),
        st.sampled_from(["plain", "retain", "property"]),
    ),
    min_size=1,
    max_size=4,
)


@example(SHORTCUT, [(0, 1, "plain")], Random(SLOW), 0.0)
@given(meshes(), sendings, st.randoms(), st.sampled_from([0.0, 0.5]))
def test_the_core(
    kit: ModuleType,
    mesh: Mesh,
    wanted: list[tuple[int, int, str]],
    draws: Random,
    sample: float,
) -> None:
    """Batches and single messages, traced or not, to a client of each VPN; every router counts by itself."""
    worlds: list[MemoryRouter] = [
        kit.MemoryRouter(f"v{place}", seed=place + 1, sample=sample) for place in range(mesh.size)
    ]
    vpns = [world.vpn(f"v{place}") for place, world in enumerate(worlds)]
    pipes = {edge: Pipe(vpns[edge[0]], vpns[edge[1]], ttl) for edge, ttl in mesh.edges.items()}
    for (start, end), pipe in pipes.items():
        # Where a link leads back, it is the same one: nothing returns over it.
        pipe.arrive_as(pipes.get((end, start)) or Subscriber("dialer", pipe.outbox, FRAME_MQTT5))
        pipe.publisher.subscriber.is_link = True
    clients: list[Client] = [world.connect("c", f"v{place}") for place, world in enumerate(worlds)]
    for client in clients:
        client.subscribe("#")
    expected: set[tuple[bytes, int]] = set()
    for turn, (origin, times, how) in enumerate(wanted):
        place = origin % mesh.size
        options: dict[str, Any] = {"retain": how == "retain"}
        if how == "property":
            options["properties"] = Properties(content_type="t")
        payloads = [b"%d.%d" % (turn, number) for number in range(times)]
        frames = [encode(Publish(b"some/topic", payload, **options), 5) for payload in payloads]
        clients[place].raw(b"".join(frames))
        expected |= {(payload, other) for payload in payloads for other in mesh.reached(place)}
    order = Order(draws, mesh)
    while busy := [edge for edge, pipe in pipes.items() if pipe.busy]:
        pipes[order.next(busy)].pump()
    got = Counter(
        (payload, place) for place, client in enumerate(clients) for payload in client.payloads()
    )
    assert got == Counter(expected)
    for pipe in pipes.values():
        publisher = pipe.publisher
        accounted = publisher.delivered + publisher.unmatched + publisher.refused
        assert publisher.messages == accounted

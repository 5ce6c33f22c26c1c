"""Whatever is published in whatever pieces while subscriptions change: a slow obvious model knows who gets it.

The model is a list of messages and a list of subscriptions, compared one by one with the oracle's matcher; it
knows no route, no cache, no run and no outbox.
"""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.topics.grammar import MQTT
from vpnrouter.topics.oracle import oracle_matches
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import Client, MemoryRouter
    from vpnrouter.wire.mqtt.packets import Packet

NEVER = 0xFFFF_FFFF

TOPICS = [
    "a",
    "a/b",
    "a//b",
    "b/a",
    "$x/y",
    "sensor/0001/value",
    "sensor/0002/value",
    "sensor/0002/valve",
    "sensor/0011/value",
    "flights/AA/JFK/LAX/2013",
    "flights/AA/JFK/LAX/2014",
    "denied/here/or/there",
    "own/c0/news",
    "own/c1/news",
]
FILTERS = [
    "#",
    "+",
    "+/b",
    "a/#",
    "a//b",
    "$x/#",
    "sensor/+/value",
    "sensor/0002/#",
    "sensor/0001/value",
    "flights/#",
    "+/+/+/LAX/2014",
    "own/#",
]
DENIED = ["denied/#", "own/$client-id/#"]

PLAIN = ["c0", "c1", "c2", "c3"]
SHARING = ["c4", "c5"]
CLIENTS = PLAIN + SHARING

LEVEL = {"c0": 4, "c1": 5, "c2": 5, "c3": 5, "c4": 4, "c5": 5}
MAX_PACKET = 60
OPENING: dict[str, dict[str, Any]] = {
    "c2": {"topic_alias_maximum": 2},
    "c3": {"maximum_packet_size": MAX_PACKET},
}


class Kind(NamedTuple):
    """What sort of PUBLISH, and how many of it in a row."""

    topic: str
    size: int
    times: int
    retain: bool
    prop: bool
    alias: int


class Held(NamedTuple):
    """A subscription as the model knows it."""

    no_local: bool
    as_published: bool
    identifier: int


class Copy(NamedTuple):
    """One message as a client sees it."""

    topic: bytes
    payload: bytes
    retain: bool
    identifiers: tuple[int, ...]
    user: tuple[tuple[str, str], ...]


kinds = st.builds(
    Kind,
    st.sampled_from(TOPICS),
    st.sampled_from([0, 1, 6, 6, 6, 7, 64, 130, 17_000]),
    st.sampled_from([1, 1, 2, 3, 9]),
    st.booleans().flatmap(lambda often: st.booleans() if often else st.just(value=False)),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 0, 1, 2]),
)
cuts: st.SearchStrategy[list[int]] = st.one_of(
    st.just([]),
    st.just([1]),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.lists(st.integers(100, 30_000), min_size=1, max_size=2),
)
publishing = st.tuples(
    st.just("publish"), st.sampled_from(CLIENTS), st.lists(kinds, min_size=1, max_size=5), cuts
)
subscribing = st.tuples(
    st.just("subscribe"),
    st.sampled_from(CLIENTS),
    st.sampled_from(FILTERS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 0, 1, 300]),
)
leaving = st.tuples(st.just("unsubscribe"), st.sampled_from(CLIENTS), st.sampled_from(FILTERS))
toggling = st.tuples(st.just("toggle"), st.sampled_from(CLIENTS), st.sampled_from([4, 5]))
steps = st.lists(
    st.one_of(publishing, publishing, subscribing, subscribing, leaving, toggling),
    min_size=1,
    max_size=14,
)


class Model:
    """Drives a world and says what each client must have got."""

    def __init__(self, world: MemoryRouter) -> None:
        self.world = world
        self.clients: dict[str, Client] = {}
        self.level = dict(LEVEL)
        self.held: dict[str, dict[str, Held]] = {name: {} for name in CLIENTS}
        self.retained: dict[bytes, tuple[str, Copy]] = {}
        self.serial = 0
        for name in CLIENTS:
            self.connect(name)

    def connect(self, name: str) -> None:
        """Let a client in; its session lasts."""
        level = self.level[name]
        more: dict[str, Any] = {"clean_start": False}
        if level == 5:
            opening = OPENING.get(name, {})
            more["properties"] = Properties(session_expiry_interval=NEVER, **opening)
        self.clients[name] = self.world.connect(name, level=level, **more)

    def toggle(self, name: str, level: int) -> None:
        """Leave, or come back, perhaps by the other protocol level."""
        if name in self.clients:
            self.clients.pop(name).lose()
        else:
            self.level[name] = level
            self.connect(name)

    def subscribe(
        self, name: str, text: str, no_local: bool, as_published: bool, identifier: int
    ) -> None:
        """Subscribe and check what is retained."""
        client = self.clients.get(name)
        if client is None:
            return
        if self.level[name] == 4:
            no_local = as_published = False
            identifier = 0
        if name in SHARING:
            client.subscribe(f"$share/g/{text}", identifier, retain_as_published=as_published)
            self.held[name][text] = Held(
                no_local=False, as_published=as_published, identifier=identifier
            )
            return
        held = Held(no_local, as_published, identifier)
        self.held[name][text] = held
        came = client.subscribe(
            text, identifier, no_local=no_local, retain_as_published=as_published
        )
        wanted = [
            copy._replace(retain=True, identifiers=(identifier,) if identifier else ())
            for source, copy in self.retained.values()
            if matching(text, copy.topic) and not (no_local and source == name)
        ]
        wanted = [self.seen(name, copy) for copy in wanted if self.fits(name, copy)]
        assert sorted(self.copies(client, came)) == sorted(wanted)

    def unsubscribe(self, name: str, text: str) -> None:
        """Give a subscription up."""
        client = self.clients.get(name)
        if client is None:
            return
        prefix = "$share/g/" if name in SHARING else ""
        existed = self.held[name].pop(text, None) is not None
        code = client.unsubscribe(prefix + text)
        assert code == (0 if existed or self.level[name] == 4 else 0x11)

    def publish(self, name: str, wanted: list[Kind], cut: list[int]) -> None:
        """Publish in pieces; compare what everybody got."""
        client = self.clients.get(name)
        if client is None:
            return
        frames: list[bytes] = []
        sent: list[Copy] = []
        given: set[int] = set()
        for kind in wanted:
            frames += [self.frame(kind, given, client.level, sent) for _ in range(kind.times)]
        feed(client, b"".join(frames), cut)
        assert not client.closed
        expected: dict[str, list[Copy]] = {other: [] for other in PLAIN}
        shared: Counter[tuple[bytes, bytes]] = Counter()
        for copy in sent:
            topic = copy.topic.decode()
            if any(matching(text.replace("$client-id", name), copy.topic) for text in DENIED):
                continue
            if copy.retain:
                if copy.payload:
                    self.retained[copy.topic] = (name, copy)
                else:
                    self.retained.pop(copy.topic, None)
            for other in PLAIN:
                self.expect(other, name, copy, expected[other])
            groups = {
                text
                for other in SHARING
                if other in self.clients
                for text in self.held[other]
                if oracle_matches(text, MQTT, topic)
            }
            shared[copy.topic, copy.payload] += len(groups)
        self.compare(expected, +shared)

    def frame(self, kind: Kind, given: set[int], level: int, sent: list[Copy]) -> bytes:
        """One PUBLISH, and what it means in `sent`."""
        self.serial += 1
        payload = f"{self.serial:06d}".encode().ljust(kind.size, b".")[: kind.size]
        properties = Properties()
        topic = kind.topic.encode()
        user: tuple[tuple[str, str], ...] = ()
        on_wire = topic
        if level == 5 and kind.prop:
            user = (("n", str(self.serial)), ("n", "again"))
            properties.user_properties = list(user)
        if level == 5 and kind.alias:
            alias = 1 + TOPICS.index(kind.topic)
            properties.topic_alias = alias
            if alias in given:
                on_wire = b""
            given.add(alias)
        sent.append(Copy(topic, payload, kind.retain, (), user))
        return encode(Publish(on_wire, payload, retain=kind.retain, properties=properties), level)

    def expect(self, other: str, source: str, copy: Copy, into: list[Copy]) -> None:
        """Append what `other` must get of a message from `source`."""
        if other not in self.clients:
            return
        held = [
            one
            for text, one in self.held[other].items()
            if matching(text, copy.topic) and not (one.no_local and other == source)
        ]
        if not held:
            return
        retain = copy.retain and any(one.as_published for one in held)
        identifiers = tuple(sorted(one.identifier for one in held if one.identifier))
        wanted = copy._replace(retain=retain, identifiers=identifiers)
        if self.fits(other, wanted):
            into.append(self.seen(other, wanted))

    def seen(self, name: str, copy: Copy) -> Copy:
        """A copy as the client's protocol level shows it."""
        return copy if self.level[name] == 5 else copy._replace(identifiers=(), user=())

    def fits(self, name: str, copy: Copy) -> bool:
        """Does the client take a packet this large?"""
        if self.level[name] == 4 or "maximum_packet_size" not in OPENING.get(name, {}):
            return True
        properties = Properties(
            user_properties=list(copy.user), subscription_identifiers=list(copy.identifiers)
        )
        packet = Publish(copy.topic, copy.payload, retain=copy.retain, properties=properties)
        return len(encode(packet, 5)) <= MAX_PACKET

    def compare(
        self, expected: dict[str, list[Copy]], shared: Counter[tuple[bytes, bytes]]
    ) -> None:
        """Everybody got what was expected, in order; of a group, one member each."""
        for name, client in self.clients.items():
            got = self.copies(client, list(client.messages()))
            if name in expected:
                assert got == expected[name], name
                continue
            order = [copy.payload for copy in got if len(copy.payload) >= 6]
            assert order == sorted(order)
            for copy in got:
                shared[copy.topic, copy.payload] -= 1
                identifiers = [
                    held.identifier
                    for text, held in self.held[name].items()
                    if matching(text, copy.topic)
                ]
                assert all(identifier in identifiers for identifier in copy.identifiers)
        assert not +shared
        assert not -shared

    def copies(self, client: Client, packets: list[Packet]) -> list[Copy]:
        """Packets as the model writes them."""
        found: list[Copy] = []
        for packet in client.resolved(packets):
            properties = packet.properties
            identifiers = tuple(sorted(properties.subscription_identifiers))
            user = tuple(properties.user_properties)
            found.append(Copy(packet.topic, packet.payload, packet.retain, identifiers, user))
        return found


def matching(text: str, topic: bytes) -> bool:
    """The oracle, on a topic's bytes."""
    return oracle_matches(text, MQTT, topic.decode())


def feed(client: Client, data: bytes, cut: list[int]) -> None:
    """Feed `data` in pieces of the sizes in `cut`, over and over; whole when it is empty."""
    if not cut:
        client.raw(data)
        return
    if len(data) > 4_000 and sum(cut) < 100:
        cut = [size * 97 for size in cut]
    pos = 0
    turn = 0
    while pos < len(data):
        size = cut[turn % len(cut)]
        client.raw(data[pos : pos + size])
        pos += size
        turn += 1


def build(kit: ModuleType, sample: float, cache: int) -> Model:
    """A world with an ACL, a small route cache and tracing at `sample`."""
    world: MemoryRouter = kit.MemoryRouter(sample=sample)
    publish = TopicRule(True, [(text, MQTT) for text in DENIED])
    world.add_vpn("blue", acl=AclProfile("default", publish=publish), cache=cache)
    return Model(world)


@pytest.mark.parametrize("sample", [0.0, 0.3, 1.0])
@given(cache=st.sampled_from([1, 3, 65_536]), script=steps)
def test_everybody_gets_what_the_model_says(
    kit: ModuleType, sample: float, cache: int, script: list[tuple[Any, ...]]
) -> None:
    """Any traffic, cut anywhere, under churn, eviction and tracing, arrives exactly as the model says, in order."""
    model = build(kit, sample, cache)
    for action, *arguments in script:
        getattr(model, action)(*arguments)


FLOODS = ["sensor/0001/value", "sensor/0002/value", "flights/AA/JFK/LAX/2013", "a/b"]


@given(
    runs=st.lists(
        st.tuples(st.sampled_from(FLOODS), st.integers(1, 40), st.integers(6, 20)),
        min_size=1,
        max_size=8,
    ),
    cut=cuts,
    publisher=st.sampled_from(["c0", "c1"]),
    churn=st.booleans(),
)
def test_long_runs_keep_every_message(
    kit: ModuleType,
    runs: list[tuple[str, int, int]],
    cut: list[int],
    publisher: str,
    churn: bool,
) -> None:
    """Runs of like frames reach both protocol levels and a client with frames of its own, none lost or doubled."""
    model = build(kit, 0.3, 65_536)
    for name in ("c0", "c1", "c2"):
        model.subscribe(name, "#", False, False, 0)
    for topic, times, size in runs:
        model.publish(publisher, [Kind(topic, size, times, False, False, 0)], cut)
        if churn:
            model.subscribe("c3", topic, False, True, 1)
            model.publish(publisher, [Kind(topic, size, times, False, False, 0)], cut)
            model.unsubscribe("c3", topic)

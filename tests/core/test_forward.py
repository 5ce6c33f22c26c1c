"""vpnrouter.core.forward: where the batch path stops, and what runs become (the model: tests/properties)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.forward import FEWEST, MOST, RouteTable, reframe, run_length, scan
from vpnrouter.core.route import Route
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.encode import encode, encode_publish, publish_prefix
from vpnrouter.wire.mqtt.packets import Pingreq, Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import Client, MemoryRouter


PLAIN = encode(Publish(b"some/topic", b"payload"), 5)


def scanned(client: Client, data: bytes) -> int:
    """How far the batch path comes."""
    publisher = client.connection.publisher
    assert publisher is not None
    return scan(publisher, data, 0, len(data))


@pytest.mark.parametrize(
    "stop",
    [
        encode(Publish(b"a", b"x", retain=True), 5),
        encode(Publish(b"a", b"x", qos=1, packet_id=1), 5),
        encode(Publish(b"a", b"x", properties=Properties(content_type="t")), 5),
        encode(Publish(b"denied", b"x"), 5),
        encode(Publish(b"bad/+", b"x"), 5),
        encode(Publish(b"", b"x", properties=Properties(topic_alias=1)), 5),
        encode(Pingreq(), 5),
        b"\x30\x80\x00",
        b"\x30\x80\x80\x00\x00",
        b"\x30\x80\x80\x80\x01\x00",
        b"\x30\x03\x00\x09a",
        b"\x30\x03\x00\x01a",
    ],
)
def test_it_stops_before_what_needs_care(world: MemoryRouter, stop: bytes) -> None:
    """Plain frames before are forwarded, the other frame is left standing, nothing is counted for it."""
    acl = AclProfile("default", publish=TopicRule(True, [("denied", MQTT)]))
    world.add_vpn("blue", acl=acl)
    watcher = world.connect("w")
    watcher.subscribe("#")
    client = world.connect("c")
    assert scanned(client, PLAIN * 3 + stop + PLAIN) == 3 * len(PLAIN)
    assert watcher.drain() == PLAIN * 3
    publisher = client.connection.publisher
    assert publisher is not None
    assert publisher.messages == 3


def test_it_stops_before_half_a_frame(world: MemoryRouter) -> None:
    """Wherever the chunk ends, whole frames are forwarded and the rest is left."""
    client = world.connect("c")
    data = PLAIN + encode(Publish(b"other/topic", b"x" * 200), 5)
    for end in range(len(PLAIN), len(data)):
        assert scanned(client, data[:end]) == len(PLAIN)
    assert scanned(client, data) == len(data)


@pytest.mark.parametrize("size", [0, 1, 50, 100, 127, 128, 200, 16_370, 16_384, 20_000, 2_097_152])
@pytest.mark.parametrize("level", [4, 5])
def test_every_length_of_the_length_field(world: MemoryRouter, size: int, level: int) -> None:
    """Payloads around the length field's steps reach both protocol levels unchanged, one by one and as a run."""
    clients = [world.connect("w4", level=4), world.connect("w5")]
    for client in clients:
        client.subscribe("#")
    frame = encode(Publish(b"some/topic", b"y" * size), level)
    times = 1 if size > 1_000_000 else 3
    world.connect("p", level=level).raw(frame * times)
    for client in clients:
        assert client.messages() == [Publish(b"some/topic", b"y" * size)] * times


@pytest.mark.parametrize("level", [4, 5])
def test_a_run_leaves_as_one_slice(world: MemoryRouter, level: int) -> None:
    """Like frames cross as one piece to receivers of the publisher's level."""
    watcher = world.connect("w", level=level)
    watcher.subscribe("#")
    frame = encode(Publish(b"some/topic", b"payload"), level)
    world.connect("p", level=level).raw(frame * 100)
    assert len(watcher.connection.outbox.chunks) == 1
    assert watcher.drain() == frame * 100


def test_payloads_that_look_like_frames(world: MemoryRouter) -> None:
    """What stands in a payload is never taken for a frame."""
    watcher = world.connect("w")
    watcher.subscribe("#")
    inner = PLAIN * 2
    frames = [
        encode(Publish(b"some/topic", inner), 5),
        PLAIN,
        encode(Publish(b"x", inner + b"0"), 5),
    ]
    world.connect("p").raw(b"".join(frames))
    assert watcher.drain() == b"".join(frames)


@pytest.mark.parametrize("level", [4, 5])
def test_neighbouring_topics_of_one_size(world: MemoryRouter, level: int) -> None:
    """Frames of one size whose topics differ in any single byte never form a run."""
    base = b"sensor/0001/temperature/value"
    watcher = world.connect("w")
    watcher.subscribe("#")
    topics = [base]
    for index in range(len(base)):
        topics += [base[:index] + b"~" + base[index + 1 :], base]
    frames = [encode(Publish(topic, b"x"), level) for topic in topics]
    world.connect("p", level=level).raw(b"".join(frames))
    assert [message.topic for message in watcher.messages()] == topics


@given(
    head=st.integers(1, 30),
    tail=st.integers(0, 9),
    frames=st.integers(1, 12),
    change=st.none() | st.tuples(st.integers(1, 11), st.integers(0, 29)),
    before=st.integers(0, 3),
    most=st.integers(1, 12),
)
def test_run_length(
    head: int, tail: int, frames: int, change: tuple[int, int] | None, before: int, most: int
) -> None:
    """Every byte of the head counts, none of the rest, and never more than `most` are counted."""
    begin = bytes(range(65, 65 + head))
    heads = [bytearray(begin) for _ in range(frames)]
    if change is not None and change[0] < frames:
        heads[change[0]][head - 1 - change[1] % head] ^= 1
    parts = [bytes(one) + bytes((index,)) * tail for index, one in enumerate(heads)]
    most = min(most, frames)
    expected = 1
    while expected < most and heads[expected] == heads[0]:
        expected += 1
    buf = b"\x00" * before + b"".join(parts)
    assert run_length(buf, before, head, head + tail, most) == expected


@given(head=st.integers(1, 30))
def test_every_byte_of_the_head_counts(head: int) -> None:
    """One byte that differs anywhere ends the run."""
    begin = bytes(range(65, 65 + head))
    for index in range(head):
        other = bytearray(begin)
        other[index] ^= 1
        buf = begin + b"tail" + begin + b"TAIL" + bytes(other) + b"tail"
        assert run_length(buf, 0, head, head + 4, 3) == 2


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(("level", "other"), [(4, 5), (5, 4)])
@pytest.mark.parametrize("size", [0, 1, 110, 111, 112, 300, 16_380])
def test_each_frame_has_the_other_form(count: int, level: int, other: int, size: int) -> None:
    """A run becomes what encoding each message at the other level gives, over every length border."""
    topic = b"some/topic/0"
    payloads = [bytes([number % 256]) * size for number in range(count)]
    run = b"".join(encode_publish(topic, payload, level) for payload in payloads)
    start = len(publish_prefix(topic, size, level))
    expected = b"".join(encode_publish(topic, payload, other) for payload in payloads)
    assert reframe(run, count, len(run) // count, start, topic, other) == expected


def route_of(topic: bytes) -> Route:
    """A route of its own for a topic."""
    return Route(topic.decode("latin-1"), topic)


def find(table: RouteTable, topic: bytes) -> Route | None:
    """Look a topic up where it stands in a larger buffer."""
    return table.find(b"ab" + topic + b"cd", 2, len(topic))


@given(st.lists(st.binary(min_size=8, max_size=30), min_size=1, max_size=60), st.data())
def test_what_is_found_is_right(topics: list[bytes], data: st.DataObject) -> None:
    """A topic finds its own route or nothing; after a drop nothing is found until it is put again."""
    table = RouteTable()
    newest: dict[bytes, Route] = {}
    trusted: set[bytes] = set()
    for topic in topics:
        # While a route is cached it is the only one of its topic.
        route = newest.setdefault(topic, route_of(topic))
        table.put(route)
        trusted.add(topic)
        assert find(table, topic) is route
        if data.draw(st.integers(0, 9)) == 0:
            table.drop()
            trusted.clear()
            newest.clear()
        for other in topics:
            found = find(table, other)
            if found is not None:
                assert other in trusted
                assert found.raw == other
                assert found is newest[other]


def test_one_byte_anywhere_makes_another_topic() -> None:
    """Topics of one size that differ in a single byte are never taken for each other."""
    base = bytes(range(40, 69))
    table = RouteTable()
    table.put(route_of(base))
    for index in range(len(base)):
        other = bytearray(base)
        other[index] ^= 1
        assert find(table, bytes(other)) is None
    assert find(table, base[:-1]) is None
    assert find(table, base) is not None


def test_the_table_grows_to_its_bound() -> None:
    """More topics than places make the table larger, up to MOST places and no further."""
    table = RouteTable()
    assert len(table._places) == FEWEST
    for number in range(3 * MOST):
        table.put(route_of(b"topic/%08d" % number))
    assert len(table._places) == MOST
    assert find(table, b"topic/%08d" % (3 * MOST - 1)) is not None


def test_most_topics_keep_their_place() -> None:
    """Numbered topics, the usual ones, spread: nine in ten of a fifth of the places are found."""
    table = RouteTable()
    topics = [b"sensor/%04d/value" % number for number in range(FEWEST // 5)]
    for topic in topics:
        table.put(route_of(topic))
    assert sum(find(table, topic) is not None for topic in topics) >= len(topics) * 9 // 10


@pytest.mark.parametrize("where", [0, 8, 21])
def test_topics_that_share_a_place(where: int) -> None:
    """Topics with one place between them, alike but for one word, are told apart, and both are found."""
    table = RouteTable()
    base = b"sensor/00/temperature00000000"
    kept = route_of(base)
    table.put(kept)
    place = table._place(base, 0, len(base))
    sharing = 0
    for number in range(1, 4_000):
        topic = base[:where] + b"%08d" % number + base[where + 8 :]
        if table._place(topic, 0, len(topic)) == place:
            sharing += 1
            assert find(table, topic) is None
            route = route_of(topic)
            table.put(route)
            assert find(table, topic) is route
            table.put(kept)
            assert find(table, base) is kept
            assert find(table, topic) is route
            table.drop()
            table.put(kept)
    assert sharing > 1

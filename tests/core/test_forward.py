"""vpnrouter.core.forward: where the batch path stops, and what runs become (the model: tests/properties)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.forward import FEWEST, MOST, RouteTable, reframe, run_length, scan, trace
from vpnrouter.core.message import Message
from vpnrouter.core.route import Route
from vpnrouter.topics.grammar import MQTT
from vpnrouter.trace.events import DIRECT, PERSISTENT
from vpnrouter.wire.link.encode import direct, direct_body, direct_x
from vpnrouter.wire.mqtt.encode import encode, encode_publish, publish_prefix
from vpnrouter.wire.mqtt.packets import Pingreq, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.varint import messages_from, topic_in

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


def test_the_table_grows_to_its_bound() -> None:
    """More topics than places make the table larger, up to MOST places and no further."""
    table = RouteTable()
    assert len(table._places) == FEWEST
    for number in range(3 * MOST):
        table.put(route_of(b"topic/%08d" % number))
    assert len(table._places) == MOST
    assert find(table, b"topic/%08d" % (3 * MOST - 1)) is not None


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


def test_messages_from() -> None:
    """PUBLISH, DIRECT and DIRECT_X are messages, other frames are not; half a message counts."""
    body = direct_body(b"t", b"", b"x")
    data = direct(body) + b"\xd0\x00" + direct_x(b"\x01\x00", body) + encode_publish(b"t", b"", 4)
    assert messages_from(data, 0) == 3
    assert messages_from(data, len(direct(body))) == 2
    assert messages_from(data[:-1], 0) == 3
    assert messages_from(b"", 0) == 0
    assert messages_from(b"\x30\xff\xff\xff\xff\xff", 0) == 1


@pytest.mark.parametrize("size", [0, 100, 200, 70_000])
def test_topic_in(size: int) -> None:
    """The topic of each form of a Direct frame, whatever the width of its lengths; none where it has an alias."""
    body = direct_body(b"some/topic", b"", bytes(size))
    for level in (4, 5):
        assert (
            topic_in(encode_publish(b"some/topic", bytes(size), level), link=False) == b"some/topic"
        )
    assert topic_in(direct(body), link=True) == b"some/topic"
    assert topic_in(direct_x(b"\x01\x00", body), link=True) == b"some/topic"
    assert topic_in(direct_x(b"\x01" * 300, body), link=True) == b"some/topic"
    # A retained PUBLISH looks like DIRECT_X.
    retained = b"\x31" + encode_publish(b"some/topic", bytes(size), 4)[1:]
    assert topic_in(retained, link=False) == b"some/topic"
    assert topic_in(encode_publish(b"", bytes(size), 4), link=False) == b""


def test_topic_in_anything() -> None:
    """What is cut short has no topic, or what is left of it."""
    frame = direct_x(b"\x01\x00", direct_body(b"topic", b"", b"x"))
    for end in range(len(frame)):
        assert b"topic".startswith(topic_in(frame[:end], link=True))


RUN = b"".join(encode_publish(b"some/topic", bytes([number]) * 8, 4) for number in range(10))


@pytest.fixture
def traced(kit: Any) -> MemoryRouter:
    """A VPN in which every message is traced."""
    return kit.MemoryRouter("blue", sample=1.0)


def test_each_message_enters_and_is_delivered(traced: MemoryRouter) -> None:
    """Every message of a run has an id of its own, one ingress, and one delivery per receiver."""
    first, second = traced.connect("first", level=4), traced.connect("second", level=5)
    first.subscribe("some/#")
    second.subscribe("some/topic")
    publisher = traced.connect("p", level=4)
    publisher.raw(RUN)
    assert first.drain() == RUN
    assert len(second.messages()) == 10
    rows = traced.rows()
    for client, event in (("p", "ingress"), ("first", "deliver"), ("second", "deliver")):
        ids = [row.message_id for row in rows if (row.event, row.context.client) == (event, client)]
        assert len(ids) == len(set(ids)) == 10
        assert sorted(ids) == sorted({row.message_id for row in rows if row.message_id})


def test_what_has_no_room_is_recorded_as_discarded(traced: MemoryRouter) -> None:
    """Of a run that fits in part, the first messages are delivered and the rest congested, as single ones are then."""
    slow = traced.connect("slow", level=4)
    slow.subscribe("some/topic")
    slow.connection.outbox.set_limit(len(RUN) // 2)
    publisher = traced.connect("p", level=4)
    publisher.raw(RUN)
    publisher.publish("some/topic", bytes(8), retain=True)
    events = [
        (row.event, row.context.reason)
        for row in traced.rows()
        if row.context.client == "slow" and row.event in ("deliver", "discard")
    ]
    assert events == [("deliver", "")] * 5 + [("discard", "transmit-congestion")] * 6


def test_the_sampler_is_served_across_runs(kit: Any) -> None:
    """However frames fall into chunks, the same messages are picked as one by one."""
    picked = []
    for cut in (len(RUN), len(RUN) // 10, 7):
        world = kit.MemoryRouter("blue", sample=0.3)
        world.connect("w", level=4).subscribe("#")
        publisher = world.connect("p", level=4)
        for _ in range(20):
            for at in range(0, len(RUN), cut):
                publisher.raw(RUN[at : at + cut])
        picked.append(sum(row.event == "ingress" for row in world.rows()))
    assert picked[0] == picked[1] == picked[2]
    assert 30 <= picked[0] <= 90


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("sample", [0.3, 1.0])
def test_picked_ones_wait_with_the_others(kit: Any, level: int, sample: float) -> None:
    """In a piece of several topics and sizes each picked message has the rows that it has alone, and goes where the
    others go, for receivers of both levels, one without room, and nobody.
    """
    draw = random.Random(20_261_123)
    frames = []
    for number in range(400):
        topic = draw.choice([b"a/1", b"a/22", b"a/1", b"b/3", b"nobody/4"])
        payload = b"%d" % number + bytes(draw.randrange(40))
        frames += [encode_publish(topic, payload, level)] * draw.choice([1, 1, 3])
    found = []
    for size in (1, 7, len(frames)):
        world = kit.MemoryRouter("blue", sample=sample)
        takers = [
            world.connect(name, level=of) for name, of in (("four", 4), ("five", 5), ("sole", 5))
        ]
        slow = world.connect("slow", level=level)
        for taker in (*takers[:2], slow):
            taker.subscribe("a/#")
        takers[2].subscribe("b/#")
        slow.connection.outbox.set_limit(4_000)
        publisher = world.connect("p", level=level)
        for at in range(0, len(frames), size):
            publisher.raw(b"".join(frames[at : at + size]))
        world.router.context.jobs.finish()
        rows = [
            (
                row.event,
                row.context.client,
                row.topic,
                row.messages,
                row.context.reason,
                row.message_id,
            )
            for row in world.rows()
            if row.event in ("ingress", "deliver", "discard") and row.message_id
        ]
        sent = [[(one.topic, one.payload) for one in taker.messages()] for taker in (*takers, slow)]
        found.append((sorted(rows), sent))
        ids = {row[5] for row in rows if row[0] == "ingress"}
        assert {row[5] for row in rows} == ids
        assert sum(row[1] == "four" for row in rows) == sum(row[1] == "slow" for row in rows) > 20
    assert found[0] == found[1] == found[2]


def test_the_mode_of_an_ingress(traced: MemoryRouter) -> None:
    """A message that came with QoS 1 is a persistent one from the first event on."""
    publisher = traced.connect("p", level=4)
    session = publisher.connection.publisher
    assert session is not None
    for qos in (0, 1):
        message = Message(b"a", b"x")
        message.qos = qos
        trace(session, message)
    modes = [
        (row.context.mode, row.context.client) for row in traced.rows() if row.event == "ingress"
    ]
    assert modes == [(DIRECT, "p"), (PERSISTENT, "p")]

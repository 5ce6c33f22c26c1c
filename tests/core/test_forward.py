"""vpnrouter.core.forward: where the batch path stops, and what runs become (the model: tests/properties)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.forward import scan
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Pingreq, Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import Client, World

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
def test_it_stops_before_what_needs_care(world: World, stop: bytes) -> None:
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


def test_it_stops_before_half_a_frame(world: World) -> None:
    """Wherever the chunk ends, whole frames are forwarded and the rest is left."""
    client = world.connect("c")
    data = PLAIN + encode(Publish(b"other/topic", b"x" * 200), 5)
    for end in range(len(PLAIN), len(data)):
        assert scanned(client, data[:end]) == len(PLAIN)
    assert scanned(client, data) == len(data)


@pytest.mark.parametrize("size", [0, 1, 50, 100, 127, 128, 200, 16_370, 16_384, 20_000, 2_097_152])
@pytest.mark.parametrize("level", [4, 5])
def test_every_length_of_the_length_field(world: World, size: int, level: int) -> None:
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
def test_a_run_leaves_as_one_slice(world: World, level: int) -> None:
    """Like frames cross as one piece to receivers of the publisher's level."""
    watcher = world.connect("w", level=level)
    watcher.subscribe("#")
    frame = encode(Publish(b"some/topic", b"payload"), level)
    world.connect("p", level=level).raw(frame * 100)
    assert len(watcher.connection.outbox.chunks) == 1
    assert watcher.drain() == frame * 100


def test_payloads_that_look_like_frames(world: World) -> None:
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
def test_neighbouring_topics_of_one_size(world: World, level: int) -> None:
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

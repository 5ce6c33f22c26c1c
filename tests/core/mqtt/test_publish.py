"""vpnrouter.core.mqtt.publish: PUBLISH with properties, retain and aliases, and those that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.discard_reasons import MSG_TOO_BIG
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


@pytest.mark.parametrize("qos", [1, 2])
def test_qos_above_0_is_refused(world: MemoryRouter, qos: int) -> None:
    """MQTT 5: DISCONNECT 0x9B; 3.1.1: closed. Nothing is delivered."""
    watcher = world.connect("w")
    watcher.subscribe("#")
    new = world.connect("new")
    new.publish("a", qos=qos, packet_id=1)
    assert new.reason() == 0x9B
    old = world.connect("old", level=4)
    old.publish("a", qos=qos, packet_id=1)
    assert old.closed
    assert old.drain() == b""
    assert watcher.received() == []


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x36\x06\x00\x01a\x00\x01\x00", 0x81),
        (b"\x38\x04\x00\x01a\x00", 0x81),
        (b"\x30\x01\x00", 0x81),
        (b"\x30\x03\x00\x09a", 0x81),
        (b"\x30\x03\x00\x01a", 0x81),
        (b"\x30\x04\x00\x01a\x09", 0x81),
        (b"\x30\x04\x00\x01\xff\x00", 0x90),
        (b"\x30\x04\x00\x01+\x00", 0x90),
        (b"\x30\x05\x00\x02a#\x00", 0x90),
        (b"\x30\x04\x00\x01\x00\x00", 0x90),
        (b"\x30\x03\x00\x00\x00", 0x82),
        (b"\x30\x06\x00\x01a\x02\x0b\x05", 0x82),
        (b"\x30\x84\x00\x00\x01a\x00", 0x81),
        (b"\x30\x07\x00\x01a\x03\x23\x00\x00", 0x94),
    ],
)
def test_what_is_forbidden(world: MemoryRouter, frame: bytes, code: int) -> None:
    """Each breach has its reason code, closes its sender and is counted."""
    client = world.connect("c")
    client.raw(frame)
    assert client.reason() == code
    assert world.router.protocol_errors == 1


def test_topics_beyond_the_vpns_limits(world: MemoryRouter) -> None:
    """A topic with a level or a byte too many closes its sender with 0x90; one at the bound passes."""
    world.add_vpn("blue", bounds=VpnLimits(max_topic_levels=3, max_topic_bytes=10))
    watcher = world.connect("w")
    watcher.subscribe("#")
    for good, bad in (("a/b/c", "a/b/c/d"), ("abcdefghij", "abcdefghijk")):
        client = world.connect("c")
        client.publish(good)
        assert len(watcher.messages()) == 1
        client.publish(bad)
        assert client.reason() == 0x90


def test_topics_have_the_bounds_of_the_router_by_default(world: MemoryRouter) -> None:
    """TOPIC_LEVELS levels pass, one more does not; TOPIC_BYTES bytes, all that fit the wire, pass."""
    watcher = world.connect("w")
    watcher.subscribe("#")
    client = world.connect("c")
    client.publish("/" * (limits.TOPIC_LEVELS - 1))
    client.publish("x" * limits.TOPIC_BYTES)
    assert len(watcher.messages()) == 2
    client.publish("/" * limits.TOPIC_LEVELS)
    assert client.reason() == 0x90


@pytest.mark.parametrize("level", [4, 5])
def test_messages_beyond_the_largest_are_discarded(world: MemoryRouter, level: int) -> None:
    """A payload of max_msg_size passes, one byte more is counted as too big; the sender stays."""
    world.add_vpn("blue", bounds=VpnLimits(max_msg_size=100))
    watcher = world.connect("w")
    watcher.subscribe("a")
    client = world.connect("c", level=level)
    for size in (99, 100, 101):
        client.publish("a", b"x" * size)
    assert [len(payload) for payload in watcher.payloads()] == [99, 100]
    assert world.vpn().totals().discards == {MSG_TOO_BIG: 1}
    assert world.vpn().totals().rx_msg_count == 3
    assert not client.closed


def test_the_default_largest_message(world: MemoryRouter) -> None:
    """By default a payload has MESSAGE_BYTES bytes at most."""
    client = world.connect("c")
    client.publish("a", b"x" * (limits.MESSAGE_BYTES + 1))
    assert world.vpn().totals().discards[MSG_TOO_BIG] == 1
    assert not client.closed


def test_properties_travel_unaltered(world: MemoryRouter) -> None:
    """All a message's properties reach MQTT 5 clients, user properties in order; 3.1.1 clients get the rest."""
    new = world.connect("new")
    new.subscribe("a")
    old = world.connect("old", level=4)
    old.subscribe("a")
    properties = Properties(
        payload_format_indicator=1,
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\0\1",
        user_properties=[("b", "2"), ("a", "1"), ("b", "2")],
    )
    world.connect("p").publish("a", b"x", properties=properties)
    assert new.messages() == [Publish(b"a", b"x", properties=properties)]
    assert old.messages() == [Publish(b"a", b"x")]


def test_client_aliases(world: MemoryRouter) -> None:
    """An alias stands for the topic it was last given with, up to TOPIC_ALIASES."""
    watcher = world.connect("w")
    watcher.subscribe("#")
    client = world.connect("c")
    most = limits.TOPIC_ALIASES
    for topic in ("one", "", "two", ""):
        client.publish(topic, properties=Properties(topic_alias=most))
    assert [message.topic for message in watcher.messages()] == [b"one", b"one", b"two", b"two"]
    client.publish("one", properties=Properties(topic_alias=most + 1))
    assert client.reason() == 0x94


def test_an_alias_never_given(world: MemoryRouter) -> None:
    """Using an unknown alias is a protocol error (MQTT-3.3.2-10 of the receiver)."""
    client = world.connect("c")
    client.publish("", properties=Properties(topic_alias=1))
    assert client.reason() == 0x82

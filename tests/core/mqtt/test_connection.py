"""vpnrouter.core.mqtt.connection: which packet is allowed when, and how a connection ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.packets import (
    Auth,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Publish,
    SubscriptionRequest,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import Client, MemoryRouter
    from vpnrouter.wire.mqtt.packets import Packet


def watched(world: MemoryRouter) -> Client:
    """A client that sees all wills."""
    watcher = world.connect("watcher")
    watcher.subscribe("will")
    return watcher


def test_a_silent_connection_is_closed(world: MemoryRouter) -> None:
    """Without CONNECT a connection lasts CONNECT_TIMEOUT_S and not longer."""
    client = world.open()
    closed = []
    for seconds in (limits.CONNECT_TIMEOUT_S - 0.001, 0.001):
        world.advance(seconds)
        closed.append(client.closed)
    assert closed == [False, True]
    assert client.drain() == b""


def test_a_connection_with_half_a_connect_is_closed(world: MemoryRouter) -> None:
    """Bytes that are no whole CONNECT do not extend the time to log in."""
    client = world.open()
    frame = encode(Connect("c"), 5)
    for byte in frame[:-1]:
        world.advance(limits.CONNECT_TIMEOUT_S / len(frame))
        client.raw(bytes((byte,)))
    world.advance(limits.CONNECT_TIMEOUT_S / len(frame))
    assert client.closed


def test_keep_alive_is_one_and_a_half(world: MemoryRouter) -> None:
    """A client that says nothing for 1.5 intervals is disconnected with 0x8D, and its will published."""
    watcher = watched(world)
    client = world.connect("c", keep_alive_s=10, will=Will(b"will", b"gone"))
    world.advance(14.999)
    assert not client.closed
    world.advance(0.001)
    assert client.reason() == 0x8D
    assert watcher.payloads() == [b"gone"]


def test_any_packet_keeps_alive(world: MemoryRouter) -> None:
    """The time counts from the last bytes heard, whatever they were."""
    client = world.connect("c", keep_alive_s=10)
    for _ in range(3):
        world.advance(14)
        client.send(Pingreq())
        assert client.received() == [Pingresp()]
        world.advance(14)
        client.publish("a")
    world.advance(14.9)
    assert not client.closed
    world.advance(0.2)
    assert client.closed


@pytest.mark.parametrize("level", [4, 5])
def test_pings_are_answered(world: MemoryRouter, level: int) -> None:
    """PINGREQ gets PINGRESP."""
    client = world.connect("c", level=level)
    client.send(Pingreq(), Pingreq())
    assert client.received() == [Pingresp(), Pingresp()]


@pytest.mark.parametrize(
    "packet",
    [Connect("c"), Auth(), Pingresp()],
    ids=lambda packet: type(packet).__name__,
)
def test_packets_out_of_place(world: MemoryRouter, packet: Packet) -> None:
    """A packet that a client may not send now is a protocol error of that client alone, and counted."""
    other = world.connect("other")
    client = world.connect("c")
    client.send(packet)
    assert client.reason() == 0x82
    assert not other.closed
    assert world.router.protocol_errors == 1


@pytest.mark.parametrize(
    "data",
    [b"\x00\x00", b"\xf0\x00", b"\x30\x00", encode(Pingreq(), 5), b"GET / HTTP/1.1\r\n" * 9],
)
def test_a_connection_that_does_not_begin_with_connect(world: MemoryRouter, data: bytes) -> None:
    """It is closed without an answer (MQTT-3.1.0-1)."""
    client = world.open()
    client.raw(data)
    assert client.closed
    assert client.drain() == b""
    assert world.router.protocol_errors == 1


def test_an_unknown_protocol_version_is_told(world: MemoryRouter) -> None:
    """A CONNECT of another version gets the 3.1.1 code 1 and is closed."""
    client = world.open()
    client.raw(encode(Connect("c"), 5).replace(b"MQTT\x05", b"MQTT\x06"))
    assert client.drain() == b"\x20\x02\x00\x01"
    assert client.closed


def test_a_stranger_cannot_make_the_router_hold_much(world: MemoryRouter) -> None:
    """A CONNECT beyond CONNECT_BYTES is refused by its length field."""
    client = world.open()
    client.raw(b"\x10" + varint(limits.CONNECT_BYTES - 4))
    assert not client.closed
    other = world.open()
    other.raw(b"\x10" + varint(limits.CONNECT_BYTES - 3))
    assert other.closed


def test_a_packet_beyond_the_largest(world: MemoryRouter) -> None:
    """MQTT 5: 0x95 as soon as the length field is there."""
    bounds = VpnLimits(max_msg_size=1_000, max_topic_bytes=100)
    world.add_vpn("blue", bounds=bounds)
    client = world.connect("c")
    most = client.connack.properties.maximum_packet_size
    assert most == 1_000 + 100 + limits.PROPERTY_BYTES
    body = most - 4 + 1
    client.raw(bytes((0x30, body & 127 | 128, body >> 7 & 127 | 128, body >> 14)))
    assert client.reason() == 0x95


@pytest.mark.parametrize("level", [4, 5])
def test_broken_bytes_hurt_only_their_sender(world: MemoryRouter, level: int) -> None:
    """The sender is closed, told why where the protocol can, and counted; what it sent before arrives."""
    other = world.connect("other", level=4)
    other.subscribe("#")
    client = world.connect("c", level=level)
    client.raw(
        encode(Publish(b"a", b"1"), level)
        + b"\x3e\x03\x00\x01a"
        + encode(Publish(b"a", b"2"), level)
    )
    if level == 5:
        assert client.reason() == 0x81
    else:
        assert client.closed
        assert client.drain() == b""
    assert other.payloads() == [b"1"]
    assert not other.closed
    assert world.router.protocol_errors == 1


def test_nothing_is_read_or_sent_after_the_end(world: MemoryRouter) -> None:
    """What a client sends behind its DISCONNECT is ignored and counted nowhere, and nothing reaches it."""
    client = world.connect("c", properties=Properties(session_expiry_interval=99))
    client.subscribe("#")
    client.send(Disconnect(), Publish(b"a", b"1", retain=True))
    client.publish("b", b"2", retain=True)
    client.raw(b"\x00")
    world.connect("p").publish("a", b"3")
    assert client.drain() == b""
    assert len(world.vpn().retained) == 0
    assert world.router.protocol_errors == 0


@pytest.mark.parametrize("code", [0x04, 0x80, 0x81])
def test_the_will_after_any_other_disconnect(world: MemoryRouter, code: int) -> None:
    """Only a normal disconnection deletes the will (MQTT 5, 3.1.2.5)."""
    watcher = watched(world)
    world.connect("c", will=Will(b"will", b"gone")).disconnect(code)
    assert watcher.payloads() == [b"gone"]


@pytest.mark.parametrize("level", [4, 5])
def test_the_will_is_deleted_by_disconnect_and_published_after_a_loss(
    world: MemoryRouter, level: int
) -> None:
    """A client that says goodbye leaves no will; one that vanishes does."""
    watcher = watched(world)
    will = Will(b"will", b"gone")
    client = world.connect("c", level=level, will=will)
    client.disconnect()
    client.lose()
    assert watcher.payloads() == []
    world.connect("c", level=level, will=will).lose()
    assert watcher.payloads() == [b"gone"]


def test_the_will_after_a_protocol_error(world: MemoryRouter) -> None:
    """A connection that the router closes publishes the will, once, not to its own client."""
    watcher = watched(world)
    client = world.connect("c", will=Will(b"will", b"gone"))
    client.subscribe("will")
    client.raw(b"\x00\x00")
    client.lose()
    assert watcher.payloads() == [b"gone"]
    assert client.drain() == b""


def test_disconnect_may_change_the_expiry(world: MemoryRouter) -> None:
    """A lasting session may be shortened or lengthened by DISCONNECT."""
    client = world.connect("c", properties=Properties(session_expiry_interval=10))
    client.disconnect(session_expiry_interval=100)
    world.advance(99)
    assert "c" in world.vpn().clients
    world.advance(1)
    assert world.vpn().clients == {}
    client = world.connect("c", properties=Properties(session_expiry_interval=10))
    client.disconnect(session_expiry_interval=0)
    assert world.vpn().clients == {}


def test_disconnect_may_not_raise_an_expiry_of_zero(world: MemoryRouter) -> None:
    """0x82, and the session ends (MQTT 5, 3.14.2.2.2)."""
    client = world.connect("c")
    client.disconnect(session_expiry_interval=1)
    assert client.reason() == 0x82
    assert world.vpn().clients == {}


@pytest.mark.parametrize("wanted", [0, 1])
def test_disconnect_says_why_only_where_wanted(world: MemoryRouter, wanted: int) -> None:
    """The reason string is for clients that did not decline it."""
    client = world.connect("c", properties=Properties(request_problem_information=wanted))
    client.send(Auth())
    (packet,) = client.received()
    assert isinstance(packet, Disconnect)
    assert (packet.properties.reason_string is not None) == bool(wanted)


def test_disconnect_fits_the_clients_largest_packet(world: MemoryRouter) -> None:
    """A reason string that is too long for the client is left out."""
    client = world.connect("c", properties=Properties(maximum_packet_size=20))
    client.send(Auth())
    assert client.drain() == b"\xe0\x01\x82"


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_packets_may_come_in_any_pieces(world: MemoryRouter, level: int, size: int) -> None:
    """A whole conversation, cut into pieces of any size, means the same."""
    watcher = world.connect("w")
    watcher.subscribe("#")
    packets: list[Packet] = [
        Connect("c", protocol_level=level),
        Publish(b"a", b"x" * 300),
        Publish(b"b/c", b"2"),
        Pingreq(),
        Publish(b"a", b"3", retain=True),
        Disconnect(),
    ]
    data = b"".join([encode(packet, level) for packet in packets])
    client = world.open(level=level)
    for pos in range(0, len(data), size):
        client.raw(data[pos : pos + size])
    assert watcher.payloads() == [b"x" * 300, b"2", b"3"]
    assert client.closed
    assert world.vpn().clients.keys() == {"w"}


@given(
    data=st.lists(
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from(
                [
                    encode(Publish(b"a/b", b"12"), 5),
                    encode(Publish(b"", b"1", properties=Properties(topic_alias=3)), 5),
                    encode(Publish(b"a", b"1", qos=1, packet_id=1), 5),
                    b"\x82\x0a\x00\x01\x00\x00\x04$q/#\x00",
                    b"\x82\x08\x00\x01\x00\x00\x02+a\x00",
                    b"\x30\x05\x00\x01a\x00",
                ]
            ),
        ),
        max_size=4,
    ),
    level=st.sampled_from([4, 5]),
)
def test_any_bytes_hurt_only_their_sender(kit: ModuleType, data: list[bytes], level: int) -> None:
    """Whatever a client sends, nothing but a protocol error comes of it, and others live on."""
    world: MemoryRouter = kit.MemoryRouter()
    other = world.connect("other")
    client = world.connect("c", level=level)
    for piece in data:
        if piece:
            client.raw(piece)
    assert world.router.protocol_errors <= 1
    other.subscribe("still")
    world.connect("p").publish("still", b"here")
    assert other.payloads()[-1:] == [b"here"]


def test_many_refused_filters_get_one_short_reason(world: MemoryRouter) -> None:
    """A SUBSCRIBE with thousands of refused filters is answered, each with its code."""
    client = world.connect("c")
    (answer,) = client.request([SubscriptionRequest("$queue/q")] * 4_000)
    assert getattr(answer, "reason_codes", None) == [0x83] * 4_000

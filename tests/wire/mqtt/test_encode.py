"""Encoding against the golden packets, the lean forms, and values that fit no field."""

from typing import Any

import pytest

from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import (
    encode,
    encode_ack,
    encode_publish,
    encode_publish_field,
    publish_prefix,
)
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties, encode_properties


def test_packet_encodes_to_its_golden_frame(accepted: Any) -> None:
    """Encoding a golden packet gives its bytes, or, for a wordier form, bytes that say the same."""
    frame = encode(accepted.packet, accepted.level)
    if accepted.canonical:
        assert frame == accepted.frame
    else:
        assert frame != accepted.frame
        assert decode(frame, 0, len(frame), accepted.level) == accepted.packet


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("size", [0, 1, 110, 111, 112, 127, 128, 20_000])
def test_prefix_and_payload_are_a_publish(level: int, size: int) -> None:
    """The prefix for a payload length, and that payload, are the frame that encoding writes."""
    payload = b"p" * size
    frame = publish_prefix(b"topic/of/14/by", size, level) + payload
    assert frame == encode_publish(b"topic/of/14/by", payload, level)
    assert frame == encode(Publish(b"topic/of/14/by", payload), level)


@pytest.mark.parametrize(("qos", "retain", "dup"), [(0, True, False), (1, False, True), (2, 1, 1)])
def test_lean_publish_equals_the_packet(qos: int, retain: bool, dup: bool) -> None:
    """Both lean forms write what the packet object writes."""
    properties = Properties(content_type="x", user_properties=[("a", "b")])
    packet = Publish(b"t", b"p", qos, bool(retain), bool(dup), 9 if qos else 0, properties)
    field = encode_properties(properties)
    lean = encode_publish(b"t", b"p", 5, field[1:], qos, bool(retain), bool(dup), 9)
    assert lean == encode(packet, 5)
    assert lean == encode_publish_field(b"t", b"p", field, qos, bool(retain), bool(dup), 9)


def test_publish_at_level_4_leaves_properties_out() -> None:
    """The block of a message does not reach a 3.1.1 client."""
    assert encode_publish(b"t", b"p", 4, b"\x01\x01") == b"\x30\x04\x00\x01tp"


@pytest.mark.parametrize("kind", [4, 5, 6, 7])
@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("reason", [0, 0x92])
def test_lean_ack_equals_the_packet(kind: int, level: int, reason: int) -> None:
    """The lean acknowledgement is the packet's shortest form."""
    assert encode_ack(kind, 513, level, reason) == encode(Ack(kind, 513, reason), level)


def test_level_4_drops_what_it_can_not_say() -> None:
    """Reason codes become 3.1.1 return codes or vanish, options of MQTT 5 vanish."""
    properties = Properties(reason_string="why")
    request = SubscriptionRequest("a", 1, True, True, 2)
    assert encode(Connack(False, 0x97, properties), 4) == b"\x20\x02\x00\x03"
    assert encode(Ack(4, 1, 0x87, properties), 4) == b"\x40\x02\x00\x01"
    assert encode(Suback(1, [1, 0x97], properties), 4) == b"\x90\x04\x00\x01\x01\x80"
    assert encode(Subscribe(1, [request], properties), 4) == b"\x82\x06\x00\x01\x00\x01a\x01"
    assert encode(Disconnect(0x8E, properties), 4) == b"\xe0\x00"


def test_auth_has_no_form_at_level_4() -> None:
    """AUTH is MQTT 5 only."""
    with pytest.raises(ValueError, match="AUTH"):
        encode(Auth(0x18), 4)


def test_a_bare_packet_has_no_encoding() -> None:
    """The base class is no packet."""
    with pytest.raises(TypeError, match="no encoding"):
        encode(Packet(15), 5)


@pytest.mark.parametrize(
    "packet",
    [
        Connect("x" * 65_536),
        Connect("\x00"),
        Connect("\ud800"),
        Connect("c", keep_alive_s=65_536),
        Connect("c", password=b"x" * 65_536),
        Connect("c", properties=Properties(session_expiry_interval=1 << 32)),
        Publish(b"x" * 65_536, b""),
        Publish(b"t", b"", qos=1, packet_id=65_536),
        Publish(b"t", b"", properties=Properties(subscription_identifiers=[1 << 28])),
        Ack(4, -1),
        Unsubscribe(1, ["x" * 65_536]),
    ],
    ids=repr,
)
def test_value_that_fits_no_field_is_a_value_error(packet: Packet) -> None:
    """What can not be written is refused, not written wrongly."""
    with pytest.raises(ValueError, match=r"fit|sent|variable|surrogates"):
        encode(packet, 5)

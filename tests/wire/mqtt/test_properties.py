"""Properties: objects, bytes, and the other implementation's bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import properties as paho_properties
from paho.mqtt.packettypes import PacketTypes

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.properties import (
    BINARY,
    RULES,
    STRING,
    STRING_PAIR,
    VARINT,
    Properties,
    decode_properties,
    encode_block,
    encode_properties,
)
from vpnrouter.wire.mqtt.reason import CONNACK, PUBLISH, SUBSCRIBE, WILL

OtherProperties: Any = paho_properties.Properties
OTHER_TYPE = {kind: PacketTypes.WILLMESSAGE if kind == WILL else kind for kind in range(16)}
VALUES: dict[int, Any] = {STRING: "é✈", BINARY: b"\x00\xff"}


def some_value(rule: Any) -> Any:
    """A legal value for one property, as our attribute holds it."""
    if rule.kind == STRING_PAIR:
        return [("k", "v"), ("k", "✈")]
    if rule.kind == VARINT:
        return [268_435_455]
    return VALUES.get(rule.kind, 1)


CASES = [(rule, kind) for rule in RULES for kind in range(16) if (rule.packets >> kind) & 1]


@pytest.mark.parametrize(("rule", "kind"), CASES, ids=lambda one: getattr(one, "name", str(one)))
def test_bytes_agree_with_another_implementation(rule: Any, kind: int) -> None:
    """Each property, in each packet that may carry it, is the same bytes to both."""
    value = some_value(rule)
    other = OtherProperties(OTHER_TYPE[kind])
    name = next(key for key, number in other.names.items() if number == rule.identifier)
    setattr(other, name.replace(" ", ""), value[0] if rule.kind == VARINT else value)
    ours = encode_properties(Properties(**{rule.name: value}))
    assert ours == other.pack()
    props, end = decode_properties(ours, 0, len(ours), kind)
    assert props == Properties(**{rule.name: value})
    assert end == len(ours)


def test_absent_is_none_or_empty() -> None:
    """Nothing set, nothing present, one byte on the wire."""
    props = Properties()
    absent = [getattr(props, rule.name) for rule in RULES]
    assert all(value is None or value == [] for value in absent)
    assert props.present() == {}
    assert encode_properties(props) == b"\x00"
    assert encode_block(props) == b""


def test_present_lists_in_wire_order() -> None:
    """What is there is listed as it will be sent, zero and empty values among it."""
    props = Properties(maximum_qos=0, reason_string="", session_expiry_interval=0)
    assert list(props.present()) == ["session_expiry_interval", "reason_string", "maximum_qos"]
    assert repr(props) == "Properties(session_expiry_interval=0, reason_string='', maximum_qos=0)"


def test_properties_are_equal_by_value() -> None:
    """Absent differs from zero, and nothing else equals properties."""
    assert Properties(maximum_qos=0) != Properties()
    assert Properties(user_properties=[("a", "b")]) == Properties(user_properties=[("a", "b")])
    assert Properties() != {}


def test_block_ends_where_its_length_says() -> None:
    """What follows the block is left alone, what precedes it too."""
    buffer = b"\xff\x02\x24\x01\x25\x01"
    props, pos = decode_properties(buffer, 1, len(buffer), CONNACK)
    assert (props, pos) == (Properties(maximum_qos=1), 4)


def test_subscription_identifiers_repeat_in_publish_alone() -> None:
    """A PUBLISH names every subscription it matched, a SUBSCRIBE has one identifier."""
    buffer = b"\x04\x0b\x01\x0b\x02"
    props, _ = decode_properties(buffer, 0, len(buffer), PUBLISH)
    assert props.subscription_identifiers == [1, 2]
    with pytest.raises(ProtocolError) as caught:
        decode_properties(buffer, 0, len(buffer), SUBSCRIBE)
    assert caught.value.reason_code == 0x82


def test_many_properties_take_a_longer_length() -> None:
    """Property lengths of two and three bytes are read back."""
    for count in (30, 1_000):
        props = Properties(user_properties=[("key", "a long value")] * count)
        raw = encode_properties(props)
        assert decode_properties(raw, 0, len(raw), PUBLISH) == (props, len(raw))


@pytest.mark.parametrize(
    "props",
    [
        Properties(maximum_qos=256),
        Properties(receive_maximum=65_536),
        Properties(message_expiry_interval=-1),
        Properties(subscription_identifiers=[268_435_456]),
        Properties(content_type="\x00"),
        Properties(correlation_data=b"x" * 65_536),
        Properties(user_properties=[("k", "\ud800")]),
    ],
    ids=repr,
)
def test_value_that_fits_no_field_is_refused(props: Properties) -> None:
    """What can not be written is an error of the writer."""
    with pytest.raises((ValueError, OverflowError)):
        encode_properties(props)


@given(st.binary(max_size=40), st.integers(0, 15))
def test_any_bytes_decode_or_are_refused(raw: bytes, kind: int) -> None:
    """Whatever stands in a property block, the answer is properties or ProtocolError."""
    try:
        props, end = decode_properties(raw, 0, len(raw), kind)
    except ProtocolError:
        return
    assert end <= len(raw)
    again = encode_properties(props)
    assert decode_properties(again, 0, len(again), kind) == (props, len(again))


@pytest.mark.parametrize(
    "text",
    ["x" * 70_000, "\U0001f600" * 30_000, "a\0b" * 30_000, "\ud800\n", "\xe4" * 600],
)
def test_no_reason_is_too_long_to_be_sent(text: str) -> None:
    """What a reason string repeats is cut at REASON_STRING_BYTES, between characters, and made sendable."""
    block = encode_properties(Properties(reason_string=text))
    props, _ = decode_properties(block, 0, len(block), CONNACK)
    said = props.reason_string or ""
    assert said
    assert len(said.encode()) <= limits.REASON_STRING_BYTES
    assert text.replace("\0", "").encode("utf-8", "replace").decode().startswith(said)

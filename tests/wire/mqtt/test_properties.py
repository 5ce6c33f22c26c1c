"""Properties of MQTT 5."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import properties as paho_properties
from paho.mqtt.packettypes import PacketTypes

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt import properties
from vpnrouter.wire.mqtt.properties import (
    BINARY,
    RULES,
    STRING,
    STRING_PAIR,
    VARINT,
    Properties,
    PropertyRule,
    decode_properties,
    encode_block,
    encode_properties,
    rule_for,
    selector_properties,
)
from vpnrouter.wire.mqtt.publish_block import message_block
from vpnrouter.wire.mqtt.reason import CONNACK, CONNECT, PUBLISH, SUBSCRIBE, WILL

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


OTHER = OtherProperties(PacketTypes.CONNECT)


KINDS = {
    "Byte": properties.BYTE,
    "Two Byte Integer": properties.TWO_BYTES,
    "Four Byte Integer": properties.FOUR_BYTES,
    "Variable Byte Integer": properties.VARINT,
    "Binary Data": properties.BINARY,
    "UTF-8 Encoded String": properties.STRING,
    "UTF-8 String Pair": properties.STRING_PAIR,
}


def test_table_has_every_property_in_order() -> None:
    """All 27 properties are there, by ascending identifier, each name once."""
    identifiers = [rule.identifier for rule in RULES]
    assert identifiers == sorted(OTHER.properties)
    assert len({rule.name for rule in RULES}) == 27


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_agrees_with_an_independent_table(rule: PropertyRule) -> None:
    """Type and packets of each property are those that another implementation has."""
    kind, packets = OTHER.properties[rule.identifier]
    assert rule.kind == KINDS[OTHER.types[kind]]
    mask = sum(
        1 << (WILL if packet == PacketTypes.WILLMESSAGE else packet) for packet in set(packets)
    )
    assert rule.packets == mask


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_constants_name_the_identifiers(rule: PropertyRule) -> None:
    """The constant of each property is its row's identifier."""
    singular = {
        "subscription_identifiers": "SUBSCRIPTION_IDENTIFIER",
        "user_properties": "USER_PROPERTY",
    }
    constant = singular.get(rule.name, rule.name.upper())
    assert getattr(properties, constant) == rule.identifier


def test_property_in_a_wrong_packet_is_malformed() -> None:
    """2.2.2.2: an identifier that is not valid for its packet is a Malformed Packet."""
    assert rule_for(properties.TOPIC_ALIAS, PUBLISH).name == "topic_alias"
    for identifier, packet_type in [(0x23, CONNECT), (0x04, PUBLISH), (0x2B, PUBLISH), (255, WILL)]:
        with pytest.raises(ProtocolError) as caught:
            rule_for(identifier, packet_type)
        assert caught.value.reason_code == 0x81


def test_numbers_are_checked_against_the_range() -> None:
    """Both ends of a range pass, one step beyond gives the rule's reason code."""
    receive_maximum = rule_for(properties.RECEIVE_MAXIMUM, CONNECT)
    receive_maximum.check(1)
    receive_maximum.check(65_535)
    for value in (0, 65_536):
        with pytest.raises(ProtocolError, match=r"^MQTT 3\.1\.2\.11\.3:"):
            receive_maximum.check(value)


def test_topic_alone() -> None:
    """A message without properties has its topic."""
    assert selector_properties("a/é".encode(), b"") == {"JMSDestination": "a/é"}


def test_headers_and_user_properties() -> None:
    """Content type, response topic and correlation data stand under their JMS names."""
    block = message_block(
        Properties(
            payload_format_indicator=1,
            message_expiry_interval=60,
            content_type="text/plain",
            response_topic="reply/here",
            correlation_data="né".encode(),
            user_properties=[("a", "1"), ("", "empty name")],
        )
    )
    assert selector_properties(b"t", block) == {
        "JMSDestination": "t",
        "JMSType": "text/plain",
        "JMSReplyTo": "reply/here",
        "JMSCorrelationID": "né",
        "a": "1",
        "": "empty name",
    }


def test_first_of_a_repeated_property_counts() -> None:
    """Later ones do not hide it."""
    block = message_block(Properties(user_properties=[("a", "1"), ("b", "2"), ("a", "3")]))
    assert selector_properties(b"t", block) == {"JMSDestination": "t", "a": "1", "b": "2"}


@pytest.mark.parametrize("before", [b"", bytes.fromhex("03000174")])
def test_user_property_is_no_header(before: bytes) -> None:
    """A publisher can not set a header by a user property of its name, wherever it stands."""
    user = message_block(
        Properties(
            user_properties=[
                (name, "forged")
                for name in ("JMSType", "JMSDestination", "JMSReplyTo", "JMSCorrelationID")
            ]
        )
    )
    headers = {"JMSDestination": "t"} | ({"JMSType": "t"} if before else {})
    assert selector_properties(b"t", before + user) == headers
    assert selector_properties(b"t", user + before) == headers


def test_correlation_data_that_is_no_text() -> None:
    """Bytes that are not UTF-8 are as if they were not there; what follows is still read."""
    block = message_block(Properties(correlation_data=b"\xff\x00", user_properties=[("a", "1")]))
    assert selector_properties(b"t", block) == {"JMSDestination": "t", "a": "1"}


@given(
    st.lists(
        st.tuples(
            st.text("ab", max_size=2),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
        )
    )
)
def test_as_the_properties_object(pairs: list[tuple[str, str]]) -> None:
    """Any list of pairs comes back as the dictionary of it, read from its end."""
    found = selector_properties(b"t", message_block(Properties(user_properties=pairs)))
    assert found == {"JMSDestination": "t"} | dict(reversed(pairs))


@pytest.mark.parametrize("block", ["26000161", "2600016100", "0200", "ff", "11000000ff", "030001"])
def test_block_that_was_never_checked(block: str) -> None:
    """Cut short or with what no PUBLISH has, it is malformed and nothing worse."""
    with pytest.raises(ProtocolError) as caught:
        selector_properties(b"t", bytes.fromhex(block))
    assert caught.value.reason_code == 0x81

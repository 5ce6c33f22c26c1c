"""The table of properties against the standard's own, as another implementation has it."""

from typing import Any

import pytest
from paho.mqtt import properties as paho_properties
from paho.mqtt.packettypes import PacketTypes

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt import properties
from vpnrouter.wire.mqtt.properties import RULES, PropertyRule, rule_for
from vpnrouter.wire.mqtt.reason import CONNECT, PUBLISH, WILL

OtherProperties: Any = paho_properties.Properties
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

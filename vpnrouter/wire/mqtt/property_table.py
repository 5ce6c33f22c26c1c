"""The table of MQTT 5 properties (2.2.2.2): identifier, name, type, legal values, legal packets.

Decoding, encoding and the router's property blocks all read this one table.
"""

from typing import Final, final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.fault import malformed
from vpnrouter.wire.mqtt.fields import U16_MAX, U32_MAX
from vpnrouter.wire.mqtt.framing import VARINT_MAX
from vpnrouter.wire.mqtt.packet_type import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    TYPE_NAMES,
    UNSUBACK,
    UNSUBSCRIBE,
    WILL,
)
from vpnrouter.wire.mqtt.reason import PROTOCOL_ERROR, TOPIC_ALIAS_INVALID

BYTE: Final = 0
TWO_BYTES: Final = 1
FOUR_BYTES: Final = 2
VARINT: Final = 3
STRING: Final = 4
BINARY: Final = 5
STRING_PAIR: Final = 6

PAYLOAD_FORMAT_INDICATOR: Final = 0x01
MESSAGE_EXPIRY_INTERVAL: Final = 0x02
CONTENT_TYPE: Final = 0x03
RESPONSE_TOPIC: Final = 0x08
CORRELATION_DATA: Final = 0x09
SUBSCRIPTION_IDENTIFIER: Final = 0x0B
SESSION_EXPIRY_INTERVAL: Final = 0x11
ASSIGNED_CLIENT_IDENTIFIER: Final = 0x12
SERVER_KEEP_ALIVE: Final = 0x13
AUTHENTICATION_METHOD: Final = 0x15
AUTHENTICATION_DATA: Final = 0x16
REQUEST_PROBLEM_INFORMATION: Final = 0x17
WILL_DELAY_INTERVAL: Final = 0x18
REQUEST_RESPONSE_INFORMATION: Final = 0x19
RESPONSE_INFORMATION: Final = 0x1A
SERVER_REFERENCE: Final = 0x1C
REASON_STRING: Final = 0x1F
RECEIVE_MAXIMUM: Final = 0x21
TOPIC_ALIAS_MAXIMUM: Final = 0x22
TOPIC_ALIAS: Final = 0x23
MAXIMUM_QOS: Final = 0x24
RETAIN_AVAILABLE: Final = 0x25
USER_PROPERTY: Final = 0x26
MAXIMUM_PACKET_SIZE: Final = 0x27
WILDCARD_SUBSCRIPTION_AVAILABLE: Final = 0x28
SUBSCRIPTION_IDENTIFIERS_AVAILABLE: Final = 0x29
SHARED_SUBSCRIPTION_AVAILABLE: Final = 0x2A


@final
class PropertyRule:
    """One row: a property's name, its encoding, and where and with what values it is legal.

    `name` is the attribute of `Properties`. `packets` has bit N set when packet type N may carry
    it. `minimum` and `maximum` bound numbers; `fault` is the reason code for one outside.
    """

    __slots__ = ("clause", "fault", "identifier", "kind", "maximum", "minimum", "name", "packets")

    def __init__(
        self,
        identifier: int,
        name: str,
        kind: int,
        clause: str,
        packets: tuple[int, ...],
        minimum: int,
        maximum: int,
        fault: int,
    ) -> None:
        self.identifier = identifier
        self.name = name
        self.kind = kind
        self.clause = clause
        self.packets = 0
        for packet_type in packets:
            self.packets |= 1 << packet_type
        self.minimum = minimum
        self.maximum = maximum
        self.fault = fault

    def check(self, value: int) -> None:
        """Raise ProtocolError with the rule's reason code when a number is out of its range."""
        if value < self.minimum or value > self.maximum:
            raise ProtocolError(self.fault, f"{self.clause}: {self.name} may not be {value}")


def _row(
    identifier: int,
    name: str,
    kind: int,
    clause: str,
    packets: tuple[int, ...],
    minimum: int = 0,
    maximum: int = U32_MAX,
    fault: int = PROTOCOL_ERROR,
) -> PropertyRule:
    return PropertyRule(identifier, name, kind, clause, packets, minimum, maximum, fault)


_MESSAGE: Final = (PUBLISH, WILL)
_OPENING: Final = (CONNECT, CONNACK)
_AUTHENTICATION: Final = (CONNECT, CONNACK, AUTH)
_ANSWERS: Final = (
    CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH,
)  # fmt: skip
_ALL: Final = (*_ANSWERS, WILL, CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE)

# fmt: off
RULES: Final[list[PropertyRule]] = [
    _row(0x01, "payload_format_indicator", BYTE, "MQTT 3.3.2.3.2", _MESSAGE, 0, 1),
    _row(0x02, "message_expiry_interval", FOUR_BYTES, "MQTT 3.3.2.3.3", _MESSAGE),
    _row(0x03, "content_type", STRING, "MQTT-3.3.2-19", _MESSAGE),
    _row(0x08, "response_topic", STRING, "MQTT-3.3.2-13", _MESSAGE),
    _row(0x09, "correlation_data", BINARY, "MQTT 3.3.2.3.6", _MESSAGE),
    _row(0x0B, "subscription_identifiers", VARINT, "MQTT 3.8.2.1.2", (PUBLISH, SUBSCRIBE),
         1, VARINT_MAX),
    _row(0x11, "session_expiry_interval", FOUR_BYTES, "MQTT 3.1.2.11.2", (*_OPENING, DISCONNECT)),
    _row(0x12, "assigned_client_identifier", STRING, "MQTT 3.2.2.3.7", (CONNACK,)),
    _row(0x13, "server_keep_alive", TWO_BYTES, "MQTT 3.2.2.3.14", (CONNACK,), 0, U16_MAX),
    _row(0x15, "authentication_method", STRING, "MQTT 3.1.2.11.9", _AUTHENTICATION),
    _row(0x16, "authentication_data", BINARY, "MQTT 3.1.2.11.10", _AUTHENTICATION),
    _row(0x17, "request_problem_information", BYTE, "MQTT 3.1.2.11.7", (CONNECT,), 0, 1),
    _row(0x18, "will_delay_interval", FOUR_BYTES, "MQTT 3.1.3.2.2", (WILL,)),
    _row(0x19, "request_response_information", BYTE, "MQTT 3.1.2.11.6", (CONNECT,), 0, 1),
    _row(0x1A, "response_information", STRING, "MQTT 3.2.2.3.15", (CONNACK,)),
    _row(0x1C, "server_reference", STRING, "MQTT 3.2.2.3.16", (CONNACK, DISCONNECT)),
    _row(0x1F, "reason_string", STRING, "MQTT 3.2.2.3.9", _ANSWERS),
    _row(0x21, "receive_maximum", TWO_BYTES, "MQTT 3.1.2.11.3", _OPENING, 1, U16_MAX),
    _row(0x22, "topic_alias_maximum", TWO_BYTES, "MQTT 3.1.2.11.5", _OPENING, 0, U16_MAX),
    _row(0x23, "topic_alias", TWO_BYTES, "MQTT-3.3.2-8", (PUBLISH,), 1, U16_MAX,
         TOPIC_ALIAS_INVALID),
    _row(0x24, "maximum_qos", BYTE, "MQTT 3.2.2.3.4", (CONNACK,), 0, 1),
    _row(0x25, "retain_available", BYTE, "MQTT 3.2.2.3.5", (CONNACK,), 0, 1),
    _row(0x26, "user_properties", STRING_PAIR, "MQTT-1.5.7-1", _ALL),
    _row(0x27, "maximum_packet_size", FOUR_BYTES, "MQTT 3.1.2.11.4", _OPENING, 1),
    _row(0x28, "wildcard_subscription_available", BYTE, "MQTT 3.2.2.3.11", (CONNACK,), 0, 1),
    _row(0x29, "subscription_identifiers_available", BYTE, "MQTT 3.2.2.3.12", (CONNACK,), 0, 1),
    _row(0x2A, "shared_subscription_available", BYTE, "MQTT 3.2.2.3.13", (CONNACK,), 0, 1),
]
# fmt: on
"""Every property, by ascending identifier; encoding follows this order."""

_TABLE_SIZE: Final = 0x2B
_BY_IDENTIFIER: Final[list[PropertyRule | None]] = [None] * _TABLE_SIZE
for _rule in RULES:
    _BY_IDENTIFIER[_rule.identifier] = _rule


def rule_for(identifier: int, packet_type: int) -> PropertyRule:
    """The rule of a property met in a packet of this type.

    Raises ProtocolError 0x81 when there is no such property or this packet may not carry it.
    """
    rule = _BY_IDENTIFIER[identifier] if identifier < _TABLE_SIZE else None
    if rule is None:
        raise malformed(f"MQTT 2.2.2.2: no property has identifier 0x{identifier:02x}")
    if (rule.packets >> packet_type) & 1 == 0:
        raise malformed(f"MQTT 2.2.2.2: {rule.name} may not stand in {TYPE_NAMES[packet_type]}")
    return rule

"""Defines the table of MQTT 5 properties (2.2.2.2), and a packet's properties as an object.

The table has identifier, name, type, legal values and legal packets. Decoding, encoding and the router's property
blocks all read it. Decoding checks every rule; user properties are found by name.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import REASON_STRING_BYTES, USER_PROPERTIES
from vpnrouter.wire.mqtt.fields import (
    U16_MAX,
    U32_MAX,
    VARINT_MAX,
    binary,
    read_binary,
    read_string,
    read_u8,
    read_u16,
    read_u32,
    read_varint,
    string,
    u16,
    u32,
    utf8,
    varint,
)
from vpnrouter.wire.mqtt.reason import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PROTOCOL_ERROR,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    QUOTA_EXCEEDED,
    SUBACK,
    SUBSCRIBE,
    TOPIC_ALIAS_INVALID,
    TYPE_NAMES,
    UNSUBACK,
    UNSUBSCRIBE,
    WILL,
    malformed,
    violation,
)

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


@final
class Properties:  # noqa: PLW1641 (fields may change: not for hashing)
    """One attribute for each property of MQTT 5; None (or an empty list) when absent.

    Numbers are as on the wire: intervals in seconds, sizes in bytes, flags 0 or 1.
    """

    __slots__ = (
        "assigned_client_identifier",
        "authentication_data",
        "authentication_method",
        "content_type",
        "correlation_data",
        "maximum_packet_size",
        "maximum_qos",
        "message_expiry_interval",
        "payload_format_indicator",
        "reason_string",
        "receive_maximum",
        "request_problem_information",
        "request_response_information",
        "response_information",
        "response_topic",
        "retain_available",
        "server_keep_alive",
        "server_reference",
        "session_expiry_interval",
        "shared_subscription_available",
        "subscription_identifiers",
        "subscription_identifiers_available",
        "topic_alias",
        "topic_alias_maximum",
        "user_properties",
        "wildcard_subscription_available",
        "will_delay_interval",
    )

    def __init__(
        self,
        *,
        payload_format_indicator: int | None = None,
        message_expiry_interval: int | None = None,
        content_type: str | None = None,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        subscription_identifiers: list[int] | None = None,
        session_expiry_interval: int | None = None,
        assigned_client_identifier: str | None = None,
        server_keep_alive: int | None = None,
        authentication_method: str | None = None,
        authentication_data: bytes | None = None,
        request_problem_information: int | None = None,
        will_delay_interval: int | None = None,
        request_response_information: int | None = None,
        response_information: str | None = None,
        server_reference: str | None = None,
        reason_string: str | None = None,
        receive_maximum: int | None = None,
        topic_alias_maximum: int | None = None,
        topic_alias: int | None = None,
        maximum_qos: int | None = None,
        retain_available: int | None = None,
        user_properties: list[tuple[str, str]] | None = None,
        maximum_packet_size: int | None = None,
        wildcard_subscription_available: int | None = None,
        subscription_identifiers_available: int | None = None,
        shared_subscription_available: int | None = None,
    ) -> None:
        self.payload_format_indicator = payload_format_indicator
        self.message_expiry_interval = message_expiry_interval
        self.content_type = content_type
        self.response_topic = response_topic
        self.correlation_data = correlation_data
        self.subscription_identifiers: list[int] = (
            [] if subscription_identifiers is None else subscription_identifiers
        )
        self.session_expiry_interval = session_expiry_interval
        self.assigned_client_identifier = assigned_client_identifier
        self.server_keep_alive = server_keep_alive
        self.authentication_method = authentication_method
        self.authentication_data = authentication_data
        self.request_problem_information = request_problem_information
        self.will_delay_interval = will_delay_interval
        self.request_response_information = request_response_information
        self.response_information = response_information
        self.server_reference = server_reference
        self.reason_string = reason_string
        self.receive_maximum = receive_maximum
        self.topic_alias_maximum = topic_alias_maximum
        self.topic_alias = topic_alias
        self.maximum_qos = maximum_qos
        self.retain_available = retain_available
        self.user_properties: list[tuple[str, str]] = (
            [] if user_properties is None else user_properties
        )
        self.maximum_packet_size = maximum_packet_size
        self.wildcard_subscription_available = wildcard_subscription_available
        self.subscription_identifiers_available = subscription_identifiers_available
        self.shared_subscription_available = shared_subscription_available

    def present(self) -> dict[str, object]:
        """Name and value of every property that is there, in encoding order."""
        out: dict[str, object] = {}
        for rule in RULES:
            value: object = getattr(self, rule.name)
            if value is None or value == []:
                continue
            out[rule.name] = value
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Properties) and self.present() == other.present()

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.present().items()])
        return f"Properties({inner})"


def decode_properties(buf: bytes, pos: int, end: int, packet_type: int) -> tuple[Properties, int]:
    """The property block whose length field stands at `pos`, and the position after the block.

    `end` is the end of the packet; `packet_type` says which properties are legal (WILL for the
    will's own block). Raises ProtocolError: 0x81 for what cannot be parsed or may not stand in this
    packet, 0x82 for duplicates and forbidden values, 0x94 for topic alias 0.
    """
    length, pos = read_varint(buf, pos, end)
    stop = pos + length
    if stop > end:
        raise malformed("MQTT 2.2.2.1: property length reaches beyond the packet")
    props = Properties()
    seen = 0
    while pos < stop:
        identifier = buf[pos]
        pos += 1
        rule = rule_for(identifier, packet_type)
        seen = mark_seen(rule, seen, packet_type)
        kind = rule.kind
        if kind == STRING:
            text, pos = read_string(buf, pos, stop)
            if identifier == RESPONSE_TOPIC:
                check_response_topic(text)
            setattr(props, rule.name, text)
        elif kind == STRING_PAIR:
            key, pos = read_string(buf, pos, stop)
            value, pos = read_string(buf, pos, stop)
            check_count(len(props.user_properties))
            props.user_properties.append((key, value))
        elif kind == BINARY:
            data, pos = read_binary(buf, pos, stop)
            setattr(props, rule.name, data)
        else:
            number, pos = read_number(rule, buf, pos, stop)
            if identifier == SUBSCRIPTION_IDENTIFIER:
                props.subscription_identifiers.append(number)
            else:
                setattr(props, rule.name, number)
    return props, stop


def check_count(before: int) -> None:
    """Raise ProtocolError 0x97 where one more user property, after `before`, is more than USER_PROPERTIES."""
    if before >= USER_PROPERTIES:
        raise ProtocolError(QUOTA_EXCEEDED, f"more than {USER_PROPERTIES} user properties")


def mark_seen(rule: PropertyRule, seen: int, packet_type: int) -> int:
    """`seen` with the rule's bit set. Raises ProtocolError 0x82 when it was and may not repeat."""
    identifier = rule.identifier
    if identifier == USER_PROPERTY:
        return seen
    if identifier == SUBSCRIPTION_IDENTIFIER and packet_type == PUBLISH:
        return seen
    bit = 1 << identifier
    if seen & bit:
        raise violation(f"{rule.clause}: {rule.name} twice in {TYPE_NAMES[packet_type]}")
    return seen | bit


def read_number(rule: PropertyRule, buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """The checked value of a numeric property at `pos` and the position after it."""
    kind = rule.kind
    if kind == BYTE:
        value = read_u8(buf, pos, end)
        pos += 1
    elif kind == TWO_BYTES:
        value = read_u16(buf, pos, end)
        pos += 2
    elif kind == FOUR_BYTES:
        value = read_u32(buf, pos, end)
        pos += 4
    else:
        value, pos = read_varint(buf, pos, end)
    rule.check(value)
    return value, pos


def check_response_topic(text: str) -> None:
    """Raise ProtocolError 0x82 when a response topic is empty or holds a wildcard."""
    if not text:
        raise violation("MQTT-4.7.3-1: response topic is empty")
    if "+" in text or "#" in text:
        raise violation("MQTT-3.3.2-14: response topic holds a wildcard")


def encode_properties(props: Properties) -> bytes:
    """The property block of `props` with its length prefix, in table order.

    Values are not checked against a packet type: the sender knows what it may send. Raises
    ValueError when a value does not fit its field.
    """
    block = encode_block(props)
    return varint(len(block)) + block


def encode_block(props: Properties) -> bytes:
    """As `encode_properties`, without the length prefix."""
    parts: list[bytes] = []
    for rule in RULES:
        value: object = getattr(props, rule.name)
        if value is not None:
            append_property(parts, rule, value)
    return b"".join(parts)


def sendable(reason: str) -> str:
    """Return as much of a reason as a string may hold, at most REASON_STRING_BYTES: it may repeat what a peer sent."""
    if len(reason) * 4 > REASON_STRING_BYTES or not reason.isprintable():
        encoded = reason.replace("\0", "").encode("utf-8", "replace")
        return encoded[:REASON_STRING_BYTES].decode("utf-8", "ignore")
    return reason


def append_property(parts: list[bytes], rule: PropertyRule, value: object) -> None:
    """Append the encoding of one property's value (every element of it, where it may repeat).

    Raises ValueError when a value does not fit, or has not the type its field has.
    """
    tag = bytes((rule.identifier,))
    kind = rule.kind
    if kind == STRING_PAIR and isinstance(value, list):
        for key, text in value:
            parts.append(tag + string(key) + string(text))
    elif kind == VARINT and isinstance(value, list):
        parts.extend([tag + varint(number) for number in value])
    elif kind == STRING and isinstance(value, str):
        text = sendable(value) if rule.identifier == REASON_STRING else value
        parts.append(tag + string(text))
    elif kind == BINARY and isinstance(value, bytes):
        parts.append(tag + binary(value))
    elif kind == BYTE and isinstance(value, int):
        parts.append(tag + value.to_bytes(1, "big"))
    elif kind == TWO_BYTES and isinstance(value, int):
        parts.append(tag + u16(value))
    elif kind == FOUR_BYTES and isinstance(value, int):
        parts.append(tag + u32(value))
    else:
        raise ValueError(f"{rule.name} can not be {value!r}")


_DESTINATION: Final = "JMSDestination"
_REPLY_TO: Final = "JMSReplyTo"
_TYPE: Final = "JMSType"
_CORRELATION_ID: Final = "JMSCorrelationID"

NAMED_HEADERS: Final = {
    _TYPE: "subject",
    "JMSMessageID": "message-id",
    "JMSTimestamp": "creation-time",
}
"""Headers of JMS that user properties stand for: those of a message that came from AMQP."""

PRIORITY_HEADER: Final = "JMSPriority"
MODE_HEADER: Final = "JMSDeliveryMode"
"""Headers of JMS that depend on more than the properties of a message."""

USER_ID: Final = "JMSXUserID"
"""What JMS calls the user property `user-id`; a user property of that name holds where there is none."""

_HEADERS: Final = frozenset(
    {_CORRELATION_ID, _DESTINATION, _REPLY_TO, PRIORITY_HEADER, MODE_HEADER, *NAMED_HEADERS}
)


def selector_properties(topic: bytes, block: bytes) -> dict[str, object]:
    """Name and value of each user property, and under their JMS names parts of the message.

    `block` is as `split_publish_properties` gave it. Of a repeated user property the first counts.
    JMSDestination is the topic, JMSReplyTo the response topic, JMSType the content type,
    JMSCorrelationID the correlation data where these are UTF-8, and NAMED_HEADERS has more; a user
    property of such a name is left out. Raises ProtocolError as `split_publish_properties` does.
    """
    found: dict[str, object] = {_DESTINATION: utf8(topic)}
    pos = 0
    end = len(block)
    while pos < end:
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            text, pos = read_string(block, pos, end)
            if name not in found and name not in _HEADERS:
                found[name] = text
        elif identifier == CONTENT_TYPE:
            found[_TYPE], pos = read_string(block, pos, end)
        elif identifier == RESPONSE_TOPIC:
            found[_REPLY_TO], pos = read_string(block, pos, end)
        elif identifier == CORRELATION_DATA:
            data, pos = read_binary(block, pos, end)
            # Bytes that are no text equal no text: the selector finds no such header.
            try:
                found[_CORRELATION_ID] = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
    name_headers(found)
    return found


def name_headers(found: dict[str, object]) -> None:
    """Add the headers of JMS that properties of other names stand for."""
    for header, name in NAMED_HEADERS.items():
        value = found.get(name)
        if value is not None:
            found[header] = value
    user = found.get("user-id")
    if user is not None:
        found[USER_ID] = user


def with_user_properties(block: bytes, pairs: list[tuple[str, str]]) -> bytes:
    """A message's properties and, behind them, these user properties."""
    parts = [block]
    for name, text in pairs:
        parts.append(bytes((USER_PROPERTY,)))
        parts.append(string(name))
        parts.append(string(text))
    return b"".join(parts)

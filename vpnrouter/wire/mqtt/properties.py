"""MQTT 5 properties as an object: decode with every rule checked, encode in table order."""

from typing import final

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import REASON_STRING_BYTES, USER_PROPERTIES
from vpnrouter.wire.mqtt.fault import malformed, violation
from vpnrouter.wire.mqtt.fields import (
    binary,
    read_binary,
    read_string,
    read_u8,
    read_u16,
    read_u32,
    string,
    u16,
    u32,
)
from vpnrouter.wire.mqtt.framing import read_varint, varint
from vpnrouter.wire.mqtt.packet_type import PUBLISH, TYPE_NAMES
from vpnrouter.wire.mqtt.property_table import (
    BINARY,
    BYTE,
    FOUR_BYTES,
    REASON_STRING,
    RESPONSE_TOPIC,
    RULES,
    STRING,
    STRING_PAIR,
    SUBSCRIPTION_IDENTIFIER,
    TWO_BYTES,
    USER_PROPERTY,
    VARINT,
    PropertyRule,
    rule_for,
)
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED


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
    """As much of a reason as a string may hold, at most REASON_STRING_BYTES: it may repeat what a peer sent."""
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

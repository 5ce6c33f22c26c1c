"""Lists the numbers of MQTT: packet types (MQTT 5, 2.1.2), reason codes (2.4) and the errors of 1.2."""

from __future__ import annotations

from typing import Final

from vpnrouter.errors import ProtocolError

WILL: Final = 0
"""Not a packet: the will's property block inside CONNECT, which has a list of its own."""
CONNECT: Final = 1
CONNACK: Final = 2
PUBLISH: Final = 3
PUBACK: Final = 4
PUBREC: Final = 5
PUBREL: Final = 6
PUBCOMP: Final = 7
SUBSCRIBE: Final = 8
SUBACK: Final = 9
UNSUBSCRIBE: Final = 10
UNSUBACK: Final = 11
PINGREQ: Final = 12
PINGRESP: Final = 13
DISCONNECT: Final = 14
AUTH: Final = 15

TYPE_NAMES: Final = (
    "WILL",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
"""Name of each type, indexed by type."""

FLAG_CLAUSES: Final[dict[int, str]] = {
    PUBREL: "MQTT-3.6.1-1",
    SUBSCRIBE: "MQTT-3.8.1-1",
    UNSUBSCRIBE: "MQTT-3.10.1-1",
    DISCONNECT: "MQTT-3.14.1-1",
    AUTH: "MQTT-3.15.1-1",
}
"""The clause that fixes the reserved flags of a type; MQTT-2.1.3-1 for all others."""


def reserved_flags(packet_type: int) -> int:
    """The only legal low four bits of the first byte, for every type but PUBLISH."""
    if packet_type in (PUBREL, SUBSCRIBE, UNSUBSCRIBE):
        return 2
    return 0


SUCCESS: Final = 0x00
NORMAL_DISCONNECTION: Final = 0x00
GRANTED_QOS_0: Final = 0x00
GRANTED_QOS_1: Final = 0x01
GRANTED_QOS_2: Final = 0x02
DISCONNECT_WITH_WILL: Final = 0x04
NO_MATCHING_SUBSCRIBERS: Final = 0x10
NO_SUBSCRIPTION_EXISTED: Final = 0x11
CONTINUE_AUTHENTICATION: Final = 0x18
RE_AUTHENTICATE: Final = 0x19
UNSPECIFIED_ERROR: Final = 0x80
MALFORMED_PACKET: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
IMPLEMENTATION_SPECIFIC_ERROR: Final = 0x83
UNSUPPORTED_PROTOCOL_VERSION: Final = 0x84
CLIENT_IDENTIFIER_NOT_VALID: Final = 0x85
BAD_USER_NAME_OR_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
SERVER_UNAVAILABLE: Final = 0x88
SERVER_BUSY: Final = 0x89
BANNED: Final = 0x8A
SERVER_SHUTTING_DOWN: Final = 0x8B
BAD_AUTHENTICATION_METHOD: Final = 0x8C
KEEP_ALIVE_TIMEOUT: Final = 0x8D
SESSION_TAKEN_OVER: Final = 0x8E
TOPIC_FILTER_INVALID: Final = 0x8F
TOPIC_NAME_INVALID: Final = 0x90
PACKET_IDENTIFIER_IN_USE: Final = 0x91
PACKET_IDENTIFIER_NOT_FOUND: Final = 0x92
RECEIVE_MAXIMUM_EXCEEDED: Final = 0x93
TOPIC_ALIAS_INVALID: Final = 0x94
PACKET_TOO_LARGE: Final = 0x95
MESSAGE_RATE_TOO_HIGH: Final = 0x96
QUOTA_EXCEEDED: Final = 0x97
ADMINISTRATIVE_ACTION: Final = 0x98
PAYLOAD_FORMAT_INVALID: Final = 0x99
RETAIN_NOT_SUPPORTED: Final = 0x9A
QOS_NOT_SUPPORTED: Final = 0x9B
USE_ANOTHER_SERVER: Final = 0x9C
SERVER_MOVED: Final = 0x9D
SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0x9E
CONNECTION_RATE_EXCEEDED: Final = 0x9F
MAXIMUM_CONNECT_TIME: Final = 0xA0
SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: Final = 0xA1
WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0xA2

REASON_NAMES: Final[dict[int, str]] = {
    SUCCESS: "Success",
    GRANTED_QOS_1: "Granted QoS 1",
    GRANTED_QOS_2: "Granted QoS 2",
    DISCONNECT_WITH_WILL: "Disconnect with Will Message",
    NO_MATCHING_SUBSCRIBERS: "No matching subscribers",
    NO_SUBSCRIPTION_EXISTED: "No subscription existed",
    CONTINUE_AUTHENTICATION: "Continue authentication",
    RE_AUTHENTICATE: "Re-authenticate",
    UNSPECIFIED_ERROR: "Unspecified error",
    MALFORMED_PACKET: "Malformed Packet",
    PROTOCOL_ERROR: "Protocol Error",
    IMPLEMENTATION_SPECIFIC_ERROR: "Implementation specific error",
    UNSUPPORTED_PROTOCOL_VERSION: "Unsupported Protocol Version",
    CLIENT_IDENTIFIER_NOT_VALID: "Client Identifier not valid",
    BAD_USER_NAME_OR_PASSWORD: "Bad User Name or Password",
    NOT_AUTHORIZED: "Not authorized",
    SERVER_UNAVAILABLE: "Server unavailable",
    SERVER_BUSY: "Server busy",
    BANNED: "Banned",
    SERVER_SHUTTING_DOWN: "Server shutting down",
    BAD_AUTHENTICATION_METHOD: "Bad authentication method",
    KEEP_ALIVE_TIMEOUT: "Keep Alive timeout",
    SESSION_TAKEN_OVER: "Session taken over",
    TOPIC_FILTER_INVALID: "Topic Filter invalid",
    TOPIC_NAME_INVALID: "Topic Name invalid",
    PACKET_IDENTIFIER_IN_USE: "Packet Identifier in use",
    PACKET_IDENTIFIER_NOT_FOUND: "Packet Identifier not found",
    RECEIVE_MAXIMUM_EXCEEDED: "Receive Maximum exceeded",
    TOPIC_ALIAS_INVALID: "Topic Alias invalid",
    PACKET_TOO_LARGE: "Packet too large",
    MESSAGE_RATE_TOO_HIGH: "Message rate too high",
    QUOTA_EXCEEDED: "Quota exceeded",
    ADMINISTRATIVE_ACTION: "Administrative action",
    PAYLOAD_FORMAT_INVALID: "Payload format invalid",
    RETAIN_NOT_SUPPORTED: "Retain not supported",
    QOS_NOT_SUPPORTED: "QoS not supported",
    USE_ANOTHER_SERVER: "Use another server",
    SERVER_MOVED: "Server moved",
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: "Shared Subscriptions not supported",
    CONNECTION_RATE_EXCEEDED: "Connection rate exceeded",
    MAXIMUM_CONNECT_TIME: "Maximum connect time",
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: "Subscription Identifiers not supported",
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: "Wildcard Subscriptions not supported",
}
"""The name of each code in the standard; 0x00 has three and goes by "Success"."""

_RECEIVED: Final = frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99})
_RELEASED: Final = frozenset({0x00, 0x92})

REASONS_OF: Final[dict[int, frozenset[int]]] = {
    CONNACK: frozenset(
        {0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F}
    ),
    PUBACK: _RECEIVED,
    PUBREC: _RECEIVED,
    PUBREL: _RELEASED,
    PUBCOMP: _RELEASED,
    SUBACK: frozenset({0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}),
    UNSUBACK: frozenset({0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}),
    DISCONNECT: frozenset(
        {0x00, 0x04, *range(0x80, 0x84), 0x87, 0x89, *range(0x8B, 0x91), *range(0x93, 0xA3)}
    ),
    AUTH: frozenset({0x00, 0x18, 0x19}),
}
"""Codes each packet type may carry, by the tables of 3.2 to 3.15. DISCONNECT has 0x8C, which only
table 2-6 gives it: the standard's own tables disagree."""

REASON_CLAUSES: Final[dict[int, str]] = {
    CONNACK: "MQTT-3.2.2-8",
    PUBACK: "MQTT-3.4.2-1",
    PUBREC: "MQTT-3.5.2-1",
    PUBREL: "MQTT-3.6.2-1",
    PUBCOMP: "MQTT-3.7.2-1",
    SUBACK: "MQTT-3.9.3-2",
    UNSUBACK: "MQTT-3.11.3-2",
    DISCONNECT: "MQTT-3.14.2-1",
    AUTH: "MQTT-3.15.2-1",
}
"""The clause that binds a packet type to its codes."""

V3_ACCEPTED: Final = 0
V3_UNACCEPTABLE_PROTOCOL_VERSION: Final = 1
V3_IDENTIFIER_REJECTED: Final = 2
V3_SERVER_UNAVAILABLE: Final = 3
V3_BAD_USER_NAME_OR_PASSWORD: Final = 4
V3_NOT_AUTHORIZED: Final = 5

V3_REASONS: Final = (
    SUCCESS,
    UNSUPPORTED_PROTOCOL_VERSION,
    CLIENT_IDENTIFIER_NOT_VALID,
    SERVER_UNAVAILABLE,
    BAD_USER_NAME_OR_PASSWORD,
    NOT_AUTHORIZED,
)
"""The reason code that says the same as each 3.1.1 CONNACK return code (3.1.1, table 3.1)."""

_V3_RETURN_CODES: Final[dict[int, int]] = {
    SUCCESS: V3_ACCEPTED,
    UNSUPPORTED_PROTOCOL_VERSION: V3_UNACCEPTABLE_PROTOCOL_VERSION,
    CLIENT_IDENTIFIER_NOT_VALID: V3_IDENTIFIER_REJECTED,
    BAD_USER_NAME_OR_PASSWORD: V3_BAD_USER_NAME_OR_PASSWORD,
    NOT_AUTHORIZED: V3_NOT_AUTHORIZED,
    BANNED: V3_NOT_AUTHORIZED,
    BAD_AUTHENTICATION_METHOD: V3_NOT_AUTHORIZED,
}


def to_v3_return_code(reason: int) -> int:
    """Return the 3.1.1 CONNACK return code, 0..5, nearest to an MQTT 5 reason code.

    Codes without an equivalent (quota, busy, moved, malformed …) become 3, "server unavailable". After a malformed
    CONNECT a 3.1.1 server closes without CONNACK (MQTT-3.2.2-6 of 3.1.1), which the caller decides.
    """
    return _V3_RETURN_CODES.get(reason, V3_SERVER_UNAVAILABLE)


def reason_text(reason: int) -> str:
    """`0x97 Quota exceeded`; an unknown code gives its number alone."""
    name = REASON_NAMES.get(reason)
    return f"0x{reason:02x}" if name is None else f"0x{reason:02x} {name}"


def malformed(message: str) -> ProtocolError:
    """A Malformed Packet (0x81). `message` begins with the clause."""
    return ProtocolError(MALFORMED_PACKET, message)


def violation(message: str) -> ProtocolError:
    """A Protocol Error (0x82). `message` begins with the clause."""
    return ProtocolError(PROTOCOL_ERROR, message)

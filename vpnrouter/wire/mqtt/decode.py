"""Decodes one whole frame from either side into one packet, at level 3 (MQTT 3.1), 4 (3.1.1) or 5.

The session decides which side may send which packet, and when, and checks subscription identifiers in a client's
PUBLISH (MQTT-3.3.4-6): the codec cannot see who sent it.
"""

from __future__ import annotations

from typing import Final

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import SUBSCRIBE_FILTERS
from vpnrouter.wire.mqtt.fields import (
    check_topic_name,
    read_binary,
    read_packet_id,
    read_string,
    read_u8,
    read_u16,
    read_varint,
)
from vpnrouter.wire.mqtt.packets import (
    BRIDGE_BIT,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.reason import (
    AUTH,
    CLIENT_IDENTIFIER_NOT_VALID,
    CONNACK,
    CONNECT,
    DISCONNECT,
    FLAG_CLAUSES,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREL,
    QUOTA_EXCEEDED,
    REASON_CLAUSES,
    REASONS_OF,
    SUBACK,
    SUBSCRIBE,
    SUCCESS,
    TYPE_NAMES,
    UNSPECIFIED_ERROR,
    UNSUBACK,
    UNSUBSCRIBE,
    UNSUPPORTED_PROTOCOL_VERSION,
    V3_REASONS,
    WILL,
    malformed,
    reserved_flags,
    violation,
)

_CLEAN_START: Final = 0x02
_WILL: Final = 0x04
_WILL_RETAIN: Final = 0x20
_PASSWORD: Final = 0x40
_USERNAME: Final = 0x80


def decode_connect(buf: bytes, pos: int, end: int) -> Connect:
    """Decode a CONNECT of level 3, 4 or 5.

    Raises ProtocolError: 0x84 for any other protocol or level, 0x85 for a 3.1.1 client that wants its session kept and
    gives no client id, else as `decode` does.
    """
    name, pos = read_binary(buf, pos, end)
    said = read_u8(buf, pos, end)
    level = said & ~BRIDGE_BIT
    if name == b"MQIsdp" and level == 3:
        # MQTT 3.1, which old devices speak.
        pass
    elif name != b"MQTT":
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION, f"MQTT-3.1.2-1: protocol name {name[:16]!r} is not MQTT"
        )
    elif said not in (4, 5, 4 | BRIDGE_BIT):
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION, f"MQTT-3.1.2-2: protocol level {said} is not 4 or 5"
        )
    flags = read_u8(buf, pos + 1, end)
    _check_connect_flags(flags, level)
    keep_alive_s = read_u16(buf, pos + 2, end)
    pos += 4
    if level == 5:
        props, pos = decode_properties(buf, pos, end, CONNECT)
        if props.authentication_data is not None and props.authentication_method is None:
            raise violation("MQTT 3.1.2.11.10: authentication data without a method")
    else:
        props = Properties()
    client_id, pos = read_string(buf, pos, end)
    if level == 3 and not client_id:
        raise ProtocolError(
            CLIENT_IDENTIFIER_NOT_VALID,
            "MQTT 3.1, 3.1: a client identifier has one character or more",
        )
    if level == 4 and not client_id and not flags & _CLEAN_START:
        raise ProtocolError(
            CLIENT_IDENTIFIER_NOT_VALID,
            "MQTT-3.1.3-8 (3.1.1): a session to be kept needs a client identifier",
        )
    will: Will | None = None
    if flags & _WILL:
        will, pos = _read_will(buf, pos, end, flags, level)
    username: str | None = None
    # In MQTT 3.1 (3.1, payload) the length of the packet decides, not the flag.
    if flags & _USERNAME and (level > 3 or pos < end):
        username, pos = read_string(buf, pos, end)
    password: bytes | None = None
    if flags & _PASSWORD and (level > 3 or pos < end):
        password, pos = read_binary(buf, pos, end)
    if pos != end:
        raise malformed("MQTT-3.1.3-1: bytes after the last field of CONNECT")
    return Connect(
        client_id,
        flags & _CLEAN_START != 0,
        keep_alive_s,
        said,
        username,
        password,
        will,
        props,
    )


def _check_connect_flags(flags: int, level: int) -> None:
    if flags & 1 and level > 3:
        raise malformed("MQTT-3.1.2-3: reserved connect flag is set")
    will_qos = (flags >> 3) & 3
    if flags & _WILL:
        if will_qos == 3:
            raise malformed("MQTT-3.1.2-12: will QoS is 3")
    elif will_qos:
        raise malformed("MQTT-3.1.2-11: will QoS without a will")
    elif flags & _WILL_RETAIN:
        raise malformed("MQTT-3.1.2-13: will retain without a will")
    if level == 4 and flags & _PASSWORD and not flags & _USERNAME:
        raise malformed("MQTT-3.1.2-22 (3.1.1): password without a user name")


def _read_will(buf: bytes, pos: int, end: int, flags: int, level: int) -> tuple[Will, int]:
    if level == 5:
        props, pos = decode_properties(buf, pos, end, WILL)
    else:
        props = Properties()
    topic, pos = read_binary(buf, pos, end)
    if not topic:
        raise violation("MQTT-4.7.3-1: will topic is empty")
    check_topic_name(topic)
    payload, pos = read_binary(buf, pos, end)
    return Will(topic, payload, (flags >> 3) & 3, flags & _WILL_RETAIN != 0, props), pos


def protocol_level(frame: bytes, start: int, length: int) -> int:
    """Return the level byte of a CONNECT that `decode` may have refused, 0 without one; for the CONNACK."""
    end = min(start + length, len(frame))
    try:
        _, pos = read_varint(frame, start + 1, end)
        _, pos = read_binary(frame, pos, end)
        return read_u8(frame, pos, end)
    except ProtocolError:
        return 0


def decode_connack(buf: bytes, pos: int, end: int, level: int, any_code: bool = False) -> Connack:
    """Decode a CONNACK; a 3.1.1 return code becomes the equivalent reason code."""
    flags = read_u8(buf, pos, end)
    if flags > 1:
        raise malformed("MQTT-3.2.2-1: reserved connect acknowledge flags are set")
    code = read_u8(buf, pos + 1, end)
    pos += 2
    if level == 5:
        reason = code if any_code else checked_reason(CONNACK, code)
        props, pos = decode_properties(buf, pos, end, CONNACK)
    else:
        if code < len(V3_REASONS):
            reason = V3_REASONS[code]
        elif any_code:
            reason = UNSPECIFIED_ERROR
        else:
            raise violation(f"MQTT 3.2.2.3 (3.1.1): return code {code} is reserved")
        props = Properties()
    if flags and reason != SUCCESS:
        raise violation("MQTT-3.2.2-6: session present in a refusal")
    if pos != end:
        raise malformed("MQTT 3.2.3: CONNACK has a payload")
    return Connack(flags == 1, reason, props)


def decode_disconnect(
    buf: bytes, pos: int, end: int, level: int, any_code: bool = False
) -> Disconnect:
    """DISCONNECT; in 3.1.1 it is empty."""
    if pos == end:
        return Disconnect()
    if level != 5:
        raise malformed("MQTT 3.14.1 (3.1.1): DISCONNECT is not empty")
    reason, props = _reason_and_properties(buf, pos, end, DISCONNECT, any_code)
    return Disconnect(reason, props)


def decode_auth(buf: bytes, pos: int, end: int) -> Auth:
    """AUTH of MQTT 5; every form but the empty one must name its method (3.15.2.2.2)."""
    if pos == end:
        return Auth()
    reason, props = _reason_and_properties(buf, pos, end, AUTH)
    if props.authentication_method is None:
        raise violation("MQTT 3.15.2.2.2: AUTH without authentication method")
    return Auth(reason, props)


def _reason_and_properties(
    buf: bytes, pos: int, end: int, packet_type: int, any_code: bool = False
) -> tuple[int, Properties]:
    reason = buf[pos] if any_code else checked_reason(packet_type, buf[pos])
    pos += 1
    if pos == end:
        return reason, Properties()
    props, pos = decode_properties(buf, pos, end, packet_type)
    if pos != end:
        raise malformed(f"MQTT 2.1.4: bytes after the properties of {TYPE_NAMES[packet_type]}")
    return reason, props


def checked_reason(packet_type: int, reason: int) -> int:
    """Return `reason`. Raises ProtocolError 0x82 when this packet type may not carry it."""
    if reason not in REASONS_OF[packet_type]:
        raise violation(
            f"{REASON_CLAUSES[packet_type]}: reason code 0x{reason:02x}"
            f" may not stand in {TYPE_NAMES[packet_type]}"
        )
    return reason


def decode(frame: bytes, start: int, length: int, level: int, any_code: bool = False) -> Packet:
    """Decode the packet in `frame[start:start + length]`, which must be exactly one frame.

    `level` is 3, 4 or 5; CONNECT carries its own and ignores it. With `any_code` an answer may have a reason code that
    the standard does not know, as those of some servers have. Raises only ProtocolError: 0x81 for what cannot be
    parsed, 0x82 and more precise codes for broken rules; the message begins with the clause.
    """
    end = start + length
    if end > len(frame) or length < 2:
        raise malformed("MQTT 2.1.1: frame is cut short")
    first = frame[start]
    remaining, pos = read_varint(frame, start + 1, end)
    if pos + remaining != end:
        raise malformed("MQTT 2.1.4: remaining length is not the length of the frame")
    packet_type = first >> 4
    flags = first & 0x0F
    if packet_type == PUBLISH:
        return _decode_publish(frame, pos, end, flags, level)
    if level == 3 and packet_type in (PUBREL, SUBSCRIBE, UNSUBSCRIBE):
        # They may have the DUP flag (MQTT 3.1, 2.1).
        flags &= 7
    if flags != reserved_flags(packet_type):
        clause = FLAG_CLAUSES.get(packet_type, "MQTT-2.1.3-1")
        raise malformed(f"{clause}: flags {flags:#x} in packet type {packet_type}")
    if PUBACK <= packet_type <= PUBCOMP:
        return _decode_ack(frame, pos, end, packet_type, level, any_code)
    if packet_type == SUBSCRIBE:
        return _decode_subscribe(frame, pos, end, level)
    if packet_type == UNSUBSCRIBE:
        return _decode_unsubscribe(frame, pos, end, level)
    if packet_type in (PINGREQ, PINGRESP):
        if pos != end:
            raise malformed(f"MQTT 3.12: {TYPE_NAMES[packet_type]} is not empty")
        return Pingreq() if packet_type == PINGREQ else Pingresp()
    if packet_type == CONNECT:
        return decode_connect(frame, pos, end)
    if packet_type == CONNACK:
        return decode_connack(frame, pos, end, level, any_code)
    if packet_type == SUBACK:
        packet_id, props, codes = _read_codes(frame, pos, end, packet_type, level, any_code)
        return Suback(packet_id, codes, props)
    if packet_type == UNSUBACK:
        packet_id, props, codes = _read_codes(frame, pos, end, packet_type, level, any_code)
        return Unsuback(packet_id, codes, props)
    if packet_type == DISCONNECT:
        return decode_disconnect(frame, pos, end, level, any_code)
    if packet_type == AUTH and level == 5:
        return decode_auth(frame, pos, end)
    raise malformed(f"MQTT 2.1.2: packet type {packet_type} is reserved at level {level}")


def _decode_publish(buf: bytes, pos: int, end: int, flags: int, level: int) -> Publish:
    qos = (flags >> 1) & 3
    dup = flags & 8 != 0
    if qos == 3:
        raise malformed("MQTT-3.3.1-4: QoS 3")
    if dup and qos == 0:
        raise malformed("MQTT-3.3.1-2: DUP at QoS 0")
    topic, pos = read_binary(buf, pos, end)
    check_topic_name(topic)
    packet_id = 0
    if qos:
        packet_id = read_packet_id(buf, pos, end)
        pos += 2
    if level == 5:
        props, pos = decode_properties(buf, pos, end, PUBLISH)
        if not topic and props.topic_alias is None:
            raise violation("MQTT 3.3.2.1: no topic name and no topic alias")
    else:
        props = Properties()
        if not topic:
            raise violation("MQTT-4.7.3-1: topic name is empty")
    return Publish(topic, buf[pos:end], qos, flags & 1 != 0, dup, packet_id, props)


def _decode_ack(
    buf: bytes, pos: int, end: int, packet_type: int, level: int, any_code: bool
) -> Ack:
    packet_id = read_packet_id(buf, pos, end)
    pos += 2
    if pos == end:
        return Ack(packet_type, packet_id)
    if level != 5:
        raise malformed(
            f"MQTT 3.4 (3.1.1): {TYPE_NAMES[packet_type]} holds more than its identifier"
        )
    reason = buf[pos]
    pos += 1
    if reason != SUCCESS and not any_code:
        checked_reason(packet_type, reason)
    if pos == end:
        return Ack(packet_type, packet_id, reason)
    props, pos = decode_properties(buf, pos, end, packet_type)
    if pos != end:
        raise malformed(f"MQTT 2.1.4: bytes after the properties of {TYPE_NAMES[packet_type]}")
    return Ack(packet_type, packet_id, reason, props)


def _decode_subscribe(buf: bytes, pos: int, end: int, level: int) -> Subscribe:
    packet_id = read_packet_id(buf, pos, end)
    pos += 2
    if level == 5:
        props, pos = decode_properties(buf, pos, end, SUBSCRIBE)
    else:
        props = Properties()
    requests: list[SubscriptionRequest] = []
    while pos < end:
        text, pos = read_string(buf, pos, end)
        if not text:
            raise malformed("MQTT-4.7.3-1: topic filter is empty")
        options = read_u8(buf, pos, end)
        pos += 1
        if len(requests) == SUBSCRIBE_FILTERS:
            raise _too_many()
        requests.append(_request(text, options, level))
    if not requests:
        raise violation("MQTT-3.8.3-2: SUBSCRIBE without a topic filter")
    return Subscribe(packet_id, requests, props)


def _too_many() -> ProtocolError:
    return ProtocolError(QUOTA_EXCEEDED, f"more than {SUBSCRIBE_FILTERS} topic filters in a packet")


def _request(text: str, options: int, level: int) -> SubscriptionRequest:
    qos = options & 3
    if level != 5:
        if options > 2:
            raise malformed("MQTT-3-8.3-4 (3.1.1): requested QoS is not 0, 1 or 2")
        return SubscriptionRequest(text, qos)
    if options & 0xC0:
        raise malformed("MQTT-3.8.3-5: reserved subscription options are set")
    if qos == 3:
        raise violation("MQTT 3.8.3.1: maximum QoS is 3")
    retain_handling = (options >> 4) & 3
    if retain_handling == 3:
        raise violation("MQTT 3.8.3.1: retain handling is 3")
    no_local = options & 4 != 0
    if no_local and text.startswith("$share/"):
        raise violation("MQTT-3.8.3-4: no-local on a shared subscription")
    return SubscriptionRequest(text, qos, no_local, options & 8 != 0, retain_handling)


def _decode_unsubscribe(buf: bytes, pos: int, end: int, level: int) -> Unsubscribe:
    packet_id = read_packet_id(buf, pos, end)
    pos += 2
    if level == 5:
        props, pos = decode_properties(buf, pos, end, UNSUBSCRIBE)
    else:
        props = Properties()
    filters: list[str] = []
    while pos < end:
        text, pos = read_string(buf, pos, end)
        if not text:
            raise malformed("MQTT-4.7.3-1: topic filter is empty")
        if len(filters) == SUBSCRIBE_FILTERS:
            raise _too_many()
        filters.append(text)
    if not filters:
        raise violation("MQTT-3.10.3-2: UNSUBSCRIBE without a topic filter")
    return Unsubscribe(packet_id, filters, props)


def _read_codes(
    buf: bytes, pos: int, end: int, packet_type: int, level: int, any_code: bool
) -> tuple[int, Properties, list[int]]:
    """Identifier, properties and reason codes of SUBACK or UNSUBACK."""
    packet_id = read_packet_id(buf, pos, end)
    pos += 2
    codes: list[int] = []
    if level == 5:
        props, pos = decode_properties(buf, pos, end, packet_type)
        while pos < end:
            code = buf[pos]
            codes.append(code if any_code else checked_reason(packet_type, code))
            pos += 1
    else:
        props = Properties()
        if packet_type == UNSUBACK:
            if pos != end:
                raise malformed("MQTT 3.11.3 (3.1.1): UNSUBACK has a payload")
            return packet_id, props, codes
        while pos < end:
            code = buf[pos]
            if code > 2 and code != 0x80 and not any_code:
                raise violation(f"MQTT-3.9.3-2 (3.1.1): SUBACK return code 0x{code:02x}")
            codes.append(code)
            pos += 1
    if not codes:
        raise violation(f"MQTT 3.9.3: {TYPE_NAMES[packet_type]} answers no topic filter")
    return packet_id, props, codes

"""Encodes packets at level 3 (MQTT 3.1), 4 (3.1.1) or 5, with lean ways to write a PUBLISH or an acknowledgement.

What 3.1.1 has no room for (properties, most reason codes, subscription options) is left out at level 4. Encoding checks
that values fit their fields, not that the protocol allows them: tests write what no peer should.
"""

from typing import Final

from vpnrouter.wire.mqtt.fields import U16_MAX, binary, string, u16, varint
from vpnrouter.wire.mqtt.packets import (
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
    Unsuback,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import encode_block, encode_properties
from vpnrouter.wire.mqtt.reason import (
    SUBACK,
    SUCCESS,
    UNSPECIFIED_ERROR,
    UNSUBACK,
    reserved_flags,
    to_v3_return_code,
)

_BYTE: Final = [bytes((value,)) for value in range(256)]
_NO_PROPERTIES: Final = b"\x00"


def encode(packet: Packet, level: int) -> bytes:
    """The whole frame of `packet`. A CONNECT is written at its own protocol_level.

    Raises ValueError when a value does not fit its field (a client id of 70,000 bytes), when the
    packet has no form at this level (AUTH at 4).
    """
    if isinstance(packet, Publish):
        field = encode_properties(packet.properties) if level == 5 else b""
        return encode_publish_field(
            packet.topic,
            packet.payload,
            field,
            packet.qos,
            packet.retain,
            packet.dup,
            packet.packet_id,
        )
    if isinstance(packet, Ack):
        body = u16(packet.packet_id) + _reason_and_properties(packet.reason_code, packet, level)
    elif isinstance(packet, Subscribe):
        body = _subscribe(packet, level)
    elif isinstance(packet, Unsubscribe):
        field = encode_properties(packet.properties) if level == 5 else b""
        body = u16(packet.packet_id) + field + b"".join([string(text) for text in packet.filters])
    elif isinstance(packet, Suback):
        body = _codes(SUBACK, packet.packet_id, packet.reason_codes, packet, level)
    elif isinstance(packet, Unsuback):
        body = _codes(UNSUBACK, packet.packet_id, packet.reason_codes, packet, level)
    elif isinstance(packet, Connect):
        body = _connect(packet)
    elif isinstance(packet, Connack):
        body = _connack(packet, level)
    elif isinstance(packet, (Pingreq, Pingresp)):
        body = b""
    elif isinstance(packet, Disconnect):
        body = _reason_and_properties(packet.reason_code, packet, level)
    elif isinstance(packet, Auth):
        if level != 5:
            raise ValueError("AUTH exists in MQTT 5 only")
        body = _reason_and_properties(packet.reason_code, packet, level)
    else:
        raise TypeError(f"no encoding for {packet!r}")
    first = (packet.packet_type << 4) | reserved_flags(packet.packet_type)
    return _BYTE[first] + varint(len(body)) + body


def encode_publish(
    topic: bytes,
    payload: bytes,
    level: int,
    block: bytes = b"",
    qos: int = 0,
    retain: bool = False,
    dup: bool = False,
    packet_id: int = 0,
) -> bytes:
    """A PUBLISH frame from its parts.

    `block` holds encoded properties without their length prefix, as `split_publish_properties`
    gives them; it is left out at level 4. `packet_id` is written for QoS 1 and 2 only. Raises
    ValueError when the topic or the packet does not fit.
    """
    if level != 5:
        field = b""
    elif block:
        field = varint(len(block)) + block
    else:
        field = _NO_PROPERTIES
    return encode_publish_field(topic, payload, field, qos, retain, dup, packet_id)


def encode_publish_field(
    topic: bytes,
    payload: bytes,
    field: bytes,
    qos: int = 0,
    retain: bool = False,
    dup: bool = False,
    packet_id: int = 0,
) -> bytes:
    """As `encode_publish`, from a property field with its length prefix.

    That is what `publish_block_with` gives; b"" writes the 3.1.1 form.
    """
    first = 0x30 | (qos << 1)
    if retain:
        first |= 1
    if dup:
        first |= 8
    topic_size = len(topic)
    if topic_size > U16_MAX:
        raise ValueError(f"topic of {topic_size} bytes, {U16_MAX} can be sent")
    length = 2 + topic_size + len(field) + len(payload)
    if qos == 0:
        return b"".join([_BYTE[first], varint(length), u16(topic_size), topic, field, payload])
    return b"".join(
        [_BYTE[first], varint(length + 2), u16(topic_size), topic, u16(packet_id), field, payload]
    )


def publish_prefix(topic: bytes, payload_length: int, level: int) -> bytes:
    """All of a QoS 0 PUBLISH without properties up to its payload of `payload_length` bytes."""
    tail = binary(topic)
    if level == 5:
        tail += _NO_PROPERTIES
    return b"\x30" + varint(len(tail) + payload_length) + tail


def encode_ack(packet_type: int, packet_id: int, level: int, reason_code: int = SUCCESS) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP without properties, in its shortest form."""
    first = _BYTE[(packet_type << 4) | reserved_flags(packet_type)]
    if level != 5 or reason_code == SUCCESS:
        return first + b"\x02" + u16(packet_id)
    return first + b"\x03" + u16(packet_id) + _BYTE[reason_code]


def _reason_and_properties(reason: int, packet: Ack | Disconnect | Auth, level: int) -> bytes:
    """The shortest legal form: nothing, a reason code, or both (3.4.2.1, 3.14.2.1, 3.15.2.1)."""
    if level != 5:
        return b""
    block = encode_block(packet.properties)
    if block:
        return _BYTE[reason] + varint(len(block)) + block
    if reason == SUCCESS:
        return b""
    # Only AUTH has no form with a reason code and no property length.
    return _BYTE[reason] + _NO_PROPERTIES if isinstance(packet, Auth) else _BYTE[reason]


def _codes(
    packet_type: int, packet_id: int, codes: list[int], packet: Suback | Unsuback, level: int
) -> bytes:
    if level == 5:
        return u16(packet_id) + encode_properties(packet.properties) + bytes(codes)
    if packet_type == UNSUBACK:
        return u16(packet_id)
    shown = [code if code <= 2 else UNSPECIFIED_ERROR for code in codes]
    return u16(packet_id) + bytes(shown)


def _subscribe(packet: Subscribe, level: int) -> bytes:
    parts: list[bytes] = [u16(packet.packet_id)]
    if level == 5:
        parts.append(encode_properties(packet.properties))
    for request in packet.requests:
        options = request.qos
        if level == 5:
            options |= request.retain_handling << 4
            if request.no_local:
                options |= 4
            if request.retain_as_published:
                options |= 8
        parts.append(string(request.filter))
        parts.append(_BYTE[options])
    return b"".join(parts)


def _connect(packet: Connect) -> bytes:
    level = packet.level
    will = packet.will
    flags = 2 if packet.clean_start else 0
    if will is not None:
        flags |= 4 | (will.qos << 3) | (0x20 if will.retain else 0)
    if packet.password is not None:
        flags |= 0x40
    if packet.username is not None:
        flags |= 0x80
    parts: list[bytes] = [
        b"\x00\x06MQIsdp" if level == 3 else b"\x00\x04MQTT",
        _BYTE[packet.protocol_level],
        _BYTE[flags],
        u16(packet.keep_alive_s),
    ]
    if level == 5:
        parts.append(encode_properties(packet.properties))
    parts.append(string(packet.client_id))
    if will is not None:
        if level == 5:
            parts.append(encode_properties(will.properties))
        parts.append(binary(will.topic))
        parts.append(binary(will.payload))
    if packet.username is not None:
        parts.append(string(packet.username))
    if packet.password is not None:
        parts.append(binary(packet.password))
    return b"".join(parts)


def _connack(packet: Connack, level: int) -> bytes:
    # MQTT 3.1 has no flag for a session that exists.
    head = b"\x01" if packet.session_present and level > 3 else b"\x00"
    if level == 5:
        return head + _BYTE[packet.reason_code] + encode_properties(packet.properties)
    return head + _BYTE[to_v3_return_code(packet.reason_code)]

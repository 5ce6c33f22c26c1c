"""Decodes one whole frame from either side into one packet, at level 3 (MQTT 3.1), 4 (3.1.1) or 5.

Which side may send which packet, and when, is the session's business. So are subscription
identifiers in a client's PUBLISH (MQTT-3.3.4-6): the codec can not see who sent it.
"""

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import SUBSCRIBE_FILTERS
from vpnrouter.wire.mqtt.decode_session import (
    checked_reason,
    decode_auth,
    decode_connack,
    decode_connect,
    decode_disconnect,
)
from vpnrouter.wire.mqtt.fault import malformed, violation
from vpnrouter.wire.mqtt.fields import (
    check_topic_name,
    read_binary,
    read_packet_id,
    read_string,
    read_u8,
)
from vpnrouter.wire.mqtt.framing import read_varint
from vpnrouter.wire.mqtt.message_packets import Ack, Publish
from vpnrouter.wire.mqtt.packet import Packet, Pingreq, Pingresp
from vpnrouter.wire.mqtt.packet_type import (
    AUTH,
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
    SUBACK,
    SUBSCRIBE,
    TYPE_NAMES,
    UNSUBACK,
    UNSUBSCRIBE,
    reserved_flags,
)
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED, SUCCESS
from vpnrouter.wire.mqtt.subscription_packets import (
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)


def decode(frame: bytes, start: int, length: int, level: int) -> Packet:
    """The packet in `frame[start:start + length]`, which must be exactly one frame.

    `level` is 3, 4 or 5; CONNECT carries its own and ignores it. Raises ProtocolError and nothing
    else: 0x81 for what can not be parsed, 0x82 and the more telling codes for broken rules; the
    message begins with the clause.
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
        return _decode_ack(frame, pos, end, packet_type, level)
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
        return decode_connack(frame, pos, end, level)
    if packet_type == SUBACK:
        packet_id, props, codes = _read_codes(frame, pos, end, packet_type, level)
        return Suback(packet_id, codes, props)
    if packet_type == UNSUBACK:
        packet_id, props, codes = _read_codes(frame, pos, end, packet_type, level)
        return Unsuback(packet_id, codes, props)
    if packet_type == DISCONNECT:
        return decode_disconnect(frame, pos, end, level)
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


def _decode_ack(buf: bytes, pos: int, end: int, packet_type: int, level: int) -> Ack:
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
    if reason != SUCCESS:
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
    buf: bytes, pos: int, end: int, packet_type: int, level: int
) -> tuple[int, Properties, list[int]]:
    """Identifier, properties and reason codes of SUBACK or UNSUBACK."""
    packet_id = read_packet_id(buf, pos, end)
    pos += 2
    codes: list[int] = []
    if level == 5:
        props, pos = decode_properties(buf, pos, end, packet_type)
        while pos < end:
            codes.append(checked_reason(packet_type, buf[pos]))
            pos += 1
    else:
        props = Properties()
        if packet_type == UNSUBACK:
            if pos != end:
                raise malformed("MQTT 3.11.3 (3.1.1): UNSUBACK has a payload")
            return packet_id, props, codes
        while pos < end:
            code = buf[pos]
            if code > 2 and code != 0x80:
                raise violation(f"MQTT-3.9.3-2 (3.1.1): SUBACK return code 0x{code:02x}")
            codes.append(code)
            pos += 1
    if not codes:
        raise violation(f"MQTT 3.9.3: {TYPE_NAMES[packet_type]} answers no topic filter")
    return packet_id, props, codes

"""Decoding of CONNECT, CONNACK, DISCONNECT and AUTH, behind the fixed header."""

from typing import Final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.fault import malformed, violation
from vpnrouter.wire.mqtt.fields import (
    check_topic_name,
    read_binary,
    read_string,
    read_u8,
    read_u16,
)
from vpnrouter.wire.mqtt.framing import read_varint
from vpnrouter.wire.mqtt.packet_type import AUTH, CONNACK, CONNECT, DISCONNECT, TYPE_NAMES, WILL
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.reason import (
    CLIENT_IDENTIFIER_NOT_VALID,
    REASON_CLAUSES,
    REASONS_OF,
    SUCCESS,
    UNSUPPORTED_PROTOCOL_VERSION,
    V3_REASONS,
)
from vpnrouter.wire.mqtt.session_packets import Auth, Connack, Connect, Disconnect, Will

_CLEAN_START: Final = 0x02
_WILL: Final = 0x04
_WILL_RETAIN: Final = 0x20
_PASSWORD: Final = 0x40
_USERNAME: Final = 0x80


def decode_connect(buf: bytes, pos: int, end: int) -> Connect:
    """CONNECT of level 3, 4 or 5, whichever it says.

    Raises ProtocolError: 0x84 for any other protocol or level, 0x85 for a 3.1.1 client that wants
    its session kept and gives no client id, else as `decode` does.
    """
    name, pos = read_binary(buf, pos, end)
    level = read_u8(buf, pos, end)
    if name == b"MQIsdp" and level == 3:
        # MQTT 3.1, which old devices speak.
        pass
    elif name != b"MQTT":
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION, f"MQTT-3.1.2-1: protocol name {name[:16]!r} is not MQTT"
        )
    elif level not in (4, 5):
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION, f"MQTT-3.1.2-2: protocol level {level} is not 4 or 5"
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
        level,
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
    """The level byte of a CONNECT that `decode` may have refused; 0 when there is none to be read.

    For choosing the form of the CONNACK that says why.
    """
    end = min(start + length, len(frame))
    try:
        _, pos = read_varint(frame, start + 1, end)
        _, pos = read_binary(frame, pos, end)
        return read_u8(frame, pos, end)
    except ProtocolError:
        return 0


def decode_connack(buf: bytes, pos: int, end: int, level: int) -> Connack:
    """CONNACK; a 3.1.1 return code becomes the reason code that says the same."""
    flags = read_u8(buf, pos, end)
    if flags > 1:
        raise malformed("MQTT-3.2.2-1: reserved connect acknowledge flags are set")
    code = read_u8(buf, pos + 1, end)
    pos += 2
    if level == 5:
        reason = checked_reason(CONNACK, code)
        props, pos = decode_properties(buf, pos, end, CONNACK)
    else:
        if code >= len(V3_REASONS):
            raise violation(f"MQTT 3.2.2.3 (3.1.1): return code {code} is reserved")
        reason = V3_REASONS[code]
        props = Properties()
    if flags and reason != SUCCESS:
        raise violation("MQTT-3.2.2-6: session present in a refusal")
    if pos != end:
        raise malformed("MQTT 3.2.3: CONNACK has a payload")
    return Connack(flags == 1, reason, props)


def decode_disconnect(buf: bytes, pos: int, end: int, level: int) -> Disconnect:
    """DISCONNECT; in 3.1.1 it is empty."""
    if pos == end:
        return Disconnect()
    if level != 5:
        raise malformed("MQTT 3.14.1 (3.1.1): DISCONNECT is not empty")
    reason, props = _reason_and_properties(buf, pos, end, DISCONNECT)
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
    buf: bytes, pos: int, end: int, packet_type: int
) -> tuple[int, Properties]:
    reason = checked_reason(packet_type, buf[pos])
    pos += 1
    if pos == end:
        return reason, Properties()
    props, pos = decode_properties(buf, pos, end, packet_type)
    if pos != end:
        raise malformed(f"MQTT 2.1.4: bytes after the properties of {TYPE_NAMES[packet_type]}")
    return reason, props


def checked_reason(packet_type: int, reason: int) -> int:
    """`reason`. Raises ProtocolError 0x82 when this packet type may not carry it."""
    if reason not in REASONS_OF[packet_type]:
        raise violation(
            f"{REASON_CLAUSES[packet_type]}: reason code 0x{reason:02x}"
            f" may not stand in {TYPE_NAMES[packet_type]}"
        )
    return reason

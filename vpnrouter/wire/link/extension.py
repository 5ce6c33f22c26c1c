"""Encodes what accompanies a payload on a link: the property block (LINK-28), and the extension of DIRECT_X.

The block is that of an MQTT 5 PUBLISH (section 3.3.2.3) without what belongs to one connection: the topic alias and
the subscription identifiers.
"""

from __future__ import annotations

from typing import Final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.codes import (
    CONTENT,
    EXPIRY_MS,
    HOPS,
    MALFORMED,
    MANDATORY,
    MESSAGE_ID,
    ORIGIN,
    PATH,
    PROTOCOL_ERROR,
    RETAIN,
    SNAPSHOT,
    TRACE,
    UNKNOWN_MANDATORY_FIELD,
)
from vpnrouter.wire.link.fields import utf8
from vpnrouter.wire.link.frames import Extension
from vpnrouter.wire.varint import read_varint, varint

PAYLOAD_FORMAT: Final = 0x01
MESSAGE_EXPIRY: Final = 0x02
CONTENT_TYPE: Final = 0x03
RESPONSE_TOPIC: Final = 0x08
CORRELATION_DATA: Final = 0x09
USER_PROPERTY: Final = 0x26


def check_properties(buf: bytes, pos: int, end: int) -> None:
    """Raise ProtocolError unless `buf[pos:end]` is a property block that a link may carry.

    0x81 for a block that cannot be taken apart, 0x82 for a property that does not belong here,
    comes twice or has a value that MQTT 5 forbids. An empty block costs one comparison.
    """
    seen = 0
    while pos < end:
        kind = buf[pos]
        pos += 1
        if kind == USER_PROPERTY:
            pos = _text(buf, _text(buf, pos, end), end)
            continue
        if kind > RESPONSE_TOPIC + 1:
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-28: property 0x{kind:02x} has no place here")
        if seen >> kind & 1:
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-28: property 0x{kind:02x} comes twice")
        seen |= 1 << kind
        if kind == MESSAGE_EXPIRY:
            pos += 4
        elif kind == PAYLOAD_FORMAT:
            if pos < end and buf[pos] > 1:
                raise ProtocolError(PROTOCOL_ERROR, "LINK-28: payload format is neither 0 nor 1")
            pos += 1
        elif kind == CONTENT_TYPE:
            pos = _text(buf, pos, end)
        elif kind == RESPONSE_TOPIC:
            start = pos + 2
            pos = _text(buf, pos, end)
            topic = buf[start:pos]
            if not topic or b"+" in topic or b"#" in topic:
                raise ProtocolError(PROTOCOL_ERROR, "LINK-28: response topic is empty or a filter")
        elif kind == CORRELATION_DATA:
            pos = _sized(buf, pos, end)
        else:
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-28: property 0x{kind:02x} has no place here")
    if pos > end:
        raise ProtocolError(MALFORMED, "LINK-28: a property runs beyond its block")


def _sized(buf: bytes, pos: int, end: int) -> int:
    """Index after the data with a two-byte length at `pos`."""
    if end - pos < 2:
        raise ProtocolError(MALFORMED, "LINK-28: a property runs beyond its block")
    after = pos + 2 + (buf[pos] << 8 | buf[pos + 1])
    if after > end:
        raise ProtocolError(MALFORMED, "LINK-28: a property runs beyond its block")
    return after


def _text(buf: bytes, pos: int, end: int) -> int:
    """Index after the text with a two-byte length at `pos`."""
    after = _sized(buf, pos, end)
    utf8(buf[pos + 2 : after], "a property")
    return after


_NUMBER: Final = MANDATORY - 1
_TRACE_BYTES: Final = 25

_VOLATILE: Final = 1
"""Flag of an AMQP message that is not durable."""

_HIGHEST_PRIORITY: Final = 9


def encode_extension(ext: Extension) -> bytes:
    """The extension's fields, in the order of their numbers, without the length in front.

    What is at its default is left out. Raises ValueError for what no peer would take: more than
    LINK_PATH_ENTRIES visited VPNs, a name above LINK_PATH_ENTRY_BYTES, fewer hops than visited
    VPNs.
    """
    path = ext.path
    hops = ext.hops
    if not 0 < hops < 256 or hops < len(path):
        raise ValueError(f"{hops} hops with {len(path)} visited VPNs")
    out: list[bytes] = []
    if path:
        joined = b"".join([_short(name) for name in path])
        out.append(bytes((PATH,)) + varint(len(joined)) + joined)
    if hops != max(1, len(path)):
        out.append(bytes((HOPS, 1, hops)))
    if ext.trace_high or ext.trace_low:
        out.append(
            bytes((TRACE, _TRACE_BYTES))
            + ext.trace_high.to_bytes(8, "big")
            + ext.trace_low.to_bytes(8, "big")
            + ext.message_id.to_bytes(8, "big")
            + bytes((ext.trace_flags,))
        )
    if ext.origin_router:
        origin = (
            _short(ext.origin_router)
            + _short(ext.origin_vpn)
            + ext.origin_ts_ns.to_bytes(8, "big", signed=True)
        )
        out.append(bytes((ORIGIN,)) + varint(len(origin)) + origin)
    if ext.retain:
        out.append(bytes((RETAIN, 0)))
    if ext.expiry_ms >= 0:
        out.append(bytes((EXPIRY_MS, 8)) + ext.expiry_ms.to_bytes(8, "big"))
    if ext.message_id and not (ext.trace_high or ext.trace_low):
        out.append(bytes((MESSAGE_ID, 8)) + ext.message_id.to_bytes(8, "big"))
    if ext.snapshot:
        out.append(bytes((SNAPSHOT, 0)))
    if ext.amqp:
        flags = _VOLATILE if ext.volatile else 0
        out.append(bytes((CONTENT | MANDATORY, 2, flags, ext.priority)))
    return b"".join(out)


def decode_extension(buf: bytes, pos: int, end: int) -> Extension:
    """Read the fields in `buf[pos:end]`.

    The result depends on these bytes alone, so a caller may keep it for the next message with the
    same ones. Raises ProtocolError: 0x81, 0x82, or 0xC1 for an unknown mandatory field.
    """
    if end - pos > limits.LINK_EXTENSION_BYTES:
        raise ProtocolError(
            MALFORMED, f"LINK-30: extension above {limits.LINK_EXTENSION_BYTES} bytes"
        )
    ext = Extension([], 0)
    seen = 0
    while pos < end:
        kind = buf[pos]
        length, pos = read_varint(buf, pos + 1, end)
        after = pos + length
        if after > end:
            raise ProtocolError(MALFORMED, "LINK-30: a field runs beyond the extension")
        number = kind & _NUMBER
        if 0 < number <= RETAIN or number in (MESSAGE_ID, EXPIRY_MS, SNAPSHOT, CONTENT):
            if seen >> number & 1:
                raise ProtocolError(PROTOCOL_ERROR, f"LINK-9: extension field {number} comes twice")
            seen |= 1 << number
        if number == PATH:
            ext.path = _path(buf, pos, after)
        elif number == HOPS:
            _size(number, length, 1)
            ext.hops = buf[pos]
        elif number == TRACE:
            _size(number, length, _TRACE_BYTES)
            ext.trace_high = int.from_bytes(buf[pos : pos + 8], "big")
            ext.trace_low = int.from_bytes(buf[pos + 8 : pos + 16], "big")
            ext.message_id = int.from_bytes(buf[pos + 16 : pos + 24], "big")
            ext.trace_flags = buf[pos + 24]
            if not ext.trace_high and not ext.trace_low:
                raise ProtocolError(PROTOCOL_ERROR, "LINK-33: a trace id of zero")
        elif number == ORIGIN:
            _origin(ext, buf, pos, after)
        elif number == RETAIN:
            _size(number, length, 0)
            ext.retain = True
        elif number == EXPIRY_MS:
            _size(number, length, 8)
            ext.expiry_ms = int.from_bytes(buf[pos:after], "big")
        elif number == MESSAGE_ID:
            _size(number, length, 8)
            ext.message_id = int.from_bytes(buf[pos:after], "big")
        elif number == SNAPSHOT:
            _size(number, length, 0)
            ext.snapshot = True
        elif number == CONTENT:
            _size(number, length, 2)
            if buf[pos] & ~_VOLATILE or buf[pos + 1] > _HIGHEST_PRIORITY:
                raise ProtocolError(PROTOCOL_ERROR, "LINK-53: content of an unknown kind")
            ext.amqp = True
            ext.volatile = buf[pos] & _VOLATILE != 0
            ext.priority = buf[pos + 1]
        elif kind & MANDATORY:
            raise ProtocolError(
                UNKNOWN_MANDATORY_FIELD,
                f"LINK-8: extension field {number} must be understood and is not",
            )
        pos = after
    least = max(1, len(ext.path))
    if not seen >> HOPS & 1:
        ext.hops = least
    elif ext.hops < least:
        raise ProtocolError(
            PROTOCOL_ERROR, f"LINK-32: {ext.hops} hops with {len(ext.path)} visited VPNs"
        )
    return ext


def _short(name: str) -> bytes:
    """A name with its length in one byte in front."""
    raw = name.encode("utf-8")
    if not 0 < len(raw) <= limits.LINK_PATH_ENTRY_BYTES:
        raise ValueError(f"a VPN or router name of {len(raw)} bytes")
    return bytes((len(raw),)) + raw


def _size(number: int, length: int, wanted: int) -> None:
    if length != wanted:
        raise ProtocolError(
            MALFORMED, f"LINK-9: extension field {number} is {length}, not {wanted} bytes long"
        )


def _name(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    """The name with a one-byte length at `pos`, and the index after it."""
    if pos >= end:
        raise ProtocolError(MALFORMED, "LINK-31: a name is missing")
    after = pos + 1 + buf[pos]
    if after == pos + 1 or after > end:
        raise ProtocolError(MALFORMED, "LINK-31: a name is empty or runs beyond its field")
    return utf8(buf[pos + 1 : after], "a name"), after


def _path(buf: bytes, pos: int, end: int) -> list[str]:
    path: list[str] = []
    while pos < end:
        name, pos = _name(buf, pos, end)
        path.append(name)
    if len(path) > limits.LINK_PATH_ENTRIES:
        raise ProtocolError(MALFORMED, f"LINK-31: {len(path)} visited VPNs")
    if not path:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-31: a path without a VPN")
    return path


def _origin(ext: Extension, buf: bytes, pos: int, end: int) -> None:
    router, pos = _name(buf, pos, end)
    vpn, pos = _name(buf, pos, end)
    if end - pos != 8:
        raise ProtocolError(MALFORMED, "LINK-34: the origin's time is not 8 bytes long")
    ext.origin_router = router
    ext.origin_vpn = vpn
    ext.origin_ts_ns = int.from_bytes(buf[pos:end], "big", signed=True)

"""The property block of a message on a link (LINK-28).

The block of an MQTT 5 PUBLISH (section 3.3.2.3), less what means something on one connection only:
the topic alias and the subscription identifiers.
"""

from typing import Final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.close_codes import MALFORMED, PROTOCOL_ERROR
from vpnrouter.wire.link.fields import utf8

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

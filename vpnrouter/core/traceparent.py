"""The user property `traceparent` of MQTT 5 messages: W3C Trace Context, version 00.

    00-<trace id, 32 hexadecimal digits>-<span id, 16>-<flags, 2>     (Trace Context, 3.2)

A publisher that traces a message itself says so with the flag "sampled", and the message is traced here under
its trace id. A traced message leaves with the span of its delivery in the place of the publisher's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.trace.span_ids import span_id
from vpnrouter.wire.mqtt.fields import read_binary, read_string
from vpnrouter.wire.mqtt.properties import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    RESPONSE_TOPIC,
    USER_PROPERTY,
    read_number,
    rule_for,
    with_user_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.plane import Plane

NAME: Final = "traceparent"

_NAME: Final = NAME.encode()
_LENGTH: Final = 55
_DIGITS: Final = b"0123456789abcdef"


@final
class TraceParent:
    """What a valid property says: both halves of the trace id, the sender's span, whether it is sampled.

    `place` is where the property's text begins in the block.
    """

    __slots__ = ("high", "low", "place", "sampled", "span")

    def __init__(self, high: int, low: int, span: int, sampled: bool, place: int) -> None:
        self.high = high
        self.low = low
        self.span = span
        self.sampled = sampled
        self.place = place


def read(block: bytes) -> TraceParent | None:
    """The `traceparent` in a message's properties; None where there is none, a bad one, or more than one.

    `block` is as `split_publish_properties` gave it.
    """
    if _NAME not in block:
        return None
    place = _find(block)
    return None if place < 0 else _parse(block, place)


def leaving(
    plane: Plane,
    message: Message,
    block: bytes,
    vpn: str,
    event: str,
    client: str,
    endpoint: str,
) -> bytes:
    """The properties `block` of the traced `message` as it is delivered to `client`, an MQTT 5 client.

    `event`, `client` and `endpoint` are those of the row that tells of the delivery. What is no valid
    `traceparent`, or speaks of another trace, is left as it is.
    """
    place = -1
    if _NAME in block:
        parent = read(block)
        if parent is None or parent.high != message.trace_high or parent.low != message.trace_low:
            return block
        place = parent.place
    elif not plane.emits:
        return block
    span = span_id(
        message.trace_high,
        message.trace_low,
        message.message_id,
        plane.router_name,
        vpn,
        event,
        client,
        endpoint,
    )
    text = f"00-{message.trace_high:016x}{message.trace_low:016x}-{span:016x}-01"
    if place < 0:
        return with_user_properties(block, [(NAME, text)])
    return block[:place] + text.encode() + block[place + _LENGTH :]


def _find(block: bytes) -> int:
    """Where the text of the one property begins; -1 where there is none of its length, or several."""
    found = -1
    pos = 0
    end = len(block)
    while pos < end:
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            at = pos + 2
            _, pos = read_binary(block, pos, end)
            if name == NAME:
                if found >= 0 or pos - at != _LENGTH:
                    return -1
                found = at
        elif identifier in (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA):
            _, pos = read_binary(block, pos, end)
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
    return found


def _parse(block: bytes, place: int) -> TraceParent | None:
    text = block[place : place + _LENGTH]
    if text[:3] != b"00-" or text[35:36] != b"-" or text[52:53] != b"-":
        return None
    digits = text[3:35] + text[36:52] + text[53:]
    for digit in digits:
        if digit not in _DIGITS:
            return None
    high = int(text[3:19], 16)
    low = int(text[19:35], 16)
    span = int(text[36:52], 16)
    # All zeros is invalid (3.2.2.3 and 3.2.2.4).
    if not (high or low) or not span:
        return None
    return TraceParent(high, low, span, int(text[53:], 16) & 1 == 1, place)

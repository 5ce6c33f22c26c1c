"""Keeps a message's properties as one encoded block that travels unread.

MQTT 5 wants a message's properties forwarded unaltered, user properties in order (MQTT-3.3.2-4 and -15 to -20). So the
block is validated once on the way in, stripped of what belongs to the connection (topic alias, subscription
identifiers), kept as bytes, and only its expiry is rewritten on the way out.
"""

from collections.abc import Sequence
from typing import Final

from vpnrouter.wire.mqtt.fields import read_binary, read_string, u16, u32, varint
from vpnrouter.wire.mqtt.properties import (
    BINARY,
    MESSAGE_EXPIRY_INTERVAL,
    PAYLOAD_FORMAT_INDICATOR,
    RESPONSE_TOPIC,
    RULES,
    STRING,
    STRING_PAIR,
    SUBSCRIPTION_IDENTIFIER,
    TOPIC_ALIAS,
    USER_PROPERTY,
    Properties,
    PropertyRule,
    append_property,
    check_count,
    check_response_topic,
    mark_seen,
    read_number,
    rule_for,
)
from vpnrouter.wire.mqtt.reason import PUBLISH, violation

_ALIAS_TAG: Final = b"\x23"
_EXPIRY_TAG: Final = b"\x02"
_IDENTIFIER_TAG: Final = b"\x0b"
_NO_PROPERTIES: Final = b"\x00"


def split_publish_properties(
    buf: bytes, pos: int, end: int, from_client: bool = False
) -> tuple[bytes, int, int]:
    """Check the properties of a PUBLISH, and separate those that travel on from those of the connection.

    `buf[pos:end]` holds the properties without their length field. Returns (block, topic_alias, message_expiry_s): the
    block without topic alias and subscription identifiers, order kept; the alias, 0 for none; the expiry in seconds, -1
    for none. With `from_client`, a subscription identifier is refused as MQTT-3.3.4-6 demands of a server. Raises
    ProtocolError as `decode_properties` does.
    """
    if pos == end:
        return b"", 0, -1
    kept: list[bytes] = []
    run = pos
    seen = 0
    topic_alias = 0
    message_expiry_s = -1
    pairs = 0
    while pos < end:
        at = pos
        identifier = buf[pos]
        rule = rule_for(identifier, PUBLISH)
        seen = mark_seen(rule, seen, PUBLISH)
        value, pos = _read(rule, buf, pos + 1, end)
        if identifier == USER_PROPERTY:
            check_count(pairs)
            pairs += 1
        elif identifier == MESSAGE_EXPIRY_INTERVAL:
            message_expiry_s = value
        elif identifier in (TOPIC_ALIAS, SUBSCRIPTION_IDENTIFIER):
            if identifier == TOPIC_ALIAS:
                topic_alias = value
            elif from_client:
                raise violation("MQTT-3.3.4-6: subscription identifier in a client's PUBLISH")
            if at > run:
                kept.append(buf[run:at])
            run = pos
    if end > run:
        kept.append(buf[run:end])
    return b"".join(kept), topic_alias, message_expiry_s


def publish_block_with(
    block: bytes,
    message_expiry_s: int = -1,
    topic_alias: int = 0,
    subscription_identifiers: Sequence[int] = (),
) -> bytes:
    """The property field for one subscriber, with its length prefix.

    `block` is as `split_publish_properties` gave it. `message_expiry_s` ≥ 0 takes the place of the
    block's expiry, in its position (MQTT-3.3.2-6), or is added where there is none; -1 leaves the
    block as it is. A topic alias other than 0 and the identifiers are added behind.
    """
    if message_expiry_s < 0 and topic_alias == 0 and not subscription_identifiers:
        return varint(len(block)) + block if block else _NO_PROPERTIES
    parts: list[bytes] = []
    if message_expiry_s < 0:
        parts.append(block)
    else:
        at = _find(block, MESSAGE_EXPIRY_INTERVAL)
        if at < 0:
            parts.append(block)
            parts.append(_EXPIRY_TAG + u32(message_expiry_s))
        else:
            parts.append(block[:at])
            parts.append(u32(message_expiry_s))
            parts.append(block[at + 4 :])
    if topic_alias:
        parts.append(_ALIAS_TAG + u16(topic_alias))
    parts.extend([_IDENTIFIER_TAG + varint(identifier) for identifier in subscription_identifiers])
    joined = b"".join(parts)
    return varint(len(joined)) + joined


def without_expiry(block: bytes) -> bytes:
    """Return a block without its Message Expiry Interval."""
    if _EXPIRY_TAG not in block:
        return block
    at = _find(block, MESSAGE_EXPIRY_INTERVAL)
    return block if at < 0 else block[: at - 1] + block[at + 4 :]


def message_block(props: Properties) -> bytes:
    """The block of a message whose properties came as an object, a will's for example.

    Takes what a PUBLISH may carry, less topic alias and subscription identifiers.
    """
    parts: list[bytes] = []
    for rule in RULES:
        identifier = rule.identifier
        if identifier in (TOPIC_ALIAS, SUBSCRIPTION_IDENTIFIER):
            continue
        if (rule.packets >> PUBLISH) & 1:
            value: object = getattr(props, rule.name)
            if value is not None:
                append_property(parts, rule, value)
    return b"".join(parts)


def payload_format_holds(block: bytes, payload: bytes) -> bool:
    """False when the block says the payload is UTF-8 text and it is not (reason code 0x99).

    A server may check this, it need not (3.3.2.3.2): it costs a pass over the payload.
    """
    at = _find(block, PAYLOAD_FORMAT_INDICATOR)
    if at < 0 or block[at] == 0 or payload.isascii():
        return True
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read(rule: PropertyRule, buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Check one property's value; its number (0 where it has none) and the position after it."""
    kind = rule.kind
    if kind == STRING:
        text, pos = read_string(buf, pos, end)
        if rule.identifier == RESPONSE_TOPIC:
            check_response_topic(text)
        return 0, pos
    if kind == STRING_PAIR:
        _, pos = read_string(buf, pos, end)
        _, pos = read_string(buf, pos, end)
        return 0, pos
    if kind == BINARY:
        _, pos = read_binary(buf, pos, end)
        return 0, pos
    return read_number(rule, buf, pos, end)


def _find(block: bytes, wanted: int) -> int:
    """Position of the value of property `wanted` in a block, -1 when it is not there."""
    pos = 0
    end = len(block)
    while pos < end:
        identifier = block[pos]
        if identifier == wanted:
            return pos + 1
        _, pos = _read(rule_for(identifier, PUBLISH), block, pos + 1, end)
    return -1

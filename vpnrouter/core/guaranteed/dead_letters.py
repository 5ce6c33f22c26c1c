"""Writes into a dead letter why it is one, and which endpoints gave it up."""

from __future__ import annotations

from typing import Final

from vpnrouter.wire.mqtt.fields import read_string
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

REASON_PROPERTY: Final = "dead-letter-reason"
"""Why the message is a dead letter."""

SOURCE_PROPERTY: Final = "dead-letter-queue"
"""Where it was; one for each endpoint that gave it up, oldest first."""

_BEGIN: Final = b"dead-letter-"


def sources(block: bytes) -> list[str]:
    """The endpoints that gave a message up before; `block` are its properties."""
    found: list[str] = []
    if _BEGIN in block:
        _split(block, found)
    return found


def addressed(block: bytes, reason: str, source: str) -> bytes:
    """The properties of a message that `source` gives up for `reason`."""
    before: list[str] = []
    if _BEGIN in block:
        block = _split(block, before)
    pairs = [(REASON_PROPERTY, reason)]
    pairs += [(SOURCE_PROPERTY, name) for name in before if name != source]
    pairs.append((SOURCE_PROPERTY, source))
    return with_user_properties(block, pairs)


def _split(block: bytes, found: list[str]) -> bytes:
    """`block` without what this file adds; the endpoints go to `found`."""
    parts: list[bytes] = []
    pos = 0
    end = len(block)
    while pos < end:
        begin = pos
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            text, pos = read_string(block, pos, end)
            if name == SOURCE_PROPERTY:
                found.append(text)
                continue
            if name == REASON_PROPERTY:
                continue
        elif identifier in (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA):
            # Two bytes of length, and the bytes.
            pos += 2 + int.from_bytes(block[pos : pos + 2], "big")
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
        parts.append(block[begin:pos])
    return b"".join(parts)


CONSUMER: Final = "rejected"
"""A consumer does not want it."""
EXPIRED: Final = "max-ttl-expired"
REDELIVERED: Final = "max-redelivery-exceeded"

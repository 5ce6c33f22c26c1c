"""Takes user properties out of the properties of a message, where they are the router's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.wire.mqtt.fields import read_string
from vpnrouter.wire.mqtt.properties import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    RESPONSE_TOPIC,
    USER_PROPERTY,
    read_number,
    rule_for,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from collections.abc import Sequence


def take_out(block: bytes, names: Sequence[str]) -> tuple[bytes, list[tuple[str, str]]]:
    """Return a message's properties without the user properties of these names, and what those said, in order.

    `block` is as `split_publish_properties` gave it. Raises ProtocolError as that does.
    """
    parts: list[bytes] = []
    found: list[tuple[str, str]] = []
    pos = 0
    end = len(block)
    while pos < end:
        begin = pos
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            text, pos = read_string(block, pos, end)
            if name in names:
                found.append((name, text))
                continue
        elif identifier in (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA):
            # Two bytes of length, and the bytes.
            pos += 2 + int.from_bytes(block[pos : pos + 2], "big")
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
        parts.append(block[begin:pos])
    return b"".join(parts), found

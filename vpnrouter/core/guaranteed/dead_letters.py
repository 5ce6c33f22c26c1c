"""Writes into a dead letter why it is one, and which endpoints gave it up."""

from __future__ import annotations

from typing import Final

from vpnrouter.wire.mqtt.properties import with_user_properties
from vpnrouter.wire.mqtt.user_properties import take_out

REASON_PROPERTY: Final = "dead-letter-reason"
"""Why the message is a dead letter."""

SOURCE_PROPERTY: Final = "dead-letter-queue"
"""Where it was; one for each endpoint that gave it up, oldest first."""

_NAMES: Final = (REASON_PROPERTY, SOURCE_PROPERTY)
_BEGIN: Final = b"dead-letter-"


def sources(block: bytes) -> list[str]:
    """The endpoints that gave a message up before; `block` are its properties."""
    if _BEGIN not in block:
        return []
    return _sources(take_out(block, _NAMES)[1])


def addressed(block: bytes, reason: str, source: str) -> bytes:
    """The properties of a message that `source` gives up for `reason`."""
    before: list[str] = []
    if _BEGIN in block:
        block, found = take_out(block, _NAMES)
        before = _sources(found)
    pairs = [(REASON_PROPERTY, reason)]
    pairs += [(SOURCE_PROPERTY, name) for name in before if name != source]
    pairs.append((SOURCE_PROPERTY, source))
    return with_user_properties(block, pairs)


def _sources(found: list[tuple[str, str]]) -> list[str]:
    return [text for name, text in found if name == SOURCE_PROPERTY]


CONSUMER: Final = "rejected"
"""A consumer does not want it."""
EXPIRED: Final = "max-ttl-expired"
REDELIVERED: Final = "max-redelivery-exceeded"

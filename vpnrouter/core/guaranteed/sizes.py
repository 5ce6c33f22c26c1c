"""How much a message counts for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vpnrouter.core.message import Message


def size_of(message: Message) -> int:
    """Bytes that a message counts for in a quota: payload, properties and topic."""
    return len(message.payload) + len(message.block) + len(message.topic)

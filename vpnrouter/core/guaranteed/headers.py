"""What a guaranteed message says of itself in user properties, since MQTT has no fields for it.

`priority` 0 to 9 (more counts as 9; 4 where it is missing), `dmq-eligible` (`false` keeps it out of a
dead message queue that looks at it) and `JMSXGroupID`, the key of partitions and lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vpnrouter.core.message import Message

PRIORITY: Final = "priority"
DMQ_ELIGIBLE: Final = "dmq-eligible"
PARTITION_KEY: Final = "JMSXGroupID"

HIGHEST: Final = 9

_NAMES: Final = (PRIORITY.encode(), DMQ_ELIGIBLE.encode(), PARTITION_KEY.encode())

FNV_PRIME: Final = 16_777_619
FNV_START: Final = 2_166_136_261


def read_headers(message: Message) -> None:
    """Fill in what the properties of `message` say; nothing where they say nothing."""
    block = message.block
    if not (_NAMES[0] in block or _NAMES[1] in block or _NAMES[2] in block):
        return
    properties = message.properties()
    text = properties.get(PRIORITY, "")
    if text.isascii() and text.isdigit():
        message.priority = min(int(text[:4]), HIGHEST)
    if properties.get(DMQ_ELIGIBLE, "").lower() in ("false", "0"):
        message.dmq_eligible = False
    message.lane = lane_in(message)


def lane_in(message: Message) -> int:
    """The lane that the partition key of `message` names, 0 without one."""
    if _NAMES[2] not in message.block:
        return 0
    key = message.properties().get(PARTITION_KEY, "")
    return lane_of(key.encode()) if key else 0


def lane_of(key: bytes) -> int:
    """A number of 16 bits for a key, never 0: the same on every router and after every restart.

    FNV-1a, folded.
    """
    mixed = FNV_START
    for byte in key:
        mixed = (mixed ^ byte) * FNV_PRIME & 0xFFFF_FFFF
    return (mixed >> 16 ^ mixed) & 0xFFFF or 1

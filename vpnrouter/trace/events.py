"""What can happen to a message, a link or a subscription, as small integers.

The numbers live only inside the process: files carry the names. New events are added before
`LINK_UP` when they are about a message and after `UNSUBSCRIBE` when they are not.
"""

from typing import Final

INGRESS: Final = 0
DELIVER: Final = 1
ENQUEUE: Final = 2
ACKNOWLEDGE: Final = 3
BRIDGE_SEND: Final = 4
BRIDGE_RECEIVE: Final = 5
PROMOTE: Final = 6
DEMOTE: Final = 7
DISCARD: Final = 8
REJECT: Final = 9
REDELIVER: Final = 10
EXPIRE: Final = 11
DEAD_LETTER: Final = 12
LINK_UP: Final = 13
LINK_DOWN: Final = 14
SUBSCRIBE: Final = 15
UNSUBSCRIBE: Final = 16
LINK_REJECTED: Final = 17

FIRST_WITHOUT_MESSAGE: Final = LINK_UP
"""Events from here on concern no message: message id, trace id, mode, size and hops are null."""

EVENT_NAMES: Final[list[str]] = [
    "ingress",
    "deliver",
    "enqueue",
    "acknowledge",
    "bridge_send",
    "bridge_receive",
    "promote",
    "demote",
    "discard",
    "reject",
    "redeliver",
    "expire",
    "dead_letter",
    "link_up",
    "link_down",
    "subscribe",
    "unsubscribe",
    "link_rejected",
]
"""Name of each event in the files, by number."""

DIRECT: Final = 0
NON_PERSISTENT: Final = 1
PERSISTENT: Final = 2

MODE_NAMES: Final[list[str]] = ["direct", "non_persistent", "persistent"]
"""Name of each delivery mode in the files, by number."""

UNKNOWN: Final = -1
"""Given as a number of a record (size, time since ingress, time of origin): null in the file."""

"""Control packet types (MQTT 5, 2.1.2) and what the fixed header of each must say (2.1.3)."""

from typing import Final

WILL: Final = 0
"""Not a packet: the will's property block inside CONNECT, which has a list of its own."""
CONNECT: Final = 1
CONNACK: Final = 2
PUBLISH: Final = 3
PUBACK: Final = 4
PUBREC: Final = 5
PUBREL: Final = 6
PUBCOMP: Final = 7
SUBSCRIBE: Final = 8
SUBACK: Final = 9
UNSUBSCRIBE: Final = 10
UNSUBACK: Final = 11
PINGREQ: Final = 12
PINGRESP: Final = 13
DISCONNECT: Final = 14
AUTH: Final = 15

TYPE_NAMES: Final = (
    "WILL",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
"""Name of each type, indexed by type."""

FLAG_CLAUSES: Final[dict[int, str]] = {
    PUBREL: "MQTT-3.6.1-1",
    SUBSCRIBE: "MQTT-3.8.1-1",
    UNSUBSCRIBE: "MQTT-3.10.1-1",
    DISCONNECT: "MQTT-3.14.1-1",
    AUTH: "MQTT-3.15.1-1",
}
"""The clause that fixes the reserved flags of a type; MQTT-2.1.3-1 for all others."""


def reserved_flags(packet_type: int) -> int:
    """The only legal low four bits of the first byte, for every type but PUBLISH."""
    if packet_type in (PUBREL, SUBSCRIBE, UNSUBSCRIBE):
        return 2
    return 0

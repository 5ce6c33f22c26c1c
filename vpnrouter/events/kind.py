"""What is known of all events of one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vpnrouter.events.levels import NAMES

SYSTEM: Final = "system"
VPN: Final = "vpn"
CLIENT: Final = "client"
BRIDGE: Final = "bridge"
QUEUE: Final = "queue"
MANAGEMENT: Final = "management"
CONFIG: Final = "config"
TRACE: Final = "trace"

AREAS: Final = (SYSTEM, VPN, CLIENT, BRIDGE, QUEUE, MANAGEMENT, CONFIG, TRACE)
"""Parts of the router whose events have a level of their own in `logging.levels`."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One name of the event log. `level` is one of levels.py.

    `clears` is the name of the event that this one ends, "" for none. `one_shot` says that it stays
    silent until it is cleared. `label` stands before the text of a readable line, None for the name.
    """

    name: str
    level: int
    area: str
    tells: str
    clears: str = ""
    one_shot: bool = False
    label: str | None = None

    @property
    def scope(self) -> str:
        """`SYSTEM`, `VPN` or `CLIENT`: how the field's names begin."""
        return self.name.partition("_")[0]

    @property
    def level_name(self) -> str:
        """`info`, `warning` and so on."""
        return NAMES[self.level]

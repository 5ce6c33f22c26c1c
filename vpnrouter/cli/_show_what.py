"""What `show` can show."""

from enum import StrEnum
from typing import Final, NamedTuple


class What(StrEnum):
    """What can be shown."""

    VPNS = "vpns"
    CLIENTS = "clients"
    SUBSCRIPTIONS = "subscriptions"
    QUEUES = "queues"
    BRIDGES = "bridges"
    TOPOLOGY = "topology"
    EVENTS = "events"

    @property
    def one(self) -> str:
        """One of them."""
        return "message VPN" if self is What.VPNS else self.value.removesuffix("s")

    @property
    def key(self) -> str:
        """The attribute with its name."""
        return _KEYS.get(self, f"{self.one}Name")


_KEYS: Final = {What.VPNS: "msgVpnName", What.SUBSCRIPTIONS: "name", What.EVENTS: "event"}


class Asked(NamedTuple):
    """Which rows: of these names (`*` stands for any characters), of this VPN, at most so many (0: all)."""

    what: What
    name: str = ""
    msg_vpn: str = ""
    matching: str = ""
    most: int = 0

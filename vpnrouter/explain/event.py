"""One thing that happened to the message, as a trace row tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Event:
    """A row of the trace (docs/traces.md). Texts are "" and numbers -1 where the row has nothing.

    `path` are the message VPNs visited before, "router/vpn", oldest first. Times are nanoseconds:
    `ts_ns` since 1970, `since_ingress_ns` since the message came into this router.
    """

    router: str
    event: str
    vpn: str = ""
    topic: str = ""
    mode: str = ""
    client: str = ""
    endpoint: str = ""
    bridge: str = ""
    peer_router: str = ""
    peer_vpn: str = ""
    hops: int = 0
    path: tuple[str, ...] = ()
    reason: str = ""
    ts_ns: int = -1
    since_ingress_ns: int = -1
    size: int = -1
    message_id: int = 0
    origin_router: str = ""
    origin_vpn: str = ""
    origin_ts_ns: int = -1
    partition: int = -1

    @property
    def place(self) -> str:
        """The message VPN where it happened, "router/vpn"."""
        return f"{self.router}/{self.vpn}"

    @property
    def peer(self) -> str:
        """The message VPN at the other end of the bridge, "router/vpn"; "" without a bridge."""
        return f"{self.peer_router}/{self.peer_vpn}" if self.peer_router or self.peer_vpn else ""


def path_of(text: str) -> tuple[str, ...]:
    """The path of a row, which has ">" between the message VPNs."""
    return tuple(text.split(">")) if text else ()

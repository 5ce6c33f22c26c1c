"""What the management API asks of a running router. Values are plain; nothing of the core leaks out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vpnrouter.bridges.status import BridgeStatus


@dataclass(frozen=True, slots=True)
class MsgVpnStatus:
    """One message VPN as monitoring shows it. Counts are since the router started."""

    msg_vpn_name: str
    enabled: bool
    state: str
    """`up` or `down`."""
    msg_vpn_connections: int
    """Clients that are connected, bridges of other routers included."""
    subscription_count: int
    max_connection_count: int
    max_subscription_count: int
    bridge_count: int
    rx_msg_count: int
    rx_byte_count: int
    tx_msg_count: int
    tx_byte_count: int
    discarded_msg_count: int
    discarded: dict[str, int]
    """Messages by reason of core/discards.py."""


class Monitor(Protocol):
    """A running router, as the API sees it.

    Every method is called in the router's own thread and answers at once. Names come first and
    objects one by one, so that a page costs what it shows and not what the router holds.
    """

    def router_name(self) -> str:
        """Name of the router."""

    def is_ready(self) -> bool:
        """Whether all listeners are bound and the router does not stop."""

    def msg_vpn_names(self) -> Sequence[str]:
        """Names of all message VPNs."""

    def msg_vpn(self, msg_vpn: str) -> MsgVpnStatus | None:
        """One message VPN; None where there is none of that name."""

    def bridge_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the bridges in a message VPN; none where it does not exist."""

    def bridge(self, msg_vpn: str, bridge: str) -> BridgeStatus | None:
        """One bridge; None where there is none of that name."""

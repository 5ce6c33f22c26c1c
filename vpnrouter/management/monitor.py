"""What the management API asks of a running router. Values are plain; nothing of the core leaks out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vpnrouter.bridges.status import (
    BridgeStatus,
    LocalSubscriptionStatus,
    RemoteSubscriptionStatus,
)


@dataclass(frozen=True, slots=True)
class MsgVpnStatus:
    """One message VPN as monitoring shows it. Counts are since the router started; those of many clients, and all
    rates, are about a second old.
    """

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
    """Messages by reason of core/losses.py."""
    rx_discarded_msg_count: int = 0
    tx_discarded_msg_count: int = 0
    """Those among them that were on their way to a client: it had no room, had gone, or had sent them itself."""
    rx_discarded: dict[str, int] = field(default_factory=dict)
    tx_discarded: dict[str, int] = field(default_factory=dict)
    """Each of the two by reason."""
    rejected_msg_count: int = 0
    """Guaranteed messages that were refused: their publishers know."""
    msg_spool_usage: int = 0
    """Bytes in its queues, topic endpoints and sessions."""
    average_rx_byte_rate: int = 0
    average_rx_msg_rate: int = 0
    average_tx_byte_rate: int = 0
    average_tx_msg_rate: int = 0
    rx_byte_rate: int = 0
    rx_msg_rate: int = 0
    tx_byte_rate: int = 0
    tx_msg_rate: int = 0


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

    def remote_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[RemoteSubscriptionStatus]:
        """The subscriptions that a bridge asks its remote for; none where there is no such bridge."""

    def local_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[LocalSubscriptionStatus]:
        """The subscriptions that the remote's bridge asks for here."""

    def disconnect_bridge(self, msg_vpn: str, bridge: str) -> bool:
        """Drop the connection of a bridge, which connects again; False where it has none."""

    def clear_bridge_stats(self, msg_vpn: str, bridge: str) -> bool:
        """Begin the counts of a bridge anew; False where there is none of that name."""

    def clear_bridge_event(self, msg_vpn: str, bridge: str, event: str) -> bool:
        """Take an event of a bridge for seen, so that it is not shown as raised until it happens again; False
        where there is no such bridge.
        """

"""What the management API asks of the clients of a running router, and what it does to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, final


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client as monitoring shows it; names of the field's clients in snake_case. Counts are since the
    client's session began; `discarded_…` are by reason of core/discards.py. A bridge of another router that
    is logged in here is a client too (`client_name` begins with `#bridge`).
    """

    msg_vpn_name: str
    client_name: str
    client_username: str = ""
    client_id: str = ""
    """The MQTT client id."""
    client_address: str = ""
    """`HOST:PORT`, "" for a session whose client is away."""
    client_profile_name: str = ""
    acl_profile_name: str = ""
    platform: str = ""
    """`MQTT 3.1.1`, `MQTT 5` or `vpnrouter link`."""
    connected: bool = True
    clean_session: bool = True
    keepalive: int = 0
    """Seconds, 0 for none."""
    tls_version: str = ""
    uptime: int = 0
    """Seconds since it connected."""
    subscription_count: int = 0
    rx_msg_count: int = 0
    rx_byte_count: int = 0
    tx_msg_count: int = 0
    tx_byte_count: int = 0
    rx_discarded_msg_count: int = 0
    tx_discarded_msg_count: int = 0
    discarded: dict[str, int] = field(default_factory=dict)
    slow_subscriber: bool = False
    """Its outbox is or was over its bound since the counts began."""
    outbox_bytes: int = 0
    """Bytes that wait to be sent to it."""
    bind_count: int = 0
    """Flows that it has bound to queues and topic endpoints."""


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """One subscription of a client, a queue, a topic endpoint or a bridge of another router."""

    msg_vpn_name: str
    subscription_topic: str
    """As the subscriber wrote it."""
    syntax: str
    """`mqtt` or `smf`."""
    holder: str
    """`client`, `queue`, `topic-endpoint` or `bridge`."""
    name: str
    """Name of the client, queue, topic endpoint or bridge client."""
    qos: int = 0
    share_name: str = ""
    selector: str = ""


class ClientSource(Protocol):
    """The clients of a running router, as the API sees them. Called in the router's own thread."""

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of all clients of a message VPN, sessions whose clients are away included."""

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """One client; None where there is none of that name."""

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """The subscriptions of one client."""

    def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """At most `most` subscriptions that match a topic now, of any holder: by the route that a message
        would take. Raises TopicError for what is no topic.
        """

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """Disconnect a client; False where there is none that is connected."""

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """Begin its counts anew; False where there is none."""


@final
class NoClients:
    """A router without clients."""

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        return ()

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """See ClientSource."""
        return None

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        return ()

    def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        return ()

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        return False

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        return False

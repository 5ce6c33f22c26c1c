"""What the management API asks of the clients of a running router, and what it does to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, final

from vpnrouter.management.profile_status import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
)
from vpnrouter.management.session_status import MqttSessionStatus


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client as monitoring shows it; names of the field's clients in snake_case. Counts are since it
    connected, or since they were cleared; `discarded` is by reason of core/losses.py, `refused` among them
    standing for reasons that only the message VPN tells apart. A link is a client too, of a bridge of another
    router or of an own one (`client_name` begins with `#bridge`).
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
    """Its outbox is full, or had no room for a message since the counts began."""
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
    connected: bool = True
    """False for a session whose client is away: guaranteed messages are kept for it, Direct ones are not."""


class ClientSource(Protocol):
    """The clients of a running router, as the API sees them. Called in the router's own thread."""

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of all clients of a message VPN, sessions whose clients are away included, in order."""

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """One client; None where there is none of that name."""

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """The subscriptions of one client, in order."""

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """Disconnect a client; False where there is none that is connected."""

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """Begin its counts anew; False where there is none."""

    # -- subscriptions ---------------------------------------------------------------------------

    def subscription_count(self, msg_vpn: str) -> int:
        """How many subscriptions the message VPN has."""

    def holders(self, msg_vpn: str) -> Sequence[tuple[str, str]]:
        """Whoever has subscriptions there, in order: kind as `SubscriptionStatus.holder`, and name."""

    def held(self, msg_vpn: str, holder: str, name: str) -> Sequence[SubscriptionStatus]:
        """The subscriptions of one holder, in order."""

    async def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """At most `most` subscriptions that match a topic now, of any holder, in order: by the route that a
        message would take. Raises TopicError for what is no topic.
        """

    # -- MQTT sessions ---------------------------------------------------------------------------

    def session_names(self, msg_vpn: str) -> Sequence[str]:
        """Client ids of all MQTT sessions of a message VPN, in order."""

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        """One MQTT session; None where there is none."""

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        """Begin the counts of a session, its client and its queue anew; False where there is none."""

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        """End the session of a client that is away, with all that is kept for it; False where there is none,
        or its client is connected. Returns when that is synced; raises SpoolError where it cannot be.
        """

    # -- who clients may be ----------------------------------------------------------------------

    def username_names(self, msg_vpn: str) -> Sequence[str]:
        """Client usernames that are configured, or that somebody is connected with, in order."""

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        """One client username."""

    def client_profiles(self, msg_vpn: str) -> Sequence[ClientProfileStatus]:
        """The client profiles."""

    def acl_profiles(self, msg_vpn: str) -> Sequence[AclProfileStatus]:
        """The ACL profiles."""


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

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        return False

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        return False

    def subscription_count(self, msg_vpn: str) -> int:
        """See ClientSource."""
        return 0

    def holders(self, msg_vpn: str) -> Sequence[tuple[str, str]]:
        """See ClientSource."""
        return ()

    def held(self, msg_vpn: str, holder: str, name: str) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        return ()

    async def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        return ()

    def session_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        return ()

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        """See ClientSource."""
        return None

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        """See ClientSource."""
        return False

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        """See ClientSource."""
        return False

    def username_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        return ()

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        """See ClientSource."""
        return None

    def client_profiles(self, msg_vpn: str) -> Sequence[ClientProfileStatus]:
        """See ClientSource."""
        return ()

    def acl_profiles(self, msg_vpn: str) -> Sequence[AclProfileStatus]:
        """See ClientSource."""
        return ()

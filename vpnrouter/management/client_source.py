"""What the management API asks of clients, sessions, client usernames and profiles, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, final

from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.schema import showing


@dataclass(frozen=True, slots=True)
class MqttSessionStatus:
    """One MQTT session; names of the field's sessions in snake_case. Counts are those of the queue behind its
    subscriptions of QoS 1 and 2, 0 while it has none, since the router started or they were cleared.
    """

    msg_vpn_name: str
    mqtt_session_client_id: str
    mqtt_session_virtual_router: str = "auto"
    """The field's sessions belong to one router of a redundant pair; ours to the router they are on."""
    enabled: bool = True
    client_name: str = ""
    connected: bool = True
    clean: bool = True
    """It ends with its connection."""
    durable: bool = False
    """It outlives the router."""
    session_expiry_interval: int = 0
    """Seconds that it waits for its client; 4294967295 for ever."""
    owner: str = ""
    """The client username that it belongs to, "" where that is not known any more."""
    queue_name: str = ""
    """The queue of its subscriptions of QoS 1 and 2, "" while it has none."""
    will: bool = False
    will_topic: str = ""
    subscription_count: int = 0
    msg_count: int = 0
    """Messages that are kept for the client now."""
    tx_unacked_msg_count: int = 0
    """Those among them that were sent and not acknowledged."""
    spooled_msg_count: int = 0
    acked_msg_count: int = 0
    redelivered_msg_count: int = 0
    discarded_msg_count: int = 0


@dataclass(frozen=True, slots=True)
class ClientUsernameStatus:
    """One client username; names of the field's in snake_case, `connection_count` is ours."""

    msg_vpn_name: str
    client_username: str
    enabled: bool = True
    dynamic: bool = False
    """It is not configured: `default` stands for it."""
    client_profile_name: str = ""
    acl_profile_name: str = ""
    guaranteed_endpoint_permission_override_enabled: bool = False
    connection_count: int = 0
    """Connections that are logged in with it, bridges of other routers included."""
    endpoint_count: int = 0
    """Endpoints that its clients made, such as those behind MQTT sessions."""


@dataclass(frozen=True, slots=True)
@showing(ClientProfile)
class ClientProfileStatus:
    """One client profile, with the attributes that are configured."""

    msg_vpn_name: str
    client_profile_name: str
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now; each keeps the profile that it logged in with."""


@dataclass(frozen=True, slots=True)
class AclProfileStatus:
    """One ACL profile; names of the field's in snake_case, actions are `allow` or `disallow`."""

    msg_vpn_name: str
    acl_profile_name: str
    client_connect_default_action: str = "allow"
    publish_topic_default_action: str = "allow"
    subscribe_topic_default_action: str = "allow"
    subscribe_share_name_default_action: str = "allow"
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now."""


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client as monitoring shows it; names of the field's clients in snake_case. Counts are since it
    connected, or since they were cleared; `discarded` is by reason of core/discards.py, `refused` among them
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
    """The ClientSource of a router without clients."""

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """Give no names."""
        return ()

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """Give None for every client."""
        return None

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """Give no subscriptions."""
        return ()

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """Disconnect nobody; returns False."""
        return False

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """Clear nothing; returns False."""
        return False

    def subscription_count(self, msg_vpn: str) -> int:
        """Give 0."""
        return 0

    def holders(self, msg_vpn: str) -> Sequence[tuple[str, str]]:
        """Give no holders."""
        return ()

    def held(self, msg_vpn: str, holder: str, name: str) -> Sequence[SubscriptionStatus]:
        """Give no subscriptions."""
        return ()

    async def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """Give no subscriptions, whatever the topic."""
        return ()

    def session_names(self, msg_vpn: str) -> Sequence[str]:
        """Give no client ids."""
        return ()

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        """Give None for every session."""
        return None

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        """Clear nothing; returns False."""
        return False

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        """End no session; returns False."""
        return False

    def username_names(self, msg_vpn: str) -> Sequence[str]:
        """Give no client usernames."""
        return ()

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        """Give None for every client username."""
        return None

    def client_profiles(self, msg_vpn: str) -> Sequence[ClientProfileStatus]:
        """Give no client profiles."""
        return ()

    def acl_profiles(self, msg_vpn: str) -> Sequence[AclProfileStatus]:
        """Give no ACL profiles."""
        return ()

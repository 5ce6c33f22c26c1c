"""Who may log in and do what: client usernames, client profiles and ACL profiles."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.event import ClientProfileEvent
from vpnrouter.config.model import AclProfileName, BridgeName, ClientProfileName, Many, Model
from vpnrouter.config.secrets import Password

Action = Literal["allow", "disallow"]
TopicSyntax = Literal["smf", "mqtt"]

GROUPS: Final = ("client_connect", "publish_topic", "subscribe_topic", "subscribe_share_name")


class ClientConnect(Model):
    """From which addresses clients may connect."""

    default_action: Action = "disallow"
    """For addresses that no exception names. In the profile `default`: allow."""

    exceptions: Many[Annotated[str, Field(max_length=43)]] = Field(
        default=(), examples=["192.0.2.0/24"]
    )
    """IPv4 or IPv6 networks (CIDR) that the other action holds for."""


class PublishTopic(Model):
    """Which topics clients may publish to."""

    default_action: Action = "disallow"
    """For topics that no exception matches. In the profile `default`: allow."""

    exceptions: Many[str] = Field(default=(), examples=["public/>"])
    """Topic filters that the other action holds for; $client-username and $client-id stand for the
    client's own."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class SubscribeTopic(Model):
    """Which topics clients may subscribe to."""

    default_action: Action = "disallow"
    """For filters that no exception covers. In the profile `default`: allow."""

    exceptions: Many[str] = Field(default=(), examples=["public/>"])
    """Topic filters that the other action holds for; $client-username and $client-id stand for the
    client's own."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class SubscribeShareName(Model):
    """Which groups of shared subscriptions clients may join."""

    default_action: Action = "allow"
    """For group names that no exception matches."""

    exceptions: Many[str] = Field(default=(), examples=["batch/*"])
    """Filters over group names that the other action holds for."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class AclProfile(Model):
    """From where clients may connect, and what they may publish and subscribe to.

    A profile that is written down starts at disallow, as in the field; the built-in `default`
    allows all.
    """

    client_connect: ClientConnect = Field(default_factory=ClientConnect)
    """From which addresses clients may connect."""

    publish_topic: PublishTopic = Field(default_factory=PublishTopic)
    """Which topics clients may publish to."""

    subscribe_topic: SubscribeTopic = Field(default_factory=SubscribeTopic)
    """Which topics clients may subscribe to."""

    subscribe_share_name: SubscribeShareName = Field(default_factory=SubscribeShareName)
    """Which groups of shared subscriptions clients may join."""


def allow_by_default(written: object) -> object:
    """What is written for the profile `default`, with `allow` wherever no action is written."""
    written = {} if written is None else written
    if not isinstance(written, dict):
        return written
    opened = dict(written)
    for group in GROUPS:
        inner = opened.get(group) or {}
        if isinstance(inner, dict):
            opened[group] = {"default_action": "allow", **inner}
    return opened


class Eliding(Model):
    """Thinning of Direct messages: at most one per topic and delay reaches the client."""

    enabled: bool = False
    """Whether messages to the client are thinned."""

    delay: Annotated[int, Field(ge=0, le=60_000)] = 0
    """Milliseconds between two messages of one topic."""

    max_topic_count: Annotated[int, Field(ge=1, le=32_000)] = 256
    """Topics followed per client; messages of further topics are not thinned."""


class ClientProfile(Model):
    """What the clients of a client username may do and how much of it."""

    allow_bridge_connections_enabled: bool = False
    """Whether bridges may log in."""

    allow_guaranteed_endpoint_create_durability: Literal["all", "durable", "non-durable"] = "all"
    """Which endpoints clients may create."""

    allow_guaranteed_endpoint_create_enabled: bool = True
    """Whether clients may create endpoints: MQTT sessions with QoS 1 or 2 subscriptions are
    such."""

    allow_guaranteed_msg_receive_enabled: bool = True
    """Whether clients may receive guaranteed messages."""

    allow_guaranteed_msg_send_enabled: bool = True
    """Whether clients may publish guaranteed messages."""

    allow_shared_subscriptions_enabled: bool = True
    """Whether clients may subscribe to $share/GROUP/FILTER."""

    compression_enabled: bool = True
    """Whether bridges that log in may compress."""

    eliding: Eliding = Field(default_factory=Eliding)
    """Thinning of Direct messages."""

    end_to_end_bridge: BridgeName | None = None
    """Name of a bridge that takes from this message VPN by a bound queue: the acknowledgement of a
    guaranteed message that goes into this queue is held until the bridge's own message VPN has
    spooled it too."""

    event: ClientProfileEvent = Field(default_factory=ClientProfileEvent)
    """When events are raised."""

    max_connection_count_per_client_username: Annotated[
        int, Field(ge=1, le=limits.VPN_CONNECTIONS)
    ] = limits.VPN_CONNECTIONS
    """Clients logged in at a time with one client username. Beyond: refused."""

    max_egress_flow_count: Annotated[int, Field(ge=0, le=200_000)] = 1000
    """Flows that deliver guaranteed messages to one client. Beyond: refused."""

    max_endpoint_count_per_client_username: Annotated[int, Field(ge=0, le=200_000)] = 1000
    """Endpoints created by the clients of one client username. Beyond: refused."""

    max_ingress_flow_count: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    """Flows that take guaranteed messages from one client, which needs one; 0: none. Beyond:
    refused."""

    max_keepalive_timeout: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Longest keep-alive in seconds; a client that asks for more, or for none, gets this one. 0:
    as it asks."""

    max_mqtt_session_count_per_client_username: Annotated[int, Field(ge=0, le=10_000_000)] = (
        limits.MQTT_SESSIONS_OF_USERNAME
    )
    """MQTT sessions of one client username that outlive their connection. Beyond: refused. 0: no
    bound but the message VPN's."""

    max_mqtt_session_expiry_interval: Annotated[int, Field(ge=0, le=4_294_967_295)] = 0
    """Seconds for which a session, and a will that is delayed, outlives its connection at most; a
    client that asks for more gets this. 0: as it asks."""

    max_outbox_bytes: Annotated[
        int, Field(ge=limits.OUTBOX_BYTES_LEAST, le=limits.OUTBOX_BYTES_MOST)
    ] = limits.OUTBOX_BYTES
    """Bytes that wait for one slow client. Beyond: Direct messages for it are discarded and
    counted."""

    max_subscription_count: Annotated[int, Field(ge=1, le=4_294_967_295)] = (
        limits.CLIENT_SUBSCRIPTIONS
    )
    """Subscriptions of one client. Beyond: refused."""

    reject_msg_to_sender_on_no_subscription_match_enabled: bool = False
    """Whether a guaranteed message that nothing matches is refused instead of acknowledged."""


class ClientUsername(Model):
    """An account that clients and bridges log in with."""

    enabled: bool = True
    """Whether its clients may log in."""

    password: Password | None = None
    """Text, {env: NAME}, {file: PATH} or a hash from `vpnrouter hash-password`. Without it nobody
    logs in by password."""

    password_required: bool = True
    """Whether a login needs the password. If not, a client may come in by the name alone; a password
    that it gives has to be right all the same."""

    client_profile: ClientProfileName = "default"
    """What its clients may do and how much of it."""

    acl_profile: AclProfileName = "default"
    """From where its clients may connect, and what they may publish and subscribe to."""

    guaranteed_endpoint_permission_override_enabled: bool = False
    """Whether its clients may do with every endpoint what the endpoint's owner may."""

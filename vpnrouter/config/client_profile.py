"""Client profiles: what clients may do and how much of it."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.event import ClientProfileEvent
from vpnrouter.config.model import Model
from vpnrouter.config.names import BridgeName


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

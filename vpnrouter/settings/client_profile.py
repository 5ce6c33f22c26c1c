"""Client profiles: what the clients of a client username may do and how much of it."""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.event import ClientProfileEvent
from vpnrouter.settings.schema import LONGEST, Effect, Settings, attribute, group

Durability = Literal["all", "durable", "non-durable"]


class Eliding(Settings):
    """Thinning of Direct messages: at most one per topic and delay reaches the client."""

    enabled: bool = attribute(False)
    """Whether messages to the client are thinned."""

    delay: int = attribute(0, least=0, most=60_000)
    """Milliseconds between two messages of one topic."""

    max_topic_count: int = attribute(256, least=1, most=32_000)
    """Topics followed per client; messages of further topics are not thinned."""


class ClientProfile(Settings, effect=Effect.NEXT_LOGIN):
    """What the clients of a client username may do and how much of it."""

    # Rights are taken away and given back at once (promise OWNER).

    allow_bridge_connections_enabled: bool = attribute(
        False, effect=Effect.IN_PLACE, off=Effect.DISCONNECT
    )
    """Whether bridges may log in."""

    allow_guaranteed_endpoint_create_durability: Durability = attribute(
        "all", effect=Effect.IN_PLACE
    )
    """Which endpoints clients may create."""

    allow_guaranteed_endpoint_create_enabled: bool = attribute(
        True, effect=Effect.IN_PLACE, semp_default=False
    )
    """Whether clients may create endpoints: MQTT sessions with QoS 1 or 2 subscriptions are
    such."""

    allow_guaranteed_msg_receive_enabled: bool = attribute(
        True, effect=Effect.IN_PLACE, semp_default=False
    )
    """Whether clients may receive guaranteed messages."""

    allow_guaranteed_msg_send_enabled: bool = attribute(
        True, effect=Effect.IN_PLACE, semp_default=False
    )
    """Whether clients may publish guaranteed messages."""

    allow_shared_subscriptions_enabled: bool = attribute(
        True, effect=Effect.IN_PLACE, semp_default=False
    )
    """Whether clients may subscribe to $share/GROUP/FILTER."""

    compression_enabled: bool = attribute(True)
    """Whether bridges that log in may compress."""

    eliding: Eliding = group(Eliding, held=None)
    """Thinning of Direct messages."""

    end_to_end_bridge: str | None = attribute(None, text=names.BRIDGE, ours=True)
    """Name of a bridge that takes from this message VPN by a bound queue: the acknowledgement of a
    guaranteed message that goes into this queue is held until the bridge's own message VPN has
    spooled it too."""

    event: ClientProfileEvent = group(ClientProfileEvent, held=None, effect=Effect.IN_PLACE)
    """When events are raised."""

    max_connection_count_per_client_username: int = attribute(
        limits.VPN_CONNECTIONS, least=1, most=limits.VPN_CONNECTIONS, effect=Effect.IN_PLACE
    )
    """Clients logged in at a time with one client username. Beyond: refused."""

    max_egress_flow_count: int = attribute(
        limits.AMQP_LINKS,
        least=0,
        most=200_000,
        semp_default=1000,
        effect=Effect.IN_PLACE,
    )
    """Flows that deliver guaranteed messages to one client; with 0 it binds to nothing. Beyond: refused."""

    max_endpoint_count_per_client_username: int = attribute(
        limits.USERNAME_ENDPOINTS, least=0, most=200_000, semp_default=1000, effect=Effect.IN_PLACE
    )
    """Endpoints created by the clients of one client username. Beyond: refused."""

    max_ingress_flow_count: int = attribute(
        1000, least=0, most=1_000_000, effect=Effect.IN_PLACE, monitored=False
    )
    """Flows that take guaranteed messages from one client, which needs one; 0: none. Beyond:
    refused."""

    max_keepalive_timeout: int = attribute(0, least=0, most=65_535, ours=True)
    """Longest keep-alive in seconds; a client that asks for more, or for none, gets this one. 0:
    as it asks."""

    max_memory_bytes: int = attribute(
        limits.CLIENT_MEMORY,
        least=limits.OUTBOX_BYTES_LEAST,
        most=limits.MSG_VPN_MEMORY_MOST,
        ours=True,
    )
    """Bytes that the router keeps in memory for one client, of any kind. Beyond: refused, or
    disconnected."""

    max_memory_bytes_per_client_username: int = attribute(
        limits.USERNAME_MEMORY,
        least=limits.OUTBOX_BYTES_LEAST,
        most=limits.MSG_VPN_MEMORY_MOST,
        ours=True,
    )
    """Those of all clients of one client username. Beyond: the client that holds most is
    disconnected."""

    max_mqtt_session_count_per_client_username: int = attribute(
        limits.MQTT_SESSIONS_OF_USERNAME, least=0, most=10_000_000, ours=True
    )
    """MQTT sessions of one client username that outlive their connection. Beyond: refused. 0: no
    bound but the message VPN's."""

    max_mqtt_session_expiry_interval: int = attribute(0, least=0, most=LONGEST, ours=True)
    """Seconds for which a session, and a will that is delayed, outlives its connection at most; a
    client that asks for more gets this. 0: as it asks."""

    max_outbox_bytes: int = attribute(
        limits.OUTBOX_BYTES,
        least=limits.OUTBOX_BYTES_LEAST,
        most=limits.OUTBOX_BYTES_MOST,
        ours=True,
    )
    """Bytes that wait for one slow client. Beyond: Direct messages for it are discarded and
    counted."""

    max_subscription_count: int = attribute(
        limits.CLIENT_SUBSCRIPTIONS, least=1, most=LONGEST, effect=Effect.IN_PLACE
    )
    """Subscriptions of one client. Beyond: refused."""

    reject_msg_to_sender_on_no_subscription_match_enabled: bool = attribute(False)
    """Whether a guaranteed message that nothing matches is refused instead of acknowledged."""

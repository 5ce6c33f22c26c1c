"""Client profiles: what the clients of a client username may do, and how much."""

from __future__ import annotations

from typing import Final, final

from vpnrouter import limits

ALL: Final = "all"
DURABLE: Final = "durable"
NON_DURABLE: Final = "non-durable"
"""`allow_guaranteed_endpoint_create_durability`."""


@final
class ClientProfile:
    """Attribute names are SEMP's in snake case. Sizes in bytes, times in seconds; 0 = no bound of its own.

    But with `max_ingress_flow_count` 0 a client may send no guaranteed messages: it has one flow for them.
    """

    __slots__ = (
        "allow_bridge_connections_enabled",
        "allow_guaranteed_endpoint_create_durability",
        "allow_guaranteed_endpoint_create_enabled",
        "allow_guaranteed_msg_receive_enabled",
        "allow_guaranteed_msg_send_enabled",
        "allow_shared_subscriptions_enabled",
        "compression_enabled",
        "end_to_end_bridge",
        "max_connection_count_per_client_username",
        "max_egress_flow_count",
        "max_endpoint_count_per_client_username",
        "max_ingress_flow_count",
        "max_keepalive_timeout",
        "max_mqtt_session_count_per_client_username",
        "max_mqtt_session_expiry_interval",
        "max_outbox_bytes",
        "max_subscription_count",
        "name",
        "reject_msg_to_sender_on_no_subscription_match_enabled",
    )

    def __init__(
        self,
        name: str,
        allow_bridge_connections_enabled: bool = False,
        allow_shared_subscriptions_enabled: bool = True,
        max_connection_count_per_client_username: int = 0,
        max_subscription_count: int = 0,
        max_outbox_bytes: int = limits.OUTBOX_BYTES,
        max_keepalive_timeout: int = 0,
        compression_enabled: bool = True,
        allow_guaranteed_msg_send_enabled: bool = True,
        allow_guaranteed_msg_receive_enabled: bool = True,
        allow_guaranteed_endpoint_create_enabled: bool = True,
        allow_guaranteed_endpoint_create_durability: str = ALL,
        max_egress_flow_count: int = 1000,
        reject_msg_to_sender_on_no_subscription_match_enabled: bool = False,
        end_to_end_bridge: str = "",
        max_endpoint_count_per_client_username: int = 1000,
        max_ingress_flow_count: int = 1000,
        max_mqtt_session_count_per_client_username: int = limits.MQTT_SESSIONS_OF_USERNAME,
        max_mqtt_session_expiry_interval: int = 0,
    ) -> None:
        self.name = name
        self.allow_bridge_connections_enabled = allow_bridge_connections_enabled
        self.allow_shared_subscriptions_enabled = allow_shared_subscriptions_enabled
        self.max_connection_count_per_client_username = max_connection_count_per_client_username
        self.max_subscription_count = max_subscription_count
        self.max_outbox_bytes = max_outbox_bytes
        self.max_keepalive_timeout = max_keepalive_timeout
        self.max_mqtt_session_count_per_client_username = max_mqtt_session_count_per_client_username
        self.max_mqtt_session_expiry_interval = max_mqtt_session_expiry_interval
        self.compression_enabled = compression_enabled
        self.allow_guaranteed_msg_send_enabled = allow_guaranteed_msg_send_enabled
        self.allow_guaranteed_msg_receive_enabled = allow_guaranteed_msg_receive_enabled
        self.allow_guaranteed_endpoint_create_enabled = allow_guaranteed_endpoint_create_enabled
        self.allow_guaranteed_endpoint_create_durability = (
            allow_guaranteed_endpoint_create_durability
        )
        self.max_egress_flow_count = max_egress_flow_count
        self.reject_msg_to_sender_on_no_subscription_match_enabled = (
            reject_msg_to_sender_on_no_subscription_match_enabled
        )
        self.end_to_end_bridge = end_to_end_bridge
        self.max_endpoint_count_per_client_username = max_endpoint_count_per_client_username
        self.max_ingress_flow_count = max_ingress_flow_count

    def may_create(self, durable: bool) -> bool:
        """True when a client may make endpoints of this kind, such as that of a session with QoS 1 subscriptions."""
        if not self.allow_guaranteed_endpoint_create_enabled:
            return False
        allowed = self.allow_guaranteed_endpoint_create_durability
        return allowed == ALL or (allowed == DURABLE) == durable

"""Holds client profiles: the rights and bounds of the clients of a client username."""

from __future__ import annotations

from typing import Final, final

from vpnrouter.settings import client_profile as settings
from vpnrouter.settings.schema import held_defaults

ALL: Final = "all"
DURABLE: Final = "durable"
NON_DURABLE: Final = "non-durable"
"""`allow_guaranteed_endpoint_create_durability`."""


_DEFAULTS: Final = held_defaults(settings.ClientProfile)


@final
class ClientProfile:
    """The attributes that `settings/client_profile.py` declares.

    Sizes are bytes, times seconds, and 0 is no bound of its own. But `max_ingress_flow_count` 0 forbids guaranteed
    messages: a client has one ingress flow.
    """

    __slots__ = ("name", *_DEFAULTS)

    name: str
    allow_bridge_connections_enabled: bool
    allow_guaranteed_endpoint_create_durability: str
    allow_guaranteed_endpoint_create_enabled: bool
    allow_guaranteed_msg_receive_enabled: bool
    allow_guaranteed_msg_send_enabled: bool
    allow_shared_subscriptions_enabled: bool
    compression_enabled: bool
    end_to_end_bridge: str
    max_connection_count_per_client_username: int
    max_egress_flow_count: int
    max_endpoint_count_per_client_username: int
    max_ingress_flow_count: int
    max_keepalive_timeout: int
    max_memory_bytes: int
    max_memory_bytes_per_client_username: int
    max_mqtt_session_count_per_client_username: int
    max_mqtt_session_expiry_interval: int
    max_outbox_bytes: int
    max_subscription_count: int
    reject_msg_to_sender_on_no_subscription_match_enabled: bool

    def __init__(self, name: str, **given: bool | int | str) -> None:
        """A profile with its defaults but for what is `given`, by the names of attributes."""
        self.name = name
        for attribute, value in {**_DEFAULTS, **given}.items():
            setattr(self, attribute, value)

    def may_create(self, durable: bool) -> bool:
        """True when a client may make endpoints of this kind, such as that of a session with QoS 1 subscriptions."""
        if not self.allow_guaranteed_endpoint_create_enabled:
            return False
        allowed = self.allow_guaranteed_endpoint_create_durability
        return allowed == ALL or (allowed == DURABLE) == durable

"""Client profiles: what the clients of a client username may do, and how much."""

from __future__ import annotations

from typing import final

from vpnrouter import limits


@final
class ClientProfile:
    """Attribute names are SEMP's in snake case. Sizes in bytes, times in seconds; 0 = no bound of its own."""

    __slots__ = (
        "allow_bridge_connections_enabled",
        "allow_shared_subscriptions_enabled",
        "compression_enabled",
        "max_connection_count_per_client_username",
        "max_keepalive_timeout",
        "max_outbox_bytes",
        "max_subscription_count",
        "name",
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
    ) -> None:
        self.name = name
        self.allow_bridge_connections_enabled = allow_bridge_connections_enabled
        self.allow_shared_subscriptions_enabled = allow_shared_subscriptions_enabled
        self.max_connection_count_per_client_username = max_connection_count_per_client_username
        self.max_subscription_count = max_subscription_count
        self.max_outbox_bytes = max_outbox_bytes
        self.max_keepalive_timeout = max_keepalive_timeout
        self.compression_enabled = compression_enabled

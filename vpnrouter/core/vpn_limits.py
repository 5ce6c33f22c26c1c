"""Bounds of a message VPN."""

from __future__ import annotations

from typing import final

from vpnrouter import limits


@final
class VpnLimits:
    """Bounds of one message VPN; 0 counts as "no bound of its own".

    Retained messages have no bound of bytes where `max_retained_bytes` is -1.
    A message above `large_msg_size` bytes is taken and told of.
    """

    __slots__ = (
        "large_msg_size",
        "max_connection_count",
        "max_egress_flow_count",
        "max_endpoint_count",
        "max_ingress_flow_count",
        "max_mqtt_session_count",
        "max_msg_size",
        "max_msg_spool_usage",
        "max_retained_bytes",
        "max_retained_msg_count",
        "max_subscription_count",
        "max_topic_bytes",
        "max_topic_levels",
    )

    def __init__(
        self,
        max_connection_count: int = 0,
        max_subscription_count: int = 500_000,
        max_msg_size: int = limits.MESSAGE_BYTES,
        max_topic_bytes: int = limits.TOPIC_BYTES,
        max_topic_levels: int = limits.TOPIC_LEVELS,
        max_retained_msg_count: int = limits.RETAINED_MESSAGES,
        max_msg_spool_usage: int = limits.VPN_SPOOL_BYTES,
        max_endpoint_count: int = 1000,
        max_egress_flow_count: int = 1000,
        max_ingress_flow_count: int = 1000,
        large_msg_size: int = 0,
        max_retained_bytes: int = limits.RETAINED_MEGABYTES * 1_000_000,
        max_mqtt_session_count: int = limits.MQTT_SESSIONS,
    ) -> None:
        self.max_retained_bytes = max_retained_bytes
        self.large_msg_size = large_msg_size
        self.max_connection_count = max_connection_count
        self.max_subscription_count = max_subscription_count
        self.max_mqtt_session_count = max_mqtt_session_count
        self.max_msg_size = max_msg_size
        self.max_topic_bytes = max_topic_bytes
        self.max_topic_levels = max_topic_levels
        self.max_retained_msg_count = max_retained_msg_count
        self.max_msg_spool_usage = max_msg_spool_usage
        self.max_endpoint_count = max_endpoint_count
        self.max_egress_flow_count = max_egress_flow_count
        self.max_ingress_flow_count = max_ingress_flow_count

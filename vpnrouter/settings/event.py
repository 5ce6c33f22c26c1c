"""Events of a message VPN and its endpoints: when they are raised, and whether they are published."""

from __future__ import annotations

from typing import Literal

from vpnrouter.settings.schema import LONGEST, Effect, Settings, Text, attribute, group, like


class PercentThreshold(Settings):
    """Percent of a bound at which an event is raised and cleared."""

    set_percent: int = attribute(80, least=0, most=100)
    """Percent from which on it is raised; 0 never."""

    clear_percent: int = attribute(60, least=0, most=100)
    """Percent down to which it stays."""

    def check(self) -> None:
        """Raise ValueError where the two are the wrong way round."""
        if self.clear_percent > self.set_percent:
            raise ValueError("clear_percent is above set_percent")


class SpoolThreshold(PercentThreshold):
    """Percent of an endpoint's spool quota at which an event is raised and cleared.

    Its defaults are lower than those of the other thresholds, as in the field.
    """

    set_percent: int = like(PercentThreshold, "set_percent", default=25)
    clear_percent: int = like(PercentThreshold, "clear_percent", default=18)


class RateThreshold(Settings):
    """Messages a second at which an event is raised and cleared."""

    set_value: int = attribute(4_000_000, least=0, most=LONGEST)
    """Messages a second from which on it is raised; 0 never."""

    clear_value: int = attribute(3_000_000, least=0, most=LONGEST)
    """Messages a second down to which it stays."""

    def check(self) -> None:
        """Raise ValueError where the two are the wrong way round."""
        if self.clear_value > self.set_value:
            raise ValueError("clear_value is above set_value")


class EndpointEvent(Settings):
    """Thresholds of queues and topic endpoints."""

    bind_count_threshold: PercentThreshold = group(PercentThreshold)
    """Consumers, of max_bind_count."""

    reject_low_priority_msg_limit_threshold: PercentThreshold = group(PercentThreshold)
    """Waiting messages, of reject_low_priority_msg.limit."""


class QueueEvent(EndpointEvent):
    """Thresholds of a queue."""

    msg_spool_usage_threshold: SpoolThreshold = group(SpoolThreshold)
    """Waiting bytes, of max_msg_spool_usage."""


class TopicEndpointEvent(EndpointEvent):
    """Thresholds of a topic endpoint."""

    spool_usage_threshold: SpoolThreshold = group(SpoolThreshold)
    """Waiting bytes, of max_spool_usage."""


class TopicFormat(Settings):
    """Topics that events are published on."""

    mqtt_enabled: bool = attribute(True, semp_default=False)
    """Whether on $SYS/LOG/LEVEL/SCOPE/ROUTER/EVENT/VPN, which MQTT clients can subscribe to."""

    smf_enabled: bool = attribute(True)
    """Whether on #LOG/LEVEL/SCOPE/ROUTER/EVENT/VPN, for queues whose topic_syntax is smf."""


class ClientProfileEvent(Settings):
    """Thresholds of the client usernames of a client profile."""

    connection_count_per_client_username_threshold: PercentThreshold = group(PercentThreshold)
    """Clients of one client username, of max_connection_count_per_client_username."""


class Publish(Settings):
    """Events as Direct messages in the message VPN that they are about."""

    client_enabled: bool = attribute(False)
    """Whether those of clients are published."""

    msg_vpn_enabled: bool = attribute(False)
    """Whether those of the message VPN, its queues and bridges are published."""

    subscription_mode: Literal[
        "off",
        "on-with-format-v1",
        "on-with-no-unsubscribe-events-on-disconnect-format-v1",
        "on-with-format-v2",
        "on-with-no-unsubscribe-events-on-disconnect-format-v2",
    ] = attribute("off")
    """Whether subscriptions that come and go are published, and on which topics."""

    topic_format: TopicFormat = group(TopicFormat)
    """Topics that they are published on."""


class VpnEvent(Settings, effect=Effect.IN_PLACE, held=False):
    """Events of a message VPN."""

    publish: Publish = group(Publish)
    """Events as Direct messages."""

    log_tag: str = attribute("", text=Text(0, 32))
    """Text that stands before each published event."""

    large_msg_threshold: int = attribute(
        1024,
        least=0,
        most=LONGEST,
        effect=Effect.NEXT_LOGIN,
        held="large_msg_size",
        scale=1024,
    )
    """Kilobytes of a message from which on a client's is told of, once; 0 never."""

    connection_count_threshold: PercentThreshold = group(PercentThreshold)
    """Clients, of max_connection_count."""

    subscription_count_threshold: PercentThreshold = group(PercentThreshold)
    """Subscriptions, of max_subscription_count."""

    endpoint_count_threshold: PercentThreshold = group(PercentThreshold)
    """Queues and topic endpoints, of max_endpoint_count."""

    ingress_flow_count_threshold: PercentThreshold = group(PercentThreshold)
    """Clients that publish guaranteed messages, of max_ingress_flow_count."""

    egress_flow_count_threshold: PercentThreshold = group(PercentThreshold)
    """Consumers of endpoints, of max_egress_flow_count."""

    msg_spool_usage_threshold: PercentThreshold = group(PercentThreshold)
    """Waiting bytes, of max_msg_spool_usage."""

    ingress_msg_rate_threshold: RateThreshold = group(RateThreshold)
    """Messages received a second."""

    egress_msg_rate_threshold: RateThreshold = group(RateThreshold)
    """Messages sent a second."""

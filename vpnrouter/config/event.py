"""Events of a message VPN and its endpoints: when they are raised, and whether they are published."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vpnrouter.config.model import Model

Percent = Annotated[int, Field(ge=0, le=100)]
Rate = Annotated[int, Field(ge=0, le=4_294_967_295)]


class PercentThreshold(Model):
    """Percent of a bound at which an event is raised and cleared."""

    set_percent: Percent = 80
    """Percent from which on it is raised; 0 never."""

    clear_percent: Percent = 60
    """Percent down to which it stays."""

    @model_validator(mode="after")
    def _in_order(self) -> "PercentThreshold":
        if self.clear_percent > self.set_percent:
            raise ValueError("clear_percent is above set_percent")
        return self


class SpoolThreshold(PercentThreshold):
    """Percent of an endpoint's spool quota at which an event is raised and cleared.

    Its defaults are lower than those of the other thresholds, as in the field.
    """

    set_percent: Percent = 25
    clear_percent: Percent = 18


class RateThreshold(Model):
    """Messages a second at which an event is raised and cleared."""

    set_value: Rate = 4_000_000
    """Messages a second from which on it is raised; 0 never."""

    clear_value: Rate = 3_000_000
    """Messages a second down to which it stays."""

    @model_validator(mode="after")
    def _in_order(self) -> "RateThreshold":
        if self.clear_value > self.set_value:
            raise ValueError("clear_value is above set_value")
        return self


class EndpointEvent(Model):
    """Thresholds of queues and topic endpoints."""

    bind_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Consumers, of max_bind_count."""

    reject_low_priority_msg_limit_threshold: PercentThreshold = Field(
        default_factory=PercentThreshold
    )
    """Waiting messages, of reject_low_priority_msg.limit."""


class QueueEvent(EndpointEvent):
    """Thresholds of a queue."""

    msg_spool_usage_threshold: SpoolThreshold = Field(default_factory=SpoolThreshold)
    """Waiting bytes, of max_msg_spool_usage."""


class TopicEndpointEvent(EndpointEvent):
    """Thresholds of a topic endpoint."""

    spool_usage_threshold: SpoolThreshold = Field(default_factory=SpoolThreshold)
    """Waiting bytes, of max_spool_usage."""


class TopicFormat(Model):
    """Topics that events are published on."""

    mqtt_enabled: bool = True
    """Whether on $SYS/LOG/LEVEL/SCOPE/ROUTER/EVENT/VPN, which MQTT clients can subscribe to."""

    smf_enabled: bool = True
    """Whether on #LOG/LEVEL/SCOPE/ROUTER/EVENT/VPN, for queues whose topic_syntax is smf."""


class ClientProfileEvent(Model):
    """Thresholds of the client usernames of a client profile."""

    connection_count_per_client_username_threshold: PercentThreshold = Field(
        default_factory=PercentThreshold
    )
    """Clients of one client username, of max_connection_count_per_client_username."""


class Publish(Model):
    """Events as Direct messages in the message VPN that they are about."""

    client_enabled: bool = False
    """Whether those of clients are published."""

    msg_vpn_enabled: bool = False
    """Whether those of the message VPN, its queues and bridges are published."""

    subscription_mode: Literal[
        "off",
        "on-with-format-v1",
        "on-with-no-unsubscribe-events-on-disconnect-format-v1",
        "on-with-format-v2",
        "on-with-no-unsubscribe-events-on-disconnect-format-v2",
    ] = "off"
    """Whether subscriptions that come and go are published, and on which topics."""

    topic_format: TopicFormat = Field(default_factory=TopicFormat)
    """Topics that they are published on."""


class VpnEvent(Model):
    """Events of a message VPN."""

    publish: Publish = Field(default_factory=Publish)
    """Events as Direct messages."""

    log_tag: Annotated[str, Field(max_length=32)] = ""
    """Text that stands before each published event."""

    large_msg_threshold: Annotated[int, Field(ge=0, le=4_294_967_295)] = 1024
    """Kilobytes of a message from which on a client's is told of, once; 0 never."""

    connection_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Clients, of max_connection_count."""

    subscription_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Subscriptions, of max_subscription_count."""

    endpoint_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Queues and topic endpoints, of max_endpoint_count."""

    ingress_flow_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Clients that publish guaranteed messages, of max_ingress_flow_count."""

    egress_flow_count_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Consumers of endpoints, of max_egress_flow_count."""

    msg_spool_usage_threshold: PercentThreshold = Field(default_factory=PercentThreshold)
    """Waiting bytes, of max_msg_spool_usage."""

    ingress_msg_rate_threshold: RateThreshold = Field(default_factory=RateThreshold)
    """Messages received a second."""

    egress_msg_rate_threshold: RateThreshold = Field(default_factory=RateThreshold)
    """Messages sent a second."""

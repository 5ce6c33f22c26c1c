"""Topic endpoints: durable endpoints whose one subscription is given by the client that binds."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.endpoint import Endpoint
from vpnrouter.config.event import TopicEndpointEvent


class TopicEndpoint(Endpoint):
    """A durable topic endpoint."""

    event: TopicEndpointEvent = Field(default_factory=TopicEndpointEvent)
    """When events are raised."""

    max_bind_count: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Consumers bound at a time. Beyond: refused."""

    max_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 5000
    """Megabytes that may wait."""

    reject_msg_to_sender_on_discard_behavior: Literal[
        "never", "when-topic-endpoint-enabled", "always"
    ] = "never"
    """When a message that the endpoint cannot take is refused everywhere and the publisher told
    so."""

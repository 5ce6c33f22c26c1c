"""Queues: durable endpoints with topic subscriptions."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.acl_profile import TopicSyntax
from vpnrouter.config.endpoint import Endpoint, Seconds
from vpnrouter.config.event import QueueEvent
from vpnrouter.config.model import Many, Model


class Partition(Model):
    """Spreading of a non-exclusive queue over partitions, each consumed in order by one client."""

    count: Annotated[int, Field(ge=0, le=1000)] = 0
    """Partitions; 0 does not spread."""

    rebalance_delay: Seconds = 5
    """Seconds from a change of consumers until partitions move."""

    rebalance_max_handoff_time: Seconds = 3
    """Seconds that a partition's old consumer has to finish."""


class Queue(Endpoint):
    """A durable queue."""

    event: QueueEvent = Field(default_factory=QueueEvent)
    """When events are raised."""

    max_bind_count: Annotated[int, Field(ge=0, le=10_000)] = 1000
    """Consumers bound at a time. Beyond: refused."""

    max_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 5000
    """Megabytes that may wait; 0 keeps the newest message only (last value queue)."""

    partition: Partition = Field(default_factory=Partition)
    """Spreading over partitions."""

    reject_msg_to_sender_on_discard_behavior: Literal["never", "when-queue-enabled", "always"] = (
        "when-queue-enabled"
    )
    """When a message that the queue cannot take is refused everywhere and the publisher told so."""

    subscriptions: Many[str] = Field(default=(), examples=["orders/>"])
    """Topic filters of what the queue attracts; with a leading ! of what it does not."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""

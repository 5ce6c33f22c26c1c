"""Attributes that queues and topic endpoints share, with the field's names, ranges and defaults.

Where the field starts at "off" (ingress, egress, permission), what is written down here starts at
"on".
"""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.model import Model
from vpnrouter.config.names import ClientUsernameName, QueueName

Seconds = Annotated[int, Field(ge=0, le=4_294_967_295)]


class RedeliveryDelay(Model):
    """Growing delay before a message is delivered again."""

    enabled: bool = False
    """Whether redelivery is delayed."""

    initial_interval: Annotated[int, Field(ge=1, le=3_600_000)] = 1000
    """Milliseconds before the first redelivery."""

    max_interval: Annotated[int, Field(ge=1, le=10_800_000)] = 64_000
    """Milliseconds that the delay grows to at most."""

    multiplier: Annotated[int, Field(ge=100, le=500)] = 200
    """Growth from one delay to the next in hundredths: 200 doubles."""


class Redelivery(Model):
    """Whether and when a message is delivered again."""

    enabled: bool = True
    """Whether a message is delivered again; if not, it leaves after the first try."""

    delay: RedeliveryDelay = Field(default_factory=RedeliveryDelay)
    """Growing delay before a message is delivered again."""


class RejectLowPriorityMsg(Model):
    """Refusal of low-priority messages while many messages wait."""

    enabled: bool = False
    """Whether low-priority messages are refused beyond the limit."""

    limit: Annotated[int, Field(ge=0, le=4_294_967_295)] = 0
    """Waiting messages from which on low-priority ones are refused."""


class Endpoint(Model):
    """What queues and topic endpoints have in common."""

    access_type: Literal["exclusive", "non-exclusive"] = "exclusive"
    """exclusive: the first consumer gets all, others stand by; non-exclusive: consumers take
    turns."""

    dead_msg_queue: QueueName = "#DEAD_MSG_QUEUE"
    """Queue for messages that expire or are redelivered too often; they are discarded where it
    does not exist."""

    delivery_count_enabled: bool = False
    """Whether consumers are told how often a message was delivered."""

    delivery_delay: Seconds = 0
    """Seconds from arrival until a message may be delivered."""

    egress_enabled: bool = True
    """Whether messages are delivered to consumers."""

    ingress_enabled: bool = True
    """Whether messages are taken from publishers."""

    max_delivered_unacked_msgs_per_flow: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Messages delivered over one flow and not yet acknowledged."""

    max_msg_size: Annotated[int, Field(ge=0, le=30_000_000)] = 10_000_000
    """Bytes of a message. Beyond: refused."""

    max_redelivery_count: Annotated[int, Field(ge=0, le=255)] = 0
    """Redeliveries of a message before it goes to the dead message queue; 0 is without end."""

    max_spooled_msg_count: Annotated[int, Field(ge=0, le=4_294_967_295)] = 0
    """Messages that may wait; 0 leaves it to the megabytes. Beyond: 503 Max message usage
    exceeded."""

    max_ttl: Seconds = 0
    """Seconds that a message may wait when respect_ttl_enabled; 0 leaves it to the message."""

    owner: ClientUsernameName | None = None
    """Client username that may do everything with the endpoint."""

    permission: Literal["no-access", "read-only", "consume", "modify-topic", "delete"] = "consume"
    """What client usernames other than the owner may do; each value includes those before it."""

    redelivery: Redelivery = Field(default_factory=Redelivery)
    """Whether and when a message is delivered again."""

    reject_low_priority_msg: RejectLowPriorityMsg = Field(default_factory=RejectLowPriorityMsg)
    """Refusal of low-priority messages while many messages wait."""

    respect_dmq_eligible_enabled: bool = False
    """Whether only messages marked as eligible go to the dead message queue."""

    respect_msg_priority_enabled: bool = False
    """Whether messages are delivered by priority, 9 first, and by arrival within a priority."""

    respect_ttl_enabled: bool = False
    """Whether messages expire."""

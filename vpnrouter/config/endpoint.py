"""What keeps messages: queues, topic endpoints, the queues of MQTT sessions, replay logs, and the spool as a whole.

Where the field starts at "off" (ingress, egress, permission), what is written down here starts at
"on".
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.access import TopicSyntax
from vpnrouter.config.event import QueueEvent, TopicEndpointEvent
from vpnrouter.config.model import ClientUsernameName, Many, Model, QueueName

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


class SessionQueue(Model):
    """The queue of each MQTT session with QoS 1 or 2 subscriptions; the router makes it and removes it
    with the session.

    Names and defaults are those of the field's mqttSessions (`queueMaxMsgSize` and so on). Only
    respect_ttl_enabled is on here: MQTT 5 forbids to send an expired message (MQTT-3.3.2-5).
    """

    dead_msg_queue: QueueName = "#DEAD_MSG_QUEUE"
    """Queue for messages that expire or are redelivered too often; they are discarded where it
    does not exist."""

    max_delivered_unacked_msgs_per_flow: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Messages sent to the client and not yet acknowledged; its own Receive Maximum may be less."""

    max_msg_size: Annotated[int, Field(ge=0, le=30_000_000)] = 10_000_000
    """Bytes of a message. Beyond: refused."""

    max_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 5000
    """Megabytes that may wait for one session; 0 keeps the newest message only."""

    max_redelivery_count: Annotated[int, Field(ge=0, le=255)] = 0
    """Redeliveries of a message before it goes to the dead message queue; 0 is without end."""

    max_spooled_msg_count: Annotated[int, Field(ge=0, le=4_294_967_295)] = 0
    """Messages that may wait for one session; 0 leaves it to the megabytes."""

    max_ttl: Seconds = 0
    """Seconds that a message may wait when respect_ttl_enabled; 0 leaves it to the message."""

    reject_low_priority_msg: RejectLowPriorityMsg = Field(default_factory=RejectLowPriorityMsg)
    """Refusal of low-priority messages while many messages wait."""

    reject_msg_to_sender_on_discard_behavior: Literal["never", "when-queue-enabled", "always"] = (
        "when-queue-enabled"
    )
    """When a message that a session's queue cannot take is refused everywhere and the publisher told
    so. With never, a client that stays away loses messages, and its publishers are not held up."""

    respect_ttl_enabled: bool = True
    """Whether messages expire, as MQTT 5 wants it."""


class Mqtt(Model):
    """What holds for the MQTT sessions of a message VPN."""

    max_session_count: Annotated[int, Field(ge=0, le=10_000_000)] = limits.MQTT_SESSIONS
    """Sessions that outlive their connection. Beyond: refused. 0: no bound."""

    session_queue: SessionQueue = Field(default_factory=SessionQueue)
    """The queue of each session with QoS 1 or 2 subscriptions, for sessions that begin from now on."""

    retain_max_memory: Annotated[int, Field(ge=-1, le=2_147_483_647)] = limits.RETAINED_MEGABYTES
    """Megabytes of retained messages, topics and properties included, -1 for no bound. Beyond: delivered but not
    retained, counted."""


class TopicFilter(Model):
    """Which messages a replay log takes."""

    enabled: bool = True
    """Whether the subscriptions choose; without any, every message is logged."""

    subscriptions: Many[str] = Field(default=(), examples=["orders/>"])
    """Topic filters of what is logged; with a leading ! of what is not."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""


class ReplayLog(Model):
    """The replay log of a message VPN: every guaranteed message that was not refused, also after its
    consumers have acknowledged it.
    """

    egress_enabled: bool = True
    """Whether messages may be replayed from it."""

    ingress_enabled: bool = True
    """Whether messages are logged."""

    max_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 1000
    """Megabytes of logged messages. Beyond: the oldest are forgotten. 0 logs nothing."""

    topic_filter: TopicFilter = Field(default_factory=TopicFilter)
    """Which messages are logged."""


class GuaranteedMsging(Model):
    """Whether messages are spooled, and how many bytes of them. The spool is router.data_dir/spool."""

    enabled: bool = True
    """Whether guaranteed messages are spooled; if not, the spool is not opened, and queues and topic
    endpoints are not served."""

    max_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 10_000
    """Megabytes of guaranteed messages that may wait in all message VPNs together. Beyond: refused."""

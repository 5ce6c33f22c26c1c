"""Endpoints: queues, topic endpoints, queues of MQTT sessions and replay logs; and the spool as a whole.

Where the field starts at "off" (ingress, egress, permission), what is written down here starts at
"on".
"""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.event import QueueEvent, TopicEndpointEvent
from vpnrouter.settings.schema import (
    CHILDREN,
    LONGEST,
    MEGABYTES,
    Effect,
    Settings,
    TopicSyntax,
    attribute,
    group,
    like,
    numbered,
)

AccessType = Literal["exclusive", "non-exclusive"]
Permission = Literal["no-access", "read-only", "consume", "modify-topic", "delete"]
Reject = Literal["never", "when-queue-enabled", "always"]
TopicEndpointReject = Literal["never", "when-topic-endpoint-enabled", "always"]


class RedeliveryDelay(Settings):
    """Growing delay before a message is delivered again."""

    enabled: bool = attribute(False)
    """Whether redelivery is delayed."""

    initial_interval: int = attribute(1000, least=1, most=3_600_000)
    """Milliseconds before the first redelivery."""

    max_interval: int = attribute(64_000, least=1, most=10_800_000)
    """Milliseconds that the delay grows to at most."""

    multiplier: int = attribute(200, least=100, most=500)
    """Growth from one delay to the next in hundredths: 200 doubles."""


class Redelivery(Settings):
    """Whether and when a message is delivered again."""

    enabled: bool = attribute(True)
    """Whether a message is delivered again; if not, it leaves after the first try."""

    delay: RedeliveryDelay = group(RedeliveryDelay)
    """Growing delay before a message is delivered again."""


class RejectLowPriorityMsg(Settings):
    """Refusal of low-priority messages while many messages wait."""

    enabled: bool = attribute(False)
    """Whether low-priority messages are refused beyond the limit."""

    limit: int = attribute(0, least=0, most=LONGEST)
    """Waiting messages from which on low-priority ones are refused."""


class Endpoint(Settings, effect=Effect.IN_PLACE):
    """What queues and topic endpoints have in common."""

    access_type: AccessType = attribute(
        "exclusive", held="exclusive", codes={"exclusive": True, "non-exclusive": False}
    )
    """exclusive: the first consumer gets all, others stand by; non-exclusive: consumers take
    turns."""

    dead_msg_queue: str = attribute("#DEAD_MSG_QUEUE", text=names.QUEUE)
    """Queue for messages that expire or are redelivered too often; they are discarded where it
    does not exist."""

    delivery_count_enabled: bool = attribute(False)
    """Whether consumers are told how often a message was delivered."""

    delivery_delay: int = attribute(0, least=0, most=LONGEST)
    """Seconds from arrival until a message may be delivered."""

    egress_enabled: bool = attribute(True, semp_default=False)
    """Whether messages are delivered to consumers."""

    ingress_enabled: bool = attribute(True, semp_default=False)
    """Whether messages are taken from publishers."""

    max_delivered_unacked_msgs_per_flow: int = attribute(10_000, least=1, most=1_000_000)
    """Messages delivered over one flow and not yet acknowledged."""

    max_msg_size: int = attribute(limits.MESSAGE_BYTES, least=0, most=limits.MQTT_PACKET_BYTES)
    """Bytes of a message. Beyond: refused."""

    max_redelivery_count: int = attribute(0, least=0, most=255)
    """Redeliveries of a message before it goes to the dead message queue; 0 is without end."""

    max_spooled_msg_count: int = attribute(0, least=0, most=LONGEST, ours=True)
    """Messages that may wait; 0 leaves it to the megabytes. Beyond: 503 Max message usage
    exceeded."""

    max_ttl: int = attribute(0, least=0, most=LONGEST)
    """Seconds that a message may wait when respect_ttl_enabled; 0 leaves it to the message."""

    owner: str | None = attribute(None, text=names.CLIENT_USERNAME)
    """Client username that may do everything with the endpoint."""

    permission: Permission = attribute(
        "consume", codes=numbered(Permission), semp_default="no-access"
    )
    """What client usernames other than the owner may do; each value includes those before it."""

    redelivery: Redelivery = group(Redelivery)
    """Whether and when a message is delivered again."""

    reject_low_priority_msg: RejectLowPriorityMsg = group(RejectLowPriorityMsg)
    """Refusal of low-priority messages while many messages wait."""

    respect_dmq_eligible_enabled: bool = attribute(False)
    """Whether only messages marked as eligible go to the dead message queue."""

    respect_msg_priority_enabled: bool = attribute(False)
    """Whether messages are delivered by priority, 9 first, and by arrival within a priority."""

    respect_ttl_enabled: bool = attribute(False)
    """Whether messages expire."""


class QueueDefaults(Settings, effect=Effect.IN_PLACE):
    """What the queues and topic endpoints of a message VPN respect where they say nothing of it themselves, and
    temporary queues and subscriptions of AMQP clients, from the next one on.
    """

    respect_dmq_eligible_enabled: bool = like(Endpoint, "respect_dmq_eligible_enabled")

    respect_msg_priority_enabled: bool = like(Endpoint, "respect_msg_priority_enabled")

    respect_ttl_enabled: bool = like(Endpoint, "respect_ttl_enabled")


class Partition(Settings):
    """Spreading of a non-exclusive queue over partitions, each consumed in order by one client."""

    count: int = attribute(0, least=0, most=1000)
    """Partitions; 0 does not spread."""

    rebalance_delay: int = attribute(5, least=0, most=LONGEST)
    """Seconds from a change of consumers until partitions move."""

    rebalance_max_handoff_time: int = attribute(3, least=0, most=LONGEST)
    """Seconds that a partition's old consumer has to finish."""


class Queue(Endpoint, effect=Effect.IN_PLACE):
    """A durable queue."""

    event: QueueEvent = group(QueueEvent, held=None)
    """When events are raised."""

    max_bind_count: int = attribute(1000, least=0, most=10_000)
    """Consumers bound at a time. Beyond: refused."""

    max_msg_spool_usage: int = attribute(5000, least=0, most=6_000_000, scale=MEGABYTES)
    """Megabytes that may wait; 0 keeps the newest message only (last value queue)."""

    partition: Partition = group(Partition)
    """Spreading over partitions."""

    reject_msg_to_sender_on_discard_behavior: Reject = attribute(
        "when-queue-enabled", held="reject_behavior", codes=numbered(Reject)
    )
    """When a message that the queue cannot take is refused everywhere and the publisher told so."""

    subscriptions: tuple[str, ...] = attribute(
        (), examples=("orders/>",), held=None, child=CHILDREN
    )
    """Topic filters of what the queue attracts; with a leading ! of what it does not."""

    topic_syntax: TopicSyntax = attribute("smf", held=None, ours=True)
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""


class TopicEndpoint(Endpoint, effect=Effect.IN_PLACE):
    """A durable topic endpoint."""

    event: TopicEndpointEvent = group(TopicEndpointEvent, held=None)
    """When events are raised."""

    max_bind_count: int = like(Queue, "max_bind_count", default=1)

    max_spool_usage: int = like(
        Queue, "max_msg_spool_usage", held="max_msg_spool_usage", held_least=1
    )
    """Megabytes that may wait."""

    reject_msg_to_sender_on_discard_behavior: TopicEndpointReject = like(
        Queue,
        "reject_msg_to_sender_on_discard_behavior",
        default="never",
        codes=numbered(TopicEndpointReject),
    )
    """When a message that the endpoint cannot take is refused everywhere and the publisher told
    so."""


# The session's queue keeps what it was made with until the client logs in again.
class SessionQueue(Settings, effect=Effect.NEXT_LOGIN):
    """The queue of each MQTT session with QoS 1 or 2 subscriptions; the router makes it and removes it
    with the session.

    Names and defaults are those of the field's mqttSessions (there queueMaxMsgSize and so on). Only
    respect_ttl_enabled is on here: MQTT 5 forbids to send an expired message (MQTT-3.3.2-5).
    """

    dead_msg_queue: str = like(Endpoint, "dead_msg_queue")

    max_delivered_unacked_msgs_per_flow: int = like(Endpoint, "max_delivered_unacked_msgs_per_flow")
    """Messages sent to the client and not yet acknowledged; its own Receive Maximum may be less."""

    max_msg_size: int = like(Endpoint, "max_msg_size")

    max_msg_spool_usage: int = like(Queue, "max_msg_spool_usage")
    """Megabytes that may wait for one session; 0 keeps the newest message only."""

    max_redelivery_count: int = like(Endpoint, "max_redelivery_count")

    max_spooled_msg_count: int = like(Endpoint, "max_spooled_msg_count")
    """Messages that may wait for one session; 0 leaves it to the megabytes."""

    max_ttl: int = like(Endpoint, "max_ttl")

    reject_low_priority_msg: RejectLowPriorityMsg = group(RejectLowPriorityMsg)
    """Refusal of low-priority messages while many messages wait."""

    reject_msg_to_sender_on_discard_behavior: Reject = like(
        Queue, "reject_msg_to_sender_on_discard_behavior"
    )
    """When a message that a session's queue cannot take is refused everywhere and the publisher told
    so. With never, a client that stays away loses messages, and its publishers are not held up."""

    respect_ttl_enabled: bool = like(Endpoint, "respect_ttl_enabled", default=True)
    """Whether messages expire, as MQTT 5 wants it."""


class Mqtt(Settings, effect=Effect.IN_PLACE, held=False):
    """What holds for the MQTT sessions of a message VPN."""

    max_session_count: int = attribute(
        limits.MQTT_SESSIONS, least=0, most=10_000_000, ours=True, held="max_mqtt_session_count"
    )
    """Sessions that outlive their connection. Beyond: refused. 0: no bound."""

    session_queue: SessionQueue = group(SessionQueue, ours=True)
    """The queue of each session with QoS 1 or 2 subscriptions, for sessions that begin from now on."""

    retain_max_memory: int = attribute(
        limits.RETAINED_MEGABYTES,
        least=-1,
        most=2_147_483_647,
        held="max_retained_bytes",
        scale=MEGABYTES,
        held_least=-1,
    )
    """Megabytes of memory that retained messages take: topic, properties, payload, and 600 bytes for each. -1 for no
    bound. Beyond: delivered but not retained, counted."""


class TopicFilter(Settings):
    """Which messages a replay log takes."""

    enabled: bool = attribute(True, semp_default=False)
    """Whether the subscriptions choose; without any, every message is logged."""

    subscriptions: tuple[str, ...] = like(Queue, "subscriptions")
    """Topic filters of what is logged; with a leading ! of what is not."""

    topic_syntax: TopicSyntax = like(Queue, "topic_syntax")


class ReplayLog(Settings, effect=Effect.IN_PLACE):
    """The replay log of a message VPN: every guaranteed message that was not refused, also after its
    consumers have acknowledged it.
    """

    egress_enabled: bool = like(Endpoint, "egress_enabled")
    """Whether messages may be replayed from it."""

    ingress_enabled: bool = like(Endpoint, "ingress_enabled")
    """Whether messages are logged."""

    max_spool_usage: int = like(
        Queue, "max_msg_spool_usage", default=1000, held="max_msg_spool_usage", semp_default=0
    )
    """Megabytes of logged messages. Beyond: the oldest are forgotten. 0 logs nothing."""

    topic_filter: TopicFilter = group(TopicFilter, held=None)
    """Which messages are logged."""


class GuaranteedMsging(Settings, held=False):
    """Whether messages are spooled, and how many bytes of them. The spool is router.data_dir/spool."""

    enabled: bool = attribute(True, effect=Effect.RESTART)
    """Whether guaranteed messages are spooled; if not, the spool is not opened, and queues and topic
    endpoints are not served."""

    max_msg_spool_usage: int = attribute(10_000, least=0, most=6_000_000, effect=Effect.IN_PLACE)
    """Megabytes of guaranteed messages that may wait in all message VPNs together. Beyond: refused."""

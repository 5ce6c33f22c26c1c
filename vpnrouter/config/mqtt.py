"""What MQTT sessions have: the queue that keeps messages for a session."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.endpoint import RejectLowPriorityMsg, Seconds
from vpnrouter.config.model import Model
from vpnrouter.config.names import QueueName


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

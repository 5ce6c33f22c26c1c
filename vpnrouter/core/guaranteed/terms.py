"""What holds for an endpoint: its kind, and the field's attributes in the units that the core counts in."""

from __future__ import annotations

from typing import Final, final

QUEUE: Final = 0
TOPIC_ENDPOINT: Final = 1
SESSION: Final = 2
"""The queue behind an MQTT session's subscriptions of QoS 1 and 2."""
PARKING: Final = 3
"""The parking lot of a bridge."""
REPLAY_LOG: Final = 4
"""What replays are made from."""

KIND_NAMES: Final = ("queue", "topic-endpoint", "session", "parking-lot", "replay-log")

AGAIN: Final = 1
"""Kind of an endpoint's timer after a delivery that raised, where no flow was to be closed. Other timers have 0."""


NEVER: Final = 0
WHEN_ENABLED: Final = 1
ALWAYS: Final = 2
"""`reject_msg_to_sender_on_discard_behavior`."""

NO_ACCESS: Final = 0
READ_ONLY: Final = 1
CONSUME: Final = 2
MODIFY_TOPIC: Final = 3
DELETE: Final = 4
"""`permission`: each includes those before it."""

MEGABYTE: Final = 1_000_000

NAMES: Final = (
    "dead_msg_queue",
    "delivery_count_enabled",
    "delivery_delay",
    "egress_enabled",
    "exclusive",
    "ingress_enabled",
    "max_bind_count",
    "max_delivered_unacked_msgs_per_flow",
    "max_msg_size",
    "max_msg_spool_usage",
    "max_redelivery_count",
    "max_spooled_msg_count",
    "max_ttl",
    "owner",
    "partition_count",
    "partition_rebalance_delay",
    "partition_rebalance_max_handoff_time",
    "permission",
    "redelivery_delay_enabled",
    "redelivery_delay_initial_interval",
    "redelivery_delay_max_interval",
    "redelivery_delay_multiplier",
    "redelivery_enabled",
    "reject_behavior",
    "reject_low_priority_msg_enabled",
    "reject_low_priority_msg_limit",
    "respect_dmq_eligible_enabled",
    "respect_msg_priority_enabled",
    "respect_ttl_enabled",
)
"""All attributes."""


@final
class EndpointTerms:
    """Attributes of a queue or topic endpoint; names are SEMP's in snake case.

    Sizes are bytes (`max_msg_spool_usage` too: 0 keeps the newest message only), times seconds but for
    `redelivery_delay_*` (milliseconds; `multiplier` in hundredths); `max_spooled_msg_count` 0 is no bound.
    """

    __slots__ = NAMES

    def __init__(self) -> None:
        self.exclusive = True
        self.dead_msg_queue = "#DEAD_MSG_QUEUE"
        self.delivery_count_enabled = False
        self.delivery_delay = 0
        self.egress_enabled = True
        self.ingress_enabled = True
        self.max_bind_count = 1000
        self.max_delivered_unacked_msgs_per_flow = 10_000
        self.max_msg_size = 10_000_000
        self.max_msg_spool_usage = 5000 * MEGABYTE
        self.max_spooled_msg_count = 0
        self.max_redelivery_count = 0
        self.max_ttl = 0
        self.owner = ""
        self.permission = CONSUME
        self.partition_count = 0
        self.partition_rebalance_delay = 5
        self.partition_rebalance_max_handoff_time = 3
        self.redelivery_enabled = True
        self.redelivery_delay_enabled = False
        self.redelivery_delay_initial_interval = 1000
        self.redelivery_delay_max_interval = 64_000
        self.redelivery_delay_multiplier = 200
        self.reject_behavior = WHEN_ENABLED
        self.reject_low_priority_msg_enabled = False
        self.reject_low_priority_msg_limit = 0
        self.respect_dmq_eligible_enabled = False
        self.respect_msg_priority_enabled = False
        self.respect_ttl_enabled = False

    @property
    def last_value(self) -> bool:
        """True when only the newest message is kept."""
        return self.max_msg_spool_usage == 0

    @property
    def partitioned(self) -> bool:
        """True when messages are spread over partitions."""
        return self.partition_count > 0 and not self.exclusive

    def copy(self) -> EndpointTerms:
        """A copy of the terms, which may be changed."""
        other = EndpointTerms()
        for name in NAMES:
            setattr(other, name, getattr(self, name))
        return other

    def rejects(self) -> bool:
        """True when a message that the endpoint cannot take comes back to its publisher.

        `always` rejects also while ingress is off, `when enabled` only while it is on.
        """
        if self.reject_behavior == ALWAYS:
            return True
        return self.reject_behavior == WHEN_ENABLED and self.ingress_enabled


def default_session_terms() -> EndpointTerms:
    """The terms of an MQTT session's endpoint: one consumer, and what has expired is not sent (MQTT-3.3.2-5)."""
    terms = EndpointTerms()
    terms.max_bind_count = 1
    terms.respect_ttl_enabled = True
    return terms

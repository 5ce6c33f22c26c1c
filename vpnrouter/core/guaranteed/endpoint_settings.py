"""Defines the settings of an endpoint: its kind, and the field's attributes in the core's units."""

from __future__ import annotations

from typing import Final, final

from vpnrouter.settings.endpoint import Queue, SessionQueue
from vpnrouter.settings.schema import Settings, apply_settings, held_defaults

QUEUE: Final = 0
TOPIC_ENDPOINT: Final = 1
SESSION: Final = 2
"""The queue behind an MQTT session's subscriptions of QoS 1 and 2."""
PARKING: Final = 3
"""The parking lot of a bridge."""
REPLAY_LOG: Final = 4
"""What replays are made from."""
SUBSCRIPTION: Final = 5
"""The queue behind a subscription of an AMQP client."""
CONNECTOR_LINK: Final = 6
"""The queue behind a link of a connector that takes messages from topics."""

KIND_NAMES: Final = (
    "queue",
    "topic-endpoint",
    "session",
    "parking-lot",
    "replay-log",
    "subscription",
    "connector-link",
)

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


_DEFAULTS: Final = held_defaults(Queue)

NAMES: Final = tuple(_DEFAULTS)
"""All attributes."""


@final
class EndpointSettings:
    """The attributes that `settings/endpoint.py` declares, in the core's units.

    Sizes are bytes (`max_msg_spool_usage` too: 0 keeps the newest message only), times seconds but for
    `redelivery_delay_*` (milliseconds; `multiplier` in hundredths); `max_spooled_msg_count` 0 is no bound.
    """

    __slots__ = NAMES

    dead_msg_queue: str
    delivery_count_enabled: bool
    delivery_delay: int
    egress_enabled: bool
    exclusive: bool
    ingress_enabled: bool
    max_bind_count: int
    max_delivered_unacked_msgs_per_flow: int
    max_msg_size: int
    max_msg_spool_usage: int
    max_redelivery_count: int
    max_spooled_msg_count: int
    max_ttl: int
    owner: str
    partition_count: int
    partition_rebalance_delay: int
    partition_rebalance_max_handoff_time: int
    permission: int
    redelivery_delay_enabled: bool
    redelivery_delay_initial_interval: int
    redelivery_delay_max_interval: int
    redelivery_delay_multiplier: int
    redelivery_enabled: bool
    reject_behavior: int
    reject_low_priority_msg_enabled: bool
    reject_low_priority_msg_limit: int
    respect_dmq_eligible_enabled: bool
    respect_msg_priority_enabled: bool
    respect_ttl_enabled: bool

    def __init__(self) -> None:
        for name, value in _DEFAULTS.items():
            setattr(self, name, value)

    @property
    def last_value(self) -> bool:
        """True when only the newest message is kept."""
        return self.max_msg_spool_usage == 0

    @property
    def partitioned(self) -> bool:
        """True when messages are spread over partitions."""
        return self.partition_count > 0 and not self.exclusive

    def copy(self) -> EndpointSettings:
        """Return a copy, which may be changed."""
        other = EndpointSettings()
        for name in NAMES:
            setattr(other, name, getattr(self, name))
        return other

    def rejects(self) -> bool:
        """Return whether a message that the endpoint cannot take is rejected to its publisher.

        `always` rejects also while ingress is off, `when enabled` only while it is on.
        """
        if self.reject_behavior == ALWAYS:
            return True
        return self.reject_behavior == WHEN_ENABLED and self.ingress_enabled


_OF_A_SESSION: Final = {**held_defaults(SessionQueue), "max_bind_count": 1}


def default_session_settings() -> EndpointSettings:
    """Return the settings of a session's endpoint: one consumer, expired messages are not sent (MQTT-3.3.2-5)."""
    settings = EndpointSettings()
    for name, value in _OF_A_SESSION.items():
        setattr(settings, name, value)
    return settings


def endpoint_settings_of(configured: Settings) -> EndpointSettings:
    """Return the settings of a queue, a topic endpoint, a replay log, the queues of MQTT sessions or of queues that say
    nothing.
    """
    settings = (
        default_session_settings() if isinstance(configured, SessionQueue) else EndpointSettings()
    )
    return apply_settings(settings, configured)

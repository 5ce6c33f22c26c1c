"""From the written attributes of endpoints to the core's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.terms import (
    ALWAYS,
    CONSUME,
    DELETE,
    MEGABYTE,
    MODIFY_TOPIC,
    NEVER,
    NO_ACCESS,
    READ_ONLY,
    WHEN_ENABLED,
    EndpointTerms,
)

if TYPE_CHECKING:
    from vpnrouter.config.endpoint import Endpoint, Queue, ReplayLog, SessionQueue, TopicEndpoint


REJECTING: Final = {
    "never": NEVER,
    "when-queue-enabled": WHEN_ENABLED,
    "when-topic-endpoint-enabled": WHEN_ENABLED,
    "always": ALWAYS,
}

PERMISSIONS: Final = {
    "no-access": NO_ACCESS,
    "read-only": READ_ONLY,
    "consume": CONSUME,
    "modify-topic": MODIFY_TOPIC,
    "delete": DELETE,
}


def queue_terms(written: Queue) -> EndpointTerms:
    """The terms of a queue."""
    terms = _common(written)
    terms.max_bind_count = written.max_bind_count
    terms.max_msg_spool_usage = written.max_msg_spool_usage * MEGABYTE
    terms.reject_behavior = REJECTING[written.reject_msg_to_sender_on_discard_behavior]
    terms.partition_count = written.partition.count
    terms.partition_rebalance_delay = written.partition.rebalance_delay
    terms.partition_rebalance_max_handoff_time = written.partition.rebalance_max_handoff_time
    return terms


def topic_endpoint_terms(written: TopicEndpoint) -> EndpointTerms:
    """The terms of a topic endpoint. No quota keeps nothing: it has no last value form."""
    terms = _common(written)
    terms.max_bind_count = written.max_bind_count
    terms.max_msg_spool_usage = max(1, written.max_spool_usage * MEGABYTE)
    terms.reject_behavior = REJECTING[written.reject_msg_to_sender_on_discard_behavior]
    return terms


def session_terms(written: SessionQueue) -> EndpointTerms:
    """The terms of the queues of MQTT sessions."""
    terms = EndpointTerms()
    terms.max_bind_count = 1
    terms.dead_msg_queue = written.dead_msg_queue
    terms.max_delivered_unacked_msgs_per_flow = written.max_delivered_unacked_msgs_per_flow
    terms.max_msg_size = written.max_msg_size
    terms.max_msg_spool_usage = written.max_msg_spool_usage * MEGABYTE
    terms.max_spooled_msg_count = written.max_spooled_msg_count
    terms.max_redelivery_count = written.max_redelivery_count
    terms.max_ttl = written.max_ttl
    terms.reject_behavior = REJECTING[written.reject_msg_to_sender_on_discard_behavior]
    terms.reject_low_priority_msg_enabled = written.reject_low_priority_msg.enabled
    terms.reject_low_priority_msg_limit = written.reject_low_priority_msg.limit
    terms.respect_ttl_enabled = written.respect_ttl_enabled
    return terms


def replay_log_terms(written: ReplayLog) -> EndpointTerms:
    """The terms of a replay log."""
    terms = EndpointTerms()
    terms.ingress_enabled = written.ingress_enabled
    terms.egress_enabled = written.egress_enabled
    terms.max_msg_spool_usage = written.max_spool_usage * MEGABYTE
    return terms


def _common(written: Endpoint) -> EndpointTerms:
    terms = EndpointTerms()
    terms.exclusive = written.access_type == "exclusive"
    terms.dead_msg_queue = written.dead_msg_queue
    terms.delivery_count_enabled = written.delivery_count_enabled
    terms.delivery_delay = written.delivery_delay
    terms.egress_enabled = written.egress_enabled
    terms.ingress_enabled = written.ingress_enabled
    terms.max_delivered_unacked_msgs_per_flow = written.max_delivered_unacked_msgs_per_flow
    terms.max_msg_size = written.max_msg_size
    terms.max_spooled_msg_count = written.max_spooled_msg_count
    terms.max_redelivery_count = written.max_redelivery_count
    terms.max_ttl = written.max_ttl
    terms.owner = written.owner or ""
    terms.permission = PERMISSIONS[written.permission]
    terms.redelivery_enabled = written.redelivery.enabled
    delay = written.redelivery.delay
    terms.redelivery_delay_enabled = delay.enabled
    terms.redelivery_delay_initial_interval = delay.initial_interval
    terms.redelivery_delay_max_interval = delay.max_interval
    terms.redelivery_delay_multiplier = delay.multiplier
    terms.reject_low_priority_msg_enabled = written.reject_low_priority_msg.enabled
    terms.reject_low_priority_msg_limit = written.reject_low_priority_msg.limit
    terms.respect_dmq_eligible_enabled = written.respect_dmq_eligible_enabled
    terms.respect_msg_priority_enabled = written.respect_msg_priority_enabled
    terms.respect_ttl_enabled = written.respect_ttl_enabled
    return terms

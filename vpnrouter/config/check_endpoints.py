"""Checks of what keeps messages in one message VPN: queues, topic endpoints, the queues of MQTT
sessions, replay logs.
"""

from typing import Final

from vpnrouter.config.endpoint import Endpoint
from vpnrouter.config.filters import FilterRules, check_filters
from vpnrouter.config.findings import Findings
from vpnrouter.config.mqtt import SessionQueue
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.queue import Queue
from vpnrouter.config.replay_log import ReplayLog
from vpnrouter.config.topic_endpoint import TopicEndpoint

DEAD_MSG_QUEUE: Final = "#DEAD_MSG_QUEUE"
"""The dead message queue of whoever names none; that it does not exist is nothing to tell."""


def check_endpoints(found: Findings, path: Path, vpn: MsgVpn) -> None:
    """Check all endpoints of one message VPN."""
    for name, queue in vpn.queues.items():
        _check_queue(found, (*path, "queues", name), queue, vpn)
        _check_endpoint(found, path, (*path, "queues", name), queue)
        _check_quota(found, (*path, "queues", name, "max_msg_spool_usage"), queue, vpn)
    for name, endpoint in vpn.topic_endpoints.items():
        place = (*path, "topic_endpoints", name)
        _check_endpoint(found, path, place, endpoint)
        _check_low_priority(found, place, endpoint)
        _check_quota(found, (*place, "max_spool_usage"), endpoint, vpn)
    session = (*path, "mqtt", "session_queue")
    _check_low_priority(found, session, vpn.mqtt.session_queue)
    _check_dead_msg_queue(found, path, session, vpn.mqtt.session_queue)
    for name, log in vpn.replay_logs.items():
        _check_replay_log(found, (*path, "replay_logs", name), log, vpn)
    for name in list(vpn.replay_logs)[1:]:
        first = found.document.key_at((*path, "replay_logs", next(iter(vpn.replay_logs))))
        found.key_error(
            (*path, "replay_logs", name),
            f"a message VPN has one replay log; the first is at {first}",
        )


def _check_endpoint(found: Findings, vpn_path: Path, path: Path, endpoint: Endpoint) -> None:
    """What holds for queues and topic endpoints alike."""
    delay = endpoint.redelivery.delay
    if delay.initial_interval > delay.max_interval:
        found.error(
            (*path, "redelivery", "delay"),
            f"initial_interval {delay.initial_interval} is above max_interval {delay.max_interval}",
        )
    if endpoint.owner is not None and not found.is_written(
        (*vpn_path, "client_usernames", endpoint.owner)
    ):
        found.warning((*path, "owner"), f"there is no client username {endpoint.owner}")
    if endpoint.max_ttl and not endpoint.respect_ttl_enabled:
        found.warning((*path, "max_ttl"), "has no effect without respect_ttl_enabled: true")
    _check_dead_msg_queue(found, vpn_path, path, endpoint)


def _check_dead_msg_queue(
    found: Findings, vpn_path: Path, path: Path, endpoint: Endpoint | SessionQueue
) -> None:
    name = endpoint.dead_msg_queue
    if name == DEAD_MSG_QUEUE:
        # Also of the queue of that name: what is dead there as well is discarded, as in the field.
        return
    if path == (*vpn_path, "queues", name):
        found.error((*path, "dead_msg_queue"), "is the queue itself")
    elif not found.is_written((*vpn_path, "queues", name)):
        found.warning(
            (*path, "dead_msg_queue"),
            f"there is no queue {name}; what expires or is redelivered too often is discarded",
        )


def _check_low_priority(
    found: Findings, path: Path, endpoint: Queue | TopicEndpoint | SessionQueue
) -> None:
    if endpoint.reject_low_priority_msg.enabled and (
        endpoint.reject_msg_to_sender_on_discard_behavior == "never"
    ):
        found.error(
            (*path, "reject_low_priority_msg", "enabled"),
            "needs reject_msg_to_sender_on_discard_behavior other than never",
        )


def _check_quota(found: Findings, path: Path, endpoint: Queue | TopicEndpoint, vpn: MsgVpn) -> None:
    usage = (
        endpoint.max_msg_spool_usage if isinstance(endpoint, Queue) else endpoint.max_spool_usage
    )
    if usage > vpn.max_msg_spool_usage and found.is_written(path):
        found.warning(
            path, f"{usage} MB is more than the message VPN's {vpn.max_msg_spool_usage} MB"
        )


def _check_queue(found: Findings, path: Path, queue: Queue, vpn: MsgVpn) -> None:
    rules = FilterRules(
        queue.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
    )
    texts = [
        ((*path, "subscriptions", index), text) for index, text in enumerate(queue.subscriptions)
    ]
    check_filters(found, texts, rules)
    if queue.partition.count and queue.access_type == "exclusive":
        # In the field the queue comes up and stands at invalid-exclusive.
        found.error((*path, "partition", "count"), "partitions need access_type: non-exclusive")
    elif queue.partition.count and not queue.max_msg_spool_usage:
        found.error(
            (*path, "partition", "count"),
            "a last value queue (max_msg_spool_usage: 0) keeps one message and has no partitions",
        )
    _check_low_priority(found, path, queue)


def _check_replay_log(found: Findings, path: Path, log: ReplayLog, vpn: MsgVpn) -> None:
    chosen = log.topic_filter
    rules = FilterRules(
        chosen.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
    )
    place = (*path, "topic_filter", "subscriptions")
    texts = [((*place, index), text) for index, text in enumerate(chosen.subscriptions)]
    check_filters(found, texts, rules)
    if chosen.subscriptions and not chosen.enabled:
        found.warning(place, "has no effect with enabled: false; every message is logged")

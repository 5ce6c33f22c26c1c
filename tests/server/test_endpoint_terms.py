"""From written attributes to terms: each one arrives, in the core's units."""

from typing import Any

import pytest

from vpnrouter.core.guaranteed.terms import (
    ALWAYS,
    MODIFY_TOPIC,
    NAMES,
    NEVER,
    WHEN_ENABLED,
    EndpointTerms,
)
from vpnrouter.server.spool.terms import (
    PERMISSIONS,
    REJECTING,
    queue_terms,
    replay_log_terms,
    session_terms,
    topic_endpoint_terms,
)

COMMON = (
    "access_type: non-exclusive, dead_msg_queue: dead, delivery_count_enabled: true,"
    " delivery_delay: 7, egress_enabled: false, ingress_enabled: false,"
    " max_delivered_unacked_msgs_per_flow: 11, max_msg_size: 12, max_spooled_msg_count: 13,"
    " max_redelivery_count: 14, max_ttl: 15, owner: ann, permission: modify-topic,"
    " redelivery: {enabled: false, delay: {enabled: true, initial_interval: 16, max_interval: 17,"
    " multiplier: 180}}, reject_low_priority_msg: {enabled: true, limit: 18},"
    " respect_dmq_eligible_enabled: true, respect_msg_priority_enabled: true,"
    " respect_ttl_enabled: true, max_bind_count: 9,"
    " reject_msg_to_sender_on_discard_behavior: always"
)

WRITTEN: dict[str, Any] = {
    "exclusive": False,
    "dead_msg_queue": "dead",
    "delivery_count_enabled": True,
    "delivery_delay": 7,
    "egress_enabled": False,
    "ingress_enabled": False,
    "max_delivered_unacked_msgs_per_flow": 11,
    "max_msg_size": 12,
    "max_spooled_msg_count": 13,
    "max_redelivery_count": 14,
    "max_ttl": 15,
    "owner": "ann",
    "permission": MODIFY_TOPIC,
    "redelivery_enabled": False,
    "redelivery_delay_enabled": True,
    "redelivery_delay_initial_interval": 16,
    "redelivery_delay_max_interval": 17,
    "redelivery_delay_multiplier": 180,
    "reject_low_priority_msg_enabled": True,
    "reject_low_priority_msg_limit": 18,
    "respect_dmq_eligible_enabled": True,
    "respect_msg_priority_enabled": True,
    "respect_ttl_enabled": True,
    "max_bind_count": 9,
    "reject_behavior": ALWAYS,
    "max_msg_spool_usage": 21_000_000,
}

PARTITIONS = {
    "partition_count": 4,
    "partition_rebalance_delay": 8,
    "partition_rebalance_max_handoff_time": 6,
}


def shown(terms: EndpointTerms, names: Any) -> dict[str, Any]:
    """The attributes of these names."""
    return {name: getattr(terms, name) for name in names}


def vpn_of(configured: Any, text: str) -> Any:
    """The message VPN blue with these keys."""
    return configured(f"msg_vpns: {{blue: {{{text}}}}}").msg_vpns["blue"]


def test_queue(configured: Any) -> None:
    """Every attribute that there is, none at its default."""
    more = "max_msg_spool_usage: 21, partition: {count: 4, rebalance_delay: 8, rebalance_max_handoff_time: 6}"
    vpn = vpn_of(
        configured, f"client_usernames: {{ann: {{}}}}, queues: {{q: {{{COMMON}, {more}}}}}"
    )
    terms = queue_terms(vpn.queues["q"])
    wanted = WRITTEN | PARTITIONS
    assert set(wanted) == set(NAMES)
    assert shown(terms, NAMES) == wanted
    default = shown(EndpointTerms(), NAMES)
    assert [name for name in NAMES if default[name] == wanted[name]] == []


SWITCHES = {
    "delivery_count_enabled: true": "delivery_count_enabled",
    "egress_enabled: false": "egress_enabled",
    "ingress_enabled: false": "ingress_enabled",
    "redelivery: {enabled: false}": "redelivery_enabled",
    "redelivery: {delay: {enabled: true}}": "redelivery_delay_enabled",
    "reject_low_priority_msg: {enabled: true}": "reject_low_priority_msg_enabled",
    "respect_dmq_eligible_enabled: true": "respect_dmq_eligible_enabled",
    "respect_msg_priority_enabled: true": "respect_msg_priority_enabled",
    "respect_ttl_enabled: true": "respect_ttl_enabled",
}


@pytest.mark.parametrize("written", SWITCHES)
def test_a_switch_turns_itself_alone(configured: Any, written: str) -> None:
    """No switch is taken for another one."""
    vpn = vpn_of(configured, f"queues: {{plain: {{}}, q: {{{written}}}}}")
    plain, turned = [shown(queue_terms(vpn.queues[name]), NAMES) for name in ("plain", "q")]
    assert [name for name in NAMES if plain[name] != turned[name]] == [SWITCHES[written]]


def test_topic_endpoint(configured: Any) -> None:
    """The same but for partitions, and with another name of the quota."""
    vpn = vpn_of(
        configured,
        f"client_usernames: {{ann: {{}}}}, topic_endpoints: {{t: {{{COMMON}, max_spool_usage: 21}}}}",
    )
    assert shown(topic_endpoint_terms(vpn.topic_endpoints["t"]), WRITTEN) == WRITTEN


def test_last_value(configured: Any) -> None:
    """No quota makes a last value queue of a queue, and of a topic endpoint one that keeps nothing."""
    vpn = vpn_of(
        configured,
        "queues: {q: {max_msg_spool_usage: 0}}, topic_endpoints: {t: {max_spool_usage: 0}}",
    )
    assert queue_terms(vpn.queues["q"]).last_value
    terms = topic_endpoint_terms(vpn.topic_endpoints["t"])
    assert not terms.last_value
    assert terms.max_msg_spool_usage == 1


def test_session_queue(configured: Any) -> None:
    """What an MQTT session's queue can be told; the rest is as it is: one consumer, exclusive."""
    vpn = vpn_of(
        configured,
        "mqtt: {session_queue: {dead_msg_queue: dead, max_delivered_unacked_msgs_per_flow: 11,"
        " max_msg_size: 12, max_msg_spool_usage: 21, max_spooled_msg_count: 13,"
        " max_redelivery_count: 14, max_ttl: 15, reject_low_priority_msg: {enabled: true, limit: 18},"
        " reject_msg_to_sender_on_discard_behavior: always, respect_ttl_enabled: false}}",
    )
    wanted = {
        "dead_msg_queue": "dead",
        "max_bind_count": 1,
        "max_delivered_unacked_msgs_per_flow": 11,
        "max_msg_size": 12,
        "max_msg_spool_usage": 21_000_000,
        "max_spooled_msg_count": 13,
        "max_redelivery_count": 14,
        "max_ttl": 15,
        "reject_behavior": ALWAYS,
        "reject_low_priority_msg_enabled": True,
        "reject_low_priority_msg_limit": 18,
        "respect_ttl_enabled": False,
        "exclusive": True,
    }
    assert shown(session_terms(vpn.mqtt.session_queue), wanted) == wanted


def test_replay_log(configured: Any) -> None:
    """Its quota and its two switches."""
    vpn = vpn_of(
        configured,
        "replay_logs: {log: {max_spool_usage: 21, ingress_enabled: false, egress_enabled: false}}",
    )
    terms = replay_log_terms(vpn.replay_logs["log"])
    assert terms.max_msg_spool_usage == 21_000_000
    assert not terms.ingress_enabled
    assert not terms.egress_enabled


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("queues", ["never", "when-queue-enabled", "always"]),
        ("topic_endpoints", ["never", "when-topic-endpoint-enabled", "always"]),
    ],
)
def test_each_behaviour_and_permission(configured: Any, kind: str, names: list[str]) -> None:
    """Whatever the configuration takes is known here."""
    found = []
    for name in names:
        text = f"{kind}: {{q: {{reject_msg_to_sender_on_discard_behavior: {name}}}}}"
        written = getattr(vpn_of(configured, text), kind)["q"]
        found.append(REJECTING[written.reject_msg_to_sender_on_discard_behavior])
    assert found == [NEVER, WHEN_ENABLED, ALWAYS]
    levels = []
    for permission in ("no-access", "read-only", "consume", "modify-topic", "delete"):
        vpn = vpn_of(configured, f"{kind}: {{q: {{permission: {permission}}}}}")
        levels.append(PERMISSIONS[getattr(vpn, kind)["q"].permission])
    assert levels == sorted(set(levels))

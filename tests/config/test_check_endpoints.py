"""Doubtful endpoints; data/bad.yaml has those that are refused."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("vpn", "part"),
    [
        ("{queues: {q: {owner: ann}}}", "queues.q.owner: there is no client username ann"),
        ("{queues: {q: {max_ttl: 9}}}", "max_ttl: has no effect without respect_ttl_enabled: true"),
        (
            "{queues: {q: {dead_msg_queue: dead}}}",
            "q.dead_msg_queue: there is no queue dead; what expires",
        ),
        (
            "{mqtt: {session_queue: {dead_msg_queue: dead}}}",
            "session_queue.dead_msg_queue: there is no queue dead",
        ),
        (
            "{max_msg_spool_usage: 5, queues: {q: {max_msg_spool_usage: 6}}}",
            "6 MB is more than the message VPN's 5 MB",
        ),
        (
            "{max_msg_spool_usage: 5, topic_endpoints: {t: {max_spool_usage: 6}}}",
            "t.max_spool_usage: 6 MB is more than the message VPN's 5 MB",
        ),
        (
            "{replay_logs: {r: {topic_filter: {enabled: false, subscriptions: [a]}}}}",
            "topic_filter.subscriptions: has no effect with enabled: false",
        ),
        (
            "{client_profiles: {p: {end_to_end_bridge: b, allow_guaranteed_msg_send_enabled: false}}}",
            "end_to_end_bridge: has no effect with allow_guaranteed_msg_send_enabled: false",
        ),
    ],
)
def test_doubtful(warnings_of: Callable[[str], list[str]], vpn: str, part: str) -> None:
    """What can hardly be meant is told and accepted."""
    assert [one for one in warnings_of(f"msg_vpns: {{blue: {vpn}}}") if part in one]


@pytest.mark.parametrize(
    "vpn",
    [
        "{queues: {'#DEAD_MSG_QUEUE': }}",
        "{queues: {q: {dead_msg_queue: dead}, dead: }}",
        "{queues: {q: {dead_msg_queue: '#DEAD_MSG_QUEUE'}}}",
        "{queues: {q: {access_type: non-exclusive, partition: {count: 4}}}}",
        "{queues: {q: {max_msg_spool_usage: 0}}}",
        "{queues: {q: {reject_low_priority_msg: {enabled: true, limit: 9}}}}",
        "{replay_logs: {r: {topic_filter: {subscriptions: [a/>, '!a/b']}}}}",
        "{client_usernames: {ann: }, queues: {q: {owner: ann}}}",
    ],
)
def test_fine(warnings_of: Callable[[str], list[str]], vpn: str) -> None:
    """Dead message queues, partitions, last value queues and replay logs as they are meant."""
    told = [one for one in warnings_of(f"msg_vpns: {{blue: {vpn}}}") if "this version" not in one]
    assert told == ["1:1 listeners: none, so nobody can connect to this router"]


def test_quota_of_the_router(warnings_of: Callable[[str], list[str]]) -> None:
    """A message VPN that is given more than the router is told; one that says nothing is not."""
    text = "guaranteed_msging: {max_msg_spool_usage: 10}\nmsg_vpns: {blue: {%s}}"
    about = "5001 MB is more than the router's 10 MB"
    assert [one for one in warnings_of(text % "max_msg_spool_usage: 5001") if about in one]
    assert not [one for one in warnings_of(text % "") if "more than the router's" in one]


def test_no_guaranteed_messaging(warnings_of: Callable[[str], list[str]]) -> None:
    """Queues of a router without guaranteed messaging are told to be idle."""
    text = "guaranteed_msging: {enabled: false}\nmsg_vpns: {blue: {queues: {q: }}}"
    assert [one for one in warnings_of(text) if "blue.queues: not served: guaranteed" in one]

from collections.abc import Callable
from pathlib import Path

import pytest

from vpnrouter.config.load import Reading


@pytest.mark.parametrize(
    ("vpn", "part"),
    [
        (
            "{acl_profiles: {a: {client_connect: {exceptions: [10.0.0.0/8, 10.0.0.0/8]}}}}",
            "client_connect.exceptions[1]: the same network stands at",
        ),
        (
            "{acl_profiles: {a: {publish_topic: {exceptions: ['!a']}}}}",
            "a leading ! is literal here",
        ),
        ("{queues: {q: {owner: ann}}}", "queues.q.owner: there is no client username ann"),
        ("{queues: {q: {max_ttl: 9}}}", "max_ttl: has no effect without respect_ttl_enabled: true"),
        (
            "{max_msg_spool_usage: 5, queues: {q: {max_msg_spool_usage: 6}}}",
            "6 MB is more than the message VPN's 5 MB",
        ),
    ],
)
def test_doubtful(warnings_of: Callable[[str], list[str]], vpn: str, part: str) -> None:
    """What can hardly be meant is told and accepted."""
    assert [one for one in warnings_of(f"msg_vpns: {{blue: {vpn}}}") if part in one]


QUEUES = (
    "client_usernames: {ann: {acl_profile: a}, bob: {acl_profile: b}},"
    " queues: {q: {owner: bob, permission: no-access}, open: {}}"
)


def test_wildcards_over_queues_of_others(warnings_of: Callable[[str], list[str]]) -> None:
    """An exception that lets a stranger fill a closed queue is told where it is a wildcard; its owner's is not."""
    rule = "{publish_topic: {exceptions: [$queue/>, $queue/q, $queue/open]}}"
    written = f"{{{QUEUES}, acl_profiles: {{a: {rule}, b: {rule}}}}}"
    told = [one for one in warnings_of(f"msg_vpns: {{blue: {written}}}") if "queue q" in one]
    (line,) = told
    assert line.endswith(
        "acl_profiles.a.publish_topic.exceptions[0]: lets client username ann fill queue q, which is no-access to it;"
        " name the queues that are meant"
    )


@pytest.mark.parametrize(
    "vpn",
    [
        "{client_usernames: {ann: {client_profile: default, acl_profile: default}}}",
        "{acl_profiles: {a: {client_connect: {exceptions: [10.0.0.1, 2001:db8::/32, '::1']}}}}",
        "{acl_profiles: {a: {publish_topic: {exceptions: [$client-username/>, $client-id/x]}}}}",
        "{client_usernames: {ann: }, queues: {q: {owner: ann}}}",
        "{queues: {q: {max_ttl: 9, respect_ttl_enabled: true}}}",
        "{max_msg_spool_usage: 5, queues: {q: }}",
        "{queues: {q: {topic_syntax: mqtt, subscriptions: ['a//b', '!c/#']}}}",
    ],
)
def test_fine(warnings_of: Callable[[str], list[str]], vpn: str) -> None:
    """Built-in profiles, single addresses, substitutions and exceptions are taken as they are."""
    told = [one for one in warnings_of(f"msg_vpns: {{blue: {vpn}}}") if "this version" not in one]
    assert told == ["1:1 listeners: none, so nobody can connect to this router"]


def test_revocation_lists_of_bridges(read_text: Callable[..., Reading], tmp_path: Path) -> None:
    """The list of a message VPN's bridges is read where it is named."""
    written = f"{{tls_server_cert: {{crl: {tmp_path}/none.pem}}}}"
    reading = read_text(f"msg_vpns: {{blue: {{bridging: {written}}}}}")
    told = [one.message for one in reading.problems if one.severity == "error"]
    place = "msg_vpns.blue.bridging.tls_server_cert.crl"
    assert told == [f"{place}: cannot read {tmp_path}/none.pem: No such file or directory"]

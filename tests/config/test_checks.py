"""Checks of one router's configuration; data/bad.yaml has what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from vpnrouter.config.checks.message_vpns import FilterRules, check_filters
from vpnrouter.config.checks.router import check_config
from vpnrouter.config.load import Reading
from vpnrouter.config.parse import parse
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.limits import TOPIC_MAPPING_RULES


def test_configuration_that_did_not_come_from_a_file() -> None:
    """A configuration made by a program is checked by the same rules as a file."""
    document = parse(
        b"{router: {name: r}, management: {users: {a: {password: p, msg_vpns: [x]}}}}", "f", []
    )
    assert document is not None
    config = RouterConfig.model_validate(document.data)
    assert [
        str(found) for found in check_config(config, document) if found.severity == "error"
    ] == ["f:1:70: management.users.a.msg_vpns[0]: there is no message VPN x"]


def test_every_message_vpn_is_checked(warnings_of: Callable[[str], list[str]]) -> None:
    """What is doubtful in two message VPNs is told for both."""
    text = "msg_vpns:\n" + "".join(
        f"  v{number}: {{queues: {{q: {{owner: gone}}}}}}\n" for number in range(2)
    )
    owners = [one for one in warnings_of(text) if "no client username gone" in one]
    assert [one.split()[0] for one in owners] == ["3:28", "4:28"]


def check(texts: list[str], rules: FilterRules) -> list[str]:
    """The problems of a list of filters, each as `INDEX message`."""
    lines = "\n".join(f"- {text!r}" for text in texts)
    document = parse(lines.encode(), "f", [])
    assert document is not None
    found = ProblemList(document, document)
    parsed = check_filters(found, [((index,), text) for index, text in enumerate(texts)], rules)
    errors = sum(problem.severity == "error" for problem in found.problems)
    assert len(parsed) == len(texts) - errors
    return [f"{problem.position.line - 1} {problem.message}" for problem in found.problems]


@pytest.mark.parametrize(
    ("texts", "rules", "part"),
    [
        (["a//b"], FilterRules("smf"), "(TOPIC-15); with topic_syntax: mqtt it would be a filter"),
        (["a/#/b"], FilterRules("mqtt"), "(TOPIC-20); with topic_syntax: smf it would be a filter"),
        ([""], FilterRules("mqtt"), "a topic filter is not empty (TOPIC-3)"),
        (["a/b/c"], FilterRules("smf", max_levels=2), "at most 2 levels (TOPIC-5)"),
        (["abcd"], FilterRules("smf", max_bytes=3), "at most 3 bytes"),
        (["!a"], FilterRules("smf"), "a leading ! is literal here"),
        (["a/*", "b", "a/*"], FilterRules("smf"), "2 [2]: the same filter stands at f:1:3"),
        (["a/>", "a/b"], FilterRules("smf"), "1 [1]: adds nothing: a/> at f:1:3 covers it"),
        (["orders/#"], FilterRules("smf"), "# is no wildcard here"),
        (["a/+/b"], FilterRules("smf"), "is read as topic_syntax: smf, with * and >"),
        (["!a/+"], FilterRules("smf", exceptions=True), "+ is no wildcard here"),
        (["#share/g/a/#"], FilterRules("smf"), "# is no wildcard here"),
        (["orders/>"], FilterRules("mqtt"), "is read as topic_syntax: mqtt, with + and #"),
        (["a/*/b"], FilterRules("mqtt"), "* is no wildcard here"),
        (["a/b", "a/#"], FilterRules("mqtt"), "0 [0]: adds nothing: a/# at f:2:3 covers it"),
    ],
)  # fmt: skip
def test_told(texts: list[str], rules: FilterRules, part: str) -> None:
    """What does not parse, stands twice or adds nothing is told."""
    (only,) = check(texts, rules)
    assert part in only


@pytest.mark.parametrize(
    ("texts", "rules"),
    [
        (["a/*", "a/b/c", "b/>"], FilterRules("smf")),
        (["orders/>", "!orders/test"], FilterRules("smf", exceptions=True)),
        ([">", "#share/g/a"], FilterRules("smf")),
        (["a+", "#LOG/x", "b/c#", "d/f>"], FilterRules("smf")),
        (["a>/b", "c*", "d/>/e"], FilterRules("mqtt")),
        ([">", "#noexport/a"], FilterRules("smf")),
        ([">", "$client-username/x"], FilterRules("smf")),
    ],
)
def test_not_told(texts: list[str], rules: FilterRules) -> None:
    """Filters for different messages or purposes are left alone."""
    assert check(texts, rules) == []


def test_long_lists_are_not_compared_pairwise() -> None:
    """Beyond the bound on pairs only equal filters are told, so that `run` starts in time."""
    texts = [">", *(f"t/{number}" for number in range(222)), "t/5"]
    assert len([one for one in check(texts, FilterRules("smf")) if "adds nothing" in one]) == 222
    texts.insert(1, "t/one/more")
    (only,) = check(texts, FilterRules("smf"))
    assert "the same filter stands at" in only


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
        (
            "{acl_profiles: {a: {subscribe_topic: {exceptions: ['sensors/#']}}}}",
            "exceptions[0]: # is no wildcard here",
        ),
        ("{queues: {q: {subscriptions: ['orders/#']}}}", "subscriptions[0]: # is no wildcard here"),
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
        "{client_usernames: {ann: {client_profile: default, acl_profile: default, password: pw}}}",
        "{acl_profiles: {a: {client_connect: {exceptions: [10.0.0.1, 2001:db8::/32, '::1']}}}}",
        "{acl_profiles: {a: {publish_topic: {exceptions: [$client-username/>, $client-id/x]}}}}",
        "{client_usernames: {ann: {password: pw}}, queues: {q: {owner: ann}}}",
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
        "{client_usernames: {ann: {password: pw}}, queues: {q: {owner: ann}}}",
    ],
)
def test_fine_endpoints(warnings_of: Callable[[str], list[str]], vpn: str) -> None:
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


Warnings = Callable[[str], list[str]]

BRIDGE = """
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {basic: {client_username: u}}
"""
REMOTE = "remote_msg_vpns: [{name: red, location: h}]"
PARKS_NOTHING = f"""remote_subscriptions: [a]
        on_reject: park
        max_parked_msg_spool_usage: 0
        {REMOTE}"""


@pytest.mark.parametrize(
    ("rest", "part"),
    [
        (
            "remote_msg_vpns: [{name: red, location: h}]",
            "attracts nothing: it has neither remote_subscriptions nor a queue_binding",
        ),
        (
            f"remote_subscriptions: [a]\n        {REMOTE[:-2]}, enabled: false}}]",
            "remote_msg_vpns: none is enabled, so the bridge stays down",
        ),
        (
            f"remote_subscriptions: [a]\n        max_parked_msg_spool_usage: 7\n        {REMOTE}",
            "max_parked_msg_spool_usage: has no effect without on_reject: park",
        ),
        (
            PARKS_NOTHING,
            "max_parked_msg_spool_usage: leaves no room to set anything aside",
        ),
        (
            "remote_subscriptions: [a, {topic: a}]\n        " + REMOTE,
            "remote_subscriptions[1].topic: the same filter stands at",
        ),
        (
            "remote_subscriptions: [a/>, a/b]\n        " + REMOTE,
            "remote_subscriptions[1]: adds nothing: a/> at",
        ),
    ],
)
def test_doubtful_bridges(warnings_of: Warnings, rest: str, part: str) -> None:
    """What can hardly be meant is told and accepted."""
    assert [one for one in warnings_of(f"{BRIDGE}        {rest}") if part in one]


def test_two_bridges_from_one_place(warnings_of: Warnings) -> None:
    """Two bridges from one remote message VPN would each bring the same messages."""
    bridge = (
        "{remote_authentication: {basic: {client_username: u}}, remote_subscriptions: [a],"
        " remote_msg_vpns: [{name: red, location: h}]}"
    )
    text = f"msg_vpns:\n  blue:\n    bridges:\n      b: {bridge}\n      c: {bridge}"
    assert [one for one in warnings_of(text) if "takes from message VPN red there as well" in one]


def test_covering_needs_the_same_delivery(warnings_of: Warnings) -> None:
    """A filter for one receiver does not make one for all receivers needless."""
    rest = (
        "remote_subscriptions: [a/>, {topic: a/b, deliver_always_enabled: true}]\n"
        "        remote_msg_vpns: [{name: red, location: h}]"
    )
    assert not [one for one in warnings_of(f"{BRIDGE}        {rest}") if "adds nothing" in one]


@pytest.mark.parametrize(
    "remote",
    [
        "{name: blue, router: other, location: h}",
        "{name: blue, location: h}",
        "{name: red, router: here, location: h}",
    ],
)
def test_not_itself(warnings_of: Warnings, remote: str) -> None:
    """Another message VPN, or one of the same name on another router, is a good source."""
    warnings_of(f"{BRIDGE}        remote_subscriptions: [a]\n        remote_msg_vpns: [{remote}]")


def test_one_enabled_remote_is_enough(warnings_of: Warnings) -> None:
    """The others may wait for their day."""
    remotes = (
        "[{name: red, location: h, client_username: u},"
        " {name: red, location: i, client_username: u, enabled: false}]"
    )
    rest = f"remote_subscriptions: [a]\n        remote_msg_vpns: {remotes}"
    assert not [one for one in warnings_of(f"{BRIDGE}        {rest}") if "none is enabled" in one]


def test_client_username_of_the_remote_is_enough(warnings_of: Warnings) -> None:
    """A bridge whose every remote names its client username needs none of its own."""
    warnings_of(
        "msg_vpns: {blue: {bridges: {b: {remote_subscriptions: [a],"
        " remote_msg_vpns: [{name: red, location: h, client_username: u}]}}}}"
    )


@pytest.mark.parametrize(
    ("bridge", "told"),
    [
        ("enabled: false", []),
        ("enabled: false, remote_msg_vpns: []", []),
        ("{}", ["No remote message-vpns configured (remote_msg_vpns), so the bridge stays down"]),
        (
            "remote_msg_vpns: []",
            ["No remote message-vpns configured (remote_msg_vpns), so the bridge stays down"],
        ),
    ],
)
def test_a_bridge_is_made_before_its_remotes(
    warnings_of: Warnings, bridge: str, told: list[str]
) -> None:
    """Without a remote message VPN it is accepted, and where it is enabled that is told."""
    written = bridge if bridge == "{}" else f"{{{bridge}}}"
    found = warnings_of(f"msg_vpns: {{blue: {{bridges: {{b: {written}}}}}}}\n")
    assert [line for line in found if "No remote" in line] == [
        f"2:29 msg_vpns.blue.bridges.b: {line}" for line in told
    ]


@pytest.mark.parametrize(
    "bridge",
    [
        "enabled: false, remote_msg_vpns: [{name: red, location: h}]",
        "remote_msg_vpns: [{name: red, location: h, enabled: false}]",
    ],
)
def test_a_client_username_is_needed_where_the_bridge_would_log_in(
    warnings_of: Warnings, bridge: str
) -> None:
    """A bridge or remote message VPN that is not enabled may be without one yet."""
    found = warnings_of(f"msg_vpns: {{blue: {{bridges: {{b: {{{bridge}}}}}}}}}\n")
    assert not [line for line in found if "Client Username" in line]


ATTRACTING_BRIDGE = """
listeners: [{{protocol: link, bind: "127.0.0.1:1"}}]
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {{basic: {{client_username: u}}}}
        remote_msg_vpns: [{{name: red, location: h}}]
        topic_syntax: {syntax}
        remote_subscriptions: [{topics}]
"""


def bridge(topics: str, syntax: str = "smf") -> str:
    """A configuration whose bridge has these remote subscriptions."""
    return ATTRACTING_BRIDGE.format(topics=topics, syntax=syntax)


@pytest.mark.parametrize(
    ("topics", "syntax"),
    [
        ('a/>, "!a/b"', "smf"),
        ('"a/#", "!a/+/c"', "mqtt"),
        ('{topic: a/>, deliver_always_enabled: true}, "!a/b"', "smf"),
        ('"#share/g/a/>", "!a/b"', "smf"),
        ('"$share/g/a/#"', "mqtt"),
        ('a/>, "#share/g/a/>"', "smf"),
        ("a, {topic: b, selector: \"x = 'y' AND z > 3\"}", "smf"),
        ("{topic: a/>, selector: x = 1}, {topic: a/b, selector: x = 2}", "smf"),
    ],
)
def test_taken(warnings_of: Warnings, topics: str, syntax: str) -> None:
    """Exceptions, shared subscriptions and selectors are taken without a word."""
    assert warnings_of(bridge(topics, syntax)) == []


@pytest.mark.parametrize(
    ("topics", "told"),
    [
        (
            'a/>, "!b"',
            "11:37 remote_subscriptions[1]: excepts nothing: no filter beside it attracts",
        ),
        ('a/b, c, "!a/*"', "11:32 remote_subscriptions[0]: attracts nothing: !a/* at "),
        ('a/>, "!a/*/b", "!a/c/b"', "11:47 remote_subscriptions[2]: adds nothing: !a/*/b at "),
        (
            "{topic: a/>, selector: x = 1}, {topic: a/b, selector: x = 1}",
            "11:71 remote_subscriptions[1].topic: adds nothing: a/> at ",
        ),
    ],
)
def test_doubtful_attraction(warnings_of: Warnings, topics: str, told: str) -> None:
    """What has no effect is told where it stands."""
    (only,) = warnings_of(bridge(topics))
    place, text = told.split(" ", 1)
    assert only.startswith(f"{place} msg_vpns.blue.bridges.b.{text}")


def test_a_dropped_filter_is_not_called_missing(read_text: Callable[..., Reading]) -> None:
    """Beside a subscription that is unsound, an exception is not told that it stands alone."""
    problems = read_text(bridge('17, "!a"')).problems
    assert len(problems) == 1
    assert "must be a mapping, not a number" in problems[0].message


def test_exceptions_of_long_lists_are_not_compared(warnings_of: Warnings) -> None:
    """Beyond the bound on pairs nothing is compared, so that a check ends in time."""
    topics = [f"t/{number}" for number in range(150)]
    exceptions = [f'"!x/{number}"' for number in range(40)]
    told = warnings_of(bridge(", ".join(topics[:100] + exceptions)))
    assert len([one for one in told if "excepts nothing" in one]) == 40
    many = [f"t/{number}" for number in range(300)]
    assert warnings_of(bridge(", ".join([*many, *exceptions]))) == []


MAPPED = """
listeners: [{protocol: link, bind: "127.0.0.1:1"}]
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {basic: {client_username: u}}
        remote_msg_vpns: [{name: red, location: h}]
        remote_subscriptions: [a]
"""


@pytest.mark.parametrize(
    "mapping",
    [
        '[{from: "a/*/b", to: "{1}/b"}, {add_prefix: site}]',
        '[{from: "a/>", to: "b/{1}", direction: both}, {from: "c/*", to: "d-{1}", direction: both}]',
        '[{from: "a/*", to: b, direction: out}]',
        "",
    ],
)
def test_mappings(warnings_of: Warnings, mapping: str) -> None:
    """Mappings that can be done are taken without a word."""
    assert warnings_of(f"{MAPPED}        topic_mapping: {mapping}") == []


def test_mappings_in_the_other_dialect(warnings_of: Warnings) -> None:
    """The filter of a mapping is in the dialect of its bridge."""
    mapping = 'topic_syntax: mqtt\n        topic_mapping: [{from: "a/+/#", to: "{2}/{1}"}]'
    assert warnings_of(f"{MAPPED}        {mapping}") == []


def test_too_many_mappings(read_text: Callable[..., Reading]) -> None:
    """One rule more than a topic mapping may have is told at the list."""
    rules = ", ".join(f"{{from: a{number}, to: b}}" for number in range(TOPIC_MAPPING_RULES))
    line = "        topic_mapping: [{}]"
    assert read_text(MAPPED + line.format(rules)).loaded is not None
    problems = read_text(MAPPED + line.format(f"{rules}, {{add_prefix: p}}")).problems
    assert [one.message for one in problems] == [
        "msg_vpns.blue.bridges.b.topic_mapping: a topic mapping has at most 128 rules, this one 129"
    ]


def test_no_listener(warnings_of: Warnings) -> None:
    """A router that nobody can connect to is doubtful."""
    assert "1:1 listeners: none, so nobody can connect to this router" in warnings_of("")
    assert any("so nobody can connect" in one for one in warnings_of("listeners: []"))


def test_message_vpn_with_an_at_sign(warnings_of: Warnings) -> None:
    """user@vpn cannot name a message VPN with @ in it, which is told where it matters."""
    vpns = "msg_vpns: {a@b: }\n"
    open_to_all = vpns + 'listeners: [{protocol: mqtt, bind: "h:1"}]'
    assert any("user@vpn cannot name" in one for one in warnings_of(open_to_all))
    of_one = vpns + 'listeners: [{protocol: mqtt, bind: "h:1", msg_vpn: a@b}]'
    assert not any("user@vpn" in one for one in warnings_of(of_one))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("127.0.0.1:1883", "127.0.0.2:1883"),
        ("127.0.0.1:1883", "127.0.0.1:1884"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("0.0.0.0:1883", "[::]:1883"),
        ("[::1]:1883", "127.0.0.1:1883"),
    ],
)
def test_addresses_that_live_together(warnings_of: Warnings, first: str, second: str) -> None:
    """Different addresses, ports or families, and ports that the system chooses, do not collide."""
    text = f'listeners: [{{protocol: mqtt, bind: "{first}"}}, {{protocol: link, bind: "{second}"}}]'
    warnings_of(text)


def test_disabled_listener_binds_nothing(warnings_of: Warnings) -> None:
    """A disabled listener may have another's address."""
    warnings_of(
        "listeners:\n"
        '  - {protocol: mqtt, bind: "127.0.0.1:1883"}\n'
        '  - {protocol: mqtt, bind: "127.0.0.1:1883", enabled: false}'
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"])
def test_management_on_loopback_needs_no_users(warnings_of: Warnings, host: str) -> None:
    """Without users the API may be served on this machine."""
    warnings_of(f'listeners: [{{protocol: http, bind: "{host}:8080"}}]')


def test_management_in_the_open_with_users(warnings_of: Warnings) -> None:
    """With users the API may be served anywhere."""
    warnings_of(
        'listeners: [{protocol: http, bind: "0.0.0.0:8080"}]\n'
        "management: {users: {ann: {password: pw, role: admin}}}"
    )


TLS = "tls: {{certificate: {0}, key: {0}{1}}}"
WANTS = "msg_vpns: {blue: {authentication: {client_cert: {enabled: true}}}, red: }\n"


@pytest.mark.parametrize(
    ("protocol", "more", "vpn", "told"),
    [
        ("mqtts", "", "", True),
        ("mqtts", ", client_ca: {0}", "", False),
        ("mqtts", ", client_ca: {0}", ", msg_vpn: blue", False),
        ("mqtts", ", client_ca: {0}", ", msg_vpn: red", True),
        ("mqtts", ", client_ca: {0}", ", enabled: false", True),
        ("links", ", client_ca: {0}", "", False),
    ],
)
def test_client_certificates_that_nobody_asks_for(
    warnings_of: Warnings, tmp_path: Path, protocol: str, more: str, vpn: str, told: bool
) -> None:
    """A message VPN that takes client certificates wants a listener that asks for them."""
    file = tmp_path / "some.pem"
    file.write_text("x")
    tls = TLS.format(file, more.format(file))
    text = f'{WANTS}listeners: [{{protocol: {protocol}, bind: "h:1"{vpn}, {tls}}}]'
    found = [one for one in warnings_of(text) if "asks for client certificates" in one]
    line = (
        "2:36 msg_vpns.blue.authentication.client_cert: no listener of this message VPN asks for"
        " client certificates (tls: {client_ca: …})"
    )
    assert found == [line] * told


def test_revocation_lists(read_text: Callable[..., Reading], tmp_path: Path) -> None:
    """A list is read where it is named, and is of no use without authorities."""
    file = tmp_path / "some.pem"
    file.write_text("x")
    tls = TLS.format(file, f", client_crl: {tmp_path}/none.pem")
    reading = read_text(f'listeners: [{{protocol: links, bind: "h:1", {tls}}}]')
    told = [one.message for one in reading.problems if one.severity == "error"]
    assert told == [
        f"listeners[0].tls.client_crl: cannot read {tmp_path}/none.pem: No such file or directory",
        "listeners[0].tls.client_crl: needs client_ca beside it",
    ]


def test_authorities_of_a_message_vpn(read_text: Callable[..., Reading], tmp_path: Path) -> None:
    """Whoever names authorities of a message VPN names certificates, and certificates log in there."""
    (tmp_path / "empty.pem").write_text("x")
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "good.pem"))
    text = f"""
listeners: [{{protocol: mqtt, bind: "h:1"}}]
msg_vpns:
  a: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/none.pem}}}}}}
  b: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/empty.pem}}}}}}
  c: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/good.pem}}}}}}
  d: {{authentication: {{client_cert: {{ca: {tmp_path}/none.pem}}}}}}
"""
    place = "msg_vpns.{}.authentication.client_cert.ca: {}"
    told = {(one.severity, one.message) for one in read_text(text).problems}
    assert told >= {
        ("error", place.format("a", f"cannot read {tmp_path}/none.pem: No such file or directory")),
        ("error", place.format("b", f"{tmp_path}/empty.pem holds no certificates")),
        ("warning", place.format("d", "has no effect without enabled: true")),
    }
    assert not any("msg_vpns.c.authentication.client_cert.ca" in message for _, message in told)


@pytest.mark.parametrize(
    ("vpn", "ca", "red", "told"),
    [
        ("", "", "client_cert: {enabled: true}", ["blue", "red"]),
        ("", ", ca: {0}", "client_cert: {enabled: true}", ["red"]),
        ("", ", ca: {0}", "client_cert: {enabled: true, ca: {0}}", []),
        # Nobody's certificate is meant for another message VPN.
        ("", "", "basic: {enabled: true}", []),
        (", msg_vpn: blue", "", "client_cert: {enabled: true, ca: {0}}", []),
    ],
)
def test_certificates_that_are_meant_for_another_message_vpn(
    warnings_of: Warnings, tmp_path: Path, vpn: str, ca: str, red: str, told: list[str]
) -> None:
    """Where a listener serves several message VPNs that take certificates, each had better name its authorities."""
    file = tmp_path / "some.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    tls = TLS.format(file, f", client_ca: {file}")
    text = f"""
listeners: [{{protocol: mqtts, bind: "h:1"{vpn}, {tls}}}]
msg_vpns:
  blue: {{authentication: {{client_cert: {{enabled: true{ca.replace("{0}", str(file))}}}}}}}
  red: {{authentication: {{{red.replace("{0}", str(file))}}}}}
"""
    found = [one for one in warnings_of(text) if "meant for another message VPN" in one]
    assert [one.split(" ")[1] for one in found] == [
        f"msg_vpns.{name}.authentication.client_cert:" for name in told
    ]


@pytest.mark.parametrize(
    ("keys", "place"), [("access_key: a", "secret_key"), ("secret_key: a", "access_key")]
)
def test_half_a_pair_of_keys(read_text: Any, keys: str, place: str) -> None:
    """An access key without its secret key would be ignored, or the other way round."""
    text = "msg_vpns: {blue: }\ntrace: {directory: t, upload: {url: 's3://b', KEYS}}"
    problems = read_text(text.replace("KEYS", keys)).problems
    (error,) = [one.message for one in problems if one.severity == "error"]
    assert f"trace.upload.{place}" in error
    assert "belong together" in error


TEXT = """
listeners: [{{protocol: mqtt, bind: "127.0.0.1:1883", msg_vpn: blue}}]
msg_vpns: {{blue: }}
trace: {{directory: t, filters: [{filters}]}}
"""


@pytest.mark.parametrize(
    ("filters", "place", "part"),
    [
        ("{trace_filter_name: a, subscriptions: [a/b, a//c]}", "subscriptions[1]", "TOPIC"),
        ("{trace_filter_name: a, subscriptions: [a/+b], topic_syntax: mqtt}", "[0]", "TOPIC"),
        ("{trace_filter_name: a, subscriptions: ['#share/g/a']}", "[0]", "no share takes part"),
        ("{trace_filter_name: a, msg_vpns: [blue, red]}", "msg_vpns[1]", "no message VPN red"),
        ("{trace_filter_name: a}, {trace_filter_name: a}", "filters[1]", "index 0 is named a too"),
    ],
)
def test_refused(read_text: Any, filters: str, place: str, part: str) -> None:
    """What cannot be meant is an error at its place."""
    problems = read_text(TEXT.format(filters=filters)).problems
    (error,) = [one.message for one in problems if one.severity == "error"]
    assert place in error
    assert part in error


@pytest.mark.parametrize(
    ("filters", "part"),
    [
        ("{trace_filter_name: a, client_names: ['a*b']}", "a * that is not at the end"),
        (
            "{trace_filter_name: a}, {trace_filter_name: b, subscriptions: [x]}",
            "never asked: a before it fits every message",
        ),
        ("{trace_filter_name: a, subscriptions: ['a/>', a/b]}", "adds nothing"),
        ("{trace_filter_name: a, subscriptions: ['!a/b']}", "a leading ! is literal here"),
    ],
)
def test_doubtful_traces(warnings_of: Callable[[str], list[str]], filters: str, part: str) -> None:
    """What can hardly be meant is told and accepted."""
    (warning,) = warnings_of(TEXT.format(filters=filters))
    assert part in warning


@pytest.mark.parametrize(
    "filters",
    [
        "",
        "{trace_filter_name: a, subscriptions: ['a/>'], msg_vpns: [blue], client_names: ['s*']}",
        "{trace_filter_name: a, subscriptions: ['a/#'], topic_syntax: mqtt, sample: 0}",
        "{trace_filter_name: a, enabled: false}, {trace_filter_name: b, sample: 0.5}",
    ],
)
def test_good(warnings_of: Callable[[str], list[str]], filters: str) -> None:
    """What is meant is accepted without a word."""
    assert warnings_of(TEXT.format(filters=filters)) == []

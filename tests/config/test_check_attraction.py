from collections.abc import Callable

import pytest

from vpnrouter.config.load import Reading
from vpnrouter.limits import TOPIC_MAPPING_RULES

Warnings = Callable[[str], list[str]]

BRIDGE = """
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
    return BRIDGE.format(topics=topics, syntax=syntax)


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
def test_doubtful(warnings_of: Warnings, topics: str, told: str) -> None:
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

"""Trace filters that are refused, or told."""

from collections.abc import Callable
from typing import Any

import pytest

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
def test_doubtful(warnings_of: Callable[[str], list[str]], filters: str, part: str) -> None:
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

"""Narrower filters: they match what is used, little of what is wasted, and nothing the old one did not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.report.subscriptions.held import DIALECTS
from vpnrouter.report.subscriptions.narrow import MOST, narrower
from vpnrouter.topics.algebra import covers, matches
from vpnrouter.topics.grammar import SMF, parse_filter

IDS = [f"id{number}" for number in range(50)]

CASES = [
    # The one branch that is used.
    (">", "smf", ["a/b", "a/c"], ["x/b", "y/c"], ["a/b", "a/c"]),
    ("#", "mqtt", ["a/b", "a/c"], ["x/b", "y/c"], ["a/b", "a/c"]),
    # Levels that vary like an id become wildcards.
    (">", "smf", [f"a/{one}/temp" for one in IDS], [f"b/{one}/temp" for one in IDS], ["a/*/temp"]),
    (
        "a/#",
        "mqtt",
        [f"a/{one}/temp" for one in IDS],
        [f"a/{one}/log" for one in IDS],
        ["a/+/temp"],
    ),
    # Values with one begin and others without: an SMF prefix tells them apart.
    (">", "smf", [f"a/{one}" for one in IDS], [f"a/z{n}" for n in range(9)], ["a/id*"]),
    ("#", "mqtt", [f"a/{one}" for one in IDS], [f"a/z{n}" for n in range(9)], []),
    # Lengths that vary need an open end.
    (
        "a/>",
        "smf",
        [f"a/b/{one}" for one in IDS] + [f"a/b/{one}/x" for one in IDS],
        ["a/c/d"],
        ["a/b/>"],
    ),
    ("#", "mqtt", ["a", "a/b", "a/b/c", "a/b/c/d"], ["b"], ["a/#"]),
    # Prefixes of the filter stay.
    ("$share/g/#", "mqtt", ["a/b"], ["c"], ["$share/g/a/b"]),
    ("#noexport/>", "smf", ["a/b"], ["c"], ["#noexport/a/b"]),
    # Nothing to be done.
    (">", "smf", [], ["a"], []),
    (">", "smf", ["a"], [], []),
    ("a/b", "smf", ["a/b"], ["a/b"], []),
    ("!>", "smf", ["a"], ["b"], []),
    ("a//b", "smf", ["a"], ["b"], []),
    # Topics that no literal of the dialect can say.
    (">", "smf", ["a//b"], ["c/d/e"], ["a/*/b"]),
    (">", "smf", ["a/b*"], ["c/d"], ["a/*"]),
    ("#", "mqtt", ["a/b+c"], ["c/d"], ["a/+"]),
    (">", "smf", ["!a/b"], ["c/d/e"], ["*/b"]),
    (">", "smf", ["#share/g/b"], ["c/d"], ["*/g/b"]),
]


@pytest.mark.parametrize(("filter_", "syntax", "used", "wasted", "expected"), CASES)
def test_cases(
    filter_: str, syntax: str, used: list[str], wasted: list[str], expected: list[str]
) -> None:
    """The filters that a person would write."""
    assert sorted(narrower(filter_, used, wasted, syntax)) == sorted(expected)


def test_more_branches_than_filters() -> None:
    """With more branches used than may be written, those that need it least share a filter."""
    used = [f"b{number}/x" for number in range(20)]
    found = narrower(">", used, ["c/x", "b0/y"], "smf")
    assert found == ["b*/x"]
    assert len(narrower(">", used, ["b3x/x", "q/y"], "smf", most=2)) <= 2


WORDS = ["a", "ab", "b", "c1", "c2", "c3", "", "x*", ">", "#P", "+"]
TOPICS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("/".join).filter(bool)


@settings(max_examples=300)
@given(
    filter_=st.sampled_from(
        [
            *((one, "smf") for one in (">", "a/>", "*/>", "c*/>", "c*/*")),
            *((one, "mqtt") for one in ("#", "a/#", "+/#", "+/+", "$share/g/#")),
        ]
    ),
    used=st.lists(TOPICS, max_size=25),
    wasted=st.lists(TOPICS, max_size=25),
    most=st.integers(1, MOST),
)
def test_properties(
    filter_: tuple[str, str], used: list[str], wasted: list[str], most: int
) -> None:
    """All that is used still comes, less is wasted, nothing new comes."""
    text, syntax = filter_
    found = narrower(text, used, wasted, syntax, most)
    assert len(found) <= most
    if not found:
        return
    dialect = DIALECTS[syntax]
    whole = parse_filter(text, dialect)
    made = [parse_filter(one, dialect, exceptions=dialect == SMF) for one in found]
    assert all(covers(whole, one) and one.share == whole.share for one in made)
    assert not any(one.exception or one.noexport for one in made)
    for topic in used:
        if matches(whole, topic):
            assert any(matches(one, topic) for one in made), (topic, found)
    still = {topic for topic in wasted if any(matches(one, topic) for one in made)} - set(used)
    before = {topic for topic in wasted if matches(whole, topic)} - set(used)
    assert len(still) < len(before)

"""Bridge subscriptions that bring too much, and the narrower filters that are proposed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.report.schema import Edge, Finding
from vpnrouter.report.subscriptions import over_broad as module
from vpnrouter.report.subscriptions.held import DIALECTS
from vpnrouter.report.subscriptions.narrow import MOST, narrower
from vpnrouter.report.subscriptions.over_broad import (
    Crossing,
    crossings,
    over_broad,
    wasted,
    worst_crossings,
)
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
    (">", "smf", ["a/x*/a/a", "a/x*/a/ab"], ["a/a/a/a"], ["a/*/a/ab", "a/x**/a/a"]),
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


EDGE = Edge("a", "v", "b", "v", "b")


def crossing(used: dict[str, int], lost: dict[str, int], **more: Any) -> Crossing:
    """What crossed EDGE: messages by topic, ten bytes each."""

    def listed(counts: dict[str, int]) -> list[tuple[str, int, int]]:
        ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        return [(topic, count, count * 10) for topic, count in ranked]

    wasted = sum(lost.values())
    total = sum(used.values()) + wasted
    return Crossing(EDGE, listed(used), listed(lost), total, wasted, wasted * 10, **more)


def found_in(one: Crossing, *filters: str, syntax: str = "smf") -> list[Finding]:
    """The findings of one edge whose bridge holds these filters."""
    return over_broad([one], {EDGE: [(filter_, syntax) for filter_ in filters]})


def place(one: Finding) -> tuple[str | None, ...]:
    """Local end, remote end, bridge."""
    return (one.router, one.vpn, one.peer_router, one.peer_vpn, one.bridge)


def test_narrower_set_is_proposed() -> None:
    """One finding with the advice, none for the topics that it explains."""
    orders = {f"orders/{number}/new": 20 for number in range(10)}
    (one,) = found_in(crossing(orders, {"logs/x": 150, "logs/y": 150}), ">")
    assert (one.kind, one.severity, one.topic) == ("over_broad", "warning", ">")
    assert place(one) == ("b", "v", "a", "v", "b")
    assert (one.messages, one.bytes, one.value) == (300, 3000, 0.6)
    assert one.detail == "orders/*/new"
    assert one.client == "#bridge/b/v/b"


def test_nothing_is_used() -> None:
    """The subscription is to be dropped, also when another one brings what is used."""
    one = crossing({"orders/x": 100}, {"logs/x": 50, "logs/y": 50})
    found = found_in(one, "orders/*", "logs/>", "*/x", "!no/*", "a//b")
    assert [(one.topic, one.value, one.detail) for one in found] == [
        ("*/x", pytest.approx(1 / 3), "drop it"),
        ("logs/>", 1.0, "drop it"),
    ]


@pytest.mark.parametrize(("lost", "broad"), [(24, False), (25, True)])
def test_a_fifth_of_all_is_too_much(*, lost: int, broad: bool) -> None:
    """The share is that of all messages of the subscription, not of those that are received."""
    found = found_in(crossing({"orders/x": 100}, {"logs/x": lost}), ">")
    assert ("over_broad" in {one.kind for one in found}) == broad


def test_left_over_topics() -> None:
    """Where no narrower set is found, the worst topics are named, with the total."""
    ids = {f"ids/{number}": 10 + number for number in range(40)}
    one = crossing(
        {topic: count for topic, count in ids.items() if count % 2 == 0},
        {topic: count for topic, count in ids.items() if count % 2},
    )
    found = found_in(one, "ids/+", syntax="mqtt")
    assert {one.kind for one in found} == {"wasted_crossing"}
    assert [one.topic for one in found] == ["ids/39", "ids/37", "ids/35", "ids/33", "ids/31"]
    assert (found[0].messages, found[0].bytes, place(found[0])) == (
        49,
        490,
        ("b", "v", "a", "v", "b"),
    )
    assert "20 such topics, 600 messages, 6,000 bytes" in found[0].detail


def test_little_waste_says_nothing() -> None:
    """A few messages, or a small part of them, may have met a receiver that was away."""
    assert found_in(crossing({"orders": 1000}, {"logs": 40}), ">") == []
    assert found_in(crossing({"orders": 10}, {"logs": 19}), ">") == []
    # Of one subscription it is not a small part.
    (one,) = found_in(crossing({"orders": 1000}, {"logs": 40}), "orders", "logs")
    assert (one.topic, one.detail) == ("logs", "drop it")


def test_unknown_subscriptions_and_names() -> None:
    """Without knowledge of what the sender's filters match, topics are listed."""
    one = crossing({}, {"t": 100})
    assert [one.kind for one in over_broad([one], {})] == ["wasted_crossing"]
    renamed = crossing({"old": 100}, {"new": 100}, renamed={"new"})
    assert [one.kind for one in found_in(renamed, ">")] == ["wasted_crossing"]


def test_too_many_used_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters that would have to match topics that were not looked at are not proposed."""
    monkeypatch.setattr(module, "REPORT_EDGE_TOPICS", 2)
    one = crossing({"orders/1": 10, "orders/2": 10}, {"logs/1": 70, "logs/2": 70}, more_used=True)
    one.total_wasted = 210
    found = found_in(one, ">")
    assert [(one.kind, one.topic) for one in found] == [
        ("wasted_crossing", "logs/1"),
        ("wasted_crossing", "logs/2"),
    ]
    assert "210 messages" in found[0].detail


def test_worst_crossings(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edges that waste most, each with its busiest topics; what is passed on belongs to no edge."""
    monkeypatch.setattr(module, "REPORT_EDGE_TOPICS", 2)
    monkeypatch.setattr(module, "REPORT_WASTED_EDGES", 2)
    for number, count in enumerate((30, 20, 10)):
        for what in ("used", "lost"):
            mesh.publish("a/v", f"{what}/{number}", count)
            mesh.cross("a/v", "b/v", f"{what}/{number}", count)
        mesh.deliver("b/v", "one", f"used/{number}", count)
        mesh.cross("b/v", "z/v", f"lost/{number}", count)
    mesh.cross("a/v", "c/v", "new", 90, seen="receiver")
    mesh.cross("a/v", "d/v", "lost/0", 30)
    mesh.cross("a/v", "e/v", "lost/0", 19)
    uses = mesh.digests()["uses"]
    crossed = crossings(uses)
    lost = wasted(crossed, uses)
    assert lost is not None
    assert worst_crossings(crossed, lost) == [
        Crossing(
            Edge("a", "v", "c", "v", "b"), [], [("new", 90, 900)], 90, 90, 900, renamed={"new"}
        ),
        Crossing(
            EDGE,
            [("used/0", 30, 300), ("used/1", 20, 200)],
            [("lost/0", 30, 300), ("lost/1", 20, 200)],
            120,
            60,
            600,
            more_used=True,
        ),
    ]

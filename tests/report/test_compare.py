"""What differs between two ranges of time by more than chance explains."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.change import compare as module
from vpnrouter.report.change.compare import Count, comparable, compare, count_of, differ
from vpnrouter.report.schema import CHANGES, ERROR, Finding, Rows, rows_of

Make = Callable[..., dict[str, Any]]


def told(rows: Rows) -> list[tuple[Any, ...]]:
    """What changed, in a few columns."""
    names = ("what", "change", "measure", "before", "after")
    return [tuple(row[name] for name in names) for row in rows]


def calm(edge: Make, **more: Any) -> dict[str, Any]:
    """A bridge with traffic and delays that can be compared."""
    figures: dict[str, Any] = {
        "messages": 6_000,
        "messages_estimated": 6_000,
        "latency": (2_000_000, 4_000_000, 9_000_000),
        "latency_samples": 2_000,
        "latency_corrected": True,
        **more,
    }
    return edge("edge/blue", "core/yellow", **figures)


def test_nothing_changed(edge: Make, node: Make, topic: Make) -> None:
    """The same traffic over half the time, each at its rate."""
    one = {"edges": [calm(edge)], "nodes": [node("edge", "blue", ingress=900)]}
    other = {
        "edges": [calm(edge, messages=3_000, messages_estimated=3_000)],
        "nodes": [node("edge", "blue", ingress=450)],
    }
    assert compare(one, one, 60, 60) == []
    assert compare(one, other, 60, 30) == []


def test_a_bridge_that_changed(edge: Make) -> None:
    """More messages, slower, and its link went down often: figures a second and in nanoseconds."""
    after = calm(
        edge,
        messages=12_000,
        messages_estimated=12_000,
        latency=(3_100_000, 4_100_000, 30_000_000),
        link_downs=120,
    )
    rows = compare({"edges": [calm(edge)]}, {"edges": [after]}, 60, 60)
    assert told(rows) == [
        ("bridge", "more", "latency_p99_ns", 9_000_000.0, 30_000_000.0),
        ("bridge", "more", "latency_p50_ns", 2_000_000.0, 3_100_000.0),
        ("bridge", "more", "messages", 100.0, 200.0),
        ("bridge", "more", "link_downs", 0.0, 2.0),
    ]
    assert list(rows[0]) == CHANGES.names
    place = ("router", "vpn", "peer_router", "peer_vpn", "bridge")
    assert [rows[0][name] for name in place] == ["core", "yellow", "edge", "blue", "fares"]


@pytest.mark.parametrize("more", [{"latency_corrected": False}, {"latency_samples": 20}])
def test_latencies_that_cannot_be_compared(edge: Make, more: dict[str, Any]) -> None:
    """Clocks that disagree, or a handful of samples, say nothing."""
    slow = calm(edge, latency=(90_000_000, 90_000_000, 90_000_000), **more)
    assert compare({"edges": [calm(edge)]}, {"edges": [slow]}, 60, 60) == []


def test_what_came_and_went(edge: Make, node: Make) -> None:
    """Bridges, message VPNs and findings, these first."""
    before = {
        "edges": [calm(edge)],
        "nodes": [node("edge", "blue", ingress=60, ingress_estimated=60)],
        "findings": rows_of([Finding(kind="loop", severity=ERROR, router="a", messages=5)]),
    }
    after = {
        "edges": [calm(edge, bridge="other")],
        "findings": rows_of([Finding(kind="loop", severity=ERROR, router="b", client="c")]),
    }
    assert told(compare(before, after, 60, 60)) == [
        ("finding", "gone", "loop", 5.0, None),
        ("finding", "new", "loop", None, None),
        ("bridge", "gone", "messages", 100.0, None),
        ("bridge", "new", "messages", None, 100.0),
        ("vpn", "gone", "ingress", 1.0, None),
    ]


def test_topics_beyond_the_table(topic: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full table lists the busiest: what it does not list may be there, unless it was busier than that."""
    monkeypatch.setattr(module, "REPORT_TOPICS", 2)
    quiet = {"published_estimated": None}
    before = [topic("a", published=900, **quiet), topic("b", published=100, **quiet)]
    after = [
        topic("a", published=900, **quiet),
        topic("c", published=110, **quiet),
        topic("d", published=400, **quiet),
    ]
    rows = compare({"topics": before}, {"topics": after}, 10, 10)
    assert [(row["change"], row["topic"]) for row in rows] == [("new", "d")]


def test_bounded(topic: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest changes are kept."""
    monkeypatch.setattr(module, "REPORT_CHANGES", 1)
    quiet = {"published_estimated": None}
    topics = [topic("a", published=900, **quiet), topic("b", published=990, **quiet)]
    rows = compare({}, {"topics": topics}, 0, 0)
    assert [row["topic"] for row in rows] == ["b"]


def test_topics_of_a_few_messages(topic: Make) -> None:
    """One message on a topic of its own is no news."""
    assert compare({"topics": [topic("a", published=3, published_estimated=3)]}, {}, 60, 60) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Count(1_000, 1_000, 60), Count(1_400, 1_400, 60), False),  # within the factor
        (Count(1_000, 1_000, 60), Count(1_600, 1_600, 60), True),
        (Count(1_000, 1_000, 60), Count(500, 500, 30), False),  # the same rate
        (Count(4, 4, 60), Count(9, 9, 60), False),  # chance
        (Count(0, 0, 60), Count(20, 20, 60), False),
        (Count(0, 0, 60), Count(60, 60, 60), True),
        (Count(30, 3_000, 60), Count(60, 6_000, 60), False),  # few were traced
        (Count(0, 0, 60), Count(20, 2_000, 60), False),
    ],
)
def test_when_rates_differ(before: Count, after: Count, expected: bool) -> None:
    """By more than the factor, and by more than chance; it is the same the other way round."""
    assert differ(before, after) is expected
    assert differ(after, before) is expected


def test_equal_traffic_raises_no_alarm() -> None:
    """Five thousand pairs of counts of the same rate, from none to hundreds: not one differs."""
    draw = random.Random(8)
    for _ in range(5_000):
        mean = draw.choice([0.5, 3, 20, 200])
        one, other = (sum(draw.random() < mean / 1_000 for _ in range(1_000)) for _ in range(2))
        assert not differ(Count(one, one, 10), Count(other, other, 10)), (one, other)


def test_columns() -> None:
    """The estimate counts as messages where there is one; both must have one, or neither."""
    row: dict[str, object] = {"ingress": 5, "ingress_estimated": 500, "delivered": 7}
    assert count_of(row, "ingress", 2.0) == (5, 500.0, 2.0)
    assert count_of(row, "delivered", 2.0).rate == 3.5
    assert count_of(None, "ingress", 2.0) == (0, 0.0, 2.0)
    other: dict[str, object] = {"ingress": 5, "ingress_estimated": None}
    assert not comparable(row, other, "ingress")
    assert comparable(other, other, "ingress")

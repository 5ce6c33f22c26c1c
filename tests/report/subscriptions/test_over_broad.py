"""Bridge subscriptions that bring too much."""

from typing import Any

import pytest

from vpnrouter.report.schema import Finding
from vpnrouter.report.subscriptions import over_broad as module
from vpnrouter.report.subscriptions.held import Edge
from vpnrouter.report.subscriptions.over_broad import (
    Crossing,
    crossings,
    over_broad,
    wasted,
    worst_crossings,
)

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

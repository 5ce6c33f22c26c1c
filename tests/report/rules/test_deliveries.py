"""Loops, duplicates and second ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.report.rules.context import Bridges, KnownCauses
from vpnrouter.report.rules.deliveries import (
    canonical,
    cycles_of,
    duplicates,
    loops,
    stopped_loops,
    two_ways,
)

MakeRow = Callable[..., dict[str, Any]]

NONE = KnownCauses({}, [], [])


def test_clients_endpoints_and_bridges_are_named(double_row: MakeRow, bridge_row: MakeRow) -> None:
    """Each in its own field, a bridge with its other end; two ways are another rule's."""
    found = duplicates(
        [
            double_row("deliver", "phone"),
            double_row("enqueue", "orders"),
            double_row("bridge", "way"),
            double_row("bridge", "unheard-of", example_trace=None),
            double_row("two_ways", "a/x:way", other="c/z:way"),
        ],
        NONE,
        Bridges([bridge_row()]),
    )
    assert [(one.client, one.endpoint, one.bridge, one.peer_router) for one in found] == [
        ("phone", None, None, None),
        (None, "orders", None, None),
        (None, None, "way", "a"),
        (None, None, "unheard-of", None),
    ]
    assert {(one.kind, one.severity, one.messages, one.value) for one in found} == {
        ("duplicate", "warning", 5, 6.0)
    }
    assert found[0].detail == (
        "In b/y client phone got 5 messages more than once, 6 copies too many; one of them is trace 4bf9."
    )
    assert found[3].detail == (
        "In b/y bridge unheard-of brought 5 messages more than once, 6 copies too many."
    )


def test_the_dead_message_queue_may_take_one_from_each_queue(double_row: MakeRow) -> None:
    """Copies of one message come there rightly."""
    row = double_row("enqueue", "#DEAD_MSG_QUEUE")
    assert duplicates([row], NONE, Bridges([])) == []


def test_copies_of_a_loop_are_not_told_twice(double_row: MakeRow) -> None:
    """As many as came around it; more than these have another cause."""
    rows = [double_row(kind, "who") for kind in ("deliver", "enqueue", "bridge")]
    assert duplicates(rows, KnownCauses({("b", "y"): 6}, [], []), Bridges([])) == []
    assert len(duplicates(rows, KnownCauses({("b", "y"): 4}, [], []), Bridges([]))) == 3
    assert len(duplicates(rows, KnownCauses({("b", "x"): 6}, [], []), Bridges([]))) == 3


def test_what_a_bridge_brings_twice_may_be_discarded(
    double_row: MakeRow, loss_row: MakeRow
) -> None:
    """Then nobody sees it twice; who did see it twice is told still."""
    rows = [double_row("bridge", "way"), double_row("deliver", "phone")]
    excuses = KnownCauses({}, [loss_row("duplicate", count=6)], [])
    assert [one.client for one in duplicates(rows, excuses, Bridges([]))] == ["phone"]
    few = KnownCauses({}, [loss_row("duplicate", count=3)], [])
    assert len(duplicates(rows, few, Bridges([]))) == 2


def test_what_a_bridge_brings_again_after_a_break_is_no_trouble(
    double_row: MakeRow, bridge_row: MakeRow, link_row: MakeRow
) -> None:
    """A link that broke about then explains a window's worth; one that broke long before does not."""
    bridges = Bridges([bridge_row()])
    near = KnownCauses({}, [], [link_row(0, 99.0), link_row(101, None)])
    assert duplicates([double_row("bridge", "way")], near, bridges) == []
    assert len(duplicates([double_row("bridge", "way", copies=10_001)], near, bridges)) == 1
    far = KnownCauses({}, [], [link_row(0, 39.0), link_row(40, None)])
    assert len(duplicates([double_row("bridge", "way")], far, bridges)) == 1
    assert len(duplicates([double_row("bridge", "way")], near, Bridges([]))) == 1


def way(text: str, count: int = 1, first: int = 10, last: int = 20) -> dict[str, Any]:
    """A row of `looping_paths`."""
    router, _, vpn = text.rpartition(">")[2].partition("/")
    return {
        "way": text,
        "router": router,
        "vpn": vpn,
        "count": count,
        "bytes": count * 100,
        "first_ns": first,
        "last_ns": last,
    }


@given(
    st.lists(st.text("abc/", min_size=1, max_size=3), min_size=1, max_size=6, unique=True),
    st.data(),
)
def test_a_cycle_has_one_name_wherever_it_is_entered(cycle: list[str], data: st.DataObject) -> None:
    """Every turn of a cycle is the same one, in its own order, begun with its smallest VPN."""
    turn = data.draw(st.integers(0, len(cycle) - 1))
    name = canonical(cycle[turn:] + cycle[:turn])
    assert name == canonical(cycle)
    assert name[0] == min(cycle)
    at = cycle.index(name[0])
    assert list(name) == cycle[at:] + cycle[:at]


@pytest.mark.parametrize(
    ("text", "cycles", "closed"),
    [
        ("a/x>b/y", [], None),
        ("b/y>a/x>b/y", ["a/x>b/y"], "a/x>b/y"),
        ("a/x>b/y>c/z>a/x>b/y", ["a/x>b/y>c/z"], "a/x>b/y>c/z"),
        ("a/x>b/y>c/z>b/y>d/w", ["b/y>c/z"], None),
        ("a/x>a/x", ["a/x"], "a/x"),
        # Two loops: of b and c, and then of a, b and d.
        ("a/x>b/y>c/z>b/y>d/w>a/x", ["b/y>c/z", "a/x>b/y>d/w"], "a/x>b/y>d/w"),
        # The first one once more.
        ("b/y>c/z>b/y>a/x>b/y>c/z>b/y", ["b/y>c/z", "a/x>b/y"], "b/y>c/z"),
        # The other direction around is another cycle.
        ("a/x>c/z>b/y>a/x", ["a/x>c/z>b/y"], "a/x>c/z>b/y"),
        ("a/x>a/y>b/x", [], None),
        # A provider twice is no message VPN twice; a loop through one begins at a message VPN.
        ("mqtt://b:1>b/y>mqtt://b:1>a/x", [], None),
        ("b/y>mqtt://b:1>b/y>a/x", ["b/y>mqtt://b:1"], None),
        ("mqtt://b:1>b/y>a/x>b/y", ["a/x>b/y"], "a/x>b/y"),
    ],
)
def test_cycles_are_read_off_a_way(text: str, cycles: list[str], closed: str | None) -> None:
    """Each once, and the one that the last step closed."""
    found, last = cycles_of(text)
    assert [">".join(cycle) for cycle in found] == cycles
    assert (None if last is None else ">".join(last)) == closed


def test_each_cycle_is_one_finding() -> None:
    """Entered anywhere, however often around; counted where messages came back."""
    found = loops(
        [
            way("b/y>c/z>a/x>b/y", 4, first=5),
            way("a/x>b/y>c/z>a/x", 3, last=30),
            way("e/v>a/x>b/y>c/z>a/x>b/y", 2),
            way("a/x>b/y>c/z>a/x>d/w", 1),
        ],
        [],
    )
    assert [(one.kind, one.severity, one.router, one.vpn) for one in found] == [
        ("loop", "error", "a", "x")
    ]
    assert (found[0].messages, found[0].bytes) == (9, 900)
    assert (found[0].first_ns, found[0].last_ns) == (5, 30)
    assert found[0].detail == "9 times a message came back on the loop a/x>b/y>c/z>a/x."


def test_a_loop_through_a_provider_is_told_as_one() -> None:
    """It stands at a message VPN, whatever comes first by name."""
    (found,) = loops([way("b/y>mqtt://b:1>c/z>b/y", 2)], [])
    assert (found.router, found.vpn) == ("b", "y")
    assert found.detail == (
        "2 times a message came back through a provider on the loop b/y>mqtt://b:1>c/z>b/y."
    )


def test_a_loop_whose_returns_are_not_traced_is_told_by_who_went_on() -> None:
    """A router that does not trace hides where the way closed, and not that it did."""
    (found,) = loops([way("a/x>b/y>a/x>d/w", 7)], [])
    assert found.messages == 7


def test_returns_that_are_discarded_on_arrival_are_no_loop(loss_row: MakeRow) -> None:
    """A ring whose routers keep control; one return more than discards is out of control."""
    ways = [way("b/y>a/x>b/y", 4)]
    stopped = loss_row("loop-detected", back=True, count=4)
    assert loops(ways, [stopped]) == []
    assert len(loops(ways, [{**stopped, "count": 3}])) == 1
    assert len(loops(ways, [{**stopped, "back": False}])) == 1
    assert len(loops(ways, [{**stopped, "reason": "duplicate"}])) == 1
    # Control at one VPN of the ring is not enough when another lets messages in again.
    assert len(loops([*ways, way("a/x>b/y>a/x", 1)], [stopped])) == 1


def test_stopped_loops_are_told_by_bridge(loss_row: MakeRow, bridge_row: MakeRow) -> None:
    """What crossed for nothing is info; what the sender did not let go cost nothing."""
    bridges = Bridges([bridge_row(), bridge_row("c/z", "b/y", "other")])
    found = stopped_loops(
        [
            loss_row("loop-detected", back=True, client="#bridge/way", count=3),
            loss_row("loop-detected", back=False, client="#bridge/way", count=50),
            loss_row("ttl-exceeded", back=False, client="#bridge/other", count=2),
            loss_row("ttl-exceeded", back=None, client="#bridge/other", count=2),
            loss_row("duplicate", count=9),
            loss_row("transmit-congestion", client="#bridge/way", count=9),
        ],
        bridges,
    )
    assert [
        (one.reason, one.severity, one.bridge, one.peer_router, one.messages) for one in found
    ] == [
        ("loop-detected", "info", "way", "a", 3),
        ("ttl-exceeded", "info", "other", "c", 4),
    ]
    assert found[0].detail == (
        "3 messages came to b/y over bridge way in vain: they had been there before."
    )


def test_each_pair_of_bridges_is_a_warning(double_row: MakeRow) -> None:
    """Both are named; other kinds of doubles are another rule's."""
    rows = [
        double_row("two_ways", "a/x:way", other="c/z:way"),
        double_row("two_ways", "a/x:way", other="d/w:way", messages=1),
        double_row("deliver", "phone"),
    ]
    found = two_ways(rows, KnownCauses({}, [], []))
    assert [(one.severity, one.router, one.vpn, one.messages) for one in found] == [
        ("warning", "b", "y", 5),
        ("warning", "b", "y", 1),
    ]
    assert found[0].detail == (
        "5 messages came to b/y both over a/x:way and over c/z:way, and nobody discarded the second copy."
    )


def test_a_spare_way_whose_copies_are_discarded_is_info(
    double_row: MakeRow, loss_row: MakeRow
) -> None:
    """One a VPN, naming the pair with most copies; too few discards, and it is a warning again."""
    rows = [
        double_row("two_ways", "a/x:way", other="c/z:way"),
        double_row("two_ways", "a/x:way", other="d/w:way", copies=8),
    ]
    (found,) = two_ways(rows, KnownCauses({}, [loss_row("duplicate", count=14)], []))
    assert (found.kind, found.severity, found.value) == ("two_ways", "info", 14.0)
    assert "over d/w:way" in found.detail
    few = KnownCauses({}, [loss_row("duplicate", count=7)], [])
    assert {one.severity for one in two_ways(rows, few)} == {"warning"}


def test_ways_around_a_loop_are_told_as_a_loop(double_row: MakeRow) -> None:
    """Nothing here."""
    rows = [double_row("two_ways", "a/x:way", other="c/z:way")]
    assert two_ways(rows, KnownCauses({("b", "y"): 6}, [], [])) == []

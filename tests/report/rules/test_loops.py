"""vpnrouter.report.rules.deliveries: messages that came back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from vpnrouter.report.rules.context import Bridges
from vpnrouter.report.rules.deliveries import (
    arrivals_back,
    canonical,
    cycles_of,
    loops,
    stopped_loops,
    ways_back,
)

MakeRow = Callable[..., dict[str, Any]]
DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def way(text: str, count: int = 1, first: int = 10, last: int = 20) -> dict[str, Any]:
    """A row of `ways_back`."""
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


@pytest.mark.spark
def test_ways_with_a_vpn_twice_are_picked(digest_of: DigestOf) -> None:
    """The VPN reached counts; a VPN of the same name on another router is another one."""

    def row(path: str | None, router: str, **more: Any) -> dict[str, Any]:
        times = {"count": 1, "bytes": 7, "first_ns": 1, "last_ns": 2}
        return {"path": path, "router": router, "vpn": "x", "bridge": "n", **times, **more}

    rows = [
        row("a/x>b/x", "a"),
        row("a/x>b/x", "a", bridge="m", count=4, last_ns=9),
        row("a/x>b/x>a/x", "c", count=2),
        row("a/x>b/x", "c", count=100),
        row(None, "a", count=100),
    ]
    found = [one.asDict() for one in ways_back(digest_of("paths", rows)).collect()]
    assert [
        (one["way"], one["router"], one["count"], one["bytes"], one["last_ns"]) for one in found
    ] == [
        ("a/x>b/x>a/x", "a", 5, 14, 9),
        ("a/x>b/x>a/x>c/x", "c", 2, 7, 2),
    ]
    assert arrivals_back(found) == {("a", "x"): 5, ("c", "x"): 2}

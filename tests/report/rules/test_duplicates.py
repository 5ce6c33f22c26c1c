"""vpnrouter.report.trouble: duplicates, second ways, and what excuses them."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.context import Bridges, Excuses
from vpnrouter.report.rules.deliveries import doubles_by_place, duplicates

MakeRow = Callable[..., dict[str, Any]]
DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]

NONE = Excuses({}, [], [])


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
    assert duplicates(rows, Excuses({("b", "y"): 6}, [], []), Bridges([])) == []
    assert len(duplicates(rows, Excuses({("b", "y"): 4}, [], []), Bridges([]))) == 3
    assert len(duplicates(rows, Excuses({("b", "x"): 6}, [], []), Bridges([]))) == 3


def test_what_a_bridge_brings_twice_may_be_discarded(
    double_row: MakeRow, loss_row: MakeRow
) -> None:
    """Then nobody sees it twice; who did see it twice is told still."""
    rows = [double_row("bridge", "way"), double_row("deliver", "phone")]
    excuses = Excuses({}, [loss_row("duplicate", count=6)], [])
    assert [one.client for one in duplicates(rows, excuses, Bridges([]))] == ["phone"]
    few = Excuses({}, [loss_row("duplicate", count=3)], [])
    assert len(duplicates(rows, few, Bridges([]))) == 2


def test_what_a_bridge_brings_again_after_a_break_is_no_trouble(
    double_row: MakeRow, bridge_row: MakeRow, link_row: MakeRow
) -> None:
    """A link that broke about then explains a window's worth; one that broke long before does not."""
    bridges = Bridges([bridge_row()])
    near = Excuses({}, [], [link_row(0, 99.0), link_row(101, None)])
    assert duplicates([double_row("bridge", "way")], near, bridges) == []
    assert len(duplicates([double_row("bridge", "way", copies=10_001)], near, bridges)) == 1
    far = Excuses({}, [], [link_row(0, 39.0), link_row(40, None)])
    assert len(duplicates([double_row("bridge", "way")], far, bridges)) == 1
    assert len(duplicates([double_row("bridge", "way")], near, Bridges([]))) == 1


@pytest.mark.spark
def test_doubles_of_several_digests_add_up(digest_of: DigestOf, double_row: MakeRow) -> None:
    """By kind, place and those concerned, the most copies first."""
    rows = [
        double_row("deliver", "phone"),
        double_row("deliver", "phone", messages=1, copies=9, first_ns=1, last_ns=2),
        double_row("deliver", "tablet", copies=40),
    ]
    found = doubles_by_place(digest_of("doubles", rows)).collect()
    assert [(one.who, one.messages, one.copies, one.first_ns) for one in found] == [
        ("tablet", 5, 40, 100_000_000_000),
        ("phone", 6, 15, 1),
    ]

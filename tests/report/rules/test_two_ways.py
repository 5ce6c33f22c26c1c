"""vpnrouter.report.rules.deliveries: second ways into a VPN."""

from collections.abc import Callable
from typing import Any

from vpnrouter.report.rules.context import Excuses
from vpnrouter.report.rules.deliveries import two_ways

MakeRow = Callable[..., dict[str, Any]]


def test_each_pair_of_bridges_is_a_warning(double_row: MakeRow) -> None:
    """Both are named; other kinds of doubles are another rule's."""
    rows = [
        double_row("two_ways", "a/x:way", other="c/z:way"),
        double_row("two_ways", "a/x:way", other="d/w:way", messages=1),
        double_row("deliver", "phone"),
    ]
    found = two_ways(rows, Excuses({}, [], []))
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
    (found,) = two_ways(rows, Excuses({}, [loss_row("duplicate", count=14)], []))
    assert (found.kind, found.severity, found.value) == ("two_ways", "info", 14.0)
    assert "over d/w:way" in found.detail
    few = Excuses({}, [loss_row("duplicate", count=7)], [])
    assert {one.severity for one in two_ways(rows, few)} == {"warning"}


def test_ways_around_a_loop_are_told_as_a_loop(double_row: MakeRow) -> None:
    """Nothing here."""
    rows = [double_row("two_ways", "a/x:way", other="c/z:way")]
    assert two_ways(rows, Excuses({("b", "y"): 6}, [], [])) == []

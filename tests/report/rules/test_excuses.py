"""vpnrouter.report.rules.context: what explains copies of messages."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.context import Excuses

MakeRow = Callable[..., dict[str, Any]]

SECOND = 1_000_000_000
EDGE = ("a", "x", "b", "y", "way")


def test_a_loop_explains_its_copies() -> None:
    """As many as came around, with a little margin, and only where they came around."""
    excuses = Excuses({("b", "y"): 100}, [], [])
    assert excuses.by_loop("b", "y", 100)
    assert excuses.by_loop("b", "y", 109)
    assert not excuses.by_loop("b", "y", 120)
    assert not excuses.by_loop("b", "other", 1)


def test_discards_explain_copies(loss_row: MakeRow) -> None:
    """Copies that the message VPN threw away as such, with those of a loop; other losses do not count."""
    losses = [
        loss_row("duplicate", count=60),
        loss_row("loop-detected", count=30, bridge="way"),
        loss_row("duplicate", count=1_000, event="reject"),
        loss_row("duplicate", count=1_000, vpn="other"),
        loss_row("transmit-congestion", count=1_000),
    ]
    excuses = Excuses({("b", "y"): 10}, losses, [])
    assert excuses.by_discards("b", "y", 100)
    assert not excuses.by_discards("b", "y", 120)
    assert not excuses.by_loop("b", "y", 100)
    assert not excuses.by_discards("b", "nowhere", 1)


@pytest.mark.parametrize(
    ("first", "last", "explained"),
    [(100, 101, True), (41, 41, True), (39, 39, False), (159, 170, True), (161, 170, False)],
)
def test_a_break_explains_what_comes_soon(
    link_row: MakeRow, first: int, last: int, explained: bool
) -> None:
    """Copies within a minute of a link's end, before or after it by clocks of two routers."""
    excuses = Excuses({}, [], [link_row(0, 100), link_row(101, None)])
    assert excuses.by_breaks(EDGE, 5, first * SECOND, last * SECOND) is explained


def test_a_break_explains_no_more_than_was_under_way(link_row: MakeRow) -> None:
    """A window of messages for each end; a bridge that stayed up, and what is none, explain nothing."""
    links = [link_row(0, 100), link_row(101, 110), link_row(0, None, bridge="steady")]
    excuses = Excuses({}, [], links)
    span = 100 * SECOND, 101 * SECOND
    assert excuses.by_breaks(EDGE, 20_000, *span)
    assert not excuses.by_breaks(EDGE, 20_001, *span)
    assert not excuses.by_breaks((*EDGE[:4], "steady"), 1, *span)
    assert not excuses.by_breaks(None, 1, *span)

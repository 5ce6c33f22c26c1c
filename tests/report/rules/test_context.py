"""What rules share: which bridge a row means, what explains copies, losses by place, figures in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.context import (
    Bridges,
    KnownCauses,
    bounded,
    ends,
    lasting,
    named,
    percent,
)
from vpnrouter.report.schema import Edge, Finding
from vpnrouter.text import counted


def finding(kind: str, messages: int) -> Finding:
    """An error."""
    return Finding(kind=kind, severity="error", messages=messages, detail=f"{messages} lost.")


def test_the_worst_of_a_kind_stay() -> None:
    """The last one says how many are left out, kind by kind, if any are."""
    assert [one.detail for one in bounded([finding("loop", 1), finding("loop", 2)], 2)] == [
        "2 lost.",
        "1 lost.",
    ]
    given = [finding("loop", count) for count in (1, 5, 3, 4)] + [finding("hot_bridge", 7)]
    found = bounded(given, 2)
    assert [(one.kind, one.messages) for one in found] == [
        ("hot_bridge", 7),
        ("loop", 5),
        ("loop", 4),
    ]
    assert [one.detail for one in found] == [
        "7 lost.",
        "5 lost.",
        "4 lost. And 2 more of this kind.",
    ]


MakeRow = Callable[..., dict[str, Any]]

FORTH = Edge("a", "x", "b", "y", "way")
BACK = Edge("b", "y", "a", "x", "back")
OTHER = Edge("c", "z", "b", "y", "way")


@pytest.fixture
def bridges(bridge_row: MakeRow) -> Bridges:
    """Two VPNs that attract from each other, and a third that the one attracts from under the same name."""
    return Bridges(
        [bridge_row(), bridge_row("b/y", "a/x", "back"), bridge_row("c/z", "b/y", "way")]
    )


@pytest.mark.parametrize(
    ("place", "client", "bridge", "edge"),
    [
        ("a/x", "#bridge/b/y/way", "", FORTH),
        ("a/x", "#bridge/b/y/with/slash/n", "", ("a", "x", "b", "y/with/slash", "n")),
        # The connection of a/x's own bridge carries what b/y attracts as well.
        ("a/x", "#bridge/back", "", FORTH),
        ("a/x", "", "way", FORTH),
        ("a/x", "someone", "", None),
        ("a/x", "#bridge/unknown", "", None),
        ("d/x", "#bridge/b/y/way", "", ("d", "x", "b", "y", "way")),
    ],
)
def test_who_sends_names_the_bridge_by_its_client(
    bridges: Bridges, place: str, client: str, bridge: str, edge: Edge | None
) -> None:
    """By its login, by the connection's own bridge, by name; else not at all."""
    router, vpn = place.split("/")
    assert bridges.sending(router, vpn, client, bridge) == edge


@pytest.mark.parametrize(
    ("client", "bridge", "path", "edge"),
    [
        ("", "way", "c/z", OTHER),
        ("#bridge/way", "", "q/q>a/x", FORTH),
        ("", "", "a/x", FORTH),
        ("", "way", None, None),
        ("", "gone", "a/x", None),
    ],
)
def test_who_receives_knows_it_by_name_and_way(
    bridges: Bridges, client: str, bridge: str, path: str | None, edge: Edge | None
) -> None:
    """Of several bridges of one name the last VPN visited tells which; what leaves several says none."""
    assert bridges.receiving("b", "y", client, bridge, path) == edge


def test_a_finding_is_at_the_end_that_attracts() -> None:
    """The other end is the peer."""
    assert ends(FORTH) == {
        "router": "b",
        "vpn": "y",
        "peer_router": "a",
        "peer_vpn": "x",
        "bridge": "way",
    }
    assert named(FORTH) == "bridge way from a/x to b/y"


SECOND = 1_000_000_000
EDGE = Edge("a", "x", "b", "y", "way")


def test_discards_explain_copies(loss_row: MakeRow) -> None:
    """Copies that the message VPN threw away as such, with those of a loop; other losses do not count."""
    losses = [
        loss_row("duplicate", count=60),
        loss_row("loop-detected", count=30, bridge="way"),
        loss_row("duplicate", count=1_000, event="reject"),
        loss_row("duplicate", count=1_000, vpn="other"),
        loss_row("transmit-congestion", count=1_000),
    ]
    excuses = KnownCauses({("b", "y"): 10}, losses, [])
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
    excuses = KnownCauses({}, [], [link_row(0, 100), link_row(101, None)])
    assert excuses.by_breaks(EDGE, 5, first * SECOND, last * SECOND) is explained


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (counted(1, "message"), "1 message"),
        (counted(12_000, "message"), "12,000 messages"),
        (counted(0, "copy", "copies"), "0 copies"),
        (percent(0.125), "12.5 %"),
        (lasting(0.25), "250 ms"),
        (lasting(1), "1.0 s"),
        (lasting(119), "119.0 s"),
        (lasting(180), "3.0 minutes"),
        (lasting(9_000), "2.5 hours"),
    ],
)
def test_figures_in_sentences(text: str, wanted: str) -> None:
    """Counts have their noun, shares are percents, durations have a unit that fits."""
    assert text == wanted

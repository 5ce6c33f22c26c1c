"""vpnrouter.report.rules.links: bridges without room."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.context import Bridges
from vpnrouter.report.rules.links import hot_bridges

MakeRow = Callable[..., dict[str, Any]]


def at_sender(loss_row: MakeRow, **more: Any) -> dict[str, Any]:
    """Discards at a/x of what should have crossed to b/y."""
    place = {"router": "a", "vpn": "x", "client": "#bridge/b/y/way", "count": 20}
    return loss_row("transmit-congestion", **{**place, **more})


def test_a_bridge_that_loses_is_hot(loss_row: MakeRow, bridge_row: MakeRow) -> None:
    """All its rows together, as a share of what it should have carried."""
    bridges = Bridges([bridge_row(sent=60, messages=60)])
    (found,) = hot_bridges([at_sender(loss_row), at_sender(loss_row)], bridges)
    assert (found.kind, found.severity, found.router, found.peer_router) == (
        "hot_bridge",
        "error",
        "b",
        "a",
    )
    assert (found.messages, found.value) == (40, 0.4)
    assert found.detail == (
        "40 messages, 40.0 % of all, found no room on bridge way from a/x to b/y and were discarded at a/x."
    )


@pytest.mark.parametrize(
    ("losses", "sent"),
    [
        ({"count": 9}, 10),
        ({"count": 20}, 5_000),
        ({"client": "phone"}, 10),
        ({"reason": "loop-detected"}, 10),
        ({"event": "reject"}, 10),
    ],
)
def test_few_losses_and_other_losses_are_no_heat(
    loss_row: MakeRow, bridge_row: MakeRow, losses: dict[str, Any], sent: int
) -> None:
    """A burst that met a full buffer; a slow client; other reasons."""
    row = {**at_sender(loss_row), **losses}
    assert hot_bridges([row], Bridges([bridge_row(sent=sent, messages=sent)])) == []


def test_what_a_sample_stands_for_counts(loss_row: MakeRow, bridge_row: MakeRow) -> None:
    """Every discard is written down and one send in a hundred: 20 lost of 10,020 is a share of 0.2 %."""
    bridges = Bridges([bridge_row(sent=100, messages=100, messages_estimated=10_000)])
    assert hot_bridges([at_sender(loss_row, weight=20.0)], bridges) == []
    assert len(hot_bridges([at_sender(loss_row)], bridges)) == 1
    bridges = Bridges([bridge_row(sent=100, messages=100, messages_estimated=180)])
    (found,) = hot_bridges([at_sender(loss_row, weight=20.0)], bridges)
    assert found.value == 0.1


def test_a_bridge_that_never_sent_is_named_by_its_client(loss_row: MakeRow) -> None:
    """Everything was lost."""
    (found,) = hot_bridges([at_sender(loss_row)], Bridges([]))
    assert (found.router, found.vpn, found.bridge, found.value) == ("b", "y", "way", 1.0)

"""Topics nobody takes, endpoints that hold up bridges, skewed partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.context import Bridges
from vpnrouter.report.rules.endpoints import (
    black_holes,
    blockers,
    skewed_partitions,
)


def lost(topic: str, **more: Any) -> dict[str, Any]:
    """A row of `unmatched`."""
    return {
        "topic": topic,
        "router": "a",
        "vpn": "x",
        "published": 5,
        "bytes": 50,
        "lost": 5,
        **more,
    }


def stands(filter_: str, syntax: str | None, vpn: str = "x") -> dict[str, Any]:
    """A row of `standing`."""
    return {"router": "a", "vpn": vpn, "topic": filter_, "topic_syntax": syntax}


def test_a_topic_without_a_taker_is_a_black_hole() -> None:
    """One finding a topic, with what was traced and what is known to be lost."""
    (found,) = black_holes([lost("gone/t", lost=1_000)], [])
    assert (found.kind, found.severity, found.topic) == ("black_hole", "warning", "gone/t")
    assert (found.messages, found.bytes, found.value) == (5, 50, 1_000.0)
    assert found.detail == (
        "1,000 messages on gone/t entered a/x, and nobody there wanted them, no bridge and no queue either."
    )


@pytest.mark.parametrize(
    ("filter_", "syntax", "vpn", "holes"),
    [
        ("gone/>", "smf", "x", 0),
        ("gone/#", "mqtt", "x", 0),
        ("gone/#", None, "x", 0),
        ("gone/*", None, "x", 0),
        ("gone/#", "smf", "x", 1),
        ("other/>", "smf", "x", 1),
        ("gone/>", "smf", "y", 1),
        ("", "smf", "x", 1),
    ],
)
def test_who_subscribed_late_still_wants_it(
    filter_: str, syntax: str | None, vpn: str, holes: int
) -> None:
    """A filter of the same VPN that matches in the end, in its dialect, is enough."""
    assert len(black_holes([lost("gone/t")], [stands(filter_, syntax, vpn)])) == holes


MakeRow = Callable[..., dict[str, Any]]
SECOND = 1_000_000_000


def spans(*pieces: tuple[float, float, int]) -> list[dict[str, int]]:
    """First and last second and count of each stretch's rejects."""
    return [
        {"first_ns": int(first * SECOND), "last_ns": int(last * SECOND), "count": count}
        for first, last, count in pieces
    ]


def refused(loss_row: MakeRow, *pieces: tuple[float, float, int], **more: Any) -> dict[str, Any]:
    """Rejects at the queue `orders` of what came over `way`."""
    who = {"event": "reject", "endpoint": "orders", "client": "#bridge/way"}
    return loss_row("503 Spool Over Quota", **{**who, "spans": spans(*pieces), **more})


def test_an_endpoint_that_refuses_again_and_again_blocks(
    loss_row: MakeRow, bridge_row: MakeRow
) -> None:
    """Stretches that follow each other are one span; a quiet hour parts two."""
    row = refused(loss_row, (100, 109, 9), (110, 130, 20), (4_000, 4_030, 30))
    (found,) = blockers([row], Bridges([bridge_row()]))
    assert (found.kind, found.severity, found.endpoint) == ("head_of_line", "error", "orders")
    assert (found.bridge, found.peer_router, found.reason) == ("way", "a", "503 Spool Over Quota")
    assert (found.value, found.messages) == (60.0, 59)
    assert (found.first_ns, found.last_ns) == (100 * SECOND, 4_030 * SECOND)
    assert found.detail == (
        "Endpoint orders in b/y refused 59 times in 60.0 s what came first of bridge way"
        " (503 Spool Over Quota), and what came behind had to wait."
    )


def test_a_long_hold_up_is_one(loss_row: MakeRow) -> None:
    """What counts is the pause before a refusal, not the time since the first one."""
    row = refused(loss_row, *((begin, begin + 10, 10) for begin in range(0, 2_000, 500)))
    (found,) = blockers([row], Bridges([]))
    assert (found.value, found.messages) == (1_510.0, 40)


def test_a_vpn_without_room_blocks_as_well(loss_row: MakeRow) -> None:
    """The row then names no endpoint, and the bridge may be unknown."""
    row = refused(loss_row, (0, 20, 20), endpoint="", client="")
    (found,) = blockers([row], Bridges([]))
    assert (found.router, found.vpn, found.endpoint, found.bridge) == ("b", "y", None, None)
    assert found.detail.startswith("b/y refused 20 times in 20.0 s what came first of a bridge")


@pytest.mark.parametrize(
    "pieces",
    [
        [(0.0, 9.0, 9)],
        [(0.0, 30.0, 2)],
        # Once in the morning, at noon and in the evening.
        [(0.0, 0.0, 1), (20_000.0, 20_000.0, 1), (40_000.0, 40_000.0, 1)],
    ],
)
def test_refusals_now_and_then_block_nothing(
    loss_row: MakeRow, pieces: list[tuple[float, float, int]]
) -> None:
    """Too short, too few, too far apart."""
    assert blockers([refused(loss_row, *pieces)], Bridges([])) == []


def test_discards_are_no_refusals(loss_row: MakeRow) -> None:
    """Whatever their reason."""
    row = refused(loss_row, (0, 30, 30), event="discard")
    assert blockers([row], Bridges([])) == []


MS = 1_000_000


def load(partitions: int, most: int, messages: int) -> dict[str, Any]:
    """A row of `loads`."""
    figures = {
        "partitions": partitions,
        "largest": 2,
        "most": most,
        "messages": messages,
        "bytes": 1,
    }
    return {"router": "a", "vpn": "x", "endpoint": "q", **figures}


@pytest.mark.parametrize(
    ("partitions", "most", "messages", "value"),
    [
        (8, 320, 1_000, 2.56),
        (8, 312, 1_000, None),
        (8, 250, 1_000, None),
        (2, 900, 1_000, 1.8),
        (2, 800, 1_000, None),
        (3, 900, 1_000, 2.7),
        (3, 830, 1_000, None),
        (12, 1_000, 1_000, 12.0),
    ],
)
def test_far_above_the_mean_is_skewed(
    partitions: int, most: int, messages: int, value: float | None
) -> None:
    """Two and a half times; of two partitions nine tenths in one. What chance gives is none."""
    found = skewed_partitions([load(partitions, most, messages)])
    assert [one.value for one in found] == ([] if value is None else [pytest.approx(value)])

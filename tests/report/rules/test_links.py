"""Bridges that flap, lose messages, or carry none although they are up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from vpnrouter.report.rules.context import Bridges
from vpnrouter.report.rules.links import (
    flapping_links,
    hot_bridges,
    stalled_bridges,
)

MakeRow = Callable[..., dict[str, Any]]
HOUR = 3_600


def spans(*downs: float, final: float | None = None) -> list[tuple[float | None, float | None]]:
    """Ups that end at each of `downs` and begin ten seconds later; the last ends at `final`, if ever."""
    starts = [0.0, *(down + 10 for down in downs)]
    return list(zip(starts, [*downs, final], strict=True))


@pytest.mark.parametrize(
    "downs",
    [
        (100, 200, 300),
        (100, 200 + HOUR, 300 + HOUR, 400 + HOUR),
        tuple(at * 3 * HOUR for at in range(1, 7)),
    ],
)
def test_links_that_go_down_all_the_time_flap(link_row: MakeRow, downs: tuple[float, ...]) -> None:
    """Three times within an hour, or six within a day."""
    rows = [link_row(up, down) for up, down in spans(*downs)]
    (found,) = flapping_links(rows)
    assert (found.kind, found.severity, found.value) == (
        "flapping_link",
        "error",
        float(len(downs)),
    )
    assert (found.router, found.peer_router, found.bridge) == ("b", "a", "way")
    assert (found.first_ns, found.last_ns) == (int(downs[0] * 1e9), int((downs[-1] + 10) * 1e9))


@pytest.mark.parametrize(
    "ups",
    [
        # Two restarts, and the router's stop at the end.
        spans(100, 200, final=300),
        # A restart every night of a week.
        spans(*(day * 24 * HOUR for day in range(1, 8))),
        # One every five hours.
        spans(*(at * 5 * HOUR for at in range(1, 9))),
        # It was up before anybody watched.
        [(None, 100.0), (110.0, 200.0), (210.0, None)],
        [(900.0, None)],
    ],
)
def test_restarts_are_no_flapping(
    link_row: MakeRow, ups: list[tuple[float | None, float | None]]
) -> None:
    """Downs that are rare, or after which nothing came back."""
    assert flapping_links([link_row(up, down) for up, down in ups]) == []


def test_each_link_counts_for_itself(link_row: MakeRow) -> None:
    """A router that restarts takes down all of its links, each once."""
    rows = [
        link_row(up, down, bridge=name) for name in "abcd" for up, down in spans(100, final=None)
    ]
    assert flapping_links(rows) == []


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


SECOND = 1_000_000_000
WIDTH = 5 * SECOND


def flow(
    sent: Iterable[int], received: Iterable[int], each: int = 10, to: str = "b"
) -> dict[str, Any]:
    """A row of `unanswered`: the stretches, by number, in which was sent and in which arrived."""
    sending, receiving = set(sent), set(received)
    stretches = [
        {
            "start_ns": at * WIDTH,
            "sent": each * (at in sending),
            "received": each * (at in receiving),
        }
        for at in sorted(sending | receiving)
    ]
    ends = {"from_router": "a", "from_vpn": "x", "to_router": to, "to_vpn": "y", "bridge": "way"}
    return {**ends, "stretches": stretches}


def life(*stretches: int) -> list[dict[str, Any]]:
    """A row of `alive` for the receiving router."""
    return [{"router": "b", "starts": [at * WIDTH for at in stretches]}]


ALL = life(*range(100))
STALL = flow(range(20), [*range(8), *range(14, 20)])
"""Nothing arrives in stretches 8 to 13, seconds 40 to 70."""

NONE = Bridges([])


def test_a_bridge_through_which_nothing_comes_is_stalled(link_row: MakeRow) -> None:
    """From the first stretch without arrivals to the last, with what was sent in vain."""
    (found,) = stalled_bridges([STALL], ALL, [link_row(-1, None)], NONE, WIDTH)
    assert (found.kind, found.severity, found.router, found.peer_router, found.bridge) == (
        "stalled_bridge",
        "error",
        "b",
        "a",
        "way",
    )
    assert (found.first_ns, found.last_ns) == (40 * SECOND, 70 * SECOND)
    assert (found.value, found.messages) == (30.0, 60)
    assert found.detail == (
        "Nothing arrived over bridge way from a/x to b/y for 30.0 s, though its link was up and"
        " 60 messages had been sent."
    )


def test_publishers_that_pause_do_not_end_a_stall() -> None:
    """Nor do they lengthen it."""
    row = flow([*range(10), 12, 15, 18], range(8))
    (found,) = stalled_bridges([row], ALL, [], NONE, WIDTH)
    assert (found.first_ns, found.last_ns) == (8 * WIDTH, 19 * WIDTH)


@pytest.mark.parametrize(
    "row",
    [
        # Publishers are silent.
        flow([*range(8), *range(14, 20)], [*range(8), *range(14, 20)]),
        # What was sent in one stretch arrives in the next, or the one after.
        flow(range(20), range(2, 22)),
        # Nearly nothing is sent.
        flow(range(20), range(16), each=1),
        # The last stretches of the time looked at.
        flow(range(20), range(18)),
    ],
)
def test_silence_is_no_stall(row: dict[str, Any]) -> None:
    """Nor is what is under way."""
    assert stalled_bridges([row], ALL, [], NONE, WIDTH) == []


@pytest.mark.parametrize(
    "spans",
    [
        # Down all the time; up late; down within.
        [(-1, 40), (70, None)],
        [(56, None)],
        [(-1, 50), (61, None)],
    ],
)
def test_a_link_that_is_down_is_not_stalled(
    link_row: MakeRow, spans: list[tuple[float, float | None]]
) -> None:
    """What is sent in vain then was under way, or the two clocks differ a little."""
    links = [link_row(up, down) for up, down in spans]
    assert stalled_bridges([STALL], ALL, links, NONE, WIDTH) == []


def test_a_network_that_breaks_is_no_stall_until_it_should_have_been_noticed(
    link_row: MakeRow,
) -> None:
    """Heartbeats end the link; one that stays up for more than a minute is worth a word."""
    assert len(stalled_bridges([STALL], ALL, [link_row(-1, 75)], NONE, WIDTH)) == 1
    broken = flow([*range(14), *range(20, 24)], [*range(8), *range(20, 24)])
    assert (
        stalled_bridges([broken], ALL, [link_row(-1, 75), link_row(100, None)], NONE, WIDTH) == []
    )
    long = flow([*range(21), *range(30, 34)], [*range(8), *range(30, 34)])
    (found,) = stalled_bridges([long], ALL, [link_row(-1, 110), link_row(150, None)], NONE, WIDTH)
    assert found.value == 65.0


def test_a_receiver_that_tells_nothing_is_not_blamed(link_row: MakeRow) -> None:
    """Its last trace file is not there, or never will be: what it wrote anything after is sure."""
    row = flow(range(20), range(8))
    assert stalled_bridges([row], life(*range(8)), [], NONE, WIDTH) == []
    assert stalled_bridges([row], [], [], NONE, WIDTH) == []
    (found,) = stalled_bridges([row], life(*range(8), 13), [], NONE, WIDTH)
    assert found.last_ns == 14 * WIDTH
    # It died with what it had not written yet, and wrote again after its restart.
    links = [link_row(-1, 101), link_row(120, None)]
    assert stalled_bridges([row], life(*range(8), 25, 26), links, NONE, WIDTH) == []


def test_a_receiver_that_goes_on_over_the_same_link_was_there() -> None:
    """It needs no other rows."""
    assert len(stalled_bridges([STALL], [], [], NONE, WIDTH)) == 1


def test_a_slow_bridge_may_take_its_time(bridge_row: MakeRow) -> None:
    """Three times what its messages take is none."""
    slow = Bridges([bridge_row(latency_p99_ns=11 * SECOND)])
    assert stalled_bridges([STALL], ALL, [], slow, WIDTH) == []
    quick = Bridges([bridge_row(latency_p99_ns=9 * SECOND)])
    assert len(stalled_bridges([STALL], ALL, [], quick, WIDTH)) == 1

"""vpnrouter.report.rules.links: bridges that are up and carry nothing."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.context import Bridges
from vpnrouter.report.rules.links import alive, stalled_bridges, unanswered

MakeRow = Callable[..., dict[str, Any]]
DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]

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


def test_each_stall_is_told() -> None:
    """Of one bridge."""
    row = flow(range(30), [*range(5), *range(10, 20)])
    found = stalled_bridges([row], ALL, [], NONE, WIDTH)
    assert [one.first_ns for one in found] == [5 * WIDTH, 20 * WIDTH]


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


def place(event: str, at: int, count: int = 10, **more: Any) -> dict[str, Any]:
    """A row of PLACES of the bridge `way` from a/x to b/y."""
    here, there = (("a", "x"), ("b", "y")) if event == "bridge_send" else (("b", "y"), ("a", "x"))
    return {
        "event": event,
        "router": here[0],
        "vpn": here[1],
        "peer_router": there[0],
        "peer_vpn": there[1],
        "bridge": "way",
        "start_ns": at * WIDTH,
        "count": count,
        **more,
    }


@pytest.mark.spark
def test_candidates_are_picked_from_both_ends(digest_of: DigestOf) -> None:
    """A bridge whose both ends agree is left out, and so is one whose local router traces nothing."""
    rows = [place("bridge_send", at) for at in range(8)]
    rows += [place("bridge_send", 7, count=1, mode="direct")]
    rows += [place("bridge_receive", at) for at in (0, 1, 2)]
    for name, arrived in (("agreed", range(1, 9)), ("untold", ())):
        rows += [place("bridge_send", at, bridge=name) for at in range(8)]
        rows += [place("bridge_receive", at, bridge=name) for at in arrived]
    rows += [{"event": "ingress", "router": "b", "vpn": "y", "start_ns": 9 * WIDTH, "count": 1}]
    places = digest_of("places", rows)
    (found,) = [one.asDict(recursive=True) for one in unanswered(places, [], WIDTH).collect()]
    assert found["bridge"] == "way"
    assert [(one["sent"], one["received"]) for one in found["stretches"]] == [
        *[(10, 10)] * 3,
        *[(10, 0)] * 4,
        (11, 0),
    ]
    (lives,) = alive(places, [found], [], WIDTH).collect()
    assert lives.router == "b"
    assert lives.starts == [at * WIDTH for at in range(10)]


@pytest.mark.spark
def test_wrong_clocks_are_put_right_first(digest_of: DigestOf) -> None:
    """A local router whose clock is 40 seconds ahead seems to get nothing at first."""
    rows = [place("bridge_send", at) for at in range(12)]
    rows += [place("bridge_receive", at + 8) for at in range(12)]
    places = digest_of("places", rows)
    assert unanswered(places, [], WIDTH).count() == 1
    ahead = {"router": "b", "reference": "a", "offset_ns": 41 * SECOND, "error_ns": 1}
    assert unanswered(places, [ahead], WIDTH).count() == 0
    # It may as well be the sender's, which all others are ahead of.
    others = [{**ahead, "router": name} for name in ("b", "c", "d")]
    assert unanswered(places, others, WIDTH).count() == 0
    unsure = {**ahead, "offset_ns": None, "error_ns": None}
    assert unanswered(places, [unsure], WIDTH).count() == 1

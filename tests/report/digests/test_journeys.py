"""vpnrouter.report.digests.journeys: each message followed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.digests.digest import Digests, digested
from vpnrouter.report.digests.sums import middle_ns
from vpnrouter.report.schema import TRACES
from vpnrouter.report.spark import Quiet

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]
MS = 1_000_000
SECOND = 1_000_000_000
TRACE = "f" * 32


def test_hops(rows_of: Callable[[str], Rows]) -> None:
    """Time over each bridge by corrected clocks, from rows of both routers; a crossing seen once is left out."""
    hops = {(row["bridge"], row["count"]): middle_ns(row["bucket"]) for row in rows_of("hops")}
    assert hops.keys() == {("fares", 5), ("back", 3)}
    assert all(took == pytest.approx(3_000_000, rel=0.02) for took in hops.values())
    assert {row["from_router"] for row in rows_of("hops") if row["bridge"] == "back"} == {"core"}


def test_doubles(rows_of: Callable[[str], Rows]) -> None:
    """The one message that the subscriber got twice."""
    (double,) = [row for row in rows_of("doubles") if row["kind"] == "deliver"]
    assert (double["router"], double["vpn"], double["who"]) == ("core", "yellow", "sub")
    assert (double["messages"], double["copies"]) == (1, 1)
    assert double["last_ns"] - double["first_ns"] == 1
    assert {row["kind"] for row in rows_of("doubles")} == {"deliver", "two_ways"}


def _crossed(
    bridge: str,
    number: int,
    sent_ns: tuple[int, ...],
    came_ns: tuple[int, ...],
    *,
    trace: str | None = None,
    mode: str = "direct",
) -> Rows:
    """Rows of one message from edge/blue to core/yellow; times are after its first ingress."""
    entered = 1_000 * SECOND + number * MS
    of = {"trace_id": trace or f"{number:032x}", "message_id": number, "origin_ts_ns": entered}
    of |= {"mode": mode, "size_bytes": 10, "topic": "t", "hops": 1, "bridge": bridge}
    of |= {"origin_router": "edge", "origin_vpn": "blue", "weight": 1.0}
    sent = {"event": "bridge_send", "router": "edge", "vpn": "blue", "client": "#bridge"}
    sent |= {"peer_router": "core", "peer_vpn": "yellow"}
    came = {"event": "bridge_receive", "router": "core", "vpn": "yellow"}
    came |= {"peer_router": "edge", "peer_vpn": "blue", "path": "edge/blue"}
    return [{**of, **sent, "ts_ns": entered + at} for at in sent_ns] + [
        {**of, **came, "ts_ns": entered + at} for at in came_ns
    ]


@pytest.fixture(scope="module")
def one_way(spark: SparkSession) -> Iterator[Digests]:
    """Messages from edge to core over bridges that differ in what happened there; none goes back."""
    rows = [
        # An application of one traceparent sends both.
        *_crossed("shared", 1, (0,), (3 * MS,), trace=TRACE),
        *_crossed("shared", 2, (0,), (9 * MS,), trace=TRACE),
        # The link went down between first arrival and acknowledgement.
        *_crossed("again", 3, (MS, 60 * MS), (5 * MS, 70 * MS), mode="persistent"),
        # Core's clock is behind by more than the way takes.
        *_crossed("behind", 4, (0,), (-47 * MS,)),
        # Each end of these was seen alone.
        *_crossed("cut", 5, (0,), ()),
        *_crossed("cut", 6, (), (MS,)),
        *(
            row
            for number in range(100, 200)
            for row in _crossed("many", number, (0,), (number * 10_000,))
        ),
    ]
    # Rows of one message do not stand together in files of two routers.
    rows.sort(key=lambda row: (row["event"], -row["ts_ns"]))
    listed = [tuple(row.get(name) for name in TRACES.names) for row in rows]
    traces = spark.createDataFrame(listed, TRACES).repartition(3)
    with digested(traces, traces, None, 3_600 * SECOND, 2, Quiet()) as made:
        yield made


def _took(made: Digests, bridge: str) -> list[int]:
    """Times over a bridge in nanoseconds, the shortest first."""
    rows = made.frames["hops"].where(f"bridge = '{bridge}'").collect()
    return sorted(middle_ns(row["bucket"]) for row in rows for _ in range(row["count"]))


def test_messages_of_one_trace_keep_their_own_times(one_way: Digests) -> None:
    """A trace id alone is no message: neither is the other's second crossing."""
    assert _took(one_way, "shared") == [
        pytest.approx(3 * MS, rel=0.02),
        pytest.approx(9 * MS, rel=0.02),
    ]
    assert {row["who"] for row in one_way.frames["doubles"].collect()} == {"again"}


def test_a_redelivery_is_two_crossings_and_one_time(one_way: Digests) -> None:
    """From the first sending to the first arrival; the second arrival is one copy too many."""
    assert _took(one_way, "again") == [pytest.approx(4 * MS, rel=0.02)]
    places = one_way.frames["places"].where("bridge = 'again'").collect()
    assert {(row["event"], row["count"]) for row in places} == {
        ("bridge_send", 2),
        ("bridge_receive", 2),
    }
    (double,) = one_way.frames["doubles"].collect()
    assert (double["kind"], double["messages"], double["copies"]) == ("bridge", 1, 1)
    assert double["last_ns"] - double["first_ns"] == 65 * MS


def test_clocks_apart_show(one_way: Digests) -> None:
    """Without traffic both ways nothing is corrected, and a time below zero is neither lost nor hidden."""
    assert {row["offset_ns"] for row in one_way.clocks} == {None}
    assert _took(one_way, "behind") == [pytest.approx(-47 * MS, rel=0.02)]


def test_every_crossing_is_met(one_way: Digests) -> None:
    """100 messages give 100 times, each within its bucket; one end alone gives none."""
    took = _took(one_way, "many")
    assert len(took) == 100
    wanted = [number * 10_000 for number in range(100, 200)]
    assert all(one == pytest.approx(two, rel=0.02) for one, two in zip(took, wanted, strict=True))
    assert _took(one_way, "cut") == []

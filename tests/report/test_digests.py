"""Trace rows become digests, and digests of parts add up to those of the whole."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertSchemaEqual

from vpnrouter.report.digests import columns
from vpnrouter.report.digests.columns import Corrections, middle_ns
from vpnrouter.report.digests.condense import Condensed
from vpnrouter.report.digests.counts import paths
from vpnrouter.report.digests.digest import Digests, combined, digested
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.flows.clocks import WHOLE_TIME
from vpnrouter.report.schema import Rows
from vpnrouter.report.traces.rows import TraceRows


def test_a_bucket_holds_durations_within_three_percent(spark: SparkSession) -> None:
    """The middle of a duration's bucket is within 1.6 % of it, on both sides of zero and of powers of two; a longer
    duration never has a smaller bucket, and what is not known has none.
    """
    random = Random(7)
    durations = [0, 1, -1, 31, 32, 33, -32, -33, 2**40, 2**40 - 1, -(2**40), 2**62 - 1]
    durations += [2**power + off for power in range(5, 62) for off in (-1, 0, 1)]
    durations += [random.randrange(-(10**12), 10**12) for _ in range(500)]
    durations += [random.randrange(-(2**k), 2**k) for k in range(1, 60) for _ in range(20)]
    frame = spark.createDataFrame([(one,) for one in [*durations, None]], "ns bigint")
    unknown, *rows = (
        columns.with_bucket(frame, F.col("ns")).select("ns", "bucket").sort("ns").collect()
    )
    assert tuple(unknown) == (None, None)
    assert len(rows) == len(durations)
    numbers = [row["bucket"] for row in rows]
    assert numbers == sorted(numbers)
    for row in rows:
        middle = columns.middle_ns(row["bucket"])
        assert abs(middle - row["ns"]) <= max(1, abs(row["ns"]) / 64), row
        assert (row["ns"] < 0) == (row["bucket"] < 0)


def test_percentiles_are_those_of_the_ranks() -> None:
    """A percentile is the middle of the bucket in which the sample of its rank lies."""
    counts = [(20, 1), (3, 98), (10, 1), (99, 0)]
    assert columns.percentiles(counts, [0.0, 0.5, 0.98, 0.99, 1.0]) == [3, 3, 3, 10, 20]
    assert columns.percentiles([], [0.5, 0.9]) == [None, None]


def clock(router: str, reference: str | None, offset_ns: int | None) -> dict[str, Any]:
    """A row of CLOCKS."""
    return {
        "router": router,
        "reference": reference,
        "offset_ns": offset_ns,
        "error_ns": 1,
    } | WHOLE_TIME


def between(spark: SparkSession, clocks: list[dict[str, Any]], *pairs: str) -> list[int]:
    """What is taken off a time from the first router of each pair, "first second", to the second."""
    ends = [tuple(pair.split()) for pair in pairs]
    frame = spark.createDataFrame(ends, "first string, second string").coalesce(1)
    (found,) = Corrections(clocks).between(F.col("first"), F.col("second"))
    return [row[0] for row in frame.select(found).collect()]


def test_corrections_of_clocks(spark: SparkSession) -> None:
    """The difference of two offsets within a group, nothing across groups, nor where one of the two is in none."""
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("c", "a", -5), clock("d", None, None)]
    pairs = ("a b", "b a", "b c", "c c", "d b", "e d")
    assert between(spark, clocks, *pairs) == [40, -40, -45, 0, 0, 0]
    clocks = [clock("a", "a", 0), clock("b", "a", 40), clock("x", "x", 0), clock("y", "x", 7)]
    assert between(spark, clocks, "a b", "y x", "b y", "a y", "b e", "e y") == [40, -7, 0, 0, 0, 0]
    assert between(spark, [], "a b") == [0]
    assert between(spark, [clock("a", "a", 0), clock("b", "a", 0)], "a b") == [0]


def test_sums(spark: SparkSession) -> None:
    """A row that stands for many counts as those; one weight that is not known makes the sum unknown; a stretch holds
    its begin and not its end, before 1970 as well.
    """
    rows = [("a", None, 2.0, 10), ("a", 3, 4.0, 10), ("b", None, None, 1), ("b", 1, 1.0, None)]
    frame = spark.createDataFrame(rows, "k string, count bigint, weight double, size_bytes bigint")
    found = (
        frame.groupBy("k").agg(columns.counted(), columns.weighed(), columns.payload()).orderBy("k")
    )
    assert [tuple(row) for row in found.collect()] == [("a", 4, 6.0, 40), ("b", 2, None, 1)]
    times = spark.createDataFrame([(0,), (9,), (10,), (-1,)], "ns bigint")
    stretches = times.select(columns.stretch_of(F.col("ns"), 10)).collect()
    assert [row[0] for row in stretches] == [0, 0, 10, -10]


SECOND = 1_000_000_000
MS = 1_000_000
SECOND_COPY_NS = 5 * SECOND + 43_000_001
"""When, by its clock, core gave the subscriber message 5 for the second time."""

Mesh = dict[str, Rows]


def listed(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows, in an order of their own."""
    return sorted((row.asDict() for row in frame.collect()), key=repr)


@pytest.mark.long
def test_two_halves_are_the_whole(digested_mesh: Digests, mesh_traces: DataFrame) -> None:
    """Odd and even messages apart, each half with traffic both ways; and the two copies of one message apart,
    which alone is not found again.
    """
    copy = (F.col("event") == "deliver") & (F.col("ts_ns") == SECOND_COPY_NS)
    even = (F.coalesce("message_id", F.lit(0)) % 2 == 0) | copy
    assert mesh_traces.where(copy).count() == 1
    one, other = mesh_traces.where(even), mesh_traces.where(~even)
    with (
        digested(
            TraceRows(rows=one, in_full=one), None, SECOND, 2, NoProgress(), small=True
        ) as first,
        digested(TraceRows(rows=other, in_full=other), None, SECOND, 2, NoProgress()) as second,
    ):
        assert first.clocks == second.clocks == digested_mesh.clocks
        for name, schema in DIGESTS.items():
            parts = first.frames[name].unionByName(second.frames[name])
            together = combined(name, parts)
            assertSchemaEqual(together.schema, schema)
            whole = listed(digested_mesh.frames[name])
            if name == "doubles":
                assert "deliver" in {row["kind"] for row in whole}
                whole = [row for row in whole if row["kind"] != "deliver"]
            assert whole
            assert listed(together) == whole, name


def test_figures_add_up(digest_of: Callable[..., DataFrame]) -> None:
    """Counts are summed, times span, of examples and ages the least is kept; other columns tell rows apart. A weight is
    known when all are; a link that came up twice at once came up twice; no rows give no rows.
    """
    loss = {"router": "edge", "vpn": "blue", "event": "discard", "reason": "slow", "start_ns": 0}
    rows = [
        {**loss, "count": 2, "bytes": 20, "weight": 4.0, "first_ns": 5, "last_ns": 6}
        | {"example_topic": "b", "example_path": None},
        {**loss, "count": 3, "bytes": 30, "weight": 6.0, "first_ns": 2, "last_ns": 3}
        | {"example_topic": "a", "example_path": "x/y"},
        {**loss, "count": 1, "bytes": 1, "weight": 1.0, "start_ns": 10},
    ]
    later, found = sorted(
        listed(combined("losses", digest_of("losses", rows))), key=lambda r: r["count"]
    )
    assert (found["count"], found["bytes"], found["weight"]) == (5, 50, 10.0)
    assert (found["first_ns"], found["last_ns"]) == (2, 6)
    assert (found["example_topic"], found["example_path"]) == ("a", "x/y")
    assert (later["start_ns"], later["count"]) == (10, 1)
    use = {"topic": "a", "router": "edge", "vpn": "blue", "event": "ingress", "count": 1}
    rows = [{**use, "weight": 2.0}, {**use, "weight": None}]
    (found,) = listed(combined("uses", digest_of("uses", rows)))
    assert (found["count"], found["weight"]) == (2, None)
    up = {"ts_ns": 1, "router": "edge", "vpn": "blue", "event": "link_up"}
    assert len(listed(combined("states", digest_of("states", [up, up])))) == 2
    assert listed(combined("places", digest_of("places", []))) == []


def test_ends_are_read_off_the_path(condensed_of: Callable[..., Condensed]) -> None:
    """A slash in the name of a message VPN does not matter; a path with more steps than hops names no ends."""
    came = {"event": "bridge_receive", "vpn": "v", "bridge": "b", "ts_ns": 5, "origin_ts_ns": 1}
    rows = [
        {**came, "path": "a/x/1>b/y", "hops": 2},
        {**came, "path": "a/x>1", "hops": 1},
        {**came, "path": None, "hops": 1, "peer_router": "p", "peer_vpn": "q"},
    ]
    found = {row["path"]: row for row in paths(condensed_of({"r": rows})).collect()}
    told = found["a/x/1>b/y"]
    assert (told["origin_router"], told["origin_vpn"]) == ("a", "x/1")
    assert (told["peer_router"], told["peer_vpn"], told["hops"]) == ("b", "y", 2)
    assert (found["a/x>1"]["origin_router"], found["a/x>1"]["peer_vpn"]) == (None, None)
    assert (found[None]["peer_router"], found[None]["peer_vpn"]) == ("p", "q")


@pytest.fixture(scope="module")
def mesh(digested_mesh: Digests) -> Mesh:
    """The rows of all digests of the mesh in tracefiles.py."""
    return {
        name: [row.asDict() for row in frame.collect()]
        for name, frame in digested_mesh.frames.items()
    }


def test_places_and_states(mesh: Mesh) -> None:
    """Counts, payloads and the side that wrote, by stretch; links from the states, subscriptions nowhere."""
    assert {(row["event"], row["topic"], row["topic_syntax"]) for row in mesh["states"]} == {
        ("link_up", None, None),
        ("subscribe", "a/+", "mqtt"),
        ("subscribe", "a/>", "smf"),
    }
    places = mesh["places"]
    crossed = [row for row in places if row["event"] == "bridge_receive" and row["vpn"] == "yellow"]
    assert sum(row["count"] for row in crossed) == 6
    assert sum(row["weight"] for row in crossed) == 12.0
    assert {row["bridge"]: row["remote"] for row in crossed} == {"fares": False, "spare": False}
    assert sum(row["bytes"] for row in crossed) == 600
    assert all(row["start_ns"] % SECOND == 0 for row in places)
    assert all(row["start_ns"] <= row["first_ns"] <= row["last_ns"] for row in places)
    links = {row["router"]: row["remote"] for row in places if row["event"] == "link_up"}
    assert links == {"edge": True, "south": False}
    assert sum(row["count"] for row in places if row["event"] == "discard") == 48
    assert not [row for row in places if row["event"] == "subscribe"]


def test_uses_losses_and_endpoints(mesh: Mesh) -> None:
    """Who got what on which topic, publishers not told apart; a row that stands for many counts as those."""
    uses = mesh["uses"]
    sent = [row for row in uses if row["event"] == "bridge_send" and row["bridge"] == "fares"]
    assert [(row["client"], row["count"]) for row in sent] == [("#bridge/core/yellow/fares", 5)]
    unmatched = [row for row in uses if row["event"] == "discard" and row["topic"] == "x"]
    assert [(row["endpoint"], row["count"]) for row in unmatched] == [("no-subscription-match", 42)]
    assert [row["endpoint"] for row in uses if row["event"] == "enqueue"] == ["q"]
    assert {row["client"] for row in uses if row["event"] == "ingress"} == {None}
    assert not [row for row in uses if row["event"] == "acknowledge"]
    (loss,) = [row for row in mesh["losses"] if row["client"] == "pub"]
    assert (loss["count"], loss["crossed"], loss["endpoint"]) == (42, False, "")
    assert (loss["reason"], loss["bytes"]) == ("no-subscription-match", 4200)
    assert loss["example_topic"] == "x"
    (queue,) = mesh["endpoints"]
    assert (queue["partition"], queue["enqueued"], queue["acknowledged"]) == (1, 1, 1)
    assert queue["bytes"] == 100


def test_paths_and_delays(mesh: Mesh) -> None:
    """One row a way; least ages by two clocks; delays from first ingress, by clocks that are corrected."""
    ways = [row for row in mesh["paths"] if row["router"] != "south"]
    assert sorted((row["path"], row["bridge"], row["count"]) for row in ways) == [
        ("core/yellow", "back", 3),
        ("edge/blue", "fares", 5),
        ("edge/blue", "spare", 1),
    ]
    aged: dict[tuple[str, str], set[int]] = {}
    for row in mesh["ages"]:
        aged.setdefault((row["origin_router"], row["router"]), set()).add(row["least_age_ns"])
    assert aged["edge", "core"] == {43_000_000}
    assert aged["core", "edge"] == {-37_000_000}
    took = {(row["origin_vpn"], row["vpn"]): row for row in mesh["delays"]}
    for pair, count in ((("blue", "yellow"), 6), (("yellow", "blue"), 3)):
        assert middle_ns(took[pair]["bucket"]) == pytest.approx(3_000_000, rel=0.02)
        assert took[pair]["count"] == count
    # A message that crossed nothing began here.
    here = took["yellow", "yellow"]
    assert (here["origin_router"], here["router"], here["bucket"]) == ("core", "core", 7)


def _took(mesh: Mesh, bridge: str) -> list[int]:
    """Times over a bridge in nanoseconds, the shortest first."""
    rows = [row for row in mesh["hops"] if row["bridge"] == bridge]
    return sorted(middle_ns(row["bucket"]) for row in rows for _ in range(row["count"]))


def test_hops(mesh: Mesh) -> None:
    """Times over bridges by corrected clocks, from rows of both routers; a crossing seen once is left out."""
    assert _took(mesh, "fares") == [pytest.approx(3 * MS, rel=0.02)] * 5
    assert _took(mesh, "back") == [pytest.approx(3 * MS, rel=0.02)] * 3
    assert {row["from_router"] for row in mesh["hops"] if row["bridge"] == "back"} == {"core"}
    assert _took(mesh, "cut") == _took(mesh, "spare") == []
    # A trace id alone is no message: neither is the other's second crossing.
    assert _took(mesh, "shared") == [pytest.approx(at * MS, rel=0.02) for at in (3, 9)]
    # From the first sending to the first arrival.
    assert _took(mesh, "again") == [pytest.approx(4 * MS, rel=0.02)]
    # Where nothing is corrected, a time below zero is neither lost nor hidden.
    assert _took(mesh, "behind") == [pytest.approx(-47 * MS, rel=0.02)]
    wanted = [pytest.approx(number * 10_000, rel=0.02) for number in range(100, 200)]
    assert _took(mesh, "many") == wanted


def test_doubles(mesh: Mesh) -> None:
    """One message that a subscriber got twice, one that came again over a bridge, and one by two ways."""
    found = {row["kind"]: row for row in mesh["doubles"]}
    assert len(found) == len(mesh["doubles"]) == 3
    twice, again, two = found["deliver"], found["bridge"], found["two_ways"]
    assert (twice["router"], twice["vpn"], twice["who"]) == ("core", "yellow", "sub")
    assert (twice["messages"], twice["copies"]) == (1, 1)
    assert twice["last_ns"] - twice["first_ns"] == 1
    assert (again["who"], again["messages"], again["copies"]) == ("again", 1, 1)
    assert again["last_ns"] - again["first_ns"] == 65 * MS
    crossed = [row for row in mesh["places"] if row["bridge"] == "again"]
    assert {(row["event"], row["count"]) for row in crossed} == {
        ("bridge_send", 2),
        ("bridge_receive", 2),
    }
    assert (two["who"], two["other"]) == ("edge/blue:fares", "edge/blue:spare")
    assert (two["messages"], two["copies"], two["example_trace"]) == (1, 1, f"{1:032x}")

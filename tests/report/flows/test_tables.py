"""Tables of flows from digests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.testing import assertSchemaEqual

from vpnrouter.report import schema
from vpnrouter.report.digests.columns import middle_ns
from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.clocks import clock_offsets
from vpnrouter.report.flows.collect import rows_in, totals
from vpnrouter.report.flows.tables import (
    Latency,
    ObservedBridge,
    SideCounts,
    UpTime,
    busiest,
    busiest_bridges,
    delays,
    discards,
    edges,
    end_to_end,
    flows,
    histograms,
    last_seen,
    latencies,
    lengths,
    nodes,
    rates,
    seen_edges,
    timeline,
    topics,
    ways,
    ways_and_lengths,
    worst,
)
from vpnrouter.report.schema import DISCARDS, EDGE, EDGES, NODES, RATES, TIMELINE, TOPICS, WAYS

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]
NAMES = ("places", "paths", "uses", "losses", "delays", "hops", "states")
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}
ENDS = {"from_router": "edge", "from_vpn": "blue", "to_router": "core", "to_vpn": "yellow"}
FIGURES = {"count": 4, "weight": 4.0, "bytes": 40, "first_ns": 7, "last_ns": 50, "start_ns": 0}
TOPIC = {"router": "edge", "vpn": "blue", "count": 2, "weight": 2.0}


def test_the_tables_agree_with_each_other(spark: SparkSession, digest_of: DigestOf) -> None:
    """One bridge with its ends, rates, latencies, link, ways and the time from end to end."""
    rows: dict[str, list[dict[str, Any]]] = {
        "places": [
            {"router": "edge", "vpn": "blue", "event": "ingress", **FIGURES},
            {**AT_EDGE, "event": "bridge_send", "bridge": "fares", "mode": "direct", **FIGURES},
            {**AT_CORE, "event": "link_down", "bridge": "fares", **FIGURES, "count": 1},
        ],
        "paths": [
            {**AT_CORE, "origin_router": "edge", "hops": 1, "count": 4, "least_age_ns": 7},
            {**AT_EDGE, "origin_router": "core", "hops": 1, "count": 1, "least_age_ns": -5},
        ],
        "uses": [{"topic": name, "event": "ingress", **TOPIC} for name in "ab"],
        "losses": [{"router": "edge", "vpn": "blue", "event": "discard", **FIGURES}],
        "delays": [{"origin_router": "edge", "router": "core", "bucket": 3, "count": 4}],
        "hops": [{**ENDS, "bridge": "fares", "bucket": 2, "count": 4}],
        "states": [{**AT_CORE, "event": "link_down", "bridge": "fares", "ts_ns": 30}],
    }
    heard: list[str] = []
    digests = {name: digest_of(name, listed) for name, listed in rows.items()}
    found = flows(spark, digests, clock_offsets(rows["paths"]), heard.append)
    assert heard == ["bridges", "message VPNs", "ways", "topics", "discards", "timeline"]
    assert found.topic_count == 2
    for name, table in found.tables.items():
        assert table.schema.names == getattr(schema, name.upper()).names
    tables = {name: table.to_pylist() for name, table in found.tables.items()}
    (edge,) = tables["edges"]
    assert (edge["bridge"], edge["messages"], edge["latency_p50_ns"]) == ("fares", 4, 2)
    assert (edge["latency_corrected"], edge["link_downs"], edge["up_ns"]) == (True, 1, 23)
    assert [(row["vpn"], row["traced"]) for row in tables["nodes"]] == [
        ("yellow", True),
        ("blue", True),
    ]
    assert [row["messages"] for row in tables["rates"]] == [4]
    assert [row["latency_ns"] for row in tables["latencies"]] == [2]
    assert [(row["p50_ns"], row["corrected"]) for row in tables["end_to_end"]] == [(3, True)]
    assert [row["offset_ns"] for row in tables["clocks"]] == [0, -6]
    assert [(row["up_ns"], row["down_ns"]) for row in tables["links"]] == [(7, 30)]
    assert [row["messages"] for row in tables["ways"]] == [4, 1]
    assert [row["hops"] for row in tables["lengths"]] == [0, 1]
    assert [row["messages"] for row in tables["discards"]] == [4]
    assert [row["ingress"] for row in tables["timeline"]] == [4]


def test_empty_tables_and_bounds(
    spark: SparkSession, digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables without a row have their columns and types; topics, discards and ways beyond the bounds are left out,
    and topics still counted.
    """
    place = {"router": "edge", "vpn": "blue", "count": 1}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    for name in "0123":
        rows["uses"].append({**place, "topic": name, "event": "ingress"})
        rows["losses"].append({**place, "event": "discard", "client": name})
        rows["paths"].append({**place, "path": name, "hops": 1})
    for number, name in enumerate(("REPORT_TOPICS", "REPORT_DISCARDS", "REPORT_WAYS"), 1):
        monkeypatch.setattr(module, name, number)
    found = flows(spark, {name: digest_of(name, listed) for name, listed in rows.items()}, [])
    cut = {"topics": 1, "discards": 2, "ways": 3, "lengths": 1}
    assert found.topic_count == 4
    for name, table in found.tables.items():
        assert table.num_rows == cut.get(name, 0), name
        assert table.schema.equals(to_arrow_schema(getattr(schema, name.upper()))), name


def loss(event: str, at_ns: int, count: int, weight: float | None, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at edge/blue."""
    nameless = dict.fromkeys(("reason", "endpoint", "bridge", "client"), "")
    times = {"start_ns": 0, "first_ns": at_ns, "last_ns": at_ns + 1}
    place = {"router": "edge", "vpn": "blue", "event": event}
    return {**nameless, **place, **times, "count": count, "weight": weight, **more}


def test_losses_are_counted_by_reason_and_place(
    digest_of: DigestOf,
    assert_rows: Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None],
) -> None:
    """Endpoint, else bridge, else client is the place; a redelivery is no loss."""
    rows = [
        loss("discard", 1, 1, 2.0, reason="slow", client="c1", example_topic="b", bytes=3),
        loss("discard", 4, 1, 2.0, reason="slow", client="c1", example_topic="a", bytes=4),
        loss("discard", 2, 1, 2.0, reason="slow", client="c2", bridge="fares", bytes=1),
        loss("reject", 3, 9, None, reason="full", endpoint="q", client="c1"),
        loss("reject", 3, 1, 2.0, reason="full", endpoint="q", client="c2", crossed=True),
        loss("expire", 5, 1, 2.0, reason=None, client=None),
        loss("redeliver", 6, 8, 8.0, client="c1"),
    ]
    found = discards(digest_of("losses", rows))
    assert_rows(
        found,
        DISCARDS,
        [
            ("edge", "blue", "discard", "slow", "c1", 2, 4, 7, "a", 1, 5),
            ("edge", "blue", "discard", "slow", "fares", 1, 2, 1, None, 2, 3),
            ("edge", "blue", "reject", "full", "q", 10, None, 0, None, 3, 4),
            ("edge", "blue", "expire", "", "", 1, 2, 0, None, 5, 6),
        ],
    )
    assert [row.place for row in worst(found, 2).collect()] == ["q", "c1"]


FARES = ("edge", "blue", "core", "yellow", "fares")


def total(event: str, count: int, *, remote: bool = False, **more: Any) -> dict[str, Any]:
    """A row of totals about bridge "fares"."""
    ends = AT_EDGE if remote else AT_CORE
    figures = {"direct": count - 1, "weight": 2.0 * count, "bytes": 64 * count, "peak": 3}
    times = {"stretches": 2, "first_ns": 10, "last_ns": 20}
    said = {"event": event, "bridge": "fares", "remote": remote, "count": count}
    return {**ends, **said, **figures, **times, **more}


def sent(count: int, **more: Any) -> dict[str, Any]:
    """What the remote end sent."""
    return total("bridge_send", count, remote=True, **more)


def found(*totals: dict[str, Any]) -> dict[str, Any]:
    """The one edge of these totals."""
    (row,) = edges(seen_edges(totals), {}, {}, {}, {})
    return row


def test_both_sides_make_one_edge() -> None:
    """Rows of sender and receiver give one edge with exact counts, bytes, modes and percentiles."""
    seen = seen_edges([sent(99, first_ns=5), total("bridge_receive", 100, last_ns=30)])
    spans = {FARES: [UpTime(1, 4), UpTime(6)]}
    times = {FARES: Latency(80, 50, 95, 99)}
    rows = edges(seen, times, spans, {"core": 40, "edge": 30}, {"core": "edge", "edge": "edge"})
    assert [list(row) for row in rows] == [EDGES.names]
    # fmt: off
    assert tuple(rows[0].values()) == (
        *FARES,
        100, 200, 6_400, 99, 100, 99, 1, 3,
        80, 50, 95, 99, True,
        0, 0, 37, 5, 30,
        None, None, None,
    )
    # fmt: on


def test_the_side_that_saw_more_counts() -> None:
    """Messages that were sent twice, or lost, count as the sender saw them."""
    row = found(sent(3, peak=2, weight=None), total("bridge_receive", 1))
    assert (row["messages"], row["sent"], row["received"], row["bytes"]) == (3, 3, 1, 192)
    assert (row["messages_estimated"], row["direct"], row["peak_messages"]) == (None, 2, 2)
    assert found(sent(1, weight=None), total("bridge_receive", 1))["messages_estimated"] == 2


def test_one_side_is_enough() -> None:
    """With one router's traces alone the edge is there, with what that side can know."""
    for row, figures in (
        (found(sent(5)), (5, 5, 0)),
        (found(total("bridge_receive", 5)), (5, 0, 5)),
    ):
        assert tuple(row[name] for name in EDGES.names[:5]) == FARES
        assert (row["messages"], row["sent"], row["received"]) == figures
        assert (row["latency_samples"], row["latency_p50_ns"]) == (0, None)
        assert row["latency_corrected"] is False


def test_directions_and_names_are_edges_of_their_own() -> None:
    """The way back, and a second bridge between the same VPNs, are separate edges."""
    rows = [
        total("bridge_receive", 1, bridge="more"),
        total("bridge_receive", 1),
        {**total("bridge_receive", 1, bridge="back"), **AT_EDGE},
        total("bridge_receive", 1, bridge=None),
    ]
    assert list(seen_edges(rows)) == [
        ("core", "yellow", "edge", "blue", "back"),
        (*FARES[:4], ""),
        FARES,
        (*FARES[:4], "more"),
    ]


def test_links_are_counted_once_for_both_ends() -> None:
    """Both ends write down a link's ups and downs; they are the same edge and count once."""
    local = [total("link_up", 2), total("link_down", 1)]
    remote = [total("link_up", 2, remote=True), total("link_down", 1, remote=True)]
    for rows in (local, remote, local + remote, remote + local[:1]):
        row = found(*rows)
        assert (row["from_router"], row["to_router"], row["bridge"]) == ("edge", "core", "fares")
        assert (row["link_ups"], row["link_downs"], row["messages"]) == (2, 1, 0)
        assert row["messages_estimated"] == 0


def test_time_up_ends_when_a_router_was_last_seen() -> None:
    """Null without a row about the link; a far end that is not traced has no say."""
    seen = {FARES: ObservedBridge()}

    def up(spans: list[UpTime], last_seen: dict[str, int]) -> int | None:
        (row,) = edges(seen, {}, {FARES: spans} if spans else {}, last_seen, {})
        result: int | None = row["up_ns"]
        return result

    assert up([], {"core": 9}) is None
    assert up([UpTime(4)], {"core": 9}) == 5
    assert up([UpTime(4)], {"core": 9, "edge": 11}) == 7
    assert up([UpTime(4, 6)], {}) == 2
    assert up([UpTime(4)], {}) == 0


def test_clocks_of_one_group_are_corrected() -> None:
    """Across groups nothing is; within one router nothing needs to be."""
    own = ("core", "blue", "core", "yellow", "own")
    seen = {own: ObservedBridge(), FARES: ObservedBridge()}

    def corrected(references: dict[str, str]) -> list[bool]:
        return [row["latency_corrected"] for row in edges(seen, {}, {}, {}, references)]

    assert corrected({}) == [True, False]
    assert corrected({"core": "a", "edge": "b"}) == [True, False]
    assert corrected({"core": "a", "edge": "a"}) == [True, True]


def test_rows_without_an_end_are_no_edge() -> None:
    """A row that does not say both ends, or concerns no crossing, makes no edge."""
    rows = [
        total("bridge_receive", 1, peer_vpn=None),
        total("link_down", 1, vpn=None),
        total("discard", 1),
    ]
    assert seen_edges(rows) == {}


def delay(origin: str, goal: str, bucket: int, count: int) -> dict[str, Any]:
    """A row of DELAYS between message VPNs "blue"."""
    ends = {"origin_router": origin, "origin_vpn": "blue", "router": goal, "vpn": "blue"}
    return {**ends, "bucket": bucket, "count": count}


def test_pairs_have_their_percentiles(digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The busiest pairs first, those beyond the bound not at all; clocks say what is corrected."""
    monkeypatch.setattr(module, "REPORT_END_TO_END", 3)
    rows = [
        delay("a", "b", 3, 10),
        delay("a", "b", 9, 1),
        delay("a", "b", 3, 9),
        delay("a", "a", 1, 5),
        delay("a", "c", 2, 4),
        delay("c", "a", 2, 3),
    ]
    found = end_to_end(rows_in(delays(digest_of("delays", rows))), {"a": "a", "b": "a", "c": "c"})
    assert [tuple(row.values()) for row in found] == [
        ("a", "blue", "b", "blue", 20, 3, 3, 9, True),
        ("a", "blue", "a", "blue", 5, 1, 1, 1, True),
        ("a", "blue", "c", "blue", 4, 2, 2, 2, False),
    ]


OTHER = ("edge", "blue", "core", "red", "")


def hop(edge: tuple[str, ...], bucket: int, count: int) -> dict[str, Any]:
    """A row of HOPS."""
    return {**dict(zip(EDGE, edge, strict=True)), "bucket": bucket, "count": count}


def listed(edge: tuple[str, ...], *counts: tuple[int, int]) -> dict[str, Any]:
    """A row of histograms."""
    pairs = [{"bucket": bucket, "count": count} for bucket, count in counts]
    samples = sum(count for _, count in counts)
    return {**dict(zip(EDGE, edge, strict=True)), "samples": samples, "histogram": pairs}


def test_percentiles_are_of_the_whole_histogram() -> None:
    """Buckets in any order, and repeated ones, give the same percentiles and rows in order."""
    found, rows = latencies([listed(FARES, (9, 4), (-3, 50), (9, 46))])
    assert found == {FARES: Latency(100, middle_ns(-3), 9, 9)}
    assert [(row["bridge"], row["latency_ns"], row["messages"]) for row in rows] == [
        ("fares", -2, 50),
        ("fares", 9, 50),
    ]


def test_whole_histograms_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out with all after it; percentiles are of every edge."""
    monkeypatch.setattr(module, "REPORT_LATENCIES", 3)
    third = (*FARES[:4], "third")
    rows = [listed(FARES, (1, 9), (2, 9)), listed(OTHER, (1, 4), (2, 4)), listed(third, (5, 1))]
    found, table = latencies(rows)
    assert list(found) == [FARES, OTHER, third]
    assert {row["bridge"] for row in table} == {"fares"}
    assert latencies([]) == ({}, [])


def test_digests_put_together_are_one_histogram(
    digest_of: DigestOf,
) -> None:
    """Edges with most samples first; a bridge without a name is one as well."""
    rows = [hop(OTHER, 7, 1), hop(FARES, 7, 2), hop(FARES, 8, 1), hop(FARES, 7, 3)]
    rows[0]["bridge"] = None
    table = histograms(digest_of("hops", rows))
    assert [row["samples"] for row in rows_in(table)] == [6, 1]
    found, listed_rows = latencies(rows_in(table))
    assert found == {FARES: Latency(6, 7, 8, 8), OTHER: Latency(1, 7, 7, 7)}
    assert [row["messages"] for row in listed_rows] == [5, 1, 1]


def test_the_middle_of_a_bucket() -> None:
    """Halfway between its least duration and that of the next; exact below 64 ns, the same below zero."""
    assert [middle_ns(number) for number in (0, 31, 32, 63)] == [0, 31, 32, 63]
    assert [middle_ns(number) for number in (64, 96, 97, -97)] == [65, 130, 134, -130]


def vpn_total(router: str, vpn: str | None, event: str, **more: Any) -> dict[str, Any]:
    """A row of totals: two events of 10 bytes that stand for four, at 5."""
    figures = {"count": 2, "bytes": 10, "weight": 4.0, "first_ns": 5, "last_ns": 5}
    return {"router": router, "vpn": vpn, "event": event, **figures, **more}


def test_events_are_counted_by_vpn() -> None:
    """Each VPN of each router has its own counts, bytes, estimates and times."""
    totals = [
        vpn_total("edge", "blue", "ingress", first_ns=1),
        vpn_total("edge", "blue", "deliver"),
        vpn_total("edge", "blue", "bridge_send", bridge="fares"),
        vpn_total("edge", "blue", "bridge_send", bridge="more", count=3),
        vpn_total("edge", "blue", "discard", last_ns=9),
        vpn_total("edge", "green", "ingress", weight=None),
        vpn_total("edge", "green", "link_up"),
        vpn_total("core", "blue", "bridge_receive"),
        vpn_total("core", "blue", "enqueue"),
        vpn_total("core", "blue", "reject"),
        vpn_total("core", "blue", "expire", last_ns=23),
        vpn_total("core", None, "discard"),
    ]
    changes = [
        {"router": "core", "vpn": "blue", "first_ns": 3, "last_ns": 4},
        {"router": "edge", "vpn": "idle", "first_ns": 3, "last_ns": 7},
    ]
    found = nodes(totals, changes, [])
    assert [list(row) for row in found] == [NODES.names] * 4
    # fmt: off
    assert [tuple(row.values()) for row in found] == [
        ("core", "blue", True, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 3, 23),
        ("edge", "blue", True, 2, 10, 4, 2, 10, 4, 0, 5, 0, 2, 0, 1, 9),
        ("edge", "green", True, 2, 10, None, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5),
        ("edge", "idle", True, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 7),
    ]
    # fmt: on
    assert last_seen(found) == {"core": 23, "edge": 9}


def test_far_ends_become_nodes() -> None:
    """A VPN known only as the other end of a bridge is a node without counts, and only once."""
    edges = [("edge", "blue", "core", "yellow", "a"), ("edge", "blue", "core", "red", "b")]
    found = nodes([vpn_total("core", "yellow", "bridge_receive")], [], edges)
    assert [
        (r["router"], r["vpn"], r["traced"], r["bridged_in"], r["first_ns"]) for r in found
    ] == [
        ("core", "red", False, None, None),
        ("core", "yellow", True, 2, 5),
        ("edge", "blue", False, None, None),
    ]
    assert last_seen(found) == {"core": 5}


def test_an_estimate_needs_every_weight() -> None:
    """The sum of weights where all are known, null where one is not, 0 where no row counts."""
    known = [vpn_total("edge", "blue", "ingress", weight=2.5, bridge=name) for name in ("", "x")]
    (node,) = nodes(known, [], [])
    assert (node["ingress_estimated"], node["delivered_estimated"]) == (5, 0)
    for rows in ([*known, vpn_total("edge", "blue", "ingress", weight=None)],):
        for order in (rows, rows[::-1]):
            assert nodes(order, [], [])[0]["ingress_estimated"] is None


def place(
    event: str, bridge: str, start_ns: int, count: int, mode: str = "direct"
) -> dict[str, Any]:
    """A row of PLACES about a bridge from edge/blue to core/yellow."""
    at_edge, at_core = ("edge", "blue"), ("core", "yellow")
    near, far = (at_edge, at_core) if event == "bridge_send" else (at_core, at_edge)
    return {
        **dict(zip(("router", "vpn"), near, strict=True)),
        **dict(zip(("peer_router", "peer_vpn"), far, strict=True)),
        "event": event,
        "bridge": bridge,
        "mode": mode,
        "remote": event == "bridge_send",
        "start_ns": start_ns,
        "count": count,
        "bytes": 10 * count,
        "first_ns": start_ns,
        "last_ns": start_ns,
    }


ROWS = [
    place("bridge_send", "fares", 0, 4),
    place("bridge_receive", "fares", 0, 3),
    place("bridge_receive", "fares", 0, 2, "persistent"),
    place("bridge_receive", "fares", 60, 1),
    place("bridge_send", "fares", 90, 1),
    place("bridge_send", "lossy", 0, 3),
    place("bridge_send", "lossy", 60, 1),
    place("bridge_receive", "lossy", 60, 1),
    place("ingress", "", 0, 50),
]


def test_the_fuller_side_has_rates(
    spark: SparkSession, digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receiver or sender, as the edge's totals; stretches in which that side saw none are left out. Beyond the bound
    the busiest edges stay, whole ones only.
    """
    places = digest_of("places", ROWS)
    seen = seen_edges(rows_in(totals(places)))
    found = rates(spark, places, seen)
    assert [list(row) for row in found] == [RATES.names] * 4
    assert [tuple(row.values())[4:] for row in found] == [
        ("fares", 0, 5, 50, 2),
        ("fares", 60, 1, 10, 0),
        ("lossy", 0, 3, 30, 0),
        ("lossy", 60, 1, 10, 0),
    ]
    for most, bridges in ((3, ["fares", "fares"]), (1, [])):
        monkeypatch.setattr(module, "REPORT_RATES", most)
        assert [row["bridge"] for row in rates(spark, places, seen)] == bridges


def test_edges_without_messages_take_no_room() -> None:
    """The busiest are those with most messages, ties by name."""

    def seen(messages: int) -> ObservedBridge:
        return ObservedBridge(receive=SideCounts(messages=messages, stretches=2 if messages else 0))

    edges = {
        ("a", "b", "c", "d", name): seen(count)
        for name, count in zip("xyz", (5, 0, 5), strict=True)
    }
    assert [edge[4] for edge in busiest_bridges(edges, 4)] == ["x", "z"]
    assert [edge[4] for edge in busiest_bridges(edges, 3)] == ["x"]


def test_stretches_of_all_places_add_up(
    digest_of: DigestOf,
    assert_rows: Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None],
) -> None:
    """Each event counts in the stretch that the digest gives it; other events make no stretch."""
    rows = [
        {"vpn": "blue", "event": "ingress", "start_ns": 0, "count": 2},
        {"vpn": "green", "event": "ingress", "start_ns": 0, "count": 1},
        {"vpn": "blue", "event": "deliver", "start_ns": 20, "count": 1},
        {"vpn": "blue", "event": "bridge_receive", "start_ns": 80, "count": 4},
        {"vpn": "blue", "event": "discard", "start_ns": 80, "count": 5},
        {"vpn": "blue", "event": "link_up", "start_ns": 90, "count": 1},
    ]
    found = timeline(digest_of("places", rows))
    assert_rows(found, TIMELINE, [(0, 3, 0, 0, 0), (20, 0, 0, 1, 0), (80, 0, 4, 0, 5)])
    assert [row.start_ns for row in found.collect()] == [0, 20, 80]


def use(topic: str | None, vpn: str, event: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """A row of USES at router "edge"; a message weighs 2 and has 64 bytes."""
    figures = {"count": count, "weight": 2.0 * count, "bytes": 64 * count}
    return {"topic": topic, "router": "edge", "vpn": vpn, "event": event, **figures, **more}


def test_a_topic_is_counted_in_each_vpn(
    digest_of: DigestOf,
    assert_rows: Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None],
) -> None:
    """One topic in two VPNs is two rows, with what happened to its messages in each."""
    rows = [
        use("a/b", "blue", "ingress", client="one"),
        use("a/b", "blue", "ingress", 2, client="two"),
        use("a/b", "blue", "bridge_send", 2, bridge="fares"),
        use("a/b", "yellow", "bridge_receive", bridge="fares"),
        use("a/b", "yellow", "deliver", 3),
        use("a/b", "yellow", "enqueue", 9, endpoint="q"),
        use("a/b", "green", "ingress", weight=None, bytes=None),
        use("a/b", "green", "deliver"),
        use("lost", "blue", "discard", endpoint="no-subscription-match"),
        use("lost", "blue", "discard", weight=None),
        use("kept", "blue", "enqueue"),
        use(None, "blue", "ingress"),
    ]
    assert_rows(
        topics(digest_of("uses", rows)),
        TOPICS,
        [
            ("a/b", "edge", "blue", 3, 192, 6, 0, 2, 0, 0),
            ("a/b", "edge", "yellow", 0, 0, 0, 1, 0, 3, 0),
            ("a/b", "edge", "green", 1, 0, None, 0, 0, 1, 0),
            ("lost", "edge", "blue", 0, 0, 0, 0, 0, 0, 2),
        ],
    )


def test_the_busiest_topics_come_first(digest_of: DigestOf) -> None:
    """By messages that entered, ties by name, cut at the bound."""
    rows = [
        use(topic, "blue", "ingress", count)
        for topic, count in zip("bacd", (2, 2, 3, 1), strict=True)
    ]
    found = busiest(topics(digest_of("uses", rows)), 3)
    assert [row.topic for row in found.collect()] == ["c", "a", "b"]


def came(path: str | None, hops: int | None, count: int, **more: Any) -> dict[str, Any]:
    """A row of PATHS at core/yellow."""
    here = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
    return {**here, "path": path, "hops": hops, "count": count, "bytes": 10 * count, **more}


def test_ways_and_their_lengths(
    digest_of: DigestOf,
) -> None:
    """The last VPN is part of the way; rows that do not say a long way still have a length."""
    rows = [
        came("edge/blue", 1, 3, bridge="a"),
        came("edge/blue", 1, 2, bridge="b"),
        came(None, 1, 4),
        came("far/red>edge/blue", None, 7, bytes=None),
        came("far/red>edge/blue", 2, 1),
        came(None, 3, 1),
        came(None, None, 1),
        came(None, 1, 1, peer_vpn=None),
    ]
    frame = ways_and_lengths(digest_of("paths", rows), 10)
    assertSchemaEqual(frame.schema, WAYS)
    both = frame.toArrow().to_pylist()
    assert [tuple(row.values()) for row in ways(both)] == [
        ("edge/blue>core/yellow", 1, 9, 90),
        ("far/red>edge/blue>core/yellow", 2, 8, 10),
    ]
    assert [tuple(row.values()) for row in lengths(both, 6)] == [(0, 6), (1, 10), (2, 8), (3, 1)]
    assert lengths([], 0) == []
    few = ways_and_lengths(digest_of("paths", rows), 1).toArrow().to_pylist()
    assert [row["messages"] for row in ways(few)] == [9]
    assert lengths(few, 0) == lengths(both, 0)

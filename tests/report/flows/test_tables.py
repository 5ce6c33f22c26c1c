"""Tables of flows from digests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from vpnrouter.report import schema
from vpnrouter.report.digests.columns import middle_ns
from vpnrouter.report.flows import collect
from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.clocks import WHOLE_TIME
from vpnrouter.report.flows.tables import (
    Latency,
    ObservedBridge,
    SideCounts,
    UpTime,
    busiest_bridges,
    edges,
    flows,
    last_seen,
    latencies,
    nodes,
    seen_edges,
)
from vpnrouter.report.schema import (
    DISCARDS,
    EDGE,
    EDGES,
    END_TO_END,
    NODES,
    RATES,
    TIMELINE,
    TOPICS,
    WAYS,
    Edge,
)

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}


FARES = Edge("edge", "blue", "core", "yellow", "fares")


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
    times = {FARES: Latency(80, True, 7, 50, 95, 99)}
    rows = edges(seen, times, spans, {"core": 40, "edge": 30}, {"core": "edge", "edge": "edge"})
    assert [list(row) for row in rows] == [EDGES.names]
    # fmt: off
    assert tuple(rows[0].values()) == (
        *FARES,
        100, 200, 6_400, 99, 100, 99, 1, 3,
        80, 50, 95, 99, True, 7,
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
        FARES._replace(bridge=""),
        FARES,
        FARES._replace(bridge="more"),
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
    own = Edge("core", "blue", "core", "yellow", "own")
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


OTHER = Edge("edge", "blue", "core", "red", "")


def listed(edge: Edge, *counts: tuple[int, int]) -> dict[str, Any]:
    """A row of histograms."""
    pairs = [{"bucket": bucket, "count": count} for bucket, count in counts]
    samples = sum(count for _, count in counts)
    told = {"samples": samples, "histogram": pairs, "corrected": True, "error_ns": 3}
    return {**edge._asdict(), **told}


def test_percentiles_are_of_the_whole_histogram() -> None:
    """Buckets in any order, and repeated ones, give the same percentiles and rows in order."""
    found, rows = latencies([listed(FARES, (9, 4), (-3, 50), (9, 46))])
    assert found == {FARES: Latency(100, True, 3, middle_ns(-3), 9, 9)}
    assert [(row["bridge"], row["latency_ns"], row["messages"]) for row in rows] == [
        ("fares", -2, 50),
        ("fares", 9, 50),
    ]


def test_whole_histograms_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out with all after it; percentiles are of every edge."""
    monkeypatch.setattr(module, "REPORT_LATENCIES", 3)
    third = FARES._replace(bridge="third")
    rows = [listed(FARES, (1, 9), (2, 9)), listed(OTHER, (1, 4), (2, 4)), listed(third, (5, 1))]
    found, table = latencies(rows)
    assert list(found) == [FARES, OTHER, third]
    assert {row["bridge"] for row in table} == {"fares"}
    assert latencies([]) == ({}, [])


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
    edges = [FARES, OTHER]
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


def test_edges_without_messages_take_no_room() -> None:
    """The busiest are those with most messages, ties by name."""

    def seen(messages: int) -> ObservedBridge:
        return ObservedBridge(receive=SideCounts(messages=messages, stretches=2 if messages else 0))

    edges = {
        Edge("a", "b", "c", "d", name): seen(count)
        for name, count in zip("xyz", (5, 0, 5), strict=True)
    }
    assert [edge[4] for edge in busiest_bridges(edges, 4)] == ["x", "z"]
    assert [edge[4] for edge in busiest_bridges(edges, 3)] == ["x"]


# One mesh for all tables that Spark makes: bridges `fares` and `lossy` from edge/blue to core/yellow.


def place(event: str, bridge: str, at_ns: int, count: int, **more: Any) -> dict[str, Any]:
    """A row of PLACES about a bridge."""
    ends = AT_EDGE if event == "bridge_send" else AT_CORE
    figures = {"count": count, "bytes": 10 * count, "first_ns": at_ns, "last_ns": at_ns}
    said = {"event": event, "bridge": bridge, "remote": event == "bridge_send", "mode": "direct"}
    return {**ends, **said, **figures, "start_ns": at_ns, **more}


def local(router: str, vpn: str, event: str, at_ns: int, count: int) -> dict[str, Any]:
    """A row of PLACES about no bridge."""
    times = {"start_ns": at_ns, "first_ns": at_ns, "last_ns": at_ns}
    return {"router": router, "vpn": vpn, "event": event, "count": count, **times}


def loss(event: str, at_ns: int, count: int, weight: float | None, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at edge/blue."""
    nameless = dict.fromkeys(("reason", "endpoint", "bridge", "client"), "")
    times = {"start_ns": 0, "first_ns": at_ns, "last_ns": at_ns + 1}
    where = {"router": "edge", "vpn": "blue", "event": event}
    return {**nameless, **where, **times, "count": count, "weight": weight, **more}


def counted(bucket: int, count: int, *, corrected: bool = True) -> dict[str, Any]:
    """The figures of a row of HOPS or DELAYS; each has another error."""
    error_ns = count if corrected else None
    return {"bucket": bucket, "count": count, "corrected": corrected, "error_ns": error_ns}


def hop(bridge: str | None, bucket: int, count: int) -> dict[str, Any]:
    """A row of HOPS."""
    ends = dict(zip(EDGE[:4], FARES[:4], strict=True))
    return {**ends, "bridge": bridge, **counted(bucket, count)}


def delay(origin: str, goal: str, bucket: int, count: int) -> dict[str, Any]:
    """A row of DELAYS between message VPNs "blue"."""
    ends = {"origin_router": origin, "origin_vpn": "blue", "router": goal, "vpn": "blue"}
    return {**ends, **counted(bucket, count, corrected=goal != "far")}


def use(topic: str | None, vpn: str, event: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """A row of USES at router "edge"; a message weighs 2 and has 64 bytes."""
    figures = {"count": count, "weight": 2.0 * count, "bytes": 64 * count}
    return {"topic": topic, "router": "edge", "vpn": vpn, "event": event, **figures, **more}


def came(path: str | None, hops: int | None, count: int, **more: Any) -> dict[str, Any]:
    """A row of PATHS at core/yellow."""
    return {**AT_CORE, "path": path, "hops": hops, "count": count, "bytes": 10 * count, **more}


def link(event: str, at_ns: int, **more: Any) -> dict[str, Any]:
    """A row of STATES about the link of `fares`, as its local router saw it."""
    return {**AT_CORE, "bridge": "fares", "event": event, "ts_ns": at_ns, **more}


ROWS: dict[str, list[dict[str, Any]]] = {
    "places": [
        place("bridge_send", "fares", 0, 4),
        place("bridge_receive", "fares", 0, 3, weight=6.0),
        place("bridge_receive", "fares", 0, 2, weight=4.0, mode="persistent"),
        place("bridge_receive", "fares", 60, 1, weight=2.0),
        place("bridge_send", "fares", 90, 1, remote=None),
        place("bridge_send", "lossy", 0, 3, weight=6.0),
        place("bridge_send", "lossy", 60, 1),
        place("bridge_receive", "lossy", 60, 1),
        place("bridge_receive", "half", 60, 1, peer_vpn=None),
        place("link_up", "fares", 90, 2, remote=None),
        {**place("link_up", "fares", 90, 2), **AT_EDGE, "remote": True},
        local("edge", "blue", "ingress", 0, 2),
        local("edge", "green", "ingress", 0, 1),
        local("core", "yellow", "deliver", 20, 1),
        local("edge", "blue", "discard", 80, 5),
    ],
    "states": [
        link("link_up", 30),
        link("link_down", 20, reason="gone"),
        link("link_up", 10),
        link("link_up", 11, **AT_EDGE, client="#bridge/core/yellow/fares"),
        link("link_rejected", 1, vpn="asked-for"),
        {"router": "edge", "vpn": "idle", "event": "subscribe", "ts_ns": 3, "topic": "a"},
    ],
    "hops": [
        *(hop("lossy", 7, 1), hop("fares", 7, 2), hop("fares", 8, 1), hop("fares", 7, 3)),
        hop(None, 7, 1),
    ],
    "delays": [
        *(delay("edge", "core", 3, 10), delay("edge", "core", 9, 1), delay("edge", "core", 3, 9)),
        *(delay("edge", "edge", 1, 5), delay("edge", "far", 2, 4)),
    ],
    "losses": [
        loss("discard", 1, 1, 2.0, reason="slow", client="c1", example_topic="b", bytes=3),
        loss("discard", 4, 1, 2.0, reason="slow", client="c1", example_topic="a", bytes=4),
        loss("discard", 2, 1, 2.0, reason="slow", client="c2", bridge="fares", bytes=1),
        loss("reject", 3, 9, None, reason="full", endpoint="q", client="c1"),
        loss("reject", 3, 1, 2.0, reason="full", endpoint="q", client="c2", crossed=True),
        loss("expire", 5, 1, 2.0, reason=None, client=None),
        loss("redeliver", 6, 8, 8.0, client="c1"),
    ],
    "uses": [
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
    ],
    "paths": [
        came("edge/blue", 1, 3, bridge="a"),
        came("edge/blue", 1, 2, bridge="b"),
        came(None, 1, 4),
        came("far/red>edge/blue", None, 7, bytes=None),
        came("far/red>edge/blue", 2, 1),
        came(None, 3, 1),
        came(None, None, 1),
        came(None, 1, 1, peer_vpn=None),
    ],
}
CLOCKS = [
    {
        "router": name,
        "reference": reference,
        "offset_ns": 0,
        "error_ns": 0,
        "pairs": 1,
        **WHOLE_TIME,
    }
    for name, reference in (("core", "edge"), ("edge", "edge"), ("far", "far"))
]
STAGES = ["bridges", "message VPNs", "ways", "topics", "discards", "timeline"]


@pytest.fixture(scope="module")
def made(spark: SparkSession, digest_of: DigestOf) -> dict[str, Any]:
    """The tables of ROWS as lists of rows, and the count of topics."""
    stages: list[str] = []
    digests = {name: digest_of(name, rows) for name, rows in ROWS.items()}
    found = flows(spark, digests, CLOCKS, stages.append)
    assert stages == STAGES
    for name, table in found.tables.items():
        assert table.schema.equals(to_arrow_schema(getattr(schema, name.upper()))), name
    tables = {name: table.to_pylist() for name, table in found.tables.items()}
    return {**tables, "topic_count": found.topic_count, "digests": digests}


def picked(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of rows."""
    return [tuple(row[name] for name in names) for row in rows]


def test_bridges_have_the_figures_of_both_ends(made: dict[str, Any]) -> None:
    """A bridge's modes, stretches, latencies and link add up; rows without both ends make none."""
    names = ("bridge", "messages", "messages_estimated", "bytes", "sent", "received", "direct")
    assert picked(made["edges"], *names) == [
        ("fares", 6, 12, 60, 5, 6, 4),
        ("lossy", 4, None, 40, 4, 1, 4),
    ]
    names = ("peak_messages", "latency_samples", "latency_p50_ns", "latency_p95_ns", "link_ups")
    assert picked(made["edges"], *names, "up_ns") == [(5, 6, 7, 8, 2, 70), (3, 1, 7, 7, 0, None)]
    assert picked(made["edges"], "latency_corrected", "latency_error_ns") == [(True, 3), (True, 1)]
    assert picked(made["latencies"], "bridge", "latency_ns", "messages") == [
        *(("fares", 7, 5), ("fares", 8, 1), ("", 7, 1), ("lossy", 7, 1)),
    ]
    assert picked(made["links"], "bridge", "up_ns", "down_ns", "reason") == [
        ("fares", 10, 20, "gone"),
        ("fares", 30, None, None),
    ]


def test_rates_are_those_of_the_end_that_saw_more(made: dict[str, Any]) -> None:
    """Stretches in which that end saw no message have no row."""
    assert picked(made["rates"], *RATES.names[4:]) == [
        ("fares", 0, 5, 50, 2),
        ("fares", 60, 1, 10, 0),
        ("lossy", 0, 3, 30, 0),
        ("lossy", 60, 1, 10, 0),
    ]


def test_message_vpns_and_times(made: dict[str, Any]) -> None:
    """All message VPNs but those that a rejected link asked for; events by stretch; delays by pair."""
    assert picked(made["nodes"], "router", "vpn", "ingress", "bridged_in", "first_ns") == [
        ("core", "yellow", 0, 8, 0),
        ("edge", "blue", 2, 0, 0),
        ("edge", "green", 1, 0, 0),
        ("edge", "idle", 0, 0, 3),
    ]
    assert picked(made["timeline"], *TIMELINE.names) == [
        (0, 3, 5, 0, 0),
        (20, 0, 0, 1, 0),
        (60, 0, 3, 0, 0),
        (80, 0, 0, 0, 5),
    ]
    assert picked(
        made["end_to_end"], "origin_router", *END_TO_END.names[2:3], *END_TO_END.names[4:]
    ) == [
        ("edge", "core", 20, 3, 3, 9, True, 10),
        ("edge", "edge", 5, 1, 1, 1, True, 5),
        ("edge", "far", 4, 2, 2, 2, False, None),
    ]
    assert made["clocks"] == CLOCKS


def test_discards_topics_and_ways(made: dict[str, Any]) -> None:
    """The most frequent first. An endpoint, else a bridge, else a client is the place of a discard; a redelivery is
    none. A topic has a row in each message VPN. Rows without their way still have a length.
    """
    assert picked(made["discards"], *DISCARDS.names) == [
        ("edge", "blue", "reject", "full", "q", 10, None, 0, None, 3, 4),
        ("edge", "blue", "discard", "slow", "c1", 2, 4, 7, "a", 1, 5),
        ("edge", "blue", "discard", "slow", "fares", 1, 2, 1, None, 2, 3),
        ("edge", "blue", "expire", "", "", 1, 2, 0, None, 5, 6),
    ]
    assert picked(made["topics"], *TOPICS.names) == [
        ("a/b", "edge", "blue", 3, 192, 6, 0, 2, 0, 0),
        ("a/b", "edge", "green", 1, 0, None, 0, 0, 1, 0),
        ("a/b", "edge", "yellow", 0, 0, 0, 1, 0, 3, 0),
        ("lost", "edge", "blue", 0, 0, 0, 0, 0, 0, 2),
    ]
    assert made["topic_count"] == 4
    assert picked(made["ways"], *WAYS.names) == [
        ("edge/blue>core/yellow", 1, 9, 90),
        ("far/red>edge/blue>core/yellow", 2, 8, 10),
    ]
    assert picked(made["lengths"], "hops", "messages") == [(0, 3), (1, 10), (2, 8), (3, 1)]


def test_tables_are_bounded(
    spark: SparkSession, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The busiest rows stay, whole bridges only; topics and lengths are still counted in full."""
    bounds = {"TOPICS": 3, "DISCARDS": 2, "WAYS": 1, "END_TO_END": 1, "RATES": 3, "LATENCIES": 2}
    for name, most in {**bounds, "LINK_CHANGES": 2}.items():
        monkeypatch.setattr(module, f"REPORT_{name}", most)
    monkeypatch.setattr(collect, "REPORT_LINK_CHANGES", 2)
    found = flows(spark, made["digests"], CLOCKS)
    tables = {name: table.to_pylist() for name, table in found.tables.items()}
    for name, most in bounds.items():
        kept = min(most, 2) if name == "RATES" else most
        assert tables[name.lower()] == made[name.lower()][:kept], name
    assert found.topic_count == 4
    assert tables["lengths"] == made["lengths"]
    # The first of the changes that are left is a down, whose up is not known.
    assert picked(tables["links"], "up_ns", "down_ns") == [(30, None)]

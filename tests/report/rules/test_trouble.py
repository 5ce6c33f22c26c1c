"""vpnrouter.report.analysis: all rules together."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from vpnrouter.report.analysis import find_trouble
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.schema import Finding

MakeRow = Callable[..., dict[str, Any]]
DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]
Digests = dict[str, list[dict[str, Any]]]

SECOND = 1_000_000_000
WIDTH = 5 * SECOND
TIMES = {"first_ns": 0, "last_ns": 60 * SECOND}


def stretches(sent: range, received: range) -> list[dict[str, Any]]:
    """PLACES of the bridge from a/x to b/y, and of publishers at b/y."""
    a = {"router": "a", "vpn": "x"}
    b = {"router": "b", "vpn": "y"}
    way = {"bridge": "way", "count": 10}
    to_b = {"peer_router": "b", "peer_vpn": "y", **way}
    to_a = {"peer_router": "a", "peer_vpn": "x", **way}
    rows = [{"event": "bridge_send", "start_ns": at * WIDTH, **a, **to_b} for at in sent]
    rows += [{"event": "bridge_receive", "start_ns": at * WIDTH, **b, **to_a} for at in received]
    return rows + [{"event": "ingress", "start_ns": at * WIDTH, "count": 1, **b} for at in sent]


def loss(event: str, reason: str, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at b/y of what came over the bridge."""
    place = {"router": "b", "vpn": "y", "endpoint": "", "bridge": "", "client": "#bridge/way"}
    return {
        **place,
        "event": event,
        "reason": reason,
        "crossed": True,
        "count": 30,
        **TIMES,
        **more,
    }


def use(topic: str, event: str, count: int, **more: Any) -> dict[str, Any]:
    """A row of USES at a/x."""
    return {"topic": topic, "router": "a", "vpn": "x", "event": event, "count": count, **more}


def run(
    digest_of: DigestOf, rows: Digests, edges: list[Any], links: list[Any], clocks: list[Any]
) -> list[Finding]:
    """The findings."""
    digests = {name: digest_of(name, rows.get(name, [])) for name in DIGESTS}
    return find_trouble(digests, edges, links, clocks, WIDTH)


def test_a_sick_mesh_is_told_all_its_ills(
    digest_of: DigestOf, bridge_row: MakeRow, link_row: MakeRow, double_row: MakeRow
) -> None:
    """One of each kind, errors first, each at its place."""
    partitions = [("q", 0, 300), ("q", 7, 10)]
    rows: Digests = {
        "paths": [
            {"path": "c/z>d/w", "router": "c", "vpn": "z", "count": 4, "bytes": 9, **TIMES},
            {"path": "a/x", "router": "b", "vpn": "y", "count": 100, "bytes": 9, **TIMES},
        ],
        "doubles": [
            double_row("deliver", "phone"),
            double_row("two_ways", "a/x:way", other="c/z:way"),
        ],
        "uses": [
            use("gone", "ingress", 9),
            use("gone", "discard", 9, endpoint="no-subscription-match"),
            use("late", "ingress", 9),
            use("late", "discard", 9, endpoint="no-subscription-match"),
        ],
        "states": [
            {
                "ts_ns": 1,
                "router": "a",
                "vpn": "x",
                "event": "subscribe",
                "client": "slowcoach",
                "topic": "late",
            }
        ],
        "losses": [
            loss("reject", "503 Spool Over Quota", endpoint="orders"),
            loss("discard", "ttl-exceeded"),
            loss(
                "discard",
                "transmit-congestion",
                router="a",
                vpn="x",
                client="#bridge/b/y/way",
                crossed=False,
            ),
        ],
        "places": stretches(range(12), range(6)),
        "endpoints": [
            {"router": "b", "vpn": "y", "endpoint": name, "partition": at, "enqueued": count}
            for name, at, count in partitions
        ],
    }
    found = run(
        digest_of,
        rows,
        [bridge_row(sent=120, messages=120), bridge_row("d/w", "c/z", "other")],
        [
            link_row(up, up + 90, start="d/w", goal="c/z", bridge="other")
            for up in range(0, 500, 100)
        ],
        [{"router": "b", "reference": "a", "offset_ns": SECOND, "error_ns": 1_000}],
    )
    assert [(one.kind, one.router, one.vpn) for one in found] == [
        ("flapping_link", "c", "z"),
        ("head_of_line", "b", "y"),
        ("hot_bridge", "b", "y"),
        ("loop", "c", "z"),
        ("stalled_bridge", "b", "y"),
        ("black_hole", "a", "x"),
        ("clock_skew", "b", None),
        ("duplicate", "b", "y"),
        ("skewed_partition", "b", "y"),
        ("two_ways", "b", "y"),
        ("loop_stopped", "b", "y"),
    ]
    assert [one.topic for one in found if one.kind == "black_hole"] == ["gone"]
    assert all(one.detail.endswith(".") for one in found)


def test_a_healthy_mesh_has_no_ills(
    digest_of: DigestOf, bridge_row: MakeRow, link_row: MakeRow, double_row: MakeRow
) -> None:
    """A restart, a spare way, an early publisher and a full buffer are what meshes are made of."""
    rows: Digests = {
        "paths": [{"path": "a/x", "router": "b", "vpn": "y", "count": 90, "bytes": 9, **TIMES}],
        "doubles": [double_row("two_ways", "a/x:way", other="c/z:way")],
        "uses": [
            use("early", "ingress", 9),
            use("early", "discard", 4, endpoint="no-subscription-match"),
            use("early", "bridge_send", 5),
        ],
        "losses": [
            loss("discard", "duplicate", count=6),
            loss("discard", "loop-detected", example_path="c/z>a/x"),
            loss("reject", "503 Spool Over Quota", endpoint="orders", count=2),
            loss(
                "discard",
                "transmit-congestion",
                router="a",
                vpn="x",
                client="#bridge/b/y/way",
                count=5,
            ),
        ],
        "places": stretches(range(12), range(1, 12)),
        "endpoints": [
            {"router": "b", "vpn": "y", "endpoint": "q", "partition": at, "enqueued": 100 + at}
            for at in range(4)
        ],
    }
    found = run(
        digest_of,
        rows,
        [bridge_row(sent=120, messages=120)],
        [link_row(0, 30), link_row(40, 60)],
        [{"router": "b", "reference": "a", "offset_ns": 3_000_000, "error_ns": 1_000}],
    )
    assert [(one.kind, one.severity) for one in found] == [("two_ways", "info")]

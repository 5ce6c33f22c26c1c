"""vpnrouter.topology.flows.edges: bridges as directed edges."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.topology.flows.edges import edges
from vpnrouter.topology.schema import EDGES

pytestmark = pytest.mark.spark

AssertRows = Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]
FrameOf = Callable[[dict[str, list[Any]]], DataFrame]
ENDS = {"peer_router": "edge", "peer_vpn": "blue", "bridge": "fares"}


def crossings(files: ModuleType) -> tuple[list[Any], list[Any]]:
    """100 messages, number n received n µs after it was sent, 1 ms after it entered."""
    edge: list[Any] = []
    core: list[Any] = []
    for number in range(1, 101):
        at_edge, at_core = files.crossing(
            number,
            sent_ns=1_000_000,
            received_ns=1_000_000 + number * 1_000,
            mode="direct" if number > 10 else "persistent",
        )
        edge += at_edge
        core += at_core
    return edge, core


def test_both_sides_make_one_edge(
    frame_of: FrameOf, tracefiles: ModuleType, assert_rows: AssertRows
) -> None:
    """Rows of sender and receiver give one edge with exact counts, bytes, modes and percentiles."""
    edge, core = crossings(tracefiles)
    found = edges(frame_of({"edge": edge, "core": core}))
    first = tracefiles.START + tracefiles.SECOND + 1_000_000
    last = tracefiles.START + 100 * tracefiles.SECOND + 1_100_000
    # fmt: off
    assert_rows(
        found,
        EDGES,
        [(
            "edge", "blue", "core", "yellow", "fares",
            100, 200, 6_400, 100, 100, 90, 10,
            100, 50_000, 95_000, 99_000, 1_050_000, 1_095_000, 1_099_000,
            0, 0, first, last,
        )],
    )
    # fmt: on


def test_one_side_is_enough(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """With one router's traces alone the edge is there, with what that side can know."""
    edge, core = crossings(tracefiles)
    (sent,) = edges(frame_of({"edge": edge})).collect()
    assert (sent.from_vpn, sent.to_vpn, sent.bridge) == ("blue", "yellow", "fares")
    assert (sent.messages, sent.sent, sent.received, sent.bytes) == (100, 100, 0, 6_400)
    assert (sent.latency_samples, sent.latency_p50_ns, sent.age_p50_ns) == (0, None, None)
    (received,) = edges(frame_of({"core": core})).collect()
    assert (received.messages, received.sent, received.received) == (100, 0, 100)
    assert (received.latency_p50_ns, received.age_p50_ns) == (None, 1_050_000)


def test_messages_of_one_trace_are_told_apart(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """Messages that share a trace id, as with a traceparent from outside, keep their own latency."""
    edge, core = crossings(tracefiles)
    shared = [[{**row, "trace_id": "5" * 32} for row in rows] for rows in (edge, core)]
    (found,) = edges(frame_of({"edge": shared[0], "core": shared[1]})).collect()
    assert (found.latency_samples, found.latency_p50_ns) == (100, 50_000)


def test_directions_and_names_are_edges_of_their_own(
    frame_of: FrameOf, tracefiles: ModuleType
) -> None:
    """The way back, and a second bridge between the same VPNs, are separate edges."""
    back = {"peer_router": "core", "peer_vpn": "yellow", "bridge": "back"}
    rows = {
        "core": [
            tracefiles.row("bridge_receive", 0, "yellow", **ENDS),
            tracefiles.row("bridge_receive", 0, "yellow", **{**ENDS, "bridge": "more"}),
        ],
        "edge": [tracefiles.row("bridge_receive", 0, "blue", **back)],
    }
    found = edges(frame_of(rows)).collect()
    assert [(e.from_vpn, e.to_vpn, e.bridge) for e in found] == [
        ("yellow", "blue", "back"),
        ("blue", "yellow", "fares"),
        ("blue", "yellow", "more"),
    ]


def test_links_are_counted_once_for_both_ends(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """Both ends write down a link's ups and downs; they are the same edge and count once."""
    there = {"peer_router": "core", "peer_vpn": "yellow", "bridge": "fares", "client": "#bridge"}
    events = ("link_up", "link_down", "link_up")
    local = [tracefiles.row(event, at, "yellow", **ENDS) for at, event in enumerate(events)]
    remote = [tracefiles.row(event, at, "blue", **there) for at, event in enumerate(events)]
    for rows in ({"core": local}, {"edge": remote}, {"core": local, "edge": remote}):
        (found,) = edges(frame_of(rows)).collect()
        assert (found.from_router, found.to_router) == ("edge", "core")
        assert (found.link_ups, found.link_downs, found.messages) == (2, 1, 0)


def test_clocks_apart_give_negative_latency(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """A receiving clock that is behind shows as it is, not as zero."""
    edge, core = tracefiles.crossing(1, sent_ns=5_000, received_ns=2_000)
    (found,) = edges(frame_of({"edge": edge, "core": core})).collect()
    assert found.latency_p50_ns == -3_000


def test_redelivery_counts_every_crossing(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """A message sent twice over a bridge is two crossings and one latency."""
    edge, core = tracefiles.crossing(1, sent_ns=1_000, received_ns=3_000)
    again = [{**edge[1], "ts_ns": edge[1]["ts_ns"] + 500}]
    (found,) = edges(frame_of({"edge": edge + again, "core": core})).collect()
    assert (found.messages, found.sent, found.received) == (2, 2, 1)
    assert (found.latency_samples, found.latency_p50_ns) == (1, 2_000)


def test_rows_without_an_end_are_no_edge(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """A row that does not say both ends makes no edge."""
    rows = [
        tracefiles.row("bridge_receive", 0, "yellow", peer_router="edge"),
        tracefiles.row("link_down", 0, None, **ENDS),
    ]
    assert edges(frame_of({"core": rows})).collect() == []

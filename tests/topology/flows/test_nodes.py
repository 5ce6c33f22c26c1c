"""vpnrouter.topology.flows.nodes: what entered and left each message VPN."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.testing import assertSchemaEqual

from vpnrouter.topology.flows.nodes import nodes, with_far_ends
from vpnrouter.topology.schema import EDGES, NODES

pytestmark = pytest.mark.spark

AssertRows = Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]
FrameOf = Callable[[dict[str, list[Any]]], DataFrame]


def test_events_are_counted_by_vpn(
    frame_of: FrameOf, tracefiles: ModuleType, assert_rows: AssertRows
) -> None:
    """Each VPN of each router has its own counts, bytes, estimates and times."""
    row, start = tracefiles.row, tracefiles.START
    edge = [
        row("ingress", 5, "blue", size_bytes=10),
        row("ingress", 1, "blue", size_bytes=30),
        row("deliver", 7, "blue", size_bytes=10),
        row("bridge_send", 8, "blue", size_bytes=10),
        row("discard", 9, "blue", size_bytes=10),
        row("ingress", 3, "green", size_bytes=1, weight=None),
        row("subscribe", 4, None),
        row("link_rejected", 30, "misspelt"),
        row("link_rejected", 40, "blue"),
    ]
    core = [
        row("bridge_receive", 20, "blue", size_bytes=10),
        row("enqueue", 21, "blue", size_bytes=10),
        row("reject", 22, "blue", size_bytes=10),
        row("expire", 23, "blue", size_bytes=10),
    ]
    found = nodes(frame_of({"edge": edge, "core": core}))
    # fmt: off
    assert_rows(
        found,
        NODES,
        [
            ("core", "blue", True, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, start + 20, start + 23),
            ("edge", "blue", True, 2, 40, 4, 1, 10, 2, 0, 1, 0, 1, 0, start + 1, start + 9),
            ("edge", "green", True, 1, 1, None, 0, 0, 0, 0, 0, 0, 0, 0, start + 3, start + 3),
        ],
    )
    # fmt: on


def test_far_ends_become_nodes(
    spark: SparkSession, frame_of: FrameOf, tracefiles: ModuleType
) -> None:
    """A VPN known only as the other end of a bridge is a node without counts, and only once."""
    known = nodes(frame_of({"core": [tracefiles.row("bridge_receive", 0, "yellow")]}))
    ends = [("edge", "blue", "core", "yellow"), ("edge", "blue", "core", "red")]
    blank = (None,) * (len(EDGES.names) - 4)
    edges = spark.createDataFrame([(*four, *blank) for four in ends], EDGES)
    found = with_far_ends(known, edges)
    assertSchemaEqual(found.schema, NODES)
    assert [(r.router, r.vpn, r.traced, r.bridged_in, r.first_ns) for r in found.collect()] == [
        ("core", "red", False, None, None),
        ("core", "yellow", True, 1, tracefiles.START),
        ("edge", "blue", False, None, None),
    ]

"""vpnrouter.topology.flows.topics: the busiest topics."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.topology.flows.topics import busiest, topics
from vpnrouter.topology.schema import TOPICS

pytestmark = pytest.mark.spark

AssertRows = Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]
FrameOf = Callable[[dict[str, list[Any]]], DataFrame]


def test_a_topic_is_counted_in_each_vpn(
    frame_of: FrameOf, tracefiles: ModuleType, assert_rows: AssertRows
) -> None:
    """One topic in two VPNs is two rows, with what happened to its messages in each."""
    row = tracefiles.row
    edge, core = tracefiles.crossing(1, "a/b", sent_ns=1, received_ns=2)
    local = [row("ingress", 0, "green", topic="a/b", size_bytes=5)]
    lost = [row("discard", 0, "blue", topic="lost", size_bytes=5)]
    other = [row("subscribe", 0, "blue", topic="a/>"), row("ingress", 0, "blue")]
    found = topics(frame_of({"edge": [*edge, *local, *lost, *other], "core": core}))
    assert_rows(
        found,
        TOPICS,
        [
            ("a/b", "edge", "blue", 1, 64, 2, 0, 1, 0, 0),
            ("a/b", "core", "yellow", 0, 0, 0, 1, 0, 1, 0),
            ("a/b", "edge", "green", 1, 5, 2, 0, 0, 0, 0),
            ("lost", "edge", "blue", 0, 0, 0, 0, 0, 0, 1),
        ],
    )


def test_the_busiest_come_first(frame_of: FrameOf, tracefiles: ModuleType) -> None:
    """Topics are ordered by messages that entered, ties by name, and cut at the bound."""
    rows = [
        tracefiles.row("ingress", 0, "blue", topic=topic, size_bytes=1)
        for topic, count in (("b", 2), ("a", 2), ("c", 3), ("d", 1))
        for _ in range(count)
    ]
    found = busiest(topics(frame_of({"edge": rows})), 3)
    assert [row.topic for row in found.collect()] == ["c", "a", "b"]

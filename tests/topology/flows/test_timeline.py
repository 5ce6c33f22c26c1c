"""vpnrouter.topology.flows.timeline: how much happened when."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.topology.flows.timeline import timeline
from vpnrouter.topology.schema import TIMELINE

pytestmark = pytest.mark.spark

AssertRows = Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]
FrameOf = Callable[[dict[str, list[Any]]], DataFrame]


def test_events_fall_into_their_stretch(
    frame_of: FrameOf, tracefiles: ModuleType, assert_rows: AssertRows
) -> None:
    """Each event counts in the stretch that holds its time, the begin included, the end not."""
    second, start = tracefiles.SECOND, tracefiles.START
    rows = [
        tracefiles.row("ingress", 0, "blue"),
        tracefiles.row("ingress", 2 * second - 1, "blue"),
        tracefiles.row("deliver", 2 * second, "blue"),
        tracefiles.row("bridge_receive", 9 * second, "blue"),
        tracefiles.row("discard", 9 * second, "blue"),
        tracefiles.row("subscribe", 20 * second, "blue"),
    ]
    found = timeline(frame_of({"edge": rows}), 2 * second)
    assert_rows(
        found,
        TIMELINE,
        [
            (start, 2, 0, 0, 0),
            (start + 2 * second, 0, 0, 1, 0),
            (start + 8 * second, 0, 1, 0, 1),
        ],
    )

"""vpnrouter.topology.flows.discards: where messages ended early."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.topology.flows.discards import discards, worst
from vpnrouter.topology.schema import DISCARDS

pytestmark = pytest.mark.spark

AssertRows = Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]
FrameOf = Callable[[dict[str, list[Any]]], DataFrame]


def test_losses_are_counted_by_reason_and_place(
    frame_of: FrameOf, tracefiles: ModuleType, assert_rows: AssertRows
) -> None:
    """Endpoint, else bridge, else client is the place; other events are no losses."""
    row, start = tracefiles.row, tracefiles.START
    rows = [
        row("discard", 1, "blue", reason="slow", client="c1", topic="b", size_bytes=3),
        row("discard", 4, "blue", reason="slow", client="c1", topic="a", size_bytes=4),
        row("discard", 2, "blue", reason="slow", client="c2", bridge="fares", size_bytes=1),
        row("reject", 3, "blue", reason="full", endpoint="q", client="c1", weight=None),
        row("expire", 5, "blue"),
        row("deliver", 6, "blue", client="c1", size_bytes=9),
    ]
    found = discards(frame_of({"edge": rows}))
    # fmt: off
    assert_rows(
        found,
        DISCARDS,
        [
            ("edge", "blue", "discard", "slow", "c1", 2, 4, 7, "a", start + 1, start + 4),
            ("edge", "blue", "discard", "slow", "fares", 1, 2, 1, None, start + 2, start + 2),
            ("edge", "blue", "reject", "full", "q", 1, None, 0, None, start + 3, start + 3),
            ("edge", "blue", "expire", "", "", 1, 2, 0, None, start + 5, start + 5),
        ],
    )
    # fmt: on
    assert [row.place for row in worst(found, 2).collect()] == ["c1", "fares"]

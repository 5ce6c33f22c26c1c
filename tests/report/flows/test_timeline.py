"""vpnrouter.report.flows.tables: how much happened when."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.report.flows.tables import timeline
from vpnrouter.report.schema import TIMELINE

pytestmark = pytest.mark.spark


def test_stretches_of_all_places_add_up(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame],
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

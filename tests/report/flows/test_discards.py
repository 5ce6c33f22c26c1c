"""vpnrouter.report.flows.tables: where messages ended early."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.report.flows.tables import discards, worst
from vpnrouter.report.schema import DISCARDS

pytestmark = pytest.mark.spark


def loss(event: str, at_ns: int, count: int, weight: float | None, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at edge/blue."""
    nameless = dict.fromkeys(("reason", "endpoint", "bridge", "client"), "")
    times = {"start_ns": 0, "first_ns": at_ns, "last_ns": at_ns + 1}
    place = {"router": "edge", "vpn": "blue", "event": event}
    return {**nameless, **place, **times, "count": count, "weight": weight, **more}


def test_losses_are_counted_by_reason_and_place(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame],
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

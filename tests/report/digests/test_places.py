from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_places(rows_of: Callable[[str], Rows]) -> None:
    """Counts, payloads and the side that wrote, by stretch; links from the states, subscriptions nowhere."""
    places = rows_of("places")
    crossed = [row for row in places if row["event"] == "bridge_receive" and row["vpn"] == "yellow"]
    assert sum(row["count"] for row in crossed) == 6
    assert sum(row["weight"] for row in crossed) == 12.0
    assert {row["bridge"]: row["remote"] for row in crossed} == {"fares": False, "spare": False}
    assert sum(row["bytes"] for row in crossed) == 600
    assert all(row["start_ns"] % 1_000_000_000 == 0 for row in places)
    assert all(row["start_ns"] <= row["first_ns"] <= row["last_ns"] for row in places)
    assert [row["remote"] for row in places if row["event"] == "link_up"] == [True]
    assert sum(row["count"] for row in places if row["event"] == "discard") == 42
    assert not [row for row in places if row["event"] == "subscribe"]

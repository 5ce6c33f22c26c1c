from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_paths(rows_of: Callable[[str], Rows]) -> None:
    """One row a way, with the least age by two clocks."""
    ways = rows_of("paths")
    assert sorted((row["path"], row["bridge"], row["count"]) for row in ways) == [
        ("core/yellow", "back", 3),
        ("edge/blue", "fares", 5),
        ("edge/blue", "spare", 1),
    ]
    assert {row["least_age_ns"] for row in ways if row["bridge"] == "fares"} == {43_000_000}
    assert {row["least_age_ns"] for row in ways if row["bridge"] == "back"} == {-37_000_000}

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_two_ways(rows_of: Callable[[str], Rows]) -> None:
    """The one message that came over a second bridge too."""
    (two,) = [row for row in rows_of("doubles") if row["kind"] == "two_ways"]
    assert (two["who"], two["other"]) == ("edge/blue:fares", "edge/blue:spare")
    assert (two["messages"], two["copies"], two["example_trace"]) == (1, 1, f"{1:032x}")

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_states(rows_of: Callable[[str], Rows]) -> None:
    """Links and subscriptions as they came."""
    assert {(row["event"], row["topic"], row["topic_syntax"]) for row in rows_of("states")} == {
        ("link_up", None, None),
        ("subscribe", "a/+", "mqtt"),
    }

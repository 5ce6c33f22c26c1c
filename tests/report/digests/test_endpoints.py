from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_endpoints(rows_of: Callable[[str], Rows]) -> None:
    """What each partition took and gave."""
    (queue,) = rows_of("endpoints")
    assert (queue["partition"], queue["enqueued"], queue["acknowledged"]) == (1, 1, 1)
    assert queue["bytes"] == 100

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_uses(rows_of: Callable[[str], Rows]) -> None:
    """Who got what on which topic; publishers are not told apart."""
    uses = rows_of("uses")
    sent = [row for row in uses if row["event"] == "bridge_send" and row["bridge"] == "fares"]
    assert [(row["client"], row["count"]) for row in sent] == [("#bridge/core/yellow/fares", 5)]
    unmatched = [row for row in uses if row["event"] == "discard"]
    assert [(row["endpoint"], row["count"]) for row in unmatched] == [("no-subscription-match", 42)]
    assert [row["endpoint"] for row in uses if row["event"] == "enqueue"] == ["q"]
    assert {row["client"] for row in uses if row["event"] == "ingress"} == {None}
    assert not [row for row in uses if row["event"] == "acknowledge"]

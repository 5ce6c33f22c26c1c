"""vpnrouter.report.flows.tables: from first ingress to a delivery or an endpoint."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.ends import rows_in
from vpnrouter.report.flows.tables import delays, end_to_end

pytestmark = pytest.mark.spark


def delay(origin: str, goal: str, bucket: int, count: int) -> dict[str, Any]:
    """A row of DELAYS between message VPNs "blue"."""
    ends = {"origin_router": origin, "origin_vpn": "blue", "router": goal, "vpn": "blue"}
    return {**ends, "bucket": bucket, "count": count}


def test_pairs_have_their_percentiles(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The busiest pairs first, those beyond the bound not at all; clocks say what is corrected."""
    monkeypatch.setattr(module, "REPORT_END_TO_END", 3)
    rows = [
        delay("a", "b", 3, 10),
        delay("a", "b", 9, 1),
        delay("a", "b", 3, 9),
        delay("a", "a", 1, 5),
        delay("a", "c", 2, 4),
        delay("c", "a", 2, 3),
    ]
    found = end_to_end(rows_in(delays(digest_of("delays", rows))), {"a": "a", "b": "a", "c": "c"})
    assert [tuple(row.values()) for row in found] == [
        ("a", "blue", "b", "blue", 20, 3, 3, 9, True),
        ("a", "blue", "a", "blue", 5, 1, 1, 1, True),
        ("a", "blue", "c", "blue", 4, 2, 2, 2, False),
    ]

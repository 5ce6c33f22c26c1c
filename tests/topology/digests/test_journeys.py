from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.topology.digests.buckets import middle_ns

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_hops(rows_of: Callable[[str], Rows]) -> None:
    """Time over each bridge by corrected clocks, from rows of both routers; a crossing seen once is left out."""
    hops = {(row["bridge"], row["count"]): middle_ns(row["bucket"]) for row in rows_of("hops")}
    assert hops.keys() == {("fares", 5), ("back", 3)}
    assert all(took == pytest.approx(3_000_000, rel=0.02) for took in hops.values())
    assert {row["from_router"] for row in rows_of("hops") if row["bridge"] == "back"} == {"core"}


def test_doubles(rows_of: Callable[[str], Rows]) -> None:
    """The one message that the subscriber got twice."""
    (double,) = [row for row in rows_of("doubles") if row["kind"] == "deliver"]
    assert (double["router"], double["vpn"], double["who"]) == ("core", "yellow", "sub")
    assert (double["messages"], double["copies"]) == (1, 1)
    assert double["last_ns"] - double["first_ns"] == 1
    assert {row["kind"] for row in rows_of("doubles")} == {"deliver", "two_ways"}

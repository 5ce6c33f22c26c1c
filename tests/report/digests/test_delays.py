from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.digests.sums import middle_ns

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_delays(rows_of: Callable[[str], Rows]) -> None:
    """From first ingress to delivery by clocks that are corrected."""
    took = {
        (row["origin_vpn"], row["vpn"]): (middle_ns(row["bucket"]), row["count"])
        for row in rows_of("delays")
        if row["origin_vpn"] != row["vpn"]
    }
    assert took["blue", "yellow"] == (pytest.approx(3_000_000, rel=0.02), 6)
    assert took["yellow", "blue"] == (pytest.approx(3_000_000, rel=0.02), 3)


def test_a_message_that_crossed_nothing_began_here(rows_of: Callable[[str], Rows]) -> None:
    """An origin is taken from the place itself."""
    (here,) = [row for row in rows_of("delays") if row["origin_vpn"] == row["vpn"]]
    assert (here["origin_router"], here["router"], here["bucket"]) == ("core", "core", 7)

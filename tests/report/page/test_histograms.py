"""vpnrouter.report.page.charts: latencies on one scale."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.page.charts import STEPS, histograms, step_of
from vpnrouter.report.page.figures import Places

Make = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("latency", "step"), [(1, 0), (10, STEPS), (999, 3 * STEPS - 1), (1_000, 3 * STEPS)]
)
def test_steps(latency: int, step: int) -> None:
    """Powers of ten begin a step."""
    assert step_of(latency) == step


def test_rows_are_counted_by_edge(edge: Make) -> None:
    """Gaps count zero, latencies below a nanosecond apart, rows of unknown bridges are passed over."""
    edges = [edge("a/x", "b/y"), edge("b/y", "a/x")]
    key = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
    mine = {name: edges[0][name] for name in key}
    rows = [
        mine | {"latency_ns": 1_000, "messages": 3},
        mine | {"latency_ns": 1_001, "messages": 4},
        mine | {"latency_ns": 2_000, "messages": 5},
        mine | {"latency_ns": -7, "messages": 2},
        mine | {"bridge": "gone", "latency_ns": 5, "messages": 99},
    ]
    found = histograms(rows, Places([], edges))
    assert list(found) == [0]
    assert (found[0].first, found[0].counts, found[0].below) == (3 * STEPS, [7, 0, 5], 2)

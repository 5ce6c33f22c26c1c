from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.digests.sums import Corrections, middle_ns
from vpnrouter.report.follow import doubles, hops, met

pytestmark = pytest.mark.spark

MS = 1_000_000
CLOCKS = [
    {"router": "edge", "reference": "edge", "offset_ns": 0, "error_ns": 0, "pairs": 1},
    {"router": "core", "reference": "edge", "offset_ns": 2 * MS, "error_ns": 1, "pairs": 1},
]


def _crossing(number: int, bridge: str = "b", copies: int = 1) -> dict[str, list[dict[str, Any]]]:
    """A message from edge/blue to core/yellow in 5 ms, by a clock that is 2 ms ahead there."""
    of = {"trace_id": f"{number:032x}", "message_id": number, "origin_ts_ns": number * MS}
    sent = {**of, "event": "bridge_send", "ts_ns": number * MS, "vpn": "blue", "bridge": bridge}
    came = {**of, "event": "bridge_receive", "ts_ns": (number + 7) * MS, "vpn": "yellow"}
    got = {**of, "event": "deliver", "ts_ns": (number + 8) * MS, "vpn": "yellow", "client": "c"}
    return {
        "edge": [{**sent, "peer_router": "core", "peer_vpn": "yellow"}],
        "core": [
            {**came, "bridge": bridge, "peer_router": "edge", "peer_vpn": "blue"},
            *[got] * copies,
        ],
    }


def test_messages_met(frame_of: Callable[..., DataFrame]) -> None:
    """Times over bridges, what came twice, and what came by two ways."""
    rows: dict[str, list[dict[str, Any]]] = {"edge": [], "core": []}
    for one in (
        _crossing(1),
        _crossing(2, copies=3),
        _crossing(3),
        _crossing(3, bridge="c", copies=0),
    ):
        for router, listed in one.items():
            rows[router] += listed
    together = met(frame_of(rows), 10).persist()
    took = {
        row["bridge"]: (middle_ns(row["bucket"]), row["count"])
        for row in hops(together, Corrections(CLOCKS)).collect()
    }
    assert took == {
        "b": (pytest.approx(5 * MS, rel=0.02), 3),
        "c": (pytest.approx(5 * MS, rel=0.02), 1),
    }
    found = {row["kind"]: row.asDict() for row in doubles(together).collect()}
    assert found.keys() == {"deliver", "two_ways"}
    assert (found["deliver"]["who"], found["deliver"]["copies"]) == ("c", 2)
    two = found["two_ways"]
    assert (two["who"], two["other"], two["copies"]) == ("edge/blue:b", "edge/blue:c", 1)

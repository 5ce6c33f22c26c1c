from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.digests.counts import paths

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


def test_ends_are_read_off_the_path(frame_of: Callable[..., DataFrame]) -> None:
    """A slash in the name of a message VPN does not matter; a path with more steps than hops names no ends."""
    came = {"event": "bridge_receive", "vpn": "v", "bridge": "b", "ts_ns": 5, "origin_ts_ns": 1}
    rows = [
        {**came, "path": "a/x/1>b/y", "hops": 2},
        {**came, "path": "a/x>1", "hops": 1},
        {**came, "path": None, "hops": 1, "peer_router": "p", "peer_vpn": "q"},
    ]
    found = {row["path"]: row for row in paths(frame_of({"r": rows})).collect()}
    told = found["a/x/1>b/y"]
    assert (told["origin_router"], told["origin_vpn"]) == ("a", "x/1")
    assert (told["peer_router"], told["peer_vpn"], told["hops"]) == ("b", "y", 2)
    assert (found["a/x>1"]["origin_router"], found["a/x>1"]["peer_vpn"]) == (None, None)
    assert (found[None]["peer_router"], found[None]["peer_vpn"]) == ("p", "q")

"""vpnrouter.report.flows.tables: the ways that messages took."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.testing import assertSchemaEqual

from vpnrouter.report.flows.tables import lengths, ways, ways_and_lengths
from vpnrouter.report.schema import WAYS

pytestmark = pytest.mark.spark


def came(path: str | None, hops: int | None, count: int, **more: Any) -> dict[str, Any]:
    """A row of PATHS at core/yellow."""
    here = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
    return {**here, "path": path, "hops": hops, "count": count, "bytes": 10 * count, **more}


def test_ways_and_their_lengths(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame],
) -> None:
    """The last VPN is part of the way; rows that do not say a long way still have a length."""
    rows = [
        came("edge/blue", 1, 3, bridge="a"),
        came("edge/blue", 1, 2, bridge="b"),
        came(None, 1, 4),
        came("far/red>edge/blue", None, 7, bytes=None),
        came("far/red>edge/blue", 2, 1),
        came(None, 3, 1),
        came(None, None, 1),
        came(None, 1, 1, peer_vpn=None),
    ]
    frame = ways_and_lengths(digest_of("paths", rows), 10)
    assertSchemaEqual(frame.schema, WAYS)
    both = frame.toArrow().to_pylist()
    assert [tuple(row.values()) for row in ways(both)] == [
        ("edge/blue>core/yellow", 1, 9, 90),
        ("far/red>edge/blue>core/yellow", 2, 8, 10),
    ]
    assert [tuple(row.values()) for row in lengths(both, 6)] == [(0, 6), (1, 10), (2, 8), (3, 1)]
    assert lengths([], 0) == []
    few = ways_and_lengths(digest_of("paths", rows), 1).toArrow().to_pylist()
    assert [row["messages"] for row in ways(few)] == [9]
    assert lengths(few, 0) == lengths(both, 0)

"""vpnrouter.report.flows.tables: how much crossed each bridge when."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.ends import rows_in, totals
from vpnrouter.report.flows.tables import (
    Seen,
    Side,
    busiest_bridges,
    rates,
    seen_edges,
)
from vpnrouter.report.schema import RATES

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def place(
    event: str, bridge: str, start_ns: int, count: int, mode: str = "direct"
) -> dict[str, Any]:
    """A row of PLACES about a bridge from edge/blue to core/yellow."""
    at_edge, at_core = ("edge", "blue"), ("core", "yellow")
    near, far = (at_edge, at_core) if event == "bridge_send" else (at_core, at_edge)
    return {
        **dict(zip(("router", "vpn"), near, strict=True)),
        **dict(zip(("peer_router", "peer_vpn"), far, strict=True)),
        "event": event,
        "bridge": bridge,
        "mode": mode,
        "remote": event == "bridge_send",
        "start_ns": start_ns,
        "count": count,
        "bytes": 10 * count,
        "first_ns": start_ns,
        "last_ns": start_ns,
    }


ROWS = [
    place("bridge_send", "fares", 0, 4),
    place("bridge_receive", "fares", 0, 3),
    place("bridge_receive", "fares", 0, 2, "persistent"),
    place("bridge_receive", "fares", 60, 1),
    place("bridge_send", "fares", 90, 1),
    place("bridge_send", "lossy", 0, 3),
    place("bridge_send", "lossy", 60, 1),
    place("bridge_receive", "lossy", 60, 1),
    place("ingress", "", 0, 50),
]


@pytest.mark.spark
def test_the_fuller_side_has_rates(spark: SparkSession, digest_of: DigestOf) -> None:
    """Receiver or sender, as the edge's totals; stretches in which that side saw none are left out."""
    places = digest_of("places", ROWS)
    found = rates(spark, places, seen_edges(rows_in(totals(places))))
    assert [list(row) for row in found] == [RATES.names] * 4
    assert [tuple(row.values())[4:] for row in found] == [
        ("fares", 0, 5, 50, 2),
        ("fares", 60, 1, 10, 0),
        ("lossy", 0, 3, 30, 0),
        ("lossy", 60, 1, 10, 0),
    ]


@pytest.mark.spark
def test_beyond_the_bound_the_busiest_edges_stay(
    spark: SparkSession, digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole edges only, and no more rows than the bound."""
    places = digest_of("places", ROWS)
    seen = seen_edges(rows_in(totals(places)))
    for most, bridges in ((3, ["fares", "fares"]), (1, [])):
        monkeypatch.setattr(module, "REPORT_RATES", most)
        assert [row["bridge"] for row in rates(spark, places, seen)] == bridges


def test_edges_without_messages_take_no_room() -> None:
    """The busiest are those with most messages, ties by name."""

    def seen(messages: int) -> Seen:
        return Seen(receive=Side(messages=messages, stretches=2 if messages else 0))

    edges = {
        ("a", "b", "c", "d", name): seen(count)
        for name, count in zip("xyz", (5, 0, 5), strict=True)
    }
    assert [edge[4] for edge in busiest_bridges(edges, 4)] == ["x", "z"]
    assert [edge[4] for edge in busiest_bridges(edges, 3)] == ["x"]

"""vpnrouter.report.flows.tables: all tables from all digests."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from vpnrouter.report import schema
from vpnrouter.report.flows import tables as derive
from vpnrouter.report.flows.clocks import clock_offsets
from vpnrouter.report.flows.tables import flows

pytestmark = pytest.mark.spark

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]
NAMES = ("places", "paths", "uses", "losses", "delays", "hops", "states")
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}
ENDS = {"from_router": "edge", "from_vpn": "blue", "to_router": "core", "to_vpn": "yellow"}
FIGURES = {"count": 4, "weight": 4.0, "bytes": 40, "first_ns": 7, "last_ns": 50, "start_ns": 0}
TOPIC = {"router": "edge", "vpn": "blue", "count": 2, "weight": 2.0}


def test_the_tables_agree_with_each_other(spark: SparkSession, digest_of: DigestOf) -> None:
    """One bridge with its ends, rates, latencies, link, ways and the time from end to end."""
    rows: dict[str, list[dict[str, Any]]] = {
        "places": [
            {"router": "edge", "vpn": "blue", "event": "ingress", **FIGURES},
            {**AT_EDGE, "event": "bridge_send", "bridge": "fares", "mode": "direct", **FIGURES},
            {**AT_CORE, "event": "link_down", "bridge": "fares", **FIGURES, "count": 1},
        ],
        "paths": [
            {**AT_CORE, "origin_router": "edge", "hops": 1, "count": 4, "least_age_ns": 7},
            {**AT_EDGE, "origin_router": "core", "hops": 1, "count": 1, "least_age_ns": -5},
        ],
        "uses": [{"topic": name, "event": "ingress", **TOPIC} for name in "ab"],
        "losses": [{"router": "edge", "vpn": "blue", "event": "discard", **FIGURES}],
        "delays": [{"origin_router": "edge", "router": "core", "bucket": 3, "count": 4}],
        "hops": [{**ENDS, "bridge": "fares", "bucket": 2, "count": 4}],
        "states": [{**AT_CORE, "event": "link_down", "bridge": "fares", "ts_ns": 30}],
    }
    heard: list[str] = []
    digests = {name: digest_of(name, listed) for name, listed in rows.items()}
    found = flows(spark, digests, clock_offsets(rows["paths"]), heard.append)
    assert heard == ["bridges", "message VPNs", "ways", "topics", "discards", "timeline"]
    assert found.topic_count == 2
    for name, table in found.tables.items():
        assert table.schema.names == getattr(schema, name.upper()).names
    tables = {name: table.to_pylist() for name, table in found.tables.items()}
    (edge,) = tables["edges"]
    assert (edge["bridge"], edge["messages"], edge["latency_p50_ns"]) == ("fares", 4, 2)
    assert (edge["latency_corrected"], edge["link_downs"], edge["up_ns"]) == (True, 1, 23)
    assert [(row["vpn"], row["traced"]) for row in tables["nodes"]] == [
        ("yellow", True),
        ("blue", True),
    ]
    assert [row["messages"] for row in tables["rates"]] == [4]
    assert [row["latency_ns"] for row in tables["latencies"]] == [2]
    assert [(row["p50_ns"], row["corrected"]) for row in tables["end_to_end"]] == [(3, True)]
    assert [row["offset_ns"] for row in tables["clocks"]] == [0, -6]
    assert [(row["up_ns"], row["down_ns"]) for row in tables["links"]] == [(7, 30)]
    assert [row["messages"] for row in tables["ways"]] == [4, 1]
    assert [row["hops"] for row in tables["lengths"]] == [0, 1]
    assert [row["messages"] for row in tables["discards"]] == [4]
    assert [row["ingress"] for row in tables["timeline"]] == [4]


def test_nothing_gives_empty_tables(spark: SparkSession, digest_of: DigestOf) -> None:
    """Digests without a row are no error, and the tables have their columns and types."""
    found = flows(spark, {name: digest_of(name, []) for name in NAMES}, [])
    assert found.topic_count == 0
    for name, table in found.tables.items():
        assert table.num_rows == 0, name
        assert table.schema.equals(to_arrow_schema(getattr(schema, name.upper()))), name


def test_tables_are_cut_at_their_bounds(
    spark: SparkSession, digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics, discards and ways beyond the bounds are left out, and topics still counted."""
    digests = {name: digest_of(name, []) for name in NAMES}
    place = {"router": "edge", "vpn": "blue"}
    several = [str(number) for number in range(4)]
    digests["uses"] = digest_of(
        "uses", [{**place, "topic": name, "event": "ingress", "count": 1} for name in several]
    )
    digests["losses"] = digest_of(
        "losses", [{**place, "event": "discard", "client": name, "count": 1} for name in several]
    )
    digests["paths"] = digest_of(
        "paths", [{**place, "path": name, "hops": 1, "count": 1} for name in several]
    )
    for number, name in enumerate(("REPORT_TOPICS", "REPORT_DISCARDS", "REPORT_WAYS"), 1):
        monkeypatch.setattr(derive, name, number)
    found = flows(spark, digests, [])
    sizes = [found.tables[name].num_rows for name in ("topics", "discards", "ways", "lengths")]
    assert (sizes, found.topic_count) == ([1, 2, 3, 1], 4)

"""How long messages took over each bridge."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_LATENCIES
from vpnrouter.topology.digests.buckets import middle_ns, percentiles
from vpnrouter.topology.flows.ends import EDGE, Edge, edge_named
from vpnrouter.topology.flows.gather import histogram
from vpnrouter.topology.tables import Rows

SHARES: Final = (0.5, 0.95, 0.99)
"""The percentiles that tables give."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of a bridge's latency in nanoseconds, None without samples."""

    samples: int
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None


def histograms(hops: DataFrame) -> pa.Table:
    """HOPS in; one row an edge with `samples` and its `histogram`, those with most samples first."""
    named = hops.withColumn("bridge", F.coalesce(F.col("bridge"), F.lit("")))
    return (
        named.groupBy(*EDGE)
        .agg(F.sum("count").alias("samples"), histogram().alias("histogram"))
        .orderBy(F.desc("samples"), *EDGE)
        .toArrow()
    )


def latencies(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[Edge, Latency], Rows]:
    """Rows of `histograms` in; the percentiles of every edge, and LATENCIES.

    LATENCIES are in the order of the edges, then of latency; whole histograms of the edges with most
    samples, up to REPORT_LATENCIES rows.
    """
    found: dict[Edge, Latency] = {}
    listed: Rows = []
    full = False
    for row in rows:
        edge = edge_named(row)
        counts = merged(row["histogram"])
        found[edge] = Latency(row["samples"], *percentiles(counts.items(), SHARES))
        full = full or len(listed) + len(counts) > REPORT_LATENCIES
        if full:
            continue
        ends = dict(zip(EDGE, edge, strict=True))
        listed.extend(
            {**ends, "latency_ns": middle_ns(number), "messages": counts[number]}
            for number in sorted(counts)
        )
    return found, listed


def merged(pairs: Iterable[Mapping[str, int]]) -> dict[int, int]:
    """Counts by bucket, from a list in which a bucket may come more than once."""
    counts: dict[int, int] = {}
    for pair in pairs:
        counts[pair["bucket"]] = counts.get(pair["bucket"], 0) + pair["count"]
    return counts

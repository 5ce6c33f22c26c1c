"""The ways that messages took over the mesh, and how long these were."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import WAYS, conform
from vpnrouter.topology.tables import Rows


def ways_and_lengths(paths: DataFrame, most: int) -> DataFrame:
    """PATHS in, WAYS out: the `most` ways of most messages, these first; and, with null for `way` and `bytes`, the
    messages of each number of bridges. One job for both.

    A row of a message that has crossed one bridge needs no `path`: it came from the other end. Longer ways
    that do not say theirs count among the lengths only.
    """
    here = F.concat_ws("/", "router", "vpn")
    before = F.coalesce(
        F.col("path"),
        F.when(
            (F.col("hops") == 1) & F.col("peer_router").isNotNull() & F.col("peer_vpn").isNotNull(),
            F.concat_ws("/", "peer_router", "peer_vpn"),
        ),
    )
    bridges = F.when(F.col("path").isNotNull(), F.size(F.split("path", ">")))
    known = paths.select(
        F.concat(before, F.lit(">"), here).alias("way"),
        F.coalesce(F.col("hops"), bridges).alias("hops"),
        "count",
        "bytes",
    )
    taken = (
        known.where(F.col("way").isNotNull())
        .groupBy("way", "hops")
        .agg(F.sum("count").alias("messages"), F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"))
        .orderBy(F.desc("messages"), "way", "hops")
        .limit(most)
    )
    lengths = (
        known.where(F.col("hops").isNotNull())
        .groupBy("hops")
        .agg(F.sum("count").alias("messages"))
        .select(F.lit(None).alias("way"), "hops", "messages", F.lit(None).alias("bytes"))
    )
    return conform(taken, WAYS).union(conform(lengths, WAYS))


def ways(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows of `ways_and_lengths` in; WAYS, those of most messages first."""
    taken = [dict(row) for row in rows if row["way"] is not None]
    return sorted(taken, key=lambda row: (-row["messages"], row["way"], row["hops"]))


def lengths(rows: Iterable[Mapping[str, Any]], published: int) -> Rows:
    """Rows of `ways_and_lengths` in; LENGTHS, the shortest first, with the `published` messages as
    those that crossed no bridge.
    """
    counts = {row["hops"]: row["messages"] for row in rows if row["way"] is None}
    if published:
        counts[0] = counts.get(0, 0) + published
    return [{"hops": hops, "messages": counts[hops]} for hops in sorted(counts)]

"""Job: where messages ended their way early, and why."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import DISCARDS, conform, estimate_where

_LOSSES: Final = ("discard", "reject", "expire", "dead_letter")


def discards(traces: DataFrame) -> DataFrame:
    """TRACES in, DISCARDS out, unordered: counts by router, VPN, event, reason and place.

    The place is the endpoint, else the bridge, else the client that the row names.
    """
    place = F.coalesce(F.col("endpoint"), F.col("bridge"), F.col("client"), F.lit(""))
    grouped = (
        traces.where(F.col("event").isin(*_LOSSES))
        .withColumns({"reason": F.coalesce(F.col("reason"), F.lit("")), "place": place})
        .groupBy("router", "vpn", "event", "reason", "place")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            estimate_where(F.lit(True)).alias("messages_estimated"),
            F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes"),
            F.min("topic").alias("example_topic"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )
    return conform(grouped, DISCARDS)


def worst(rows: DataFrame, most: int) -> DataFrame:
    """DISCARDS in and out: the `most` most frequent, ties in order of place."""
    return rows.orderBy(F.desc("messages"), "router", "vpn", "event", "reason", "place").limit(most)

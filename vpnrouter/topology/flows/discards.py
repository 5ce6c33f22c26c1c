"""Where messages ended their way early, and why."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.flows.gather import weights
from vpnrouter.topology.schema import DISCARDS, conform

_LOSSES: Final = ("discard", "reject", "expire", "dead_letter")


def discards(losses: DataFrame) -> DataFrame:
    """LOSSES in, DISCARDS out, unordered: counts by router, VPN, event, reason and place.

    The place is the endpoint, else the bridge, else the client that the rows name. A redelivery ends no message's
    way.
    """
    place = F.coalesce(_named("endpoint"), _named("bridge"), _named("client"), F.lit(""))
    grouped = (
        losses.where(F.col("event").isin(*_LOSSES))
        .withColumns({"reason": F.coalesce(F.col("reason"), F.lit("")), "place": place})
        .groupBy("router", "vpn", "event", "reason", "place")
        .agg(
            F.sum("count").alias("messages"),
            F.round(weights()).alias("messages_estimated"),
            F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
            F.min("example_topic").alias("example_topic"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
    )
    return conform(grouped, DISCARDS)


def worst(rows: DataFrame, most: int) -> DataFrame:
    """DISCARDS in and out: the `most` most frequent, ties in order of place."""
    return rows.orderBy(F.desc("messages"), "router", "vpn", "event", "reason", "place").limit(most)


def _named(column: str) -> Column:
    """The name, null where the digest has "" for none."""
    return F.when(F.col(column) != "", F.col(column))

"""The busiest topics, and what became of the messages on each in every message VPN."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import TOPICS, conform

_EVENTS: Final = ("ingress", "bridge_receive", "bridge_send", "deliver", "discard")


def topics(uses: DataFrame) -> DataFrame:
    """USES in, TOPICS out, unordered: one row a topic and message VPN in which it was seen.

    VPNs are isolated: one topic in two of them is two topics, unless a bridge joins them.
    """
    published = F.col("event") == "ingress"
    unknown = F.count(F.when(published & F.col("weight").isNull(), F.lit(1)))
    estimate = F.coalesce(F.sum(F.when(published, F.col("weight"))), F.lit(0.0))
    grouped = (
        uses.where(F.col("event").isin(*_EVENTS) & F.col("topic").isNotNull())
        .groupBy("topic", "router", "vpn")
        .agg(
            _sum("ingress", "count").alias("published"),
            _sum("ingress", "bytes").alias("published_bytes"),
            F.when(unknown == 0, F.round(estimate)).alias("published_estimated"),
            _sum("bridge_receive", "count").alias("bridged_in"),
            _sum("bridge_send", "count").alias("bridged_out"),
            _sum("deliver", "count").alias("delivered"),
            _sum("discard", "count").alias("discarded"),
        )
    )
    return conform(grouped, TOPICS)


def busiest(rows: DataFrame, most: int) -> DataFrame:
    """TOPICS in and out: the `most` with most messages entering, ties in order of name."""
    entering = F.col("published") + F.col("bridged_in")
    return rows.orderBy(
        entering.desc(), F.desc("published"), F.desc("delivered"), "topic", "router", "vpn"
    ).limit(most)


def _sum(event: str, figure: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("event") == event, F.col(figure))), F.lit(0))

"""Job: the busiest topics, and what became of the messages on each in every message VPN."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import TOPICS, conform, count_where, estimate_where


def topics(traces: DataFrame) -> DataFrame:
    """TRACES in, TOPICS out, unordered: one row a topic and message VPN in which it was seen.

    VPNs are isolated: one topic in two of them is two topics, unless a bridge joins them.
    """
    event = F.col("event")
    ingress = event == "ingress"
    grouped = (
        traces.where(
            event.isin("ingress", "bridge_receive", "bridge_send", "deliver", "discard")
            & F.col("topic").isNotNull()
        )
        .groupBy("topic", "router", "vpn")
        .agg(
            count_where(ingress).alias("published"),
            F.coalesce(F.sum(F.when(ingress, F.col("size_bytes"))), F.lit(0)).alias(
                "published_bytes"
            ),
            estimate_where(ingress).alias("published_estimated"),
            count_where(event == "bridge_receive").alias("bridged_in"),
            count_where(event == "bridge_send").alias("bridged_out"),
            count_where(event == "deliver").alias("delivered"),
            count_where(event == "discard").alias("discarded"),
        )
    )
    return conform(grouped, TOPICS)


def busiest(rows: DataFrame, most: int) -> DataFrame:
    """TOPICS in and out: the `most` with most messages entering, ties in order of name."""
    entering = F.col("published") + F.col("bridged_in")
    return rows.orderBy(
        entering.desc(), F.desc("published"), F.desc("delivered"), "topic", "router", "vpn"
    ).limit(most)

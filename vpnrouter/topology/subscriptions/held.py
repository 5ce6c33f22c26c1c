"""The subscriptions that clients and bridges hold or held, and for how long."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from vpnrouter.topology.subscriptions import patterns

KEY: Final = ["router", "vpn", "client", "filter", "syntax"]
"""What names a subscription."""

TOGETHER_NS: Final = 1_000_000_000
"""A client that leaves gives up all its subscriptions within so many nanoseconds."""

_QUEUE_PREFIX: Final = "$queue/"


def held(states: DataFrame, span: tuple[int, int]) -> DataFrame:
    """STATES in; one row a subscription out, whether it is still held or not.

    * `router`, `vpn`, `client`, `filter` as written, `syntax` ("mqtt" or "smf");
    * `since_ns`: when it was first made, `until_ns`: when it was last given up, null for one still held
      at the end of `span`, `held_ns`: how long it was held in all, without the gaps;
    * `current`: it is still held, or was among the last ones of a client that holds none any more, as when a
      router stops and takes its clients with it;
    * `text`: the filter without prefixes, and `exception`, see `vpnrouter.topology.subscriptions.patterns`.

    One whose making was not seen counts from the begin of `span` (first and last time, nanoseconds since
    1970). Bindings to queues (`$queue/…`) are no subscriptions and have no row.
    """
    first_ns, last_ns = span
    subscribed = states.where(
        F.col("event").isin("subscribe", "unsubscribe")
        & F.col("client").isNotNull()
        & F.col("topic").isNotNull()
        & ~F.col("topic").startswith(_QUEUE_PREFIX)
    )
    # All that follows is by client, so that rows change places once.
    changes = subscribed.repartition("router", "vpn", "client").select(
        "router",
        "vpn",
        "client",
        F.col("topic").alias("filter"),
        patterns.syntax_of(F.col("client"), F.col("topic_syntax")).alias("syntax"),
        "ts_ns",
        (F.col("event") == "subscribe").alias("begins"),
    )
    # Of two in the same nanosecond the begin comes first: a subscription that replaces another leaves
    # no trace, so that they can only be one that was made and given up at once.
    order = Window.partitionBy(*KEY).orderBy("ts_ns", F.col("begins").desc())
    after = F.lead("ts_ns").over(order)
    begin = F.when(F.col("begins"), F.col("ts_ns")).when(
        F.lag("begins").over(order).isNull(), F.lit(first_ns)
    )
    end = F.when(F.col("begins"), F.coalesce(after, F.lit(last_ns))).otherwise(F.col("ts_ns"))
    stretches = changes.select(
        *KEY,
        "begins",
        begin.alias("begin_ns"),
        F.greatest(end, begin).alias("end_ns"),
        after.isNull().alias("last"),
    )
    subscriptions = stretches.groupBy(*KEY).agg(
        F.min("begin_ns").alias("since_ns"),
        F.max(F.when(F.col("last") & F.col("begins"), F.lit(True))).alias("open"),
        F.max("end_ns").alias("end_ns"),
        F.sum(F.coalesce(F.col("end_ns") - F.col("begin_ns"), F.lit(0))).alias("held_ns"),
    )
    text = patterns.bare(F.col("filter"), F.col("syntax"))
    client = Window.partitionBy("router", "vpn", "client")
    opened = F.col("open").isNotNull()
    with_last = F.max("open").over(client).isNull() & (
        F.col("end_ns") >= F.max("end_ns").over(client) - TOGETHER_NS
    )
    return (
        subscriptions.withColumn("current", opened | with_last)
        .withColumn("text", text)
        .where(F.col("text") != "")
        .select(
            *KEY,
            "since_ns",
            F.when(F.col("open").isNull(), F.col("end_ns")).alias("until_ns"),
            "held_ns",
            "current",
            "text",
            patterns.exception(F.col("filter"), F.col("syntax")).alias("exception"),
        )
    )

"""Job: the bridges as directed edges, from the remote message VPN to the local one that attracts.

Both routers tell of an edge: the remote one of what it sent, the local one of what arrived, and
both of the link's ups and downs. A message's two rows meet by what it keeps on its whole way: trace
id, message id and time of first ingress. (The trace id alone would not do: with a `traceparent`
from outside, many messages share one.)
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import EDGES, conform

_EDGE: Final = ["from_router", "from_vpn", "to_router", "to_vpn", "bridge"]
_PERCENTILES: Final = (0.5, 0.95, 0.99)
# One part in this many: exact below as many samples, and within 0.01 % of the rank above.
_ACCURACY: Final = 10_000


def edges(traces: DataFrame) -> DataFrame:
    """TRACES in, EDGES out, ordered by ends and name.

    `messages`, `bytes`, `direct` and `guaranteed` are those of the side that saw more. `latency`
    runs from bridge_send at the remote router to bridge_receive at the local one, and `age` from
    the first ingress to bridge_receive, in nanoseconds; both compare the clocks of two machines,
    uncorrected.
    """
    seen = _seen(traces)
    joined = _counts(seen).join(_delays(seen), _EDGE, "left")
    percentiles = {
        f"{what}_p{round(share * 100)}_ns": F.col(what)[at]
        for what in ("latency", "age")
        for at, share in enumerate(_PERCENTILES)
    }
    samples = F.coalesce(F.col("latency_samples"), F.lit(0))
    return conform(joined.withColumns({**percentiles, "latency_samples": samples}), EDGES).orderBy(
        *_EDGE
    )


def _seen(traces: DataFrame) -> DataFrame:
    """The rows about bridges, with the edge's ends in place of who wrote the row."""
    event = F.col("event")
    # The remote router knows the bridge as a client that logged in, and names it; the local one
    # does not.
    remote = (event == "bridge_send") | (
        event.isin("link_up", "link_down") & F.col("client").isNotNull()
    )
    return traces.where(
        event.isin("bridge_send", "bridge_receive", "link_up", "link_down")
        & F.col("vpn").isNotNull()
        & F.col("peer_router").isNotNull()
        & F.col("peer_vpn").isNotNull()
    ).select(
        F.when(remote, F.col("router")).otherwise(F.col("peer_router")).alias("from_router"),
        F.when(remote, F.col("vpn")).otherwise(F.col("peer_vpn")).alias("from_vpn"),
        F.when(remote, F.col("peer_router")).otherwise(F.col("router")).alias("to_router"),
        F.when(remote, F.col("peer_vpn")).otherwise(F.col("vpn")).alias("to_vpn"),
        F.coalesce(F.col("bridge"), F.lit("")).alias("bridge"),
        "event",
        remote.alias("remote"),
        "ts_ns",
        # Eight bytes for a message's identity: two of one edge that share them by chance would cost
        # one sample.
        F.xxhash64("trace_id", "message_id", "origin_ts_ns").alias("message"),
        "origin_ts_ns",
        (F.col("mode") == "direct").alias("is_direct"),
        "size_bytes",
        "weight",
    )


def _counts(seen: DataFrame) -> DataFrame:
    """One row an edge with everything but its delays."""
    few = seen.groupBy(*_EDGE, "event", "remote", "is_direct").agg(
        F.count(F.lit(1)).alias("rows"),
        F.count("weight").alias("weighed"),
        F.sum("weight").alias("weight"),
        F.sum("size_bytes").alias("size"),
        F.min("ts_ns").alias("first_ns"),
        F.max("ts_ns").alias("last_ns"),
    )
    by_edge = few.groupBy(*_EDGE).agg(
        _side("bridge_send").alias("send"),
        _side("bridge_receive").alias("receive"),
        _link("link_up").alias("link_ups"),
        _link("link_down").alias("link_downs"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    fuller = F.when(F.col("send.rows") > F.col("receive.rows"), F.col("send")).otherwise(
        F.col("receive")
    )
    return by_edge.withColumn("fuller", fuller).select(
        *_EDGE,
        F.col("fuller.rows").alias("messages"),
        F.when(
            F.col("fuller.weighed") == F.col("fuller.rows"),
            F.round("fuller.weight").cast("long"),
        ).alias("messages_estimated"),
        F.col("fuller.size").alias("bytes"),
        F.col("send.rows").alias("sent"),
        F.col("receive.rows").alias("received"),
        F.col("fuller.direct").alias("direct"),
        (F.col("fuller.rows") - F.col("fuller.direct")).alias("guaranteed"),
        "link_ups",
        "link_downs",
        "first_ns",
        "last_ns",
    )


def _total(event: str, value: Column) -> Column:
    return F.coalesce(F.sum(F.when(F.col("event") == event, value)), F.lit(0))


def _link(event: str) -> Column:
    """Both ends write down what happens to their link: the end that saw more counts."""
    return F.greatest(
        _total(event, F.when(F.col("remote"), F.col("rows"))),
        _total(event, F.when(~F.col("remote"), F.col("rows"))),
    )


def _side(event: str) -> Column:
    """What one of the two routers saw of the messages."""
    return F.struct(
        _total(event, F.col("rows")).alias("rows"),
        _total(event, F.col("weighed")).alias("weighed"),
        _total(event, F.col("weight")).alias("weight"),
        _total(event, F.col("size")).alias("size"),
        _total(event, F.when(F.col("is_direct"), F.col("rows"))).alias("direct"),
    )


def _delays(seen: DataFrame) -> DataFrame:
    """One row an edge with the percentiles of how long its messages took.

    A message that crossed more than once, redelivered, counts from its first send to its first
    arrival.
    """
    send = F.col("event") == "bridge_send"
    receive = F.col("event") == "bridge_receive"
    arrived = F.min(F.when(receive, F.col("ts_ns")))
    of_message = (
        seen.where(send | receive)
        .groupBy(*_EDGE, "message")
        .agg(
            (arrived - F.min(F.when(send, F.col("ts_ns")))).alias("latency_ns"),
            (arrived - F.min("origin_ts_ns")).alias("age_ns"),
        )
    )
    return of_message.groupBy(*_EDGE).agg(
        F.count("latency_ns").alias("latency_samples"),
        F.percentile_approx("latency_ns", list(_PERCENTILES), _ACCURACY).alias("latency"),
        F.percentile_approx("age_ns", list(_PERCENTILES), _ACCURACY).alias("age"),
    )

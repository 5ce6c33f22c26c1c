"""The rows of one message met in a stream, wherever and whenever they come in.

A message's rows all say when it first entered a router; the stream is cut into windows by that time, so all rows of a
message fall into one window, and a window is done with when the watermark has passed it. What comes
later than that is dropped, and counted by Spark. Each window's messages come out once.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.buckets import bucket
from vpnrouter.topology.digests.corrections import Corrections
from vpnrouter.topology.digests.edge_ends import EDGE, ends
from vpnrouter.topology.digests.journeys import message
from vpnrouter.topology.digests.schema import DOUBLES, HOPS
from vpnrouter.topology.schema import conform

WINDOW_S: Final = 5
"""Seconds of a window: what waits longest waits so much longer than it must."""

_EVENTS: Final = ("bridge_send", "bridge_receive", "deliver", "enqueue")
_PLACE: Final = ("kind", "router", "vpn", "who", "peer_router", "peer_vpn")


def met(traces: DataFrame, late_s: int) -> DataFrame:
    """A stream of TRACES rows in; one row a message and place out, when its window is `late_s` seconds past.

    Columns: `message`, `kind` (bridge, deliver, enqueue), `router`, `vpn`, `who`, the peer of a bridge,
    `trace_id`, `sent_ns`, `came_ns`, `last_ns`, `copies`.
    """
    event = F.col("event")
    sending = event == "bridge_send"
    bridged = event.isin("bridge_send", "bridge_receive")
    of = ends(sending)
    receiver = F.when(event == "deliver", F.col("client")).otherwise(F.col("endpoint"))
    rows = traces.where(
        event.isin(*_EVENTS) & F.col("trace_id").isNotNull() & F.col("origin_ts_ns").isNotNull()
    ).select(
        F.timestamp_seconds(F.col("origin_ts_ns") / 1_000_000_000).alias("entered"),
        message().alias("message"),
        F.when(bridged, "bridge").otherwise(event).alias("kind"),
        F.when(bridged, of["to_router"]).otherwise(F.col("router")).alias("router"),
        F.when(bridged, of["to_vpn"]).otherwise(F.col("vpn")).alias("vpn"),
        F.when(bridged, of["bridge"]).otherwise(receiver).alias("who"),
        F.when(bridged, of["from_router"]).alias("peer_router"),
        F.when(bridged, of["from_vpn"]).alias("peer_vpn"),
        "trace_id",
        F.when(sending, F.col("ts_ns")).alias("sent"),
        F.when(~sending, F.col("ts_ns")).alias("came"),
    )
    window = F.window("entered", f"{WINDOW_S} seconds")
    return (
        rows.withWatermark("entered", f"{late_s} seconds")
        .groupBy(window, "message", "trace_id", *_PLACE)
        .agg(
            F.min("sent").alias("sent_ns"),
            F.min("came").alias("came_ns"),
            F.max("came").alias("last_ns"),
            F.count("came").alias("copies"),
        )
        .drop("window")
    )


def hops(met: DataFrame, corrections: Corrections) -> DataFrame:
    """What `met` gave in, HOPS out."""
    crossed = met.where(
        (F.col("kind") == "bridge") & F.col("sent_ns").isNotNull() & F.col("came_ns").isNotNull()
    )
    correction = corrections.between(F.col("peer_router"), F.col("router"))
    took = F.col("came_ns") - F.col("sent_ns") - correction
    named: dict[str, Column] = {
        "from_router": F.col("peer_router"),
        "from_vpn": F.col("peer_vpn"),
        "to_router": F.col("router"),
        "to_vpn": F.col("vpn"),
        "bridge": F.col("who"),
    }
    grouped = crossed.groupBy(
        *(named[name].alias(name) for name in EDGE), bucket(took).alias("bucket")
    ).agg(F.count(F.lit(1)).alias("count"))
    return conform(grouped, HOPS)


def doubles(met: DataFrame) -> DataFrame:
    """What `met` gave in, DOUBLES out, of all kinds."""
    again = (
        met.where(F.col("copies") > 1)
        .groupBy("kind", "router", "vpn", "who")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum(F.col("copies") - 1).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("came_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .withColumn("other", F.lit(None).cast("string"))
    )
    way = F.concat("peer_router", F.lit("/"), "peer_vpn", F.lit(":"), "who")
    two = (
        met.where((F.col("kind") == "bridge") & (F.col("copies") > 0))
        .groupBy("message", "router", "vpn")
        .agg(
            F.min(way).alias("who"),
            F.max(way).alias("other"),
            F.sum("copies").alias("came"),
            F.min("trace_id").alias("trace_id"),
            F.min("came_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .where(F.col("who") != F.col("other"))
        .groupBy("router", "vpn", "who", "other")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum(F.col("came") - 1).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .withColumn("kind", F.lit("two_ways"))
    )
    return conform(again, DOUBLES).unionByName(conform(two, DOUBLES))

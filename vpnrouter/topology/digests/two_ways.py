"""Digest DOUBLES, the kind `two_ways`: messages that came into a message VPN over two bridges.

A message has one origin, so only message VPNs that hear from one origin over several bridges can have
any: where there are none, as in every mesh without redundancy, no row is looked at.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.journeys import message
from vpnrouter.topology.digests.schema import DOUBLES
from vpnrouter.topology.schema import conform

_WHERE = ["router", "vpn", "origin_router", "origin_vpn"]


def candidates(paths: DataFrame) -> DataFrame:
    """PATHS in; message VPNs and the origins that they hear from over more than one bridge."""
    way = F.struct("peer_router", "peer_vpn", "bridge")
    return (
        paths.where(F.col("origin_router").isNotNull())
        .groupBy(*_WHERE)
        .agg(F.min(way).alias("one"), F.max(way).alias("other"))
        .where(F.col("one") != F.col("other"))
        .select(*_WHERE)
    )


def two_ways(traces: DataFrame, places: DataFrame) -> DataFrame:
    """TRACES and what `candidates` gave in; DOUBLES of the kind `two_ways` out."""
    way = F.concat_ws(
        "",
        F.col("peer_router"),
        F.lit("/"),
        F.col("peer_vpn"),
        F.lit(":"),
        F.coalesce(F.col("bridge"), F.lit("")),
    )
    came = (
        traces.where((F.col("event") == "bridge_receive") & F.col("trace_id").isNotNull())
        .join(F.broadcast(places), _WHERE, "left_semi")
        .groupBy(message().alias("message"), "router", "vpn")
        .agg(
            F.min(way).alias("who"),
            F.max(way).alias("other"),
            F.count(F.lit(1)).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
        .where(F.col("who") != F.col("other"))
    )
    grouped = came.groupBy("router", "vpn", "who", "other").agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum(F.col("copies") - 1).alias("copies"),
        F.min("example_trace").alias("example_trace"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    return conform(grouped.withColumn("kind", F.lit("two_ways")), DOUBLES)

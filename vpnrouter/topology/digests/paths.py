"""Digest: the ways on which messages came into message VPNs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import PATHS
from vpnrouter.topology.digests.sums import counted, payload
from vpnrouter.topology.schema import conform


def paths(traces: DataFrame) -> DataFrame:
    """TRACES in, PATHS out, unordered."""
    grouped = (
        traces.where((F.col("event") == "bridge_receive") & F.col("vpn").isNotNull())
        .groupBy(
            "path",
            "router",
            "vpn",
            "bridge",
            "peer_router",
            "peer_vpn",
            "origin_router",
            "origin_vpn",
            "hops",
        )
        .agg(
            counted(),
            payload(),
            F.min(F.col("ts_ns") - F.col("origin_ts_ns")).alias("least_age_ns"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )
    return conform(grouped, PATHS)

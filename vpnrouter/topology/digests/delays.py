"""Digest: how long messages were under way from end to end."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.buckets import bucket
from vpnrouter.topology.digests.corrections import Corrections
from vpnrouter.topology.digests.schema import DELAYS
from vpnrouter.topology.digests.sums import counted
from vpnrouter.topology.schema import conform


def delays(traces: DataFrame, corrections: Corrections) -> DataFrame:
    """TRACES in, DELAYS out, unordered.

    A message that has crossed no bridge began here; one that has and does not say where it began is left out.
    """
    here = F.coalesce(F.col("hops"), F.lit(0)) == 0
    origin = {
        "origin_router": F.coalesce(F.col("origin_router"), F.when(here, F.col("router"))),
        "origin_vpn": F.coalesce(F.col("origin_vpn"), F.when(here, F.col("vpn"))),
    }
    rows = traces.where(
        F.col("event").isin("deliver", "enqueue") & F.col("origin_ts_ns").isNotNull()
    ).withColumns(origin)
    correction = corrections.between(F.col("origin_router"), F.col("router"))
    took = F.col("ts_ns") - F.col("origin_ts_ns") - correction
    grouped = (
        rows.where(F.col("origin_router").isNotNull())
        .groupBy("origin_router", "origin_vpn", "router", "vpn", bucket(took).alias("bucket"))
        .agg(counted())
    )
    return conform(grouped, DELAYS)

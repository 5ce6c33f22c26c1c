"""Digest: how long messages were under way from end to end."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.buckets import bucket
from vpnrouter.topology.digests.schema import DELAYS
from vpnrouter.topology.digests.sums import counted
from vpnrouter.topology.schema import conform


def ahead(router: Column, offsets_ns: Mapping[str, int]) -> Column:
    """How far the clock of a router is ahead, in nanoseconds; 0 where that is not known."""
    known = {name: offset for name, offset in offsets_ns.items() if offset}
    if not known:
        return F.lit(0).cast("long")
    pairs = [F.lit(value) for name, offset in known.items() for value in (name, offset)]
    return F.coalesce(F.element_at(F.create_map(*pairs), router).cast("long"), F.lit(0))


def delays(traces: DataFrame, offsets_ns: Mapping[str, int]) -> DataFrame:
    """TRACES in, DELAYS out, unordered. `offsets_ns`: how far each router's clock is ahead.

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
    correction = ahead(F.col("router"), offsets_ns) - ahead(F.col("origin_router"), offsets_ns)
    took = F.col("ts_ns") - F.col("origin_ts_ns") - correction
    grouped = (
        rows.where(F.col("origin_router").isNotNull())
        .groupBy("origin_router", "origin_vpn", "router", "vpn", bucket(took).alias("bucket"))
        .agg(counted())
    )
    return conform(grouped, DELAYS)

"""Job: the message VPNs, and what entered and left each."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import NODES, conform

_PLACE = ["router", "vpn"]


def nodes(traces: DataFrame) -> DataFrame:
    """TRACES in, NODES out: one row a message VPN that the traces tell of, ordered by router and
    VPN.
    """
    # Two steps: the first looks at every row and stays small enough for Java to compile, the
    # second sees a few rows.
    by_event = (
        # Of a rejected link the VPN is what the peer asked for: there may be none of that name.
        traces.where(F.col("vpn").isNotNull() & (F.col("event") != "link_rejected"))
        .groupBy(*_PLACE, "event")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count("weight").alias("weighed"),
            F.sum("weight").alias("weight"),
            F.sum("size_bytes").alias("bytes"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )
    known = F.when(F.col("weighed") == F.col("rows"), F.round("weight").cast("long"))
    traced = (
        by_event.groupBy(*_PLACE)
        .agg(
            _of("ingress", F.col("rows")).alias("ingress"),
            _of("ingress", F.col("bytes")).alias("ingress_bytes"),
            _estimate_of("ingress", known).alias("ingress_estimated"),
            _of("deliver", F.col("rows")).alias("delivered"),
            _of("deliver", F.col("bytes")).alias("delivered_bytes"),
            _estimate_of("deliver", known).alias("delivered_estimated"),
            _of("bridge_receive", F.col("rows")).alias("bridged_in"),
            _of("bridge_send", F.col("rows")).alias("bridged_out"),
            _of("enqueue", F.col("rows")).alias("spooled"),
            _of("discard", F.col("rows")).alias("discarded"),
            _of("reject", F.col("rows")).alias("rejected"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .withColumn("traced", F.lit(True))
    )
    return conform(traced, NODES).orderBy(*_PLACE)


def _of(event: str, value: Column) -> Column:
    """The value in the one row of `event`, 0 when there is none."""
    return F.coalesce(F.max(F.when(F.col("event") == event, value)), F.lit(0))


def _estimate_of(event: str, known: Column) -> Column:
    """The estimate in the one row of `event`: 0 without such a row, null when its weights are not
    all known.
    """
    there = F.max(F.col("event") == event)
    return F.when(there, F.max(F.when(F.col("event") == event, known))).otherwise(0)


def with_far_ends(known: DataFrame, edges: DataFrame) -> DataFrame:
    """NODES and EDGES in, NODES out: with the VPNs that are only the other end of a bridge, counts
    null.
    """
    ends = edges.select(F.col("from_router").alias("router"), F.col("from_vpn").alias("vpn")).union(
        edges.select("to_router", "to_vpn")
    )
    unknown = ends.distinct().join(known.select(*_PLACE), _PLACE, "left_anti")
    missing = [field.name for field in NODES.fields if field.name not in (*_PLACE, "traced")]
    bare = unknown.withColumn("traced", F.lit(False)).withColumns(
        {name: F.lit(None) for name in missing}
    )
    return conform(known, NODES).unionByName(conform(bare, NODES)).orderBy(*_PLACE)

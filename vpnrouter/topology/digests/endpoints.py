"""Digest: the load of queues and topic endpoints."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import ENDPOINTS
from vpnrouter.topology.digests.sums import stands_for
from vpnrouter.topology.schema import conform


def endpoints(traces: DataFrame) -> DataFrame:
    """TRACES in, ENDPOINTS out, unordered."""
    enqueued = F.when(F.col("event") == "enqueue", stands_for())
    acknowledged = F.when(F.col("event") == "acknowledge", stands_for())
    grouped = (
        traces.where(F.col("event").isin("enqueue", "acknowledge") & F.col("endpoint").isNotNull())
        .groupBy("router", "vpn", "endpoint", "partition")
        .agg(
            F.coalesce(F.sum(enqueued), F.lit(0)).alias("enqueued"),
            F.coalesce(F.sum(acknowledged), F.lit(0)).alias("acknowledged"),
            F.coalesce(F.sum(enqueued * F.col("size_bytes")), F.lit(0)).alias("bytes"),
        )
    )
    return conform(grouped, ENDPOINTS)

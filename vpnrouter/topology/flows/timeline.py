"""Job: how much happened when."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import TIMELINE, conform, count_where


def timeline(traces: DataFrame, width_ns: int) -> DataFrame:
    """TRACES in, TIMELINE out, ordered: events counted by stretches of `width_ns` since 1970."""
    event = F.col("event")
    grouped = (
        traces.where(event.isin("ingress", "bridge_receive", "deliver", "discard"))
        .groupBy((F.col("ts_ns") - F.pmod("ts_ns", F.lit(width_ns))).alias("start_ns"))
        .agg(
            count_where(event == "ingress").alias("ingress"),
            count_where(event == "bridge_receive").alias("bridged"),
            count_where(event == "deliver").alias("delivered"),
            count_where(event == "discard").alias("discarded"),
        )
    )
    return conform(grouped, TIMELINE).orderBy("start_ns")

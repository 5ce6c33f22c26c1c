"""How much happened when."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.schema import TIMELINE, conform


def timeline(places: DataFrame) -> DataFrame:
    """PLACES in, TIMELINE out, ordered: events by the stretches of the digest."""
    grouped = (
        places.where(F.col("event").isin("ingress", "bridge_receive", "deliver", "discard"))
        .groupBy("start_ns")
        .agg(
            _count("ingress").alias("ingress"),
            _count("bridge_receive").alias("bridged"),
            _count("deliver").alias("delivered"),
            _count("discard").alias("discarded"),
        )
    )
    return conform(grouped, TIMELINE).orderBy("start_ns")


def _count(event: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("event") == event, F.col("count"))), F.lit(0))

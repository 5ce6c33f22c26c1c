"""Digest: where messages ended their way early or were held up, and why."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import LOSSES
from vpnrouter.topology.digests.sums import counted, payload, stretch_of, weighed
from vpnrouter.topology.schema import conform

_EVENTS: Final = ("discard", "reject", "expire", "dead_letter", "redeliver")


def losses(traces: DataFrame, width_ns: int) -> DataFrame:
    """TRACES in, LOSSES out, unordered; stretches are `width_ns` long."""
    named = {
        name: F.coalesce(F.col(name), F.lit(""))
        for name in ("reason", "endpoint", "bridge", "client")
    }
    grouped = (
        traces.where(F.col("event").isin(*_EVENTS))
        .withColumns(named)
        .groupBy(
            "router",
            "vpn",
            "event",
            *named,
            (F.coalesce(F.col("hops"), F.lit(0)) > 0).alias("crossed"),
            stretch_of(F.col("ts_ns"), width_ns).alias("start_ns"),
        )
        .agg(
            counted(),
            weighed(),
            payload(),
            F.min("topic").alias("example_topic"),
            F.min("path").alias("example_path"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )
    return conform(grouped, LOSSES)

"""Digest: what happened where, in stretches of time."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import PLACES
from vpnrouter.topology.digests.sums import counted, payload, stretch_of, weighed
from vpnrouter.topology.schema import conform

_PLACE: Final = ("router", "vpn", "event", "mode", "bridge", "peer_router", "peer_vpn")
_LINKS: Final = ("link_up", "link_down")


def places(traces: DataFrame, states: DataFrame, width_ns: int) -> DataFrame:
    """TRACES and STATES in, PLACES out, unordered; stretches are `width_ns` long.

    This looks at every row there is, so it groups by columns as they are: each condition in a key would
    be evaluated a hundred million times.
    """
    start = stretch_of(F.col("ts_ns"), width_ns).alias("start_ns")
    # Events that concern no message have no mode.
    messages = (
        traces.where(F.col("mode").isNotNull() & F.col("vpn").isNotNull())
        .groupBy(*_PLACE, start)
        .agg(counted(), weighed(), payload(), *_seen())
        .withColumn("remote", F.col("event") == "bridge_send")
    )
    # The remote router knows the bridge as a client that logged in, and names it; the local one
    # does not.
    links = (
        states.where(F.col("event").isin(*_LINKS) & F.col("vpn").isNotNull())
        .withColumns({"mode": F.lit(None).cast("string"), "remote": F.col("client").isNotNull()})
        .groupBy(*_PLACE, "remote", start)
        .agg(F.count(F.lit(1)).alias("count"), *_seen())
        .withColumns({"weight": F.lit(None), "bytes": F.lit(0)})
    )
    return conform(messages, PLACES).unionByName(conform(links, PLACES))


def _seen() -> list[Column]:
    return [F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns")]

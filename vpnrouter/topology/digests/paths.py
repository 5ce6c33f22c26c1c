"""Digest: the ways on which messages came into message VPNs."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import PATHS
from vpnrouter.topology.digests.sums import counted, payload
from vpnrouter.topology.schema import conform

_STEP: Final = ">"
_PARTS: Final = "/"
_PEER: Final = ("peer_router", "peer_vpn")
_ORIGIN: Final = ("origin_router", "origin_vpn")
_PLACE: Final = ("path", "router", "vpn", "bridge")


def paths(traces: DataFrame) -> DataFrame:
    """TRACES in, PATHS out, unordered.

    A path says where it began, how many bridges it crossed and over which message VPN it came last, so rows
    that have one are grouped by it alone: these are many, and each column read and compared costs. Where a
    message VPN has a greater-than sign in its name, the path has more steps than hops, and its ends are null.
    """
    came = traces.where((F.col("event") == "bridge_receive") & F.col("vpn").isNotNull())
    told = came.where(F.col("path").isNotNull()).groupBy(*_PLACE, "hops").agg(*_figures())
    steps = F.split("path", _STEP)
    clear = F.coalesce(F.size(steps) == F.col("hops"), F.lit(True))
    ends = {
        **_named(_ORIGIN, F.split(F.element_at(steps, 1), _PARTS, 2), clear),
        **_named(_PEER, F.split(F.element_at(steps, -1), _PARTS, 2), clear),
    }
    untold = (
        came.where(F.col("path").isNull())
        .groupBy(*_PLACE, *_PEER, *_ORIGIN, "hops")
        .agg(*_figures())
    )
    return conform(told.withColumns(ends), PATHS).unionByName(conform(untold, PATHS))


def _named(names: tuple[str, str], parts: Column, clear: Column) -> dict[str, Column]:
    return {name: F.when(clear, F.element_at(parts, at)) for at, name in enumerate(names, 1)}


def _figures() -> list[Column]:
    return [
        counted(),
        payload(),
        F.min(F.col("ts_ns") - F.col("origin_ts_ns")).alias("least_age_ns"),
        F.min("ts_ns").alias("first_ns"),
        F.max("ts_ns").alias("last_ns"),
    ]

"""Collects from digests which ways messages took, between which message VPNs, when they were published, and by whom."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_ROUTE_PAIRS, REPORT_ROUTES
from vpnrouter.report.schema import Rows
from vpnrouter.report.visited import since_provider

_WAY: Final = ("path", "router", "vpn", "bridge", "peer_router", "peer_vpn")
_ORIGIN: Final = ("origin_router", "origin_vpn")


def routes(paths: DataFrame, most: int = REPORT_ROUTES) -> Rows:
    """Return from PATHS how messages came into message VPNs, the ways of most messages first, at most so many.

    Columns: `path` (message VPNs visited before, since the last provider; null where a row does not say), `router`,
    `vpn`, `bridge` (the last one), `peer_router`, `peer_vpn`, `origin_router`, `origin_vpn` and `count`.
    """
    rows: Rows = (
        paths.where(F.col("peer_router").isNotNull() & F.col("origin_router").isNotNull())
        .withColumns(
            {
                "path": since_provider(F.col("path")),
                "bridge": F.coalesce(F.col("bridge"), F.lit("")),
            }
        )
        .groupBy(*_WAY, *_ORIGIN)
        .agg(F.sum("count").alias("count"))
        .orderBy(F.desc("count"), *_WAY)
        .limit(most)
        .toArrow()
        .to_pylist()
    )
    return rows


def deliveries(delays: DataFrame, most: int = REPORT_ROUTE_PAIRS) -> Rows:
    """Return from DELAYS the pairs of message VPNs with most messages, from first ingress to a delivery or an endpoint,
    at most so many: `origin_router`, `origin_vpn`, `router`, `vpn`, `messages`.
    """
    pair = (*_ORIGIN, "router", "vpn")
    rows: Rows = (
        delays.groupBy(*pair)
        .agg(F.sum("count").alias("messages"))
        .orderBy(F.desc("messages"), *pair)
        .limit(most)
        .toArrow()
        .to_pylist()
    )
    return rows


def published(places: DataFrame) -> Rows:
    """Return from PLACES what was published in which stretch: `router`, `vpn`, `start_ns`, `count`."""
    rows: Rows = (
        places.where(F.col("event") == "ingress")
        .groupBy("router", "vpn", "start_ns")
        .agg(F.sum("count").alias("count"))
        .toArrow()
        .to_pylist()
    )
    return rows


def clients(usage: DataFrame) -> Rows:
    """Return from USAGE how many clients published or received in each message VPN: `router`, `vpn`, `count`."""
    return _counted(usage.where(F.col("event").isin("ingress", "deliver")), "client")


def endpoints(digest: DataFrame) -> Rows:
    """Return from ENDPOINTS how many endpoints of each message VPN took messages: `router`, `vpn`, `count`."""
    return _counted(digest, "endpoint")


def _counted(frame: DataFrame, name: str) -> Rows:
    rows: Rows = (
        frame.select("router", "vpn", name)
        .distinct()
        .groupBy("router", "vpn")
        .agg(F.count(name).alias("count"))
        .toArrow()
        .to_pylist()
    )
    return rows

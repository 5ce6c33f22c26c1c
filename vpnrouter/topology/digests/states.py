"""Digest: what happened to links and subscriptions, row by row."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import STATES
from vpnrouter.topology.schema import conform

_EVENTS: Final = ("link_up", "link_down", "link_rejected", "subscribe", "unsubscribe")
_BEGIN: Final = ("link_up", "subscribe")
_SUBSCRIPTIONS: Final = ("subscribe", "unsubscribe")
_WHAT: Final = ("router", "vpn", "client", "bridge", "peer_router", "peer_vpn", "topic")


def states(traces: DataFrame) -> DataFrame:
    """TRACES in, STATES out, unordered."""
    return conform(traces.where(F.col("event").isin(*_EVENTS)), STATES)


def standing_at(rows: DataFrame, since_ns: int | None) -> DataFrame:
    """STATES in; STATES of the time from `since_ns` on out: what was up or held by then begins with it.

    Of the rows before only the last one of each link and subscription counts, and only when it says that
    there is one. None leaves the rows as they are.
    """
    if since_ns is None:
        return rows
    before = rows.where((F.col("ts_ns") < since_ns) & (F.col("event") != "link_rejected"))
    last = (
        before.groupBy(*_WHAT, F.col("event").isin(*_SUBSCRIPTIONS).alias("subscription"))
        .agg(F.max(F.struct("ts_ns", "event", "topic_syntax")).alias("last"))
        .where(F.col("last.event").isin(*_BEGIN))
        .select(
            *_WHAT,
            F.lit(since_ns).alias("ts_ns"),
            F.col("last.event").alias("event"),
            F.col("last.topic_syntax").alias("topic_syntax"),
            F.lit(None).cast("string").alias("reason"),
        )
    )
    within = conform(rows.where(F.col("ts_ns") >= since_ns), STATES)
    return within.unionByName(conform(last, STATES))

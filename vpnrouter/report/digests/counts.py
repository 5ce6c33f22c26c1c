"""Makes the digests that are grouped counts: ages, delays, endpoints, losses, paths, places, states, usage and uses."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.digests.columns import (
    Corrections,
    counted,
    payload,
    stands_for,
    stretch_of,
    weighed,
    with_bucket,
)
from vpnrouter.report.digests.schema import (
    AGES,
    DELAYS,
    ENDPOINTS,
    LOSSES,
    PATHS,
    PLACES,
    STATES,
    USAGE,
    USES,
)
from vpnrouter.report.schema import conform
from vpnrouter.report.visited import STEP, came_by_connector, since_provider
from vpnrouter.units import DAY_NS


def delays(traces: DataFrame, corrections: Corrections) -> DataFrame:
    """Return DELAYS, unordered, from TRACES.

    A message that has crossed no bridge, or that a connector brought, began here; one that has and does not say where
    it began is left out.
    """
    here = (F.coalesce(F.col("hops"), F.lit(0)) == 0) | came_by_connector(F.col("path"))
    origin = {
        "origin_router": F.coalesce(F.col("origin_router"), F.when(here, F.col("router"))),
        "origin_vpn": F.coalesce(F.col("origin_vpn"), F.when(here, F.col("vpn"))),
    }
    rows = traces.where(
        F.col("event").isin("deliver", "enqueue") & F.col("origin_ts_ns").isNotNull()
    ).withColumns(origin)
    correction = corrections.between(F.col("origin_router"), F.col("router"))
    took = F.col("ts_ns") - F.col("origin_ts_ns") - correction
    grouped = (
        with_bucket(rows.where(F.col("origin_router").isNotNull()), took)
        .groupBy("origin_router", "origin_vpn", "router", "vpn", "bucket")
        .agg(counted())
        .withColumn("corrected", corrections.compare(F.col("origin_router"), F.col("router")))
    )
    return conform(grouped, DELAYS)


def endpoints(traces: DataFrame, width_ns: int) -> DataFrame:
    """Return ENDPOINTS, unordered, from TRACES; stretches are `width_ns` long."""
    enqueued = F.when(F.col("event") == "enqueue", stands_for())
    acknowledged = F.when(F.col("event") == "acknowledge", stands_for())
    signed = F.when(F.col("event") == "enqueue", F.col("weight")).otherwise(-F.col("weight"))
    start = stretch_of(F.col("ts_ns"), width_ns)
    grouped = (
        traces.where(F.col("event").isin("enqueue", "acknowledge") & F.col("endpoint").isNotNull())
        .groupBy("router", "vpn", "endpoint", "partition", start.alias("start_ns"))
        .agg(
            F.coalesce(F.sum(enqueued), F.lit(0)).alias("enqueued"),
            F.coalesce(F.sum(acknowledged), F.lit(0)).alias("acknowledged"),
            F.coalesce(F.sum(enqueued * F.col("size_bytes")), F.lit(0)).alias("bytes"),
            F.when(F.count("weight") == F.count(F.lit(1)), F.sum(signed)).alias("weight"),
        )
    )
    return conform(grouped, ENDPOINTS)


_LOST: Final = ("discard", "reject", "expire", "dead_letter", "redeliver")


def losses(traces: DataFrame, width_ns: int) -> DataFrame:
    """Return LOSSES, unordered, from TRACES; stretches are `width_ns` long."""
    named = {
        name: F.coalesce(F.col(name), F.lit(""))
        for name in ("reason", "endpoint", "bridge", "client")
    }
    grouped = (
        traces.where(F.col("event").isin(*_LOST))
        .withColumns(named)
        .groupBy(
            "router",
            "vpn",
            "event",
            *named,
            ((F.coalesce(F.col("hops"), F.lit(0)) > 0) & ~came_by_connector(F.col("path"))).alias(
                "crossed"
            ),
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


_PARTS: Final = "/"
_PEER: Final = ("peer_router", "peer_vpn")
_ORIGIN: Final = ("origin_router", "origin_vpn")


def paths(traces: DataFrame) -> DataFrame:
    """Return PATHS, unordered, from TRACES.

    A path says where it began, how many bridges it crossed and over which message VPN it came last, so rows
    that have one are grouped by it alone: these are many, and each column compared costs. A message that a connector
    brought began behind its last provider. Where a message VPN has a greater-than sign in its name, the path has more
    steps than hops, and its ends are null.
    """
    path = F.col("path")
    grouped = (
        traces.where((F.col("event") == "bridge_receive") & F.col("vpn").isNotNull())
        .groupBy(
            path,
            "router",
            "vpn",
            "bridge",
            "hops",
            F.when(path.isNull(), F.struct(*_PEER, *_ORIGIN)).alias("ends"),
        )
        .agg(
            counted(),
            payload(),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
    )
    return conform(grouped.withColumns(_ends_of(path)), PATHS)


def ages(traces: DataFrame, width_ns: int) -> DataFrame:
    """Return AGES, unordered, from TRACES; stretches are `width_ns` long.

    Grouped by path first, as `paths` is: where a message began is in there.
    """
    path = F.col("path")
    arrived = traces.where(
        (F.col("event") == "bridge_receive")
        & F.col("vpn").isNotNull()
        & F.col("origin_ts_ns").isNotNull()
    )
    by_path = arrived.groupBy(
        path,
        "router",
        "hops",
        F.when(path.isNull(), F.struct(*_PEER, *_ORIGIN)).alias("ends"),
        stretch_of(F.col("ts_ns"), width_ns).alias("start_ns"),
    ).agg(F.min(F.col("ts_ns") - F.col("origin_ts_ns")).alias("least_age_ns"))
    grouped = (
        by_path.withColumn("origin_router", _ends_of(path)["origin_router"])
        .groupBy("origin_router", "router", "start_ns")
        .agg(F.min("least_age_ns").alias("least_age_ns"))
    )
    return conform(grouped, AGES)


def _ends_of(path: Column) -> dict[str, Column]:
    """Return where messages of a path began and whence they came last; `ends` has both of rows without one."""
    steps = F.split(path, STEP)
    first = F.substring_index(since_provider(path), STEP, 1)
    clear = F.coalesce(F.size(steps) == F.col("hops"), F.lit(True))
    ends = {
        **_named(_ORIGIN, F.split(first, _PARTS, 2), clear),
        **_named(_PEER, F.split(F.element_at(steps, -1), _PARTS, 2), clear),
    }
    return {
        name: F.when(path.isNull(), F.col(f"ends.{name}")).otherwise(end)
        for name, end in ends.items()
    }


def _named(names: tuple[str, str], parts: Column, clear: Column) -> dict[str, Column]:
    return {name: F.when(clear, F.element_at(parts, at)) for at, name in enumerate(names, 1)}


_WHERE: Final = ("router", "vpn", "event", "mode", "bridge", "peer_router", "peer_vpn")
_LINKS: Final = ("link_up", "link_down")


def places(traces: DataFrame, states: DataFrame, width_ns: int) -> DataFrame:
    """Return PLACES, unordered, from TRACES and STATES; stretches are `width_ns` long.

    This looks at every row there is, so it groups by columns as they are: each condition in a key would
    be evaluated a hundred million times.
    """
    start = stretch_of(F.col("ts_ns"), width_ns).alias("start_ns")
    # Events that concern no message have no mode.
    messages = (
        traces.where(F.col("mode").isNotNull() & F.col("vpn").isNotNull())
        .groupBy(*_WHERE, start)
        .agg(counted(), weighed(), payload(), *_seen())
        .withColumn("remote", F.col("event") == "bridge_send")
    )
    # The remote router knows the bridge as a client that logged in, and names it; the local one
    # does not.
    links = (
        states.where(F.col("event").isin(*_LINKS) & F.col("vpn").isNotNull())
        .withColumns({"mode": F.lit(None).cast("string"), "remote": F.col("client").isNotNull()})
        .groupBy(*_WHERE, "remote", start)
        .agg(F.count(F.lit(1)).alias("count"), *_seen())
        .withColumns({"weight": F.lit(None), "bytes": F.lit(0)})
    )
    return conform(messages, PLACES).unionByName(conform(links, PLACES))


def _seen() -> list[Column]:
    return [F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns")]


_CHANGED: Final = ("link_up", "link_down", "link_rejected", "subscribe", "unsubscribe")
_BEGIN: Final = ("link_up", "subscribe")
_SUBSCRIPTIONS: Final = ("subscribe", "unsubscribe")
_WHAT: Final = ("router", "vpn", "client", "bridge", "peer_router", "peer_vpn", "topic")


def states(traces: DataFrame) -> DataFrame:
    """Return STATES, unordered, from TRACES."""
    return conform(traces.where(F.col("event").isin(*_CHANGED)), STATES)


def standing_at(rows: DataFrame, since_ns: int | None) -> DataFrame:
    """Return STATES of the time from `since_ns` on, from STATES: what was up or held by then begins with it.

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


_USED: Final = ("ingress", "bridge_receive", "bridge_send", "deliver", "enqueue", "discard")
_UNMATCHED: Final = "no-subscription-match"


def uses(traces: DataFrame) -> DataFrame:
    """Return USES, unordered, from TRACES."""
    event = F.col("event")
    unmatched = (event == "discard") & (F.col("reason") == _UNMATCHED)
    grouped = (
        traces.where(event.isin(*_USED) & F.col("topic").isNotNull() & F.col("vpn").isNotNull())
        .groupBy(
            [
                "topic",
                "router",
                "vpn",
                "event",
                F.when(event.isin("deliver", "bridge_send"), F.col("client")).alias("client"),
                F.when(event == "enqueue", F.col("endpoint"))
                .when(unmatched, F.col("reason"))
                .alias("endpoint"),
                "bridge",
                "peer_router",
                "peer_vpn",
            ],
        )
        .agg(counted(), weighed(), payload())
    )
    return conform(grouped, USES)


_CROSSED: Final = ("bridge_send", "bridge_receive")


def usage(traces: DataFrame) -> DataFrame:
    """Return USAGE, unordered, from TRACES.

    A message that has crossed no bridge yet began where it is sent.
    """
    event = F.col("event")
    crossed = event.isin(*_CROSSED)
    begins_here = event == "bridge_send"
    grouped = (
        # As in `places`: what has no mode or no message VPN is no message that anybody sent or got.
        traces.where(
            event.isin("ingress", "deliver", *_CROSSED)
            & F.col("mode").isNotNull()
            & F.col("vpn").isNotNull()
        )
        .groupBy(
            "router",
            "vpn",
            "event",
            F.when(~crossed, F.col("client")).alias("client"),
            *(
                F.when(
                    crossed,
                    F.coalesce(F.col(f"origin_{name}"), F.when(begins_here, F.col(name))),
                ).alias(f"origin_{name}")
                for name in ("router", "vpn")
            ),
            *(F.when(crossed, F.col(name)).alias(name) for name in ("bridge", *_PEER)),
            stretch_of(F.col("ts_ns"), DAY_NS).alias("day_ns"),
        )
        .agg(counted(), weighed(), payload())
    )
    return conform(grouped, USAGE)

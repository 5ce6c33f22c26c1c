"""Makes the digests that are grouped counts: ages, delays, endpoints, losses, paths, places, states, usage and uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.digests.columns import (
    Corrections,
    counted,
    settled_by,
    stretch_of,
    weighed,
    with_bucket,
)
from vpnrouter.report.digests.condense import Condensed
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
from vpnrouter.report.flows.clocks import MovingClock
from vpnrouter.report.schema import conform
from vpnrouter.report.visited import STEP, came_by_connector, since_provider
from vpnrouter.trace.schema import CONTEXT
from vpnrouter.units import DAY_NS


def delays(traces: Condensed, corrections: Corrections) -> DataFrame:
    """Return DELAYS, unordered.

    A message that has crossed no bridge, or that a connector brought, began here; one that has and does not say where
    it began is left out.
    """
    here = (F.coalesce(F.col("hops"), F.lit(0)) == 0) | came_by_connector(F.col("path"))
    began = {
        name: F.coalesce(F.col(name), F.when(here, F.col(name.removeprefix("origin_"))))
        for name in _ORIGIN
    }
    is_delivered = F.col("event").isin("deliver", "enqueue") & began["origin_router"].isNotNull()
    clocks = corrections.between(began["origin_router"], F.col("router"))
    delivered = traces.contexts.where(is_delivered).select("context", *clocks)
    rows = traces.rows.where(F.col("origin_ts_ns").isNotNull()).drop(*CONTEXT)
    took = corrections.took(F.col("origin_ts_ns"), F.col("ts_ns"))
    by_context = (
        with_bucket(traces.joined(rows, delivered), took)
        .groupBy("context", "bucket")
        .agg(counted())
        .where(F.col("bucket").isNotNull())
    )
    keys = {**began, **_as_they_are("router", "vpn")}
    grouped = traces.grouped(
        by_context, is_delivered, keys, ["bucket"], [F.sum("count").alias("count")]
    )
    return conform(settled_by(corrections, grouped, "origin_router", "router"), DELAYS)


def _as_they_are(*names: str) -> dict[str, Column]:
    return {name: F.col(name) for name in names}


def endpoints(traces: Condensed, width_ns: int) -> DataFrame:
    """Return ENDPOINTS, unordered; stretches are `width_ns` long."""
    is_enqueued = F.col("event") == "enqueue"
    by_event = traces.grouped(
        traces.stretches,
        F.col("event").isin("enqueue", "acknowledge") & F.col("endpoint").isNotNull(),
        _as_they_are("router", "vpn", "endpoint", "partition", "event"),
        [_start(width_ns)],
        _summed(),
    )
    signed = F.when(is_enqueued, F.col("weight")).otherwise(-F.col("weight"))
    grouped = by_event.groupBy("router", "vpn", "endpoint", "partition", "start_ns").agg(
        *(
            F.coalesce(F.sum(F.when(condition, F.col(figure))), F.lit(0)).alias(name)
            for name, condition, figure in (
                ("enqueued", is_enqueued, "count"),
                ("acknowledged", ~is_enqueued, "count"),
                ("bytes", is_enqueued, "bytes"),
            )
        ),
        F.when(F.count("weight") == F.count(F.lit(1)), F.sum(signed)).alias("weight"),
    )
    return conform(grouped, ENDPOINTS)


def _start(width_ns: int) -> Column:
    """Return the begin of the stretch of a report in which a stretch lies."""
    return stretch_of(F.col("start_ns"), width_ns).alias("start_ns")


def _summed() -> list[Column]:
    return [F.sum("count").alias("count"), weighed(), F.sum("bytes").alias("bytes")]


def _seen() -> list[Column]:
    return [F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns")]


_LOST: Final = ("discard", "reject", "expire", "dead_letter", "redeliver")


def losses(traces: Condensed, width_ns: int) -> DataFrame:
    """Return LOSSES, unordered; stretches are `width_ns` long. An example of a topic may be of another stretch."""
    is_lost = F.col("event").isin(*_LOST)
    crossed = (F.coalesce(F.col("hops"), F.lit(0)) > 0) & ~came_by_connector(F.col("path"))
    keys = {
        **_as_they_are("router", "vpn", "event"),
        **{
            name: F.coalesce(F.col(name), F.lit(""))
            for name in ("reason", "endpoint", "bridge", "client")
        },
        "crossed": crossed,
    }
    lost = traces.contexts.where(is_lost).select("context", F.col("path").alias("example_path"))
    topics = (
        traces.joined(traces.topics, lost.select("context"), "left_semi")
        .groupBy("context")
        .agg(F.min("topic").alias("example_topic"))
    )
    grouped = traces.grouped(
        traces.joined(traces.stretches, lost.join(topics, "context", "left")),
        is_lost,
        keys,
        [_start(width_ns)],
        [
            *_summed(),
            F.min("example_topic").alias("example_topic"),
            F.min("example_path").alias("example_path"),
            *_seen(),
        ],
    )
    return conform(grouped, LOSSES)


_PARTS: Final = "/"
_PEER: Final = ("peer_router", "peer_vpn")
_ORIGIN: Final = ("origin_router", "origin_vpn")


def paths(traces: Condensed) -> DataFrame:
    """Return PATHS, unordered.

    A path says where it began, how many bridges it crossed and over which message VPN it came last. A message that a
    connector brought began behind its last provider. Where a message VPN has a greater-than sign in its name, the path
    has more steps than hops, and its ends are null.
    """
    keys = {**_as_they_are("path", "router", "vpn", "bridge", "hops"), **_ends_of(F.col("path"))}
    figures = [F.sum("count").alias("count"), F.sum("bytes").alias("bytes"), *_seen()]
    return conform(traces.grouped(traces.stretches, _has_arrived(), keys, [], figures), PATHS)


def _has_arrived() -> Column:
    return (F.col("event") == "bridge_receive") & F.col("vpn").isNotNull()


def ages(traces: Condensed, width_ns: int) -> DataFrame:
    """Return AGES, unordered; stretches are `width_ns` long."""
    keys = {
        "origin_router": _ends_of(F.col("path"))["origin_router"],
        **_as_they_are("router"),
    }
    aged = traces.stretches.where(F.col("least_age_ns").isNotNull())
    least = [F.min("least_age_ns").alias("least_age_ns")]
    return conform(traces.grouped(aged, _has_arrived(), keys, [_start(width_ns)], least), AGES)


def clock_bounds(traces: Condensed, moving: Sequence[MovingClock], cell_ns: int) -> DataFrame:
    """Return what messages say of clocks that moved: `router`, and the columns of rows for `followed`, of cells of
    `cell_ns`.
    """
    pairs = [
        (*(names if arrives else reversed(names)), one.router, arrives, offset_ns + sign * error_ns)
        for one in moving
        for other, (offset_ns, error_ns) in one.others.items()
        for arrives, sign, names in (
            (True, 1, (other, one.router)),
            (False, -1, (other, one.router)),
        )
    ]
    columns = zip(*pairs, strict=True)
    names = ("origin_router", "router", "clock", "arrives", "ahead_ns")
    table = pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})
    keys = {
        "context": F.col("context"),
        "origin_router": _ends_of(F.col("path"))["origin_router"],
        **_as_they_are("router"),
    }
    between = F.broadcast(traces.rows.sparkSession.createDataFrame(table))
    contexts = (
        traces.contexts.where(_has_arrived())
        .select(*(value.alias(name) for name, value in keys.items()))
        .join(between, ["origin_router", "router"])
        .select("context", "clock", "arrives", "ahead_ns")
    )
    age_ns = F.col("ts_ns") - F.col("origin_ts_ns")
    arrives = F.col("arrives")
    at_ns = F.when(arrives, F.col("ts_ns")).otherwise(F.col("origin_ts_ns"))
    bound_ns = F.when(arrives, age_ns + F.col("ahead_ns")).otherwise(F.col("ahead_ns") - age_ns)
    told = F.struct(bound_ns.alias("ns"), at_ns.alias("at_ns"))
    rows = traces.rows.where(F.col("origin_ts_ns").isNotNull()).drop(*CONTEXT)
    by_cell = (
        traces.joined(rows, contexts)
        .groupBy(F.col("clock").alias("router"), F.floor(at_ns / cell_ns).alias("cell"))
        .agg(
            F.min(F.when(arrives, told)).alias("above"),
            F.max(F.when(~arrives, told)).alias("below"),
        )
    )
    sides = ("above", "below")
    return by_cell.select(
        "router",
        "cell",
        *(F.col(f"{side}.ns").alias(f"{side}_ns") for side in sides),
        *(F.col(f"{side}.at_ns").alias(f"{side}_at_ns") for side in sides),
    )


def _ends_of(path: Column) -> dict[str, Column]:
    """Return where messages of a path began and whence they came last; rows without one name both themselves."""
    steps = F.split(path, STEP)
    first = F.substring_index(since_provider(path), STEP, 1)
    clear = F.coalesce(F.size(steps) == F.col("hops"), F.lit(True))
    ends = {
        **_named(_ORIGIN, F.split(first, _PARTS, 2), clear),
        **_named(_PEER, F.split(F.element_at(steps, -1), _PARTS, 2), clear),
    }
    return {name: F.when(path.isNull(), F.col(name)).otherwise(end) for name, end in ends.items()}


def _named(names: tuple[str, str], parts: Column, clear: Column) -> dict[str, Column]:
    return {name: F.when(clear, F.element_at(parts, at)) for at, name in enumerate(names, 1)}


_WHERE: Final = ("router", "vpn", "event", "mode", "bridge", "peer_router", "peer_vpn")
_LINKS: Final = ("link_up", "link_down")


def places(traces: Condensed, states: DataFrame, width_ns: int) -> DataFrame:
    """Return PLACES, unordered; links are those of STATES. Stretches are `width_ns` long."""
    # Events that concern no message have no mode.
    messages = traces.grouped(
        traces.stretches,
        F.col("mode").isNotNull() & F.col("vpn").isNotNull(),
        _as_they_are(*_WHERE),
        [_start(width_ns)],
        [*_summed(), *_seen()],
    ).withColumn("remote", F.col("event") == "bridge_send")
    # The remote router knows the bridge as a client that logged in, and names it; the local one
    # does not.
    links = (
        states.where(F.col("event").isin(*_LINKS) & F.col("vpn").isNotNull())
        .withColumns({"mode": F.lit(None).cast("string"), "remote": F.col("client").isNotNull()})
        .groupBy(*_WHERE, "remote", stretch_of(F.col("ts_ns"), width_ns).alias("start_ns"))
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
        .withColumns({"weight": F.lit(None), "bytes": F.lit(0)})
    )
    return conform(messages, PLACES).unionByName(conform(links, PLACES))


_CHANGED: Final = ("link_up", "link_down", "link_rejected", "subscribe", "unsubscribe")
_BEGIN: Final = ("link_up", "subscribe")
_SUBSCRIPTIONS: Final = ("subscribe", "unsubscribe")
_WHAT: Final = ("router", "vpn", "client", "bridge", "peer_router", "peer_vpn", "topic")


def states(rows: DataFrame) -> DataFrame:
    """Return STATES, unordered, from rows with the schema TRACE_FILE."""
    return conform(rows.where(F.col("event").isin(*_CHANGED)), STATES)


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


def uses(traces: Condensed) -> DataFrame:
    """Return USES, unordered."""
    event = F.col("event")
    unmatched = (event == "discard") & (F.col("reason") == _UNMATCHED)
    keys = {
        **_as_they_are("router", "vpn", "event", "bridge", "peer_router", "peer_vpn"),
        "client": F.when(event.isin("deliver", "bridge_send"), F.col("client")),
        "endpoint": F.when(event == "enqueue", F.col("endpoint")).when(unmatched, F.col("reason")),
    }
    used = event.isin(*_USED) & F.col("vpn").isNotNull()
    return conform(traces.grouped(traces.topics, used, keys, ["topic"], _summed()), USES)


_CROSSED: Final = ("bridge_send", "bridge_receive")


def usage(traces: Condensed) -> DataFrame:
    """Return USAGE, unordered.

    A message that has crossed no bridge yet began where it is sent.
    """
    event = F.col("event")
    crossed = event.isin(*_CROSSED)
    begins_here = event == "bridge_send"
    # As in `places`: what has no mode or no message VPN is no message that anybody sent or got.
    used = (
        event.isin("ingress", "deliver", *_CROSSED)
        & F.col("mode").isNotNull()
        & F.col("vpn").isNotNull()
    )
    keys = {
        **_as_they_are("router", "vpn", "event"),
        "client": F.when(~crossed, F.col("client")),
        **{
            f"origin_{name}": F.when(
                crossed, F.coalesce(F.col(f"origin_{name}"), F.when(begins_here, F.col(name)))
            )
            for name in ("router", "vpn")
        },
        **{name: F.when(crossed, F.col(name)) for name in ("bridge", *_PEER)},
    }
    day = stretch_of(F.col("start_ns"), DAY_NS).alias("day_ns")
    return conform(traces.grouped(traces.stretches, used, keys, [day], _summed()), USAGE)

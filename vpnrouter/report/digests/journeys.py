"""Follows each message over its bridges: the digests HOPS and DOUBLES.

This is the only job in which the rows of a message meet, so the only one that moves every row once. Trace id, message
id and time of first ingress together identify a message, because many messages may share a `traceparent` from outside.
Only 24 bytes a row move: the place is a hash, which the small digests resolve at the end. The last two bits of the hash
hold the event, so that the sending and the receiving row of a bridge differ in the last bit only.

Copies by two bridges (`two_ways`) exist only in message VPNs that receive from one origin over several bridges. In a
mesh without redundancy no row is read for them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.digests.columns import Corrections, ends, settled_by, with_bucket
from vpnrouter.report.digests.condense import Condensed
from vpnrouter.report.digests.schema import DOUBLES, HOPS
from vpnrouter.report.schema import EDGE, conform
from vpnrouter.trace.schema import CONTEXT

_SEND: Final = 0
_RECEIVE: Final = 1
_DELIVER: Final = 2
_ENQUEUE: Final = 3
_CODES: Final = {
    "bridge_send": _SEND,
    "bridge_receive": _RECEIVE,
    "deliver": _DELIVER,
    "enqueue": _ENQUEUE,
}
_KINDS: Final = {_RECEIVE: "bridge", _DELIVER: "deliver", _ENQUEUE: "enqueue"}


def message() -> Column:
    """Return eight bytes for a message's identity: two that share them by chance cost one wrong sample."""
    return F.xxhash64("trace_id", "message_id", "origin_ts_ns")


def _marked(hashed: Column, code: Column | int) -> Column:
    """Return a hash with its last two bits replaced by a code."""
    return hashed.bitwiseAND(F.lit(-4)).bitwiseOR(F.lit(code) if isinstance(code, int) else code)


def meetings(traces: Condensed, partitions: int) -> DataFrame:
    """Return one row for each message and place: `place`, `sent_ns`, `came_ns`, `last_ns`, `copies`.

    `place` is the marked hash: of a bridge with the code of receiving. `copies` counts arrivals.
    """
    event = F.col("event")
    remote = event == "bridge_send"
    of = ends(remote)
    bridged = event.isin("bridge_send", "bridge_receive")
    code = F.when(remote, _SEND).when(bridged, _RECEIVE).when(event == "deliver", _DELIVER)
    receiver = F.when(event == "deliver", F.col("client")).otherwise(F.col("endpoint"))
    hashed = F.when(bridged, F.xxhash64(*(of[name] for name in EDGE))).otherwise(
        F.xxhash64("router", "vpn", receiver)
    )
    places = traces.contexts.where(event.isin(*_CODES)).select(
        "context", _marked(hashed, code.otherwise(_ENQUEUE).cast("long")).alias("place")
    )
    rows = (
        traces.joined(traces.rows.where(F.col("trace_id").isNotNull()).drop(*CONTEXT), places)
        .select(message().alias("message"), "place", "ts_ns")
        # By hand: grouped in place, two rows of a message seldom meet before they have moved.
        .repartition(partitions, "message")
    )
    sending = F.col("place").bitwiseAND(F.lit(3)) == _SEND
    came_ns = F.when(~sending, F.col("ts_ns"))
    return rows.groupBy(
        "message", F.when(sending, F.col("place") + 1).otherwise(F.col("place")).alias("place")
    ).agg(
        F.min(F.when(sending, F.col("ts_ns"))).alias("sent_ns"),
        F.min(came_ns).alias("came_ns"),
        F.max(came_ns).alias("last_ns"),
        F.count(came_ns).alias("copies"),
    )


def summed(met: DataFrame, edges: DataFrame, corrections: Corrections) -> DataFrame:
    """Return the result of `meetings` summed up by place and bucket of the time taken, where the edges with their
    `place` are those that messages crossed.

    Columns: `place`, `bucket` (null for what is no bridge, or has one end only), `count`,
    `messages` and `copies` of those that came more than once, `first_ns` and `last_ns` of these.
    """
    clocks = corrections.between(F.col("from_router"), F.col("to_router"))
    corrected = edges.select("place", *clocks).where(corrections.are_needed())
    took = corrections.took(F.col("sent_ns"), F.col("came_ns"))
    again = F.col("copies") > 1
    return (
        with_bucket(met.join(F.broadcast(corrected), "place", "left"), took)
        .groupBy("place", "bucket")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.count(F.when(again, F.lit(1))).alias("messages"),
            F.coalesce(F.sum(F.when(again, F.col("copies") - 1)), F.lit(0)).alias("copies"),
            F.min(F.when(again, F.col("came_ns"))).alias("first_ns"),
            F.max(F.when(again, F.col("last_ns"))).alias("last_ns"),
        )
    )


def edge_places(places: DataFrame) -> DataFrame:
    """Return from PLACES every edge that messages crossed, with its `place`."""
    crossings = places.where(
        F.col("event").isin("bridge_send", "bridge_receive") & F.col("peer_router").isNotNull()
    )
    edges = crossings.select(
        *(column.alias(name) for name, column in ends(F.col("remote")).items())
    )
    return edges.distinct().withColumn("place", _marked(F.xxhash64(*EDGE), _RECEIVE))


def hops(sums: DataFrame, edges: DataFrame, corrections: Corrections) -> DataFrame:
    """Return HOPS from the result of `summed` and the edges with their `place`."""
    crossed = sums.where(F.col("bucket").isNotNull()).join(F.broadcast(edges), "place")
    return conform(settled_by(corrections, crossed, "from_router", "to_router"), HOPS)


def doubles(sums: DataFrame, edges: DataFrame, uses: DataFrame) -> DataFrame:
    """Return DOUBLES, without `two_ways`, from the result of `summed`, the edges with their `place`, and USES."""
    again = sums.where(F.col("messages") > 0).groupBy("place")
    again_by_place = again.agg(
        F.sum("messages").alias("messages"),
        F.sum("copies").alias("copies"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    named = edges.select(
        "place",
        F.lit(_KINDS[_RECEIVE]).alias("kind"),
        F.col("to_router").alias("router"),
        F.col("to_vpn").alias("vpn"),
        F.col("bridge").alias("who"),
    )
    for code, event, who in ((_DELIVER, "deliver", "client"), (_ENQUEUE, "enqueue", "endpoint")):
        receivers = (
            uses.where(F.col("event") == event)
            .select("router", "vpn", F.col(who).alias("who"))
            .distinct()
            .withColumn("place", _marked(F.xxhash64("router", "vpn", "who"), code))
        )
        named = named.unionByName(receivers.withColumn("kind", F.lit(_KINDS[code])))
    missing = {name: F.lit(None) for name in ("other", "example_trace")}
    return conform(again_by_place.join(named, "place").withColumns(missing), DOUBLES)


_WHERE = ["router", "vpn", "origin_router", "origin_vpn"]


def candidates(paths: DataFrame) -> DataFrame:
    """Return from PATHS the message VPNs and the origins that they hear from over more than one bridge."""
    way = F.struct("peer_router", "peer_vpn", "bridge")
    return (
        paths.where(F.col("origin_router").isNotNull())
        .groupBy(*_WHERE)
        .agg(F.min(way).alias("one"), F.max(way).alias("other"))
        .where(F.col("one") != F.col("other"))
        .select(*_WHERE)
    )


def two_ways(traces: Condensed, places: DataFrame) -> DataFrame:
    """Return DOUBLES of the kind `two_ways` from the result of `candidates`."""
    way = F.concat_ws(
        "",
        F.col("peer_router"),
        F.lit("/"),
        F.col("peer_vpn"),
        F.lit(":"),
        F.coalesce(F.col("bridge"), F.lit("")),
    )
    contexts = (
        traces.contexts.where(F.col("event") == "bridge_receive")
        .join(F.broadcast(places), _WHERE, "left_semi")
        .select("context", "router", "vpn", way.alias("way"))
    )
    arrivals = (
        traces.joined(traces.rows.where(F.col("trace_id").isNotNull()).drop(*CONTEXT), contexts)
        .groupBy(message().alias("message"), "router", "vpn")
        .agg(
            F.min("way").alias("who"),
            F.max("way").alias("other"),
            F.count(F.lit(1)).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
        )
        .where(F.col("who") != F.col("other"))
    )
    grouped = arrivals.groupBy("router", "vpn", "who", "other").agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum(F.col("copies") - 1).alias("copies"),
        F.min("example_trace").alias("example_trace"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    return conform(grouped.withColumn("kind", F.lit("two_ways")), DOUBLES)

"""Makes the tables of bridges, rates, message VPNs, latencies, topics, paths, discards and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from vpnrouter.limits import (
    REPORT_DISCARDS,
    REPORT_END_TO_END,
    REPORT_LATENCIES,
    REPORT_LINK_CHANGES,
    REPORT_LINKS,
    REPORT_PROVIDERS,
    REPORT_RATES,
    REPORT_TOPICS,
    REPORT_WAYS,
)
from vpnrouter.report.digests.columns import middle_ns, percentiles, weighed
from vpnrouter.report.flows.clocks import comparable, one_clock
from vpnrouter.report.flows.collect import (
    CHANGES,
    CROSSINGS,
    collected,
    edge_of,
    histogram,
    link_changes,
    rows_in,
    table_of,
    totals,
    with_edge,
)
from vpnrouter.report.schema import (
    CLOCKS,
    DISCARDS,
    EDGE,
    EDGES,
    END_TO_END,
    LATENCIES,
    LENGTHS,
    LINKS,
    NODES,
    PROVIDERS,
    RATES,
    TIMELINE,
    TOPICS,
    WAYS,
    Edge,
    Rows,
    conform,
    edge_named,
)
from vpnrouter.report.visited import STEP, bridges_on, has_provider
from vpnrouter.wire.link import codes

_LOSSES: Final = ("discard", "reject", "expire", "dead_letter")


def discards(losses: DataFrame) -> DataFrame:
    """Return DISCARDS, unordered, from LOSSES: counts by router, VPN, event, reason and place.

    The place is the endpoint, else the bridge, else the client that the rows name. A redelivery ends no message's
    way.
    """
    place = F.coalesce(_named("endpoint"), _named("bridge"), _named("client"), F.lit(""))
    grouped = (
        losses.where(F.col("event").isin(*_LOSSES))
        .withColumns({"reason": F.coalesce(F.col("reason"), F.lit("")), "place": place})
        .groupBy("router", "vpn", "event", "reason", "place")
        .agg(
            F.sum("count").alias("messages"),
            F.round(weighed()).alias("messages_estimated"),
            F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
            F.min("example_topic").alias("example_topic"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
    )
    return conform(grouped, DISCARDS)


def most_frequent(rows: DataFrame, most: int) -> DataFrame:
    """Return the `most` most frequent rows of DISCARDS, ties in order of place."""
    return rows.orderBy(F.desc("messages"), "router", "vpn", "event", "reason", "place").limit(most)


def _named(column: str) -> Column:
    """Return the name; null for the digest's ""."""
    return F.when(F.col(column) != "", F.col(column))


SHARES: Final = (0.5, 0.95, 0.99)
"""The percentiles that tables give."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of a bridge's latency in nanoseconds, None without samples; of all of them whether clocks were
    corrected, and the bound of the error that is left.
    """

    samples: int
    corrected: bool
    error_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None


def histograms(hops: DataFrame) -> pa.Table:
    """Return from HOPS one row for each edge with `samples` and its `histogram`, `corrected` and `error_ns`, most
    samples first.
    """
    named = hops.withColumn("bridge", F.coalesce(F.col("bridge"), F.lit("")))
    return (
        named.groupBy(*EDGE)
        .agg(F.sum("count").alias("samples"), histogram().alias("histogram"), *_clock_error())
        .orderBy(F.desc("samples"), *EDGE)
        .toArrow()
    )


def _clock_error() -> list[Column]:
    """Return whether clocks were corrected for all durations, and the bound of the error that is left."""
    corrected = F.bool_and("corrected")
    return [
        corrected.alias("corrected"),
        F.when(corrected, F.max("error_ns")).alias("error_ns"),
    ]


def latencies(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[Edge, Latency], Rows]:
    """Return the percentiles of every edge, and LATENCIES, from rows of `histograms`.

    LATENCIES are in the order of the edges, then of latency; whole histograms of the edges with most
    samples, up to REPORT_LATENCIES rows.
    """
    by_edge: dict[Edge, Latency] = {}
    listed: Rows = []
    full = False
    for row in rows:
        edge = edge_named(row)
        counts = merged(row["histogram"])
        by_edge[edge] = Latency(
            row["samples"],
            row["corrected"],
            row["error_ns"],
            *percentiles(counts.items(), SHARES),
        )
        full = full or len(listed) + len(counts) > REPORT_LATENCIES
        if full:
            continue
        listed.extend(
            {**edge._asdict(), "latency_ns": middle_ns(number), "messages": counts[number]}
            for number in sorted(counts)
        )
    return by_edge, listed


def merged(pairs: Iterable[Mapping[str, int]]) -> dict[int, int]:
    """Return counts by bucket, from a list in which a bucket may come more than once."""
    counts: dict[int, int] = {}
    for pair in pairs:
        counts[pair["bucket"]] = counts.get(pair["bucket"], 0) + pair["count"]
    return counts


_PAIR: Final = ("origin_router", "origin_vpn", "router", "vpn")


def delays(digest: DataFrame) -> pa.Table:
    """Return from DELAYS one row for each pair of message VPNs with `messages`, the `histogram`, `corrected` and
    `error_ns`: the REPORT_END_TO_END pairs with most messages, these first.
    """
    return (
        digest.groupBy(*_PAIR)
        .agg(F.sum("count").alias("messages"), histogram().alias("histogram"), *_clock_error())
        .orderBy(F.desc("messages"), *_PAIR)
        .limit(REPORT_END_TO_END)
        .toArrow()
    )


def end_to_end(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Return END_TO_END from rows of `delays`, in the same order."""
    pairs = []
    for row in rows:
        p50_ns, p95_ns, p99_ns = percentiles(merged(row["histogram"]).items(), SHARES)
        pairs.append(
            {
                **{name: row[name] for name in _PAIR},
                "messages": row["messages"],
                "p50_ns": p50_ns,
                "p95_ns": p95_ns,
                "p99_ns": p99_ns,
                "corrected": row["corrected"],
                "error_ns": row["error_ns"],
            }
        )
    return pairs


_COUNTS: Final = {
    "ingress": "ingress",
    "deliver": "delivered",
    "bridge_receive": "bridged_in",
    "bridge_send": "bridged_out",
    "enqueue": "spooled",
    "discard": "discarded",
    "reject": "rejected",
}
"""Events that are counted, and the columns of the counts."""

_SIZED: Final = ("ingress", "deliver")
"""Events whose bytes and estimates are counted too."""

_Place = tuple[str, str]


def nodes(
    totals: Iterable[Mapping[str, Any]],
    changes: Iterable[Mapping[str, Any]],
    edges: Iterable[Edge],
) -> Rows:
    """Return NODES, ordered by router and VPN: every message VPN in the traces.

    `totals` and `changes` are rows of `totals` and `link_changes`. A VPN that is only the other end of one of the
    `edges` has `traced` false and no counts. An estimate is 0 where nothing was counted, and null where a weight is
    not known.
    """
    by_place: dict[_Place, dict[str, Any]] = {}
    for row in totals:
        node = _seen(by_place, row)
        if node is None:
            continue
        event = row["event"]
        if event in _COUNTS:
            node[_COUNTS[event]] += row["count"]
        if event in _SIZED:
            _add_sizes(node, _COUNTS[event], row)
    for row in changes:
        _seen(by_place, row)
    for edge in edges:
        for router, vpn in (edge[:2], edge[2:4]):
            if (router, vpn) not in by_place:
                bare = dict.fromkeys(NODES.names)
                by_place[router, vpn] = {**bare, "router": router, "vpn": vpn, "traced": False}
    for node in by_place.values():
        for column in ("ingress_estimated", "delivered_estimated"):
            node[column] = None if node[column] is None else round(node[column])
    return [by_place[place] for place in sorted(by_place)]


def last_seen(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the last time of a row by router, from NODES."""
    last_by_router: dict[str, int] = {}
    for row in rows:
        if row["last_ns"] is not None:
            last_by_router[row["router"]] = max(
                last_by_router.get(row["router"], row["last_ns"]), row["last_ns"]
            )
    return last_by_router


def _seen(found: dict[_Place, dict[str, Any]], row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the node of a row, with its times widened by the row; None for a row without a VPN."""
    router, vpn = row["router"], row["vpn"]
    if router is None or vpn is None:
        return None
    first_ns, last_ns = row["first_ns"], row["last_ns"]
    node = found.get((router, vpn))
    if node is None:
        node = {**dict.fromkeys(NODES.names, 0), "router": router, "vpn": vpn, "traced": True}
        node.update(first_ns=first_ns, last_ns=last_ns)
        found[router, vpn] = node
    elif first_ns is not None:
        known = node["first_ns"] is not None
        node["first_ns"] = min(node["first_ns"], first_ns) if known else first_ns
        node["last_ns"] = max(node["last_ns"], last_ns) if known else last_ns
    return node


def _add_sizes(node: dict[str, Any], column: str, row: Mapping[str, Any]) -> None:
    node[f"{column}_bytes"] += row["bytes"]
    before, weight = node[f"{column}_estimated"], row["weight"]
    node[f"{column}_estimated"] = None if before is None or weight is None else before + weight


def timeline(places: DataFrame) -> DataFrame:
    """Return TIMELINE, ordered, from PLACES: events by the stretches of the digest."""
    grouped = (
        places.where(F.col("event").isin("ingress", "bridge_receive", "deliver", "discard"))
        .groupBy("start_ns")
        .agg(
            _sum("ingress").alias("ingress"),
            _sum("bridge_receive").alias("bridged"),
            _sum("deliver").alias("delivered"),
            _sum("discard").alias("discarded"),
        )
    )
    return conform(grouped, TIMELINE).orderBy("start_ns")


def _sum(event: str, figure: str | Column = "count") -> Column:
    """Return the sum of a figure over the rows of an event, 0 without any."""
    value = F.col(figure) if isinstance(figure, str) else figure
    return F.coalesce(F.sum(F.when(F.col("event") == event, value)), F.lit(0))


_EVENTS: Final = ("ingress", "bridge_receive", "bridge_send", "deliver", "discard")


def topics(uses: DataFrame) -> DataFrame:
    """Return TOPICS, unordered, from USES: one row for each topic and message VPN in which it was seen.

    VPNs are isolated: one topic in two of them is two topics, unless a bridge joins them.
    """
    published = F.col("event") == "ingress"
    unknown = F.count(F.when(published & F.col("weight").isNull(), F.lit(1)))
    estimate = F.coalesce(F.sum(F.when(published, F.col("weight"))), F.lit(0.0))
    grouped = (
        uses.where(F.col("event").isin(*_EVENTS) & F.col("topic").isNotNull())
        .groupBy("topic", "router", "vpn")
        .agg(
            _sum("ingress").alias("published"),
            _sum("ingress", "bytes").alias("published_bytes"),
            F.when(unknown == 0, F.round(estimate)).alias("published_estimated"),
            _sum("bridge_receive").alias("bridged_in"),
            _sum("bridge_send").alias("bridged_out"),
            _sum("deliver").alias("delivered"),
            _sum("discard").alias("discarded"),
        )
    )
    return conform(grouped, TOPICS)


def busiest(rows: DataFrame, most: int) -> DataFrame:
    """Return the `most` rows of TOPICS with most messages entering, ties in order of name."""
    entering = F.col("published") + F.col("bridged_in")
    return rows.orderBy(
        entering.desc(), F.desc("published"), F.desc("delivered"), "topic", "router", "vpn"
    ).limit(most)


def ways_and_lengths(paths: DataFrame, most: int) -> DataFrame:
    """Return WAYS from PATHS: the `most` frequent paths, these first; and, with null for `way` and `bytes`, the
    messages of each number of bridges. One job for both.

    A message that has crossed one bridge needs no `path`: it came from the other end. Longer paths that a row does
    not name count among the lengths only. Steps to providers and from them are no bridges, though `hops` of the
    digest counts them.
    """
    here = F.concat_ws("/", "router", "vpn")
    before = F.coalesce(
        F.col("path"),
        F.when(
            (F.col("hops") == 1) & F.col("peer_router").isNotNull() & F.col("peer_vpn").isNotNull(),
            F.concat_ws("/", "peer_router", "peer_vpn"),
        ),
    )
    way = F.concat(before, F.lit(STEP), here)
    steps = F.when(F.col("path").isNotNull(), F.size(F.split("path", STEP)))
    known = paths.select(
        way.alias("way"),
        F.when(has_provider(F.col("path")), bridges_on(way))
        .otherwise(F.coalesce(F.col("hops"), steps))
        .alias("hops"),
        "count",
        "bytes",
    )
    frequent = (
        known.where(F.col("way").isNotNull())
        .groupBy("way", "hops")
        .agg(F.sum("count").alias("messages"), F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"))
        .orderBy(F.desc("messages"), "way", "hops")
        .limit(most)
    )
    lengths = (
        known.where(F.col("hops").isNotNull())
        .groupBy("hops")
        .agg(F.sum("count").alias("messages"))
        .select(F.lit(None).alias("way"), "hops", "messages", F.lit(None).alias("bytes"))
    )
    return conform(frequent, WAYS).union(conform(lengths, WAYS))


def ways(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Return WAYS from rows of `ways_and_lengths`, those of most messages first."""
    paths = [dict(row) for row in rows if row["way"] is not None]
    return sorted(paths, key=lambda row: (-row["messages"], row["way"], row["hops"]))


def lengths(rows: Iterable[Mapping[str, Any]], published: int) -> Rows:
    """Return LENGTHS from rows of `ways_and_lengths`, the shortest first, with the `published` messages as
    those that crossed no bridge.
    """
    counts = {row["hops"]: row["messages"] for row in rows if row["way"] is None}
    if published:
        counts[0] = counts.get(0, 0) + published
    return [{"hops": hops, "messages": counts[hops]} for hops in sorted(counts)]


_DIRECTIONS: Final = {"ingress": "in", "deliver": "out", "redeliver": "out"}
"""Events of connectors, and which way the message went."""


def providers(totals: Iterable[Mapping[str, Any]]) -> Rows:
    """Return PROVIDERS from rows of `totals`, the busiest first, at most REPORT_PROVIDERS.

    Only connectors write rows of these events with a `bridge`: CONNECTOR/LINK.
    """
    by_link: dict[tuple[str | None, ...], dict[str, Any]] = {}
    for row in totals:
        direction = _DIRECTIONS.get(row["event"])
        if direction is None or not row["bridge"] or row["peer_vpn"] is not None:
            continue
        connector, _, link = row["bridge"].partition("/")
        names = (row["router"], row["vpn"], connector, link, row["peer_router"], direction)
        listed = by_link.get(names)
        if listed is None:
            listed = dict.fromkeys(PROVIDERS.names, 0) | dict(
                zip(PROVIDERS.names, names, strict=False)
            )
            listed.update(first_ns=row["first_ns"], last_ns=row["last_ns"])
            by_link[names] = listed
        listed["first_ns"] = min(listed["first_ns"], row["first_ns"])
        listed["last_ns"] = max(listed["last_ns"], row["last_ns"])
        if row["event"] == "redeliver":
            listed["redelivered"] += row["count"]
            continue
        listed["messages"] += row["count"]
        listed["bytes"] += row["bytes"]
        listed["direct"] += row["direct"]
        estimate, weight = listed["messages_estimated"], row["weight"]
        listed["messages_estimated"] = (
            None if estimate is None or weight is None else estimate + weight
        )
    for listed in by_link.values():
        listed["guaranteed"] = listed["messages"] - listed["direct"]
        estimate = listed["messages_estimated"]
        listed["messages_estimated"] = None if estimate is None else round(estimate)
    busiest_first = sorted(
        by_link,
        key=lambda names: (-by_link[names]["messages"], *(name or "" for name in names)),
    )
    return [by_link[names] for names in busiest_first[:REPORT_PROVIDERS]]


_TAKEN_OVER: Final = codes.REASONS[codes.TAKEN_OVER]


@dataclass(slots=True)
class UpTime:
    """A time that a link was up, nanoseconds since 1970; `down_ns` is None while it lasts."""

    up_ns: int
    down_ns: int | None = None
    reason: str | None = None


def spans_of(
    changes: Iterable[Mapping[str, Any]], first_seen: Mapping[Edge, int]
) -> dict[Edge, list[UpTime]]:
    """Return the times up of each link, in order, from rows of `link_changes`.

    A link that goes down first was up before the traces begin: its time up starts when the edge was
    first seen.
    """
    chosen: dict[Edge, Mapping[str, Any]] = {}
    for row in changes:
        edge = edge_of(row) if row["changes"] else None
        if edge is None:
            continue
        before = chosen.get(edge)
        if before is None or _saw(row) > _saw(before):
            chosen[edge] = row
    return {edge: _spans(chosen[edge]["changes"], first_seen.get(edge)) for edge in sorted(chosen)}


def links(spans: Mapping[Edge, Sequence[UpTime]]) -> Rows:
    """Return LINKS, ordered by ends, name and time: the latest REPORT_LINKS times that links were up."""
    listed = [(edge, span) for edge, of_edge in spans.items() for span in of_edge]
    if len(listed) > REPORT_LINKS:
        listed = sorted(listed, key=lambda one: one[1].up_ns)[-REPORT_LINKS:]
        listed.sort(key=lambda one: (one[0], one[1].up_ns))
    return [
        {
            **edge._asdict(),
            "up_ns": span.up_ns,
            "down_ns": span.down_ns,
            "reason": span.reason,
        }
        for edge, span in listed
    ]


def time_up(spans: Iterable[UpTime], end_ns: int) -> int:
    """Return nanoseconds that a link was up; a time that has not ended lasts until `end_ns`."""
    return sum(
        max(0, (end_ns if span.down_ns is None else span.down_ns) - span.up_ns) for span in spans
    )


def flaps(rows: Iterable[Mapping[str, Any]]) -> dict[Edge, int]:
    """Return how often each link went down and came up again, from LINKS.

    The last down does not count: a router that stops takes its links down, and that is no fault.
    """
    counts: dict[Edge, int] = {}
    for row in sorted(rows, key=lambda one: (edge_named(one), one["up_ns"])):
        edge = edge_named(row)
        counts[edge] = counts.get(edge, -1) + 1
    return counts


def _saw(row: Mapping[str, Any]) -> tuple[int, bool]:
    return len(row["changes"]), not row["remote"]


def _spans(changes: Sequence[Mapping[str, Any]], first_seen_ns: int | None) -> list[UpTime]:
    """Return the times up that follow from the ups and downs that one end saw.

    | link | up                          | down                                   |
    |------|-----------------------------|----------------------------------------|
    | new  | begin                       | it was up since it was first seen: end |
    | down | begin                       | said twice: nothing                    |
    | up   | the down is missing: end    | end, unless it is the end of the link  |
    |      | the one, begin the other    | that this one took over                |
    """
    spans: list[UpTime] = []
    up = False
    overlapped = False
    for at, change in enumerate(changes):
        ts_ns = change["ts_ns"]
        if change["up"]:
            if up:
                spans[-1].down_ns = ts_ns
            overlapped = up
            spans.append(UpTime(ts_ns))
            up = True
        elif up:
            if overlapped and change["reason"] == _TAKEN_OVER:
                spans[-2].reason = _TAKEN_OVER
                overlapped = False
                continue
            spans[-1].down_ns = ts_ns
            spans[-1].reason = change["reason"]
            up = False
        elif at == 0 and len(changes) < REPORT_LINK_CHANGES:
            # Of a list that was cut the first up may be what was cut off.
            begin = ts_ns if first_seen_ns is None else min(first_seen_ns, ts_ns)
            spans.append(UpTime(begin, ts_ns, change["reason"]))
    return spans


_NO_LATENCY: Final = Latency(0, False, None, None, None, None)


@dataclass(slots=True)
class SideCounts:
    """What one of the two routers saw of the messages; `weight` is None if not known."""

    messages: int = 0
    weight: float | None = 0.0
    bytes: int = 0
    direct: int = 0
    peak: int = 0
    stretches: int = 0


@dataclass(slots=True)
class ObservedBridge:
    """What both routers saw of a bridge; ups and downs are those of the end that saw more."""

    first_ns: int | None = None
    last_ns: int | None = None
    send: SideCounts = field(default_factory=SideCounts)
    receive: SideCounts = field(default_factory=SideCounts)
    link_ups: int = 0
    link_downs: int = 0

    @property
    def sent_counts(self) -> bool:
        """Whether the sender saw more than the receiver, so that its figures count."""
        return self.send.messages > self.receive.messages

    @property
    def fuller(self) -> SideCounts:
        """The side that saw more messages; of equals the receiver."""
        return self.send if self.sent_counts else self.receive


def seen_edges(totals: Iterable[Mapping[str, Any]]) -> dict[Edge, ObservedBridge]:
    """Return every edge of messages or links, in order, from rows of `totals`."""
    by_edge: dict[Edge, ObservedBridge] = {}
    for row in totals:
        event = row["event"]
        if event not in CROSSINGS and event not in CHANGES:
            continue
        edge = edge_of(row)
        if edge is None:
            continue
        observed = by_edge.setdefault(edge, ObservedBridge())
        if row["first_ns"] is not None:
            first_ns, last_ns = row["first_ns"], row["last_ns"]
            observed.first_ns = (
                first_ns if observed.first_ns is None else min(observed.first_ns, first_ns)
            )
            observed.last_ns = (
                last_ns if observed.last_ns is None else max(observed.last_ns, last_ns)
            )
        if event == "link_up":
            observed.link_ups = max(observed.link_ups, row["count"])
        elif event == "link_down":
            observed.link_downs = max(observed.link_downs, row["count"])
        else:
            side = SideCounts(
                row["count"],
                row["weight"],
                row["bytes"],
                row["direct"],
                row["peak"],
                row["stretches"],
            )
            if event == "bridge_send":
                observed.send = side
            else:
                observed.receive = side
    return dict(sorted(by_edge.items()))


def edges(
    seen: Mapping[Edge, ObservedBridge],
    latencies: Mapping[Edge, Latency],
    spans: Mapping[Edge, Sequence[UpTime]],
    last_seen: Mapping[str, int],
    references: Mapping[str, str],
) -> Rows:
    """Return EDGES, ordered by ends and name; `configured`, `cut` and `centrality` are null.

    `spans` are the times that links were up (`spans_of`), those that have not ended last until one of the
    two routers was last seen (`last_seen`); without any, the time up is null. `references` are those of the
    clocks (`comparable`).
    """
    rows = []
    for edge, one in seen.items():
        side = one.fuller
        latency = latencies.get(edge, _NO_LATENCY)
        ends = [last_seen[router] for router in (edge[0], edge[2]) if router in last_seen]
        up = spans.get(edge)
        rows.append(
            {
                **dict.fromkeys(EDGES.names),
                **edge._asdict(),
                "messages": side.messages,
                "messages_estimated": None if side.weight is None else round(side.weight),
                "bytes": side.bytes,
                "sent": one.send.messages,
                "received": one.receive.messages,
                "direct": side.direct,
                "guaranteed": side.messages - side.direct,
                "peak_messages": side.peak,
                "latency_samples": latency.samples,
                "latency_p50_ns": latency.p50_ns,
                "latency_p95_ns": latency.p95_ns,
                "latency_p99_ns": latency.p99_ns,
                "latency_corrected": (
                    latency.corrected
                    if latency.samples
                    else one_clock(references, edge[0], edge[2])
                ),
                "latency_error_ns": latency.error_ns,
                "link_ups": one.link_ups,
                "link_downs": one.link_downs,
                "up_ns": None if not up else time_up(up, max(ends, default=up[-1].up_ns)),
                "first_ns": one.first_ns,
                "last_ns": one.last_ns,
            }
        )
    return rows


def rates(spark: SparkSession, places: DataFrame, seen: Mapping[Edge, ObservedBridge]) -> Rows:
    """Return RATES, ordered by edge and time, from PLACES: those of the side that saw more of the edge.

    `seen` are the edges (`seen_edges`). Of more than REPORT_RATES rows those of the busiest edges.
    """
    busiest = busiest_bridges(seen, REPORT_RATES)
    crossings = with_edge(places.where(F.col("event").isin(*CROSSINGS)))
    if len(busiest) < sum(one.fuller.messages > 0 for one in seen.values()):
        names = StructType([EDGES[name] for name in EDGE])
        listed = table_of((edge._asdict() for edge in busiest), names)
        crossings = crossings.join(
            F.broadcast(spark.createDataFrame(listed, names)), list(EDGE), "left_semi"
        )
    guaranteed = F.when(F.col("mode") != "direct", F.col("count"))
    figures: dict[str, str | Column] = {
        "messages": "count",
        "bytes": "bytes",
        "guaranteed": guaranteed,
    }
    table = (
        crossings.groupBy(*EDGE, "start_ns")
        .agg(
            *(
                _sum(event, value).alias(f"{event}_{figure}")
                for event in CROSSINGS
                for figure, value in figures.items()
            )
        )
        .orderBy(*EDGE, "start_ns")
        .toArrow()
    )
    rate_rows = []
    for row in rows_in(table):
        edge = edge_named(row)
        event = CROSSINGS[0] if seen[edge].sent_counts else CROSSINGS[1]
        if row[f"{event}_messages"]:
            rate_rows.append(
                {
                    **edge._asdict(),
                    "start_ns": row["start_ns"],
                    **{figure: row[f"{event}_{figure}"] for figure in figures},
                }
            )
    return rate_rows


def busiest_bridges(seen: Mapping[Edge, ObservedBridge], most: int) -> list[Edge]:
    """Return the edges with most messages, as many as have at most `most` rows of rates together."""
    bridges: list[Edge] = []
    rows = 0
    for edge in sorted(seen, key=lambda name: (-seen[name].fuller.messages, name)):
        side = seen[edge].fuller
        rows += side.stretches
        if rows > most:
            break
        if side.messages:
            bridges.append(edge)
    return bridges


@dataclass(frozen=True, slots=True)
class Flows:
    """The tables by name (schemas in `vpnrouter.report.schema`); `topic_count` counts all topics, also those not
    listed.
    """

    tables: dict[str, pa.Table]
    topic_count: int


def flows(
    spark: SparkSession,
    digests: Mapping[str, DataFrame],
    clocks: Rows,
    begin: Callable[[str], None] = lambda _: None,
) -> Flows:
    """Return all tables of Flows from the digests places, paths, uses, losses, delays, hops and states.

    `clocks` are the rows of `clock_offsets`, with which hops and delays were corrected. Calls `begin` with the name
    of each part that begins.
    """
    references = comparable(clocks)
    begin("bridges")
    of_places = totals(digests["places"])
    changes = link_changes(digests["states"])
    observed = seen_edges(rows_in(of_places))
    first_seen = {edge: one.first_ns for edge, one in observed.items() if one.first_ns is not None}
    spans = spans_of(rows_in(changes), first_seen)
    percentiles, latency_rows = latencies(rows_in(histograms(digests["hops"])))
    rate_rows = rates(spark, digests["places"], observed)
    begin("message VPNs")
    node_rows = nodes(rows_in(of_places), rows_in(changes), observed)
    edge_rows = edges(observed, percentiles, spans, last_seen(node_rows), references)
    end_rows = end_to_end(rows_in(delays(digests["delays"])))
    begin("ways")
    way_rows = ways_and_lengths(digests["paths"], REPORT_WAYS).toArrow().to_pylist()
    published = sum(row["ingress"] or 0 for row in node_rows)
    begin("topics")
    counted = Observation()
    all_topics = topics(digests["uses"]).observe(counted, F.count(F.lit(1)).alias("topics"))
    topic_table = collected(busiest(all_topics, REPORT_TOPICS), TOPICS)
    begin("discards")
    discard_table = collected(most_frequent(discards(digests["losses"]), REPORT_DISCARDS), DISCARDS)
    begin("timeline")
    tables = {
        "nodes": table_of(node_rows, NODES),
        "edges": table_of(edge_rows, EDGES),
        "rates": table_of(rate_rows, RATES),
        "latencies": table_of(latency_rows, LATENCIES),
        "end_to_end": table_of(end_rows, END_TO_END),
        "clocks": table_of(clocks, CLOCKS),
        "links": table_of(links(spans), LINKS),
        "ways": table_of(ways(way_rows), WAYS),
        "lengths": table_of(lengths(way_rows, published), LENGTHS),
        "topics": topic_table,
        "discards": discard_table,
        "providers": table_of(providers(rows_in(of_places)), PROVIDERS),
        "timeline": collected(timeline(digests["places"]), TIMELINE),
    }
    return Flows(tables, int(counted.get["topics"]))

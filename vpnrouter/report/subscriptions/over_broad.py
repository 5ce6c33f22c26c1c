"""Finds messages that cross bridges without a receiver, and the bridge subscriptions that attract them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    REPORT_EDGE_TOPICS,
    REPORT_SUBSCRIPTION_FINDINGS,
    REPORT_WASTED_EDGES,
    REPORT_WAYS_ON,
)
from vpnrouter.report.digests.columns import ends as edge_columns
from vpnrouter.report.rules.context import ends
from vpnrouter.report.schema import EDGE, WARNING, Edge, Finding, Rows, edge_named
from vpnrouter.report.subscriptions.held import DIALECTS
from vpnrouter.report.subscriptions.narrow import narrower
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import SMF, Filter, parse_filter

HOPS: Final = 8
"""Steps that use is followed back over bridges: messages make no more by default (`maxTtl`). Beyond, a topic that
is sent on counts as of use."""

_NODE: Final = ["router", "vpn", "topic"]
_BRIDGED: Final = ("bridge_send", "bridge_receive")
_SEEN: Final = ("ingress", "deliver", "enqueue")


def crossings(uses: DataFrame) -> DataFrame:
    """Return one row for each edge and topic: `sent`, `sent_bytes`, `received`, `received_bytes`, the counts of both
    ends.

    A bridge that renames topics has rows with only `sent` and rows with only `received`.
    """
    sends = F.col("event") == "bridge_send"
    columns = edge_columns(sends)
    bridged = uses.where(
        F.col("event").isin(*_BRIDGED)
        & F.col("peer_router").isNotNull()
        & F.col("peer_vpn").isNotNull()
        & F.col("topic").isNotNull()
    ).select(
        *(columns[name].alias(name) for name in EDGE),
        "topic",
        sends.alias("sends"),
        "count",
        "bytes",
    )

    def total(value: str, sent: bool) -> Column:
        chosen = F.col("sends") if sent else ~F.col("sends")
        return F.coalesce(F.sum(F.when(chosen, F.col(value))), F.lit(0))

    return bridged.groupBy(*EDGE, "topic").agg(
        total("count", sent=True).alias("sent"),
        total("bytes", sent=True).alias("sent_bytes"),
        total("count", sent=False).alias("received"),
        total("bytes", sent=False).alias("received_bytes"),
    )


def wasted(crossed: DataFrame, uses: DataFrame) -> DataFrame | None:
    """Return the rows of `crossed` (from `crossings`, kept in memory by the caller) that were wasted.

    None when there are none. `inherited`: the bridge only passes on what another one should not have brought,
    the sending message VPN having no publisher of the topic.
    """
    nodes = _unreceived(crossed, uses).localCheckpoint()
    if nodes.isEmpty():
        return None
    useless = _without_receiver(crossed, nodes)
    # Where a topic is published, the waste begins; behind that it is passed on.
    passed_on = useless.where(~F.col("published")).select(
        F.col("router").alias("from_router"),
        F.col("vpn").alias("from_vpn"),
        "topic",
        F.lit(True).alias("passed_on"),
    )
    goals = useless.select(
        F.col("router").alias("to_router"), F.col("vpn").alias("to_vpn"), "topic"
    )
    return (
        crossed.where(F.col("received") > 0)
        .join(goals, ["to_router", "to_vpn", "topic"], "left_semi")
        .join(passed_on, ["from_router", "from_vpn", "topic"], "left")
        .select(
            *EDGE,
            "topic",
            "received",
            "received_bytes",
            F.coalesce("passed_on", F.lit(False)).alias("inherited"),
        )
    )


def _unreceived(crossed: DataFrame, uses: DataFrame) -> DataFrame:
    """Return the topics of a message VPN that bridges bring and nobody receives: router, vpn, topic, published."""
    local = (
        uses.where(F.col("event").isin(*_SEEN))
        .groupBy(*_NODE)
        .agg(
            F.max(F.col("event") != "ingress").alias("wanted"),
            F.max(F.col("event") == "ingress").alias("published"),
        )
    )
    published = (
        crossed.where(F.col("received") > 0)
        .select(F.col("to_router").alias("router"), F.col("to_vpn").alias("vpn"), "topic")
        .distinct()
    )
    return (
        published.join(local, _NODE, "left")
        .where(~F.coalesce("wanted", F.lit(False)))
        .select(*_NODE, F.coalesce("published", F.lit(False)).alias("published"))
    )


def _without_receiver(crossed: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return those of `nodes` from which no path leads to where the topic is received, or may be."""
    target = F.struct(
        F.col("to_router").alias("router"),
        F.col("to_vpn").alias("vpn"),
        F.col("topic").alias("topic"),
    )
    known = nodes.select(F.struct(*_NODE).alias("target"), F.lit(True).alias("known"))
    onward = (
        crossed.where(F.col("sent") > 0)
        .select(
            F.struct(
                F.col("from_router").alias("router"),
                F.col("from_vpn").alias("vpn"),
                F.col("topic").alias("topic"),
            ).alias("node"),
            # What went and did not arrive, under this name at least, may have been received.
            (F.col("received") == 0).alias("lost"),
            target.alias("target"),
        )
        .join(nodes.select(F.struct(*_NODE).alias("node")), "node", "left_semi")
        .join(known, "target", "left")
        .select("node", "target", (F.col("lost") | F.col("known").isNull()).alias("good"))
        .localCheckpoint()
    )
    if onward.count() <= REPORT_WAYS_ON:
        return _others_than(nodes, _with_receiver(onward))
    front = onward.where("good").select("node").distinct().localCheckpoint()
    of_use = front
    for _ in range(HOPS):
        if front.isEmpty():
            break
        reached = onward.join(front.select(F.col("node").alias("target")), "target", "left_semi")
        front = (
            reached.select("node").distinct().join(of_use, "node", "left_anti").localCheckpoint()
        )
        of_use = of_use.unionByName(front)
    else:
        if not front.isEmpty():
            of_use = onward.select("node").distinct()
    return _others_than(nodes, of_use)


def _with_receiver(onward: DataFrame) -> DataFrame:
    """Return the column `node` of those that lead to where the topic is received, found on the driver."""
    table = onward.toArrow()
    node_type = table.schema.field("node").type
    before: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    front: list[tuple[str, ...]] = []
    for row in table.to_pylist():
        node = tuple(row["node"].values())
        before.setdefault(tuple(row["target"].values()), []).append(node)
        if row["good"]:
            front.append(node)
    of_use = set(front)
    while front:
        nearer = {node for target in front for node in before.get(target, ())}
        front = list(nearer - of_use)
        of_use |= nearer
    nodes = [dict(zip(_NODE, node, strict=True)) for node in sorted(of_use)]
    column = pa.array(nodes, node_type)
    return onward.sparkSession.createDataFrame(pa.table({"node": column}))


def _others_than(nodes: DataFrame, of_use: DataFrame) -> DataFrame:
    return (
        nodes.withColumn("node", F.struct(*_NODE))
        .join(of_use, "node", "left_anti")
        .select(*_NODE, "published")
    )


BROAD_SHARE: Final = 0.2
"""Part of a subscription's messages, wasted, that makes it too broad: a fifth, so that a receiver who was away now
and then does not make one."""

CROSSING_SHARE: Final = 0.05
"""Part of a bridge's messages that must be wasted before its topics are listed one by one, for the same reason."""

WASTED_MESSAGES: Final = 20
"""Wasted messages, as traced, below which nothing is said: a receiver may just not have been there yet."""

WORST_TOPICS: Final = 5
"""Wasted topics of a bridge that have a finding of their own; its total is told with each."""

DROP: Final = "drop it"
"""The advice where nothing that a subscription brings is received."""

_SCORED: Final = 500
"""Wasted topics, the busiest, by which narrower filters are measured."""


@final
@dataclass
class Crossing:
    """What crossed one edge. `used` and `wasted` are (topic, messages, bytes), the busiest first; `total` counts all
    its messages. `more_used`: there are used topics beyond the bound. `renamed` are the wasted topics that have other
    names at the sending end, where filters match.
    """

    edge: Edge
    used: list[tuple[str, int, int]] = field(default_factory=list)
    wasted: list[tuple[str, int, int]] = field(default_factory=list)
    total: int = 0
    total_wasted: int = 0
    total_wasted_bytes: int = 0
    more_used: bool = False
    renamed: set[str] = field(default_factory=set)


def worst_crossings(crossed: DataFrame, lost: DataFrame) -> list[Crossing]:
    """Return the edges that waste most, from the frames of `crossings` and `wasted`; one job.

    What is inherited counts neither as used nor as wasted.
    """
    joined = crossed.join(
        lost.select(*EDGE, "topic", "inherited", F.lit(True).alias("wasted")),
        [*EDGE, "topic"],
        "left",
    ).where(~F.coalesce("inherited", F.lit(False)))
    flagged = joined.select(
        *EDGE,
        "topic",
        F.greatest("sent", "received").alias("messages"),
        F.greatest("sent_bytes", "received_bytes").alias("bytes"),
        F.coalesce("wasted", F.lit(False)).alias("wasted"),
        (F.col("sent") == 0).alias("renamed"),
    )
    everything = Window.partitionBy(*EDGE)
    ranked = Window.partitionBy(*EDGE, "wasted").orderBy(F.col("messages").desc(), "topic")
    lost_only = F.col("wasted")
    rows: Rows = (
        flagged.withColumns(
            {
                "total": F.sum("messages").over(everything),
                "total_wasted": F.sum(F.when(lost_only, F.col("messages"))).over(everything),
                "total_bytes": F.sum(F.when(lost_only, F.col("bytes"))).over(everything),
                "place": F.row_number().over(ranked),
            }
        )
        .where(
            (F.col("total_wasted") >= WASTED_MESSAGES) & (F.col("place") <= REPORT_EDGE_TOPICS + 1)
        )
        .withColumn(
            "edge_place", F.dense_rank().over(Window.orderBy(F.col("total_wasted").desc(), *EDGE))
        )
        .where(F.col("edge_place") <= REPORT_WASTED_EDGES)
        .orderBy("edge_place", "place", "topic")
        .toArrow()
        .to_pylist()
    )
    return _gathered(rows)


def _gathered(rows: Iterable[Mapping[str, Any]]) -> list[Crossing]:
    by_edge: dict[Edge, Crossing] = {}
    for row in rows:
        edge = edge_named(row)
        crossing = by_edge.get(edge)
        if crossing is None:
            crossing = Crossing(
                edge,
                total=row["total"],
                total_wasted=row["total_wasted"],
                total_wasted_bytes=row["total_bytes"],
            )
            by_edge[edge] = crossing
        topics = crossing.wasted if row["wasted"] else crossing.used
        if len(topics) < REPORT_EDGE_TOPICS:
            topics.append((row["topic"], row["messages"], row["bytes"]))
        elif not row["wasted"]:
            crossing.more_used = True
        if row["wasted"] and row["renamed"]:
            crossing.renamed.add(row["topic"])
    return list(by_edge.values())


def over_broad(
    crossings: Iterable[Crossing], subscriptions: Mapping[Edge, list[tuple[str, str]]]
) -> list[Finding]:
    """Return the findings `over_broad` and `wasted_crossing` of edges.

    `subscriptions` are those that each bridge holds at its remote message VPN: (filter, syntax).
    """
    broad: list[Finding] = []
    single: list[Finding] = []
    for crossing in crossings:
        known = _parsed(subscriptions.get(crossing.edge, []))
        explained = _of_bridge(crossing, known)
        broad.extend(finding for finding, _ in explained)
        single.extend(_left_over(crossing, [filter_ for _, filter_ in explained]))
    return [*broad[:REPORT_SUBSCRIPTION_FINDINGS], *single[:REPORT_SUBSCRIPTION_FINDINGS]]


def _parsed(written: Iterable[tuple[str, str]]) -> list[tuple[str, Filter]]:
    """Return the filters that bring messages: exceptions do not."""
    filters: list[tuple[str, Filter]] = []
    for text, syntax in sorted(written):
        dialect = DIALECTS[syntax]
        try:
            filter_ = parse_filter(text, dialect, exceptions=dialect == SMF)
        except TopicError:
            continue
        if not filter_.exception:
            filters.append((syntax, filter_))
    return filters


def _of_bridge(crossing: Crossing, known: list[tuple[str, Filter]]) -> list[tuple[Finding, Filter]]:
    """Return the broad subscriptions of one bridge."""
    suspects: list[tuple[str, Filter, int, int, int]] = []
    fine: list[Filter] = []
    for syntax, filter_ in known:
        used = sum(count for topic, count, _ in crossing.used if matches(filter_, topic))
        lost = [one for one in crossing.wasted if _brings(filter_, one[0], crossing)]
        messages = sum(count for _, count, _ in lost)
        if messages >= WASTED_MESSAGES and messages >= BROAD_SHARE * (messages + used):
            size = sum(size for _, _, size in lost)
            suspects.append((syntax, filter_, used, messages, size))
        else:
            fine.append(filter_)
    broad: list[tuple[Finding, Filter]] = []
    for syntax, filter_, used, messages, size in suspects:
        advice = _advice(crossing, filter_, syntax, fine)
        if not advice:
            continue
        broad.append((_broad(crossing.edge, filter_, used, messages, size, advice), filter_))
    return broad


def _brings(filter_: Filter, topic: str, crossing: Crossing) -> bool:
    """Return whether a filter at the sending end brings this wasted topic; a renamed one has another name there."""
    return topic not in crossing.renamed and matches(filter_, topic)


def _advice(crossing: Crossing, filter_: Filter, syntax: str, fine: list[Filter]) -> str:
    """Return the subscription to make instead; empty if none is better."""
    if crossing.more_used:
        return ""
    # What another subscription of the bridge brings anyway need not come by this one.
    used = [
        topic
        for topic, _, _ in crossing.used
        if matches(filter_, topic) and not any(matches(other, topic) for other in fine)
    ]
    if not used:
        return DROP
    wasted = [topic for topic, _, _ in crossing.wasted if _brings(filter_, topic, crossing)]
    return ", ".join(narrower(filter_.original, used, wasted[:_SCORED], syntax))


def _broad(
    edge: Edge, filter_: Filter, used: int, messages: int, size: int, advice: str
) -> Finding:
    return Finding(
        kind="over_broad",
        severity=WARNING,
        **ends(edge),
        client=edge.client,
        topic=filter_.original,
        messages=messages,
        bytes=size,
        value=messages / (messages + used),
        detail=advice,
    )


def _left_over(crossing: Crossing, broad: list[Filter]) -> list[Finding]:
    """Return the wasted topics that no broad subscription explains."""
    left = [
        one
        for one in crossing.wasted
        if not any(_brings(other, one[0], crossing) for other in broad)
    ]
    messages = sum(count for _, count, _ in left)
    size = sum(size for _, _, size in left)
    if len(left) == REPORT_EDGE_TOPICS:
        # The list was cut, the totals were not.
        messages, size = crossing.total_wasted, crossing.total_wasted_bytes
    if messages < WASTED_MESSAGES or messages < CROSSING_SHARE * crossing.total:
        return []
    edge = crossing.edge
    return [
        Finding(
            kind="wasted_crossing",
            severity=WARNING,
            **ends(edge),
            client=edge.client,
            topic=topic,
            messages=count,
            bytes=topic_size,
            value=messages / crossing.total,
            detail=(
                f"nobody receives it in {edge.to_router}/{edge.to_vpn} or farther on; in all this bridge brings "
                f"{len(left):,} such topics, {messages:,} messages, {size:,} bytes"
            ),
        )
        for topic, count, topic_size in left[:WORST_TOPICS]
    ]

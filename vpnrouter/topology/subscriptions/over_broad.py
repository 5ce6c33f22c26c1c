"""Rules: bridge subscriptions that bring what nobody receives, and the topics that are left over.

One cause, one finding: where a broad subscription explains what is wasted over a bridge, its topics are not
listed one by one, and neither is what other bridges only pass on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    REPORT_EDGE_TOPICS,
    REPORT_SUBSCRIPTION_FINDINGS,
    REPORT_WASTED_EDGES,
)
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import SMF, Filter, parse_filter
from vpnrouter.topology.findings import WARNING, Finding
from vpnrouter.topology.subscriptions.held import DIALECTS, EDGE, Edge, Rows, edge_of
from vpnrouter.topology.subscriptions.narrow import narrower

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
    """What crossed one edge. `used` and `wasted` are (topic, messages, bytes), the busiest first; `total` is all
    its messages; `more_used` says that there are topics in use beyond the bound; `renamed` are the wasted topics
    that have other names at the sending end, where filters would have to match them.
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
    """The edges that waste most, from the frames of `crossings` and `wasted`; one job.

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
    found: dict[Edge, Crossing] = {}
    for row in rows:
        edge = edge_of(row)
        crossing = found.get(edge)
        if crossing is None:
            crossing = Crossing(
                edge,
                total=row["total"],
                total_wasted=row["total_wasted"],
                total_wasted_bytes=row["total_bytes"],
            )
            found[edge] = crossing
        topics = crossing.wasted if row["wasted"] else crossing.used
        if len(topics) < REPORT_EDGE_TOPICS:
            topics.append((row["topic"], row["messages"], row["bytes"]))
        elif not row["wasted"]:
            crossing.more_used = True
        if row["wasted"] and row["renamed"]:
            crossing.renamed.add(row["topic"])
    return list(found.values())


def over_broad(
    crossings: Iterable[Crossing], subscriptions: Mapping[Edge, list[tuple[str, str]]]
) -> list[Finding]:
    """The findings `over_broad` and `wasted_crossing` of edges.

    `subscriptions` are those that each bridge holds at its remote message VPN: (filter, syntax).
    """
    broad: list[Finding] = []
    single: list[Finding] = []
    for crossing in crossings:
        known = _parsed(subscriptions.get(crossing.edge, []))
        found = _of_bridge(crossing, known)
        broad.extend(finding for finding, _ in found)
        single.extend(_left_over(crossing, [filter_ for _, filter_ in found]))
    return [*broad[:REPORT_SUBSCRIPTION_FINDINGS], *single[:REPORT_SUBSCRIPTION_FINDINGS]]


def _parsed(written: Iterable[tuple[str, str]]) -> list[tuple[str, Filter]]:
    """The filters that bring messages: exceptions do not."""
    found: list[tuple[str, Filter]] = []
    for text, syntax in sorted(written):
        dialect = DIALECTS[syntax]
        try:
            filter_ = parse_filter(text, dialect, exceptions=dialect == SMF)
        except TopicError:
            continue
        if not filter_.exception:
            found.append((syntax, filter_))
    return found


def _of_bridge(crossing: Crossing, known: list[tuple[str, Filter]]) -> list[tuple[Finding, Filter]]:
    """The broad subscriptions of one bridge."""
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
    found: list[tuple[Finding, Filter]] = []
    for syntax, filter_, used, messages, size in suspects:
        advice = _advice(crossing, filter_, syntax, fine)
        if not advice:
            continue
        found.append((_broad(crossing.edge, filter_, used, messages, size, advice), filter_))
    return found


def _brings(filter_: Filter, topic: str, crossing: Crossing) -> bool:
    """Whether a filter at the sending end brings this wasted topic; a renamed one has another text."""
    return topic not in crossing.renamed and matches(filter_, topic)


def _advice(crossing: Crossing, filter_: Filter, syntax: str, fine: list[Filter]) -> str:
    """What to subscribe to instead; empty when nothing better was found."""
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
        router=edge.to_router,
        vpn=edge.to_vpn,
        peer_router=edge.from_router,
        peer_vpn=edge.from_vpn,
        bridge=edge.bridge,
        client=edge.client,
        topic=filter_.original,
        messages=messages,
        bytes=size,
        value=messages / (messages + used),
        detail=advice,
    )


def _left_over(crossing: Crossing, broad: list[Filter]) -> list[Finding]:
    """The wasted topics that no broad subscription explains."""
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
            router=edge.to_router,
            vpn=edge.to_vpn,
            peer_router=edge.from_router,
            peer_vpn=edge.from_vpn,
            bridge=edge.bridge,
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

"""Finds topics without a receiver, endpoints that block a bridge, and skewed partitions."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import REPORT_TROUBLE_FILTERS, REPORT_TROUBLE_ROWS
from vpnrouter.report.rules.context import Bridges, ends, lasting, percent
from vpnrouter.report.schema import ERROR, WARNING, Edge, Finding, Rows
from vpnrouter.text import counted
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.topics.trie import SubscriptionTrie
from vpnrouter.units import SECOND_NS

_LEAST_UNWANTED: Final = 3
"""Messages that a topic has to lose: one or two are lost in any mesh whose clients do not start in order. A
traced message counts for all those that it stands for.
"""

_UNMATCHED: Final = "no-subscription-match"
_DIALECTS: Final = {"mqtt": (MQTT,), "smf": (SMF,)}


def unmatched(uses: DataFrame) -> DataFrame:
    """Return from USES the topics, a row for each VPN, that nobody received: `topic`, `router`, `vpn`, `published`,
    `bytes`, `lost`.

    `published` is of traced messages; `lost` is of all whose loss is known.
    """
    event = F.col("event")
    count = F.col("count")
    ingress = event == "ingress"
    is_received = event.isin("deliver", "enqueue", "bridge_send")
    missed = (event == "discard") & (F.col("endpoint") == _UNMATCHED)
    stands_for = F.round(F.sum(F.when(ingress, F.col("weight")))).cast("long")
    return (
        uses.where(F.col("topic").isNotNull() & (ingress | is_received | missed))
        .groupBy("topic", "router", "vpn")
        .agg(
            F.sum(F.when(ingress, count)).alias("published"),
            F.sum(F.when(ingress, F.col("bytes"))).alias("bytes"),
            F.sum(F.when(is_received, count)).alias("taken"),
            F.sum(F.when(missed, count)).alias("missed"),
            stands_for.alias("stands_for"),
        )
        .where((F.col("published") > 0) & F.col("taken").isNull() & (F.col("missed") > 0))
        # An unknown weight is null, which greatest passes over.
        .withColumn("lost", F.greatest("published", "missed", "stands_for"))
        .where(F.col("lost") >= _LEAST_UNWANTED)
        .orderBy(F.desc("lost"), "router", "vpn", "topic")
        .limit(REPORT_TROUBLE_ROWS)
        .select("topic", "router", "vpn", "published", "bytes", "lost")
    )


def filters_held_at_end(states: DataFrame, rows: Rows) -> DataFrame:
    """Return from STATES and rows of `unmatched` the filters held at the end in their VPNs: `router`, `vpn`, `topic`,
    `topic_syntax`.
    """
    places = [
        {"router": router, "vpn": vpn}
        for router, vpn in sorted({(row["router"], row["vpn"]) for row in rows})
    ]
    # As an Arrow table, Spark takes it without a Python process of its own.
    vpn_frame = states.sparkSession.createDataFrame(pa.Table.from_pylist(places))
    last = F.max_by(F.struct("event", "topic_syntax"), "ts_ns").alias("last")
    return (
        states.where(F.col("event").isin("subscribe", "unsubscribe"))
        .join(F.broadcast(vpn_frame), ["router", "vpn"], "left_semi")
        .groupBy("router", "vpn", "client", "topic")
        .agg(last)
        .where(F.col("last.event") == "subscribe")
        .select("router", "vpn", "topic", "last.topic_syntax")
        .distinct()
        .limit(REPORT_TROUBLE_FILTERS)
    )


def black_holes(rows: Rows, filters: Rows) -> list[Finding]:
    """Return a `black_hole` for each topic, from rows of `unmatched` and of `filters_held_at_end`.

    A topic that a filter matches at the end is none: its receiver came late.
    """
    known: dict[tuple[str, str], SubscriptionTrie] = {}
    for row in filters:
        trie = known.setdefault((row["router"], row["vpn"]), SubscriptionTrie())
        _insert(trie, row["topic"], row["topic_syntax"])
    findings = []
    for row in rows:
        router, vpn, topic = row["router"], row["vpn"], row["topic"]
        here = known.get((router, vpn))
        if here is not None and here.has_match(topic):
            continue
        findings.append(
            Finding(
                kind="black_hole",
                severity=WARNING,
                router=router,
                vpn=vpn,
                topic=topic,
                reason=_UNMATCHED,
                messages=row["published"],
                bytes=row["bytes"],
                value=float(row["lost"]),
                detail=f"{counted(row['lost'], 'message')} on {topic} entered {router}/{vpn}, and nobody"
                " there wanted them, no bridge and no queue either.",
            )
        )
    return findings


def _insert(trie: SubscriptionTrie, text: str | None, syntax: str | None) -> None:
    # Without its dialect a filter counts in both: rather one finding too few.
    for dialect in _DIALECTS.get(syntax or "", (MQTT, SMF)):
        try:
            trie.insert(parse_filter(text or "", dialect), text)
        except TopicError:
            continue


_LEAST: Final = 3
"""Refusals in a row that make a blocker: the first and a retry are soon forgotten."""

_LEAST_S: Final = 10.0
"""Seconds that the flow has to wait: ten retries, at the usual interval of one second."""

_PAUSE_NS: Final = 600_000_000_000
"""Nanoseconds between two refusals of one span: retries are seconds apart, and a sample lacks most."""


def blockers(losses: Rows, bridges: Bridges) -> list[Finding]:
    """Return a `head_of_line` for each endpoint, reason and bridge in `losses` of `losses_by_place`.

    `value` is how many seconds it refused again and again, all such spans together.
    """
    by_place: dict[tuple[str, ...], Rows] = {}
    for row in losses:
        if row["event"] == "reject":
            place = row["router"], row["vpn"], row["endpoint"], row["reason"]
            edge = bridges.receiving(*place[:2], row["client"], row["bridge"], row["example_path"])
            by_place.setdefault((*place, *(edge or ())), []).append(row)
    findings = []
    for (router, vpn, endpoint, reason, *edge_parts), rows in by_place.items():
        spans = _spans([span for row in rows for span in row["spans"]])
        if not spans:
            continue
        seconds = sum(last - first for first, last, _ in spans) / SECOND_NS
        refusals = sum(count for _, _, count in spans)
        where: dict[str, Any] = {"router": router, "vpn": vpn}
        if edge_parts:
            where = ends(Edge(*edge_parts))
        over = f" of bridge {where['bridge']}" if where.get("bridge") else " of a bridge"
        who = f"Endpoint {endpoint} in {router}/{vpn}" if endpoint else f"{router}/{vpn}"
        findings.append(
            Finding(
                kind="head_of_line",
                severity=ERROR,
                **where,
                endpoint=endpoint or None,
                reason=reason or None,
                messages=refusals,
                value=seconds,
                first_ns=spans[0][0],
                last_ns=spans[-1][1],
                detail=f"{who} refused {counted(refusals, 'time')} in {lasting(seconds)} what came first"
                f"{over} ({reason or 'no reason given'}), and what came behind had to wait.",
            )
        )
    return findings


def _spans(pieces: Rows) -> list[tuple[int, int, int]]:
    """Return first and last time and count of each span of refusals that lasted, in order."""
    joined: list[tuple[int, int, int]] = []
    for piece in sorted(pieces, key=lambda one: (one["first_ns"], one["last_ns"])):
        first, last, count = piece["first_ns"], piece["last_ns"], piece["count"]
        if joined and first - joined[-1][1] <= _PAUSE_NS:
            begin, end, before = joined[-1]
            joined[-1] = (begin, max(end, last), before + count)
        else:
            joined.append((first, last, count))
    return [
        (first, last, count)
        for first, last, count in joined
        if count >= _LEAST and last - first >= _LEAST_S * SECOND_NS
    ]


_TIMES_MEAN: Final = 2.5
"""How many times the mean of all the largest partition gets: few keys, spread by chance, give up to twice."""

_OF_FEW: Final = 0.9
"""Of a queue with so few partitions that so many times the mean cannot be: this share in one."""

_LEAST_SKEWED: Final = 40
"""Messages that have to be there: of fewer, chance is all there is to see."""


def partition_loads(endpoints: DataFrame) -> DataFrame:
    """Return from ENDPOINTS one row for each queue that has partitions: `router`, `vpn`, `endpoint`, `partitions`,
    `largest` (a partition's number), `most` and `messages` (that it and that all took), `bytes`.

    A partition that took nothing has no row; it is known by the numbers of those above it.
    """
    by_partition = (
        endpoints.where(F.col("partition").isNotNull())
        .groupBy("router", "vpn", "endpoint", "partition")
        .agg(F.sum("enqueued").alias("enqueued"), F.sum("bytes").alias("bytes"))
    )
    return (
        by_partition.groupBy("router", "vpn", "endpoint")
        .agg(
            (F.max("partition") + 1).alias("partitions"),
            F.max_by("partition", "enqueued").alias("largest"),
            F.max("enqueued").alias("most"),
            F.sum("enqueued").alias("messages"),
            F.sum("bytes").alias("bytes"),
        )
        .where((F.col("partitions") > 1) & (F.col("messages") >= _LEAST_SKEWED))
        .where(F.col("most") * F.col("partitions") >= F.col("messages"))
        .orderBy(F.desc("messages"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def skewed_partitions(rows: Rows) -> list[Finding]:
    """Return a `skewed_partition` for each queue, from rows of `partition_loads`; `value` is largest / mean."""
    findings = []
    for row in rows:
        partitions, most, messages = row["partitions"], row["most"], row["messages"]
        value = most * partitions / messages
        if value < min(_TIMES_MEAN, _OF_FEW * partitions):
            continue
        router, vpn, queue = row["router"], row["vpn"], row["endpoint"]
        findings.append(
            Finding(
                kind="skewed_partition",
                severity=WARNING,
                router=router,
                vpn=vpn,
                endpoint=queue,
                messages=messages,
                bytes=row["bytes"],
                value=value,
                detail=f"Partition {row['largest']} of {queue} in {router}/{vpn} took"
                f" {percent(most / messages)} of {counted(messages, 'message')},"
                f" {value:.1f} times the mean of {partitions} partitions.",
            )
        )
    return findings

"""Rule: topics on which messages are published and match nowhere."""

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import REPORT_TROUBLE_FILTERS, REPORT_TROUBLE_ROWS
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.topics.trie import SubscriptionTrie
from vpnrouter.topology.findings import WARNING, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.words import counted

_LEAST: Final = 3
"""Messages that a topic has to lose: one or two are lost in any mesh whose clients do not start in order. A
traced message counts for all those that it stands for.
"""

_UNMATCHED: Final = "no-subscription-match"
_DIALECTS: Final = {"mqtt": (MQTT,), "smf": (SMF,)}


def unmatched(uses: DataFrame) -> DataFrame:
    """USES in; out the topics, a row each VPN, of which nothing was taken: `topic`, `router`, `vpn`,
    `published`, `bytes`, `lost`.

    `published` is of traced messages; `lost` is of all those whose loss is known.
    """
    event = F.col("event")
    count = F.col("count")
    ingress = event == "ingress"
    taken = event.isin("deliver", "enqueue", "bridge_send")
    missed = (event == "discard") & (F.col("endpoint") == _UNMATCHED)
    stands_for = F.round(F.sum(F.when(ingress, F.col("weight")))).cast("long")
    return (
        uses.where(F.col("topic").isNotNull() & (ingress | taken | missed))
        .groupBy("topic", "router", "vpn")
        .agg(
            F.sum(F.when(ingress, count)).alias("published"),
            F.sum(F.when(ingress, F.col("bytes"))).alias("bytes"),
            F.sum(F.when(taken, count)).alias("taken"),
            F.sum(F.when(missed, count)).alias("missed"),
            stands_for.alias("stands_for"),
        )
        .where((F.col("published") > 0) & F.col("taken").isNull() & (F.col("missed") > 0))
        # An unknown weight is null, which greatest passes over.
        .withColumn("lost", F.greatest("published", "missed", "stands_for"))
        .where(F.col("lost") >= _LEAST)
        .orderBy(F.desc("lost"), "router", "vpn", "topic")
        .limit(REPORT_TROUBLE_ROWS)
        .select("topic", "router", "vpn", "published", "bytes", "lost")
    )


def standing(states: DataFrame, rows: Rows) -> DataFrame:
    """STATES and rows of `unmatched` in; out the filters that stood at last in the VPNs of these rows:
    `router`, `vpn`, `topic`, `topic_syntax`.
    """
    places = [
        {"router": router, "vpn": vpn}
        for router, vpn in sorted({(row["router"], row["vpn"]) for row in rows})
    ]
    # As an Arrow table, Spark takes it without a Python process of its own.
    wanted = states.sparkSession.createDataFrame(pa.Table.from_pylist(places))
    last = F.max_by(F.struct("event", "topic_syntax"), "ts_ns").alias("last")
    return (
        states.where(F.col("event").isin("subscribe", "unsubscribe"))
        .join(F.broadcast(wanted), ["router", "vpn"], "left_semi")
        .groupBy("router", "vpn", "client", "topic")
        .agg(last)
        .where(F.col("last.event") == "subscribe")
        .select("router", "vpn", "topic", "last.topic_syntax")
        .distinct()
        .limit(REPORT_TROUBLE_FILTERS)
    )


def black_holes(rows: Rows, filters: Rows) -> list[Finding]:
    """Rows of `unmatched` and of `standing` in, a `black_hole` for each topic out.

    A topic that a filter matches in the end is none: whoever wants it came late.
    """
    known: dict[tuple[str, str], SubscriptionTrie] = {}
    for row in filters:
        trie = known.setdefault((row["router"], row["vpn"]), SubscriptionTrie())
        _insert(trie, row["topic"], row["topic_syntax"])
    found = []
    for row in rows:
        router, vpn, topic = row["router"], row["vpn"], row["topic"]
        here = known.get((router, vpn))
        if here is not None and here.has_match(topic):
            continue
        found.append(
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
    return found


def _insert(trie: SubscriptionTrie, text: str | None, syntax: str | None) -> None:
    # Without its dialect a filter counts in both: rather one finding too few.
    for dialect in _DIALECTS.get(syntax or "", (MQTT, SMF)):
        try:
            trie.insert(parse_filter(text or "", dialect), text)
        except TopicError:
            continue

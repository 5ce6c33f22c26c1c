"""Collects the channels of all message VPNs: the busiest topics, folded on the driver, and who used them.

Spark gives the topics first and is told their templates then, so that it counts clients and messages of a template
exactly, however many topics there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from vpnrouter.limits import (
    REPORT_ASYNCAPI_CHANNELS,
    REPORT_ASYNCAPI_CHANNELS_ALL,
    REPORT_ASYNCAPI_NAMES,
    REPORT_ASYNCAPI_TOPIC_LENGTH,
    REPORT_ASYNCAPI_TOPICS,
    REPORT_ASYNCAPI_TOPICS_ALL,
)
from vpnrouter.report.asyncapi.channels import Channel, Flow, Party, Role, VpnChannels
from vpnrouter.report.digests.columns import counted, payload, weighed
from vpnrouter.report.flows.collect import rows_in
from vpnrouter.report.schema import Rows
from vpnrouter.report.topic_templates import Template, fold, sort_key

_PLACE: Final = ("router", "vpn")
_PARTY: Final = ("name", "peer_router", "peer_vpn")
_UNMATCHED: Final = "no-subscription-match"


@dataclass(frozen=True, kw_only=True)
class Most:
    """Bounds of what is collected: topics of a message VPN and in all, channels of one and in all, and names."""

    topics: int = REPORT_ASYNCAPI_TOPICS
    topics_all: int = REPORT_ASYNCAPI_TOPICS_ALL
    topic_length: int = REPORT_ASYNCAPI_TOPIC_LENGTH
    channels: int = REPORT_ASYNCAPI_CHANNELS
    channels_all: int = REPORT_ASYNCAPI_CHANNELS_ALL
    names: int = REPORT_ASYNCAPI_NAMES


@dataclass(kw_only=True)
class _Vpn:
    """What is known of a message VPN before its flows are."""

    topics: int = 0
    messages: int = 0
    long_topics: int = 0
    busiest: dict[str, int] = field(default_factory=dict)
    kept: list[Template] = field(default_factory=list)
    left_out: int = 0
    first: int = 0
    flows: list[dict[Role, Flow]] = field(default_factory=list)


def vpn_channels(
    spark: SparkSession, uses: DataFrame, traces: DataFrame, nodes: Rows, most: Most | None = None
) -> list[VpnChannels]:
    """Return the channels of each message VPN in `nodes`, rows of NODES, from USES and TRACES; three Spark jobs.

    Which client published is in TRACES alone: these are read once more, for `ingress`.
    """
    bounds = most or Most()
    used = _used(uses)
    vpns: dict[tuple[str, str], _Vpn] = {(row["router"], row["vpn"]): _Vpn() for row in nodes}
    _take_topics(used, vpns, bounds)
    numbered = _folded(vpns, bounds)
    if numbered.num_rows:
        published = F.col("role") == Role.CLIENT_IN
        every = used.where(~published).unionByName(_published(traces))
        _take_flows(every, spark.createDataFrame(numbered), vpns, bounds.names)
    traced = {(row["router"], row["vpn"]): bool(row["traced"]) for row in nodes}
    return [
        VpnChannels(
            router=place[0],
            vpn=place[1],
            traced=traced[place],
            channels=tuple(
                Channel(template=template, flows=flows)
                for template, flows in zip(vpn.kept, vpn.flows, strict=True)
            ),
            topics=vpn.topics,
            messages=vpn.messages,
            long_topics=vpn.long_topics,
            channels_left_out=vpn.left_out,
            messages_left_out=vpn.messages - sum(one.messages for one in vpn.kept),
        )
        for place, vpn in vpns.items()
    ]


def _used(uses: DataFrame) -> DataFrame:
    """Return rows of USES with their role and who it was."""
    by_connector = F.col("bridge").isNotNull()
    event = F.col("event")
    role = (
        F.when(event == "ingress", _either(by_connector, Role.CONNECTOR_IN, Role.CLIENT_IN))
        .when(event == "bridge_receive", Role.BRIDGE_IN)
        .when(event == "deliver", _either(by_connector, Role.CONNECTOR_OUT, Role.CLIENT_OUT))
        .when(event == "enqueue", Role.QUEUE_OUT)
        .when(event == "bridge_send", Role.BRIDGE_OUT)
        .when((event == "discard") & (F.col("endpoint") == _UNMATCHED), Role.UNWANTED)
    )
    bridged = (Role.BRIDGE_IN, Role.BRIDGE_OUT, Role.CONNECTOR_IN, Role.CONNECTOR_OUT)
    name = (
        F.when(F.col("role").isin(*bridged), F.col("bridge"))
        .when(F.col("role") == Role.QUEUE_OUT, F.col("endpoint"))
        .when(F.col("role") == Role.CLIENT_OUT, F.col("client"))
    )
    return (
        uses.withColumn("role", role)
        .where(F.col("role").isNotNull())
        .select("topic", *_PLACE, "role", name.alias("name"), *_PARTY[1:], *_FIGURES)
    )


_FIGURES: Final = ("count", "weight", "bytes")


def _either(condition: Column, yes: str, no: str) -> Column:
    return F.when(condition, F.lit(yes)).otherwise(F.lit(no))


def _published(traces: DataFrame) -> DataFrame:
    """Return what clients published on each topic, with the columns of `_used`, from TRACES."""
    known = F.col("topic").isNotNull() & F.col("vpn").isNotNull()
    nobody = F.lit(None).cast("string")
    return (
        traces.where((F.col("event") == "ingress") & F.col("bridge").isNull() & known)
        .groupBy("topic", *_PLACE, F.col("client").alias("name"))
        .agg(counted(), weighed(), payload())
        .withColumns(
            {"role": F.lit(str(Role.CLIENT_IN)), "peer_router": nobody, "peer_vpn": nobody}
        )
        .select("topic", *_PLACE, "role", *_PARTY, *_FIGURES)
    )


_IN: Final = (Role.CLIENT_IN, Role.CONNECTOR_IN, Role.BRIDGE_IN)


def _take_topics(used: DataFrame, vpns: Mapping[tuple[str, str], _Vpn], most: Most) -> None:
    """Count the topics of each message VPN, and take its busiest ones."""
    entered = F.coalesce(F.sum(F.when(F.col("role").isin(*_IN), F.col("count"))), F.lit(0))
    by_topic = used.groupBy(*_PLACE, "topic").agg(
        entered.alias("entered"), F.sum("count").alias("seen")
    )
    short = F.length("topic") <= most.topic_length
    messages = F.when(F.col("entered") > 0, F.col("entered")).otherwise(F.col("seen"))
    totals = by_topic.groupBy(*_PLACE).agg(
        F.count(F.lit(1)).alias("topics"),
        F.sum(messages).alias("messages"),
        F.count(F.when(~short, F.lit(1))).alias("long_topics"),
    )
    for row in rows_in(totals.toArrow()):
        vpn = vpns.get((row["router"], row["vpn"]))
        if vpn is not None:
            vpn.topics, vpn.messages = row["topics"], row["messages"]
            vpn.long_topics = row["long_topics"]
    # Of topics that are as busy, those of any name: the first by name would be of one kind.
    order = (F.desc("entered"), F.desc("seen"), F.xxhash64("topic"), "topic")
    rank = F.row_number().over(Window.partitionBy(*_PLACE).orderBy(*order))
    busiest = (
        by_topic.where(short)
        .withColumn("rank", rank)
        .where(F.col("rank") <= most.topics)
        .orderBy("rank", *_PLACE)
        .limit(most.topics_all)
        .select(*_PLACE, "topic", messages.alias("messages"))
    )
    for row in rows_in(busiest.toArrow()):
        vpn = vpns.get((row["router"], row["vpn"]))
        if vpn is not None:
            vpn.busiest[row["topic"]] = row["messages"]


def _by_messages(numbered: tuple[int, Template]) -> tuple[int, tuple[tuple[bool, str], ...]]:
    template = numbered[1]
    return -template.messages, sort_key(template.levels)


_NUMBERED: Final = pa.schema(
    [("router", pa.string()), ("vpn", pa.string()), ("topic", pa.string()), ("number", pa.int64())]
)


def _folded(vpns: Mapping[tuple[str, str], _Vpn], most: Most) -> pa.Table:
    """Fold the topics of each message VPN, and return which channel each topic belongs to: the columns of a place,
    `topic` and `number`, which counts the channels of all message VPNs.
    """
    busy = sum(1 for vpn in vpns.values() if vpn.busiest)
    channels = min(most.channels, max(1, most.channels_all // max(1, busy)))
    parts: list[pa.Table] = []
    first = 0
    for place, vpn in vpns.items():
        found = fold(vpn.busiest)
        chosen = nsmallest(channels, enumerate(found.templates), key=_by_messages)
        number = {at: first + index for index, at in enumerate(sorted(at for at, _ in chosen))}
        vpn.kept = [found.templates[at] for at in number]
        vpn.left_out = len(found.templates) - len(number)
        vpn.first, vpn.flows = first, [{} for _ in vpn.kept]
        first += len(number)
        pairs = zip(vpn.busiest, found.numbers, strict=True)
        known = [(topic, number[at]) for topic, at in pairs if at in number]
        vpn.busiest = {}
        count = len(known)
        columns = [[place[0]] * count, [place[1]] * count, *map(list, zip(*known, strict=True))]
        if known:
            parts.append(pa.table(columns, schema=_NUMBERED))
    return pa.concat_tables(parts) if parts else _NUMBERED.empty_table()


def _take_flows(
    every: DataFrame,
    numbered: DataFrame,
    vpns: Mapping[tuple[str, str], _Vpn],
    names: int,
) -> None:
    """Sum up the messages of each channel and role, with its busiest parties."""
    by_party = (
        every.join(numbered, [*_PLACE, "topic"])
        .groupBy("number", "role", *_PARTY)
        .agg(F.sum("count").alias("count"), weighed(), F.sum("bytes").alias("bytes"))
    )
    whole = Window.partitionBy("number", "role")
    ranked = whole.orderBy(F.desc("count"), *_PARTY)
    sums = {
        "rank": F.row_number().over(ranked),
        "parties": F.count(F.lit(1)).over(whole),
        "messages": F.sum("count").over(whole),
        "weights": F.count("weight").over(whole),
        "estimated": F.sum("weight").over(whole),
        "size_bytes": F.sum("bytes").over(whole),
    }
    table = (
        by_party.withColumns(sums)
        .where(F.col("rank") <= names)
        .orderBy("number", "role", "rank")
        .toArrow()
    )
    at = {
        vpn.first + index: (vpn, index) for vpn in vpns.values() for index in range(len(vpn.kept))
    }
    for rows in _by_flow(rows_in(table)):
        vpn, index = at[rows[0]["number"]]
        vpn.flows[index][Role(rows[0]["role"])] = _flow(rows)


def _by_flow(rows: Iterable[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Yield the rows of one channel and role together; they follow each other."""
    together: list[dict[str, Any]] = []
    for row in rows:
        if row["rank"] == 1 and together:
            yield together
            together = []
        together.append(row)
    if together:
        yield together


def _flow(rows: list[dict[str, Any]]) -> Flow:
    first = rows[0]
    return Flow(
        messages=first["messages"],
        estimated=first["estimated"] if first["weights"] == first["parties"] else None,
        size_bytes=first["size_bytes"],
        parties=tuple(
            Party(row["name"] or "", row["peer_router"] or "", row["peer_vpn"] or "", row["count"])
            for row in rows
        ),
        all_parties=first["parties"],
    )

"""Topics that cross a bridge into a message VPN where nobody receives them, there or farther on.

A message that crossed may cross on. So a topic in a message VPN is of use if it is delivered or
enqueued there, if it is sent on to where it is of use, or if it is sent on to where nothing is known of it: a
router that does not trace, or a topic that the next bridge renames. What is left is wasted.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_WAYS_ON
from vpnrouter.topology.subscriptions.held import EDGE

HOPS: Final = 8
"""Steps that use is followed back over bridges: messages make no more by default (`maxTtl`). Beyond, a topic that
is sent on counts as of use."""

_NODE: Final = ["router", "vpn", "topic"]
_BRIDGED: Final = ("bridge_send", "bridge_receive")
_SEEN: Final = ("ingress", "deliver", "enqueue")


def crossings(uses: DataFrame) -> DataFrame:
    """One row an edge and topic: `sent`, `sent_bytes`, `received`, `received_bytes`, the counts of both ends.

    A bridge that renames topics has rows with only `sent` and rows with only `received`.
    """
    sends = F.col("event") == "bridge_send"

    def side(own: str, peer: str) -> tuple[Column, Column]:
        first = F.when(sends, F.col(own)).otherwise(F.col(peer))
        return first.alias(f"from_{own}"), F.when(sends, F.col(peer)).otherwise(F.col(own)).alias(
            f"to_{own}"
        )

    from_router, to_router = side("router", "peer_router")
    from_vpn, to_vpn = side("vpn", "peer_vpn")
    bridged = uses.where(
        F.col("event").isin(*_BRIDGED)
        & F.col("peer_router").isNotNull()
        & F.col("peer_vpn").isNotNull()
        & F.col("topic").isNotNull()
    ).select(
        from_router,
        from_vpn,
        to_router,
        to_vpn,
        F.coalesce("bridge", F.lit("")).alias("bridge"),
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
    """The rows of `crossed` (from `crossings`, kept in memory by the caller) that were wasted.

    None when there are none. `inherited`: the bridge only passes on what another one should not have brought,
    the sending message VPN having no publisher of the topic.
    """
    nodes = _unreceived(crossed, uses).localCheckpoint()
    if nodes.isEmpty():
        return None
    useless = _of_no_use(crossed, nodes)
    # Where a topic is published, the waste begins; behind that it is passed on.
    passed_on = useless.where(~F.col("published")).select(
        F.col("router").alias("from_router"),
        F.col("vpn").alias("from_vpn"),
        "topic",
        F.lit(True).alias("passed_on"),
    )
    ends = useless.select(F.col("router").alias("to_router"), F.col("vpn").alias("to_vpn"), "topic")
    return (
        crossed.where(F.col("received") > 0)
        .join(ends, ["to_router", "to_vpn", "topic"], "left_semi")
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
    """The topics of a message VPN that bridges bring and nobody there gets: router, vpn, topic, published."""
    local = (
        uses.where(F.col("event").isin(*_SEEN))
        .groupBy(*_NODE)
        .agg(
            F.max(F.col("event") != "ingress").alias("wanted"),
            F.max(F.col("event") == "ingress").alias("published"),
        )
    )
    brought = (
        crossed.where(F.col("received") > 0)
        .select(F.col("to_router").alias("router"), F.col("to_vpn").alias("vpn"), "topic")
        .distinct()
    )
    return (
        brought.join(local, _NODE, "left")
        .where(~F.coalesce("wanted", F.lit(False)))
        .select(*_NODE, F.coalesce("published", F.lit(False)).alias("published"))
    )


def _of_no_use(crossed: DataFrame, nodes: DataFrame) -> DataFrame:
    """Those of `nodes` from which no way leads to where the topic is received, or may be."""
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
        return _apart_from(nodes, _of_use(onward))
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
    return _apart_from(nodes, of_use)


def _of_use(onward: DataFrame) -> DataFrame:
    """The column `node` of those that lead to where the topic is received, found on the driver."""
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
    found = [dict(zip(_NODE, node, strict=True)) for node in sorted(of_use)]
    column = pa.array(found, node_type)
    return onward.sparkSession.createDataFrame(pa.table({"node": column}))


def _apart_from(nodes: DataFrame, of_use: DataFrame) -> DataFrame:
    return (
        nodes.withColumn("node", F.struct(*_NODE))
        .join(of_use, "node", "left_anti")
        .select(*_NODE, "published")
    )

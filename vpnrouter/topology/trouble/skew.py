"""Rule: queues of which one partition gets most messages."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS
from vpnrouter.topology.findings import WARNING, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.words import counted, percent

_TIMES_MEAN: Final = 2.5
"""How many times the mean of all the largest partition gets: few keys, spread by chance, give up to twice."""

_OF_FEW: Final = 0.9
"""Of a queue with so few partitions that so many times the mean cannot be: this share in one."""

_LEAST: Final = 40
"""Messages that have to be there: of fewer, chance is all there is to see."""


def loads(endpoints: DataFrame) -> DataFrame:
    """ENDPOINTS in; out one row a queue that has partitions: `router`, `vpn`, `endpoint`, `partitions`,
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
        .where((F.col("partitions") > 1) & (F.col("messages") >= _LEAST))
        .where(F.col("most") * F.col("partitions") >= F.col("messages"))
        .orderBy(F.desc("messages"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def skewed_partitions(rows: Rows) -> list[Finding]:
    """Rows of `loads` in, a `skewed_partition` for each queue out; `value` is largest / mean."""
    found = []
    for row in rows:
        partitions, most, messages = row["partitions"], row["most"], row["messages"]
        value = most * partitions / messages
        if value < min(_TIMES_MEAN, _OF_FEW * partitions):
            continue
        router, vpn, queue = row["router"], row["vpn"], row["endpoint"]
        found.append(
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
    return found

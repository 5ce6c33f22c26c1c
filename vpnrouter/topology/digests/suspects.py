"""Receivers that may have got a message twice: the only ones whose messages need to be followed.

A client or endpoint to which as many messages of a topic went as entered its message VPN got each of them once,
provided that each entered once, and unless it got one twice and missed another of the same topic. The
latter is let pass: it would take an error of the router that makes up for itself, and following every
delivery doubles the time of a report. Whoever got more, or fewer, or is where messages entered more than
once, is followed message by message.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_ENTERED: Final = ("ingress", "bridge_receive")
_GOT: Final = ("deliver", "enqueue")
_TOPIC: Final = ["router", "vpn", "topic"]

SUSPECT: Final = [*_TOPIC, "event", "who"]
"""What names a suspect: where, on which topic, `deliver` or `enqueue`, and the client or endpoint."""


def suspects(uses: DataFrame, doubtful: DataFrame) -> DataFrame:
    """USES in; the columns SUSPECT of those that got more or fewer messages of a topic than entered, or that are in
    one of the message VPNs `doubtful` (`router`, `vpn`), where messages may have entered more than once.
    """
    entered = (
        uses.where(F.col("event").isin(*_ENTERED))
        .groupBy(*_TOPIC)
        .agg(F.sum("count").alias("entered"))
    )
    got = (
        uses.where(F.col("event").isin(*_GOT))
        .withColumn("who", F.coalesce("client", "endpoint"))
        .groupBy(*SUSPECT)
        .agg(F.sum("count").alias("got"))
    )
    different = F.col("entered").isNull() | (F.col("got") != F.col("entered"))
    twice = doubtful.select("router", "vpn", F.lit(True).alias("twice")).distinct()
    return (
        got.join(entered, _TOPIC, "left")
        .join(F.broadcast(twice), ["router", "vpn"], "left")
        .where(different | F.col("twice").isNotNull())
        .select(*SUSPECT)
    )

"""Job: the losses that tell of trouble, one row a place and reason."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS

LOOP_DETECTED: Final = "loop-detected"
TTL_EXCEEDED: Final = "ttl-exceeded"
DUPLICATE: Final = "duplicate"
TRANSMIT_CONGESTION: Final = "transmit-congestion"

_CONSUMER: Final = "rejected"
"""Reason of a reject by a consumer, after which the message leaves the endpoint: nothing waits for it."""


def losses_by_place(losses: DataFrame) -> DataFrame:
    """LOSSES in; out `router`, `vpn`, `event`, `reason`, `endpoint`, `bridge`, `client`, `back`, `count`,
    `weight` (null when not known of all), `bytes`, `example_path`, `first_ns`, `last_ns`, `spans`.

    Only what the rules of this package look at. `back`: the message had been in this VPN before, which only a
    receiver sees (a sender does not let it go); null where the row does not say. `spans` are structs of
    first_ns, last_ns and count, a stretch of time each, of rejects only.
    """
    discard = F.col("event") == "discard"
    reject = F.col("event") == "reject"
    reason = F.col("reason")
    crossed = F.coalesce(F.col("crossed"), F.lit(True))
    to_bridge = F.col("client").startswith("#bridge/") | (F.col("bridge") != "")
    kept = losses.where(
        (discard & crossed & reason.isin(LOOP_DETECTED, TTL_EXCEEDED, DUPLICATE))
        | (discard & to_bridge & (reason == TRANSMIT_CONGESTION))
        | (reject & crossed & (reason != _CONSUMER))
    )
    here = F.concat_ws("/", "router", "vpn")
    back = F.array_contains(F.split("example_path", ">"), here)
    known = F.count("weight") == F.count(F.lit(1))
    span = F.struct("first_ns", "last_ns", "count")
    return (
        kept.withColumn("back", back)
        .groupBy("router", "vpn", "event", "reason", "endpoint", "bridge", "client", "back")
        .agg(
            F.sum("count").alias("count"),
            F.when(known, F.sum("weight")).alias("weight"),
            F.sum("bytes").alias("bytes"),
            F.min("example_path").alias("example_path"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
            F.collect_list(F.when(reject, span)).alias("spans"),
        )
        .orderBy(F.desc("count"))
        .limit(REPORT_TROUBLE_ROWS)
    )

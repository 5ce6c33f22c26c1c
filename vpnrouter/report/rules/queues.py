"""Finds queues that only grow, and full ones that refuse what clients publish."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.core.guaranteed.refusals import MAX_MESSAGE_USAGE, SPOOL_OVER_QUOTA
from vpnrouter.limits import REPORT_TROUBLE_ROWS
from vpnrouter.report.rules.context import lasting
from vpnrouter.report.schema import ERROR, WARNING, Finding, Rows
from vpnrouter.text import counted
from vpnrouter.units import SECOND_NS

FULL: Final = (SPOOL_OVER_QUOTA, MAX_MESSAGE_USAGE)
"""Reasons of an endpoint or a message VPN without room."""

_LEAST_REFUSED: Final = 3
"""Messages: one or two meet a queue that a consumer is about to empty."""


def refusals(losses: DataFrame) -> DataFrame:
    """Return from LOSSES one row for each endpoint and reason for which messages of clients found no room: `router`,
    `vpn`, `endpoint`, `reason`, `count`, `bytes`, `first_ns`, `last_ns`.

    What bridges bring and find no room for holds them up, which is a finding of its own (`head_of_line`).
    """
    return (
        losses.where((F.col("event") == "reject") & F.col("reason").isin(*FULL) & ~F.col("crossed"))
        .groupBy("router", "vpn", "endpoint", "reason")
        .agg(
            F.sum("count").alias("count"),
            F.sum("bytes").alias("bytes"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .where(F.col("count") >= _LEAST_REFUSED)
        .orderBy(F.desc("count"), "router", "vpn", "endpoint")
        .limit(REPORT_TROUBLE_ROWS)
    )


def full_queues(rows: Rows) -> list[Finding]:
    """Return a `full_queue` for each row of `refusals`."""
    findings = []
    for row in rows:
        endpoint = row["endpoint"] or None
        where = f"{row['router']}/{row['vpn']}"
        what = f"Endpoint “{endpoint}” in {where}" if endpoint else f"The message VPN {where}"
        seconds = (row["last_ns"] - row["first_ns"]) / SECOND_NS
        findings.append(
            Finding(
                kind="full_queue",
                severity=ERROR,
                router=row["router"],
                vpn=row["vpn"],
                endpoint=endpoint,
                reason=row["reason"],
                messages=row["count"],
                bytes=row["bytes"],
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"{what} had no room for {counted(row['count'], 'message')} that clients published in"
                f" {lasting(seconds)}, and refused them ({row['reason']}).",
            )
        )
    return findings


_LEAST_KEPT: Final = 100
"""Messages: fewer may wait for a consumer that comes once an hour."""

_TAKEN_SHARE: Final = 0.01
"""Of what came: a queue of which this much leaves is looked after, however slowly."""

_LEFT: Final = ("expire", "dead_letter", "discard")


def untaken(endpoints: DataFrame, losses: DataFrame) -> DataFrame:
    """Return from ENDPOINTS and LOSSES the endpoints out of which next to nothing went: `router`, `vpn`, `endpoint`,
    `enqueued`, `taken`, `bytes`.
    """
    place = ("router", "vpn", "endpoint")
    kept = endpoints.groupBy(*place).agg(
        F.sum("enqueued").alias("enqueued"),
        F.sum("acknowledged").alias("acknowledged"),
        F.sum("bytes").alias("bytes"),
    )
    gone = (
        losses.where(F.col("event").isin(*_LEFT)).groupBy(*place).agg(F.sum("count").alias("gone"))
    )
    taken = F.col("acknowledged") + F.coalesce(F.col("gone"), F.lit(0))
    return (
        kept.where(F.col("enqueued") >= _LEAST_KEPT)
        .join(gone, [*place], "left")
        .withColumn("taken", taken)
        .where(F.col("taken") < F.col("enqueued") * _TAKEN_SHARE)
        .orderBy(F.desc("enqueued"), *place)
        .limit(REPORT_TROUBLE_ROWS)
        .select(*place, "enqueued", "taken", "bytes")
    )


def growing_queues(rows: Rows) -> list[Finding]:
    """Return a `growing_queue` for each row of `untaken`; `value` is how many messages stayed in it."""
    return [
        Finding(
            kind="growing_queue",
            severity=WARNING,
            router=row["router"],
            vpn=row["vpn"],
            endpoint=row["endpoint"],
            messages=row["enqueued"],
            bytes=row["bytes"],
            value=float(row["enqueued"] - row["taken"]),
            detail=f"{counted(row['enqueued'], 'message')} came into “{row['endpoint']}” in"
            f" {row['router']}/{row['vpn']}, and {row['taken'] or 'none'} left it: it grows until it is full.",
        )
        for row in rows
    ]

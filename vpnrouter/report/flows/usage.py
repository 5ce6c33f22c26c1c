"""Makes the table of usage: who published, received and loaded bridges on which day, for bills and chargeback."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_USAGE
from vpnrouter.report.digests.columns import ends
from vpnrouter.report.schema import EDGE, USAGE, Rows
from vpnrouter.text import counted
from vpnrouter.units import SECOND_NS

CLIENT: Final = "client"
BRIDGE: Final = "bridge"
REST: Final = "rest"
"""What a row of USAGE is about."""

_FIGURES: Final = ("published", "delivered", "crossings")
_BYTES: Final = ("published_bytes", "delivered_bytes", "crossing_bytes")
_ESTIMATES: Final = tuple(f"{name}_estimated" for name in _FIGURES)
_NAMES: Final = ("day_ns", "router", "vpn", CLIENT, *EDGE)


def usage(digest: DataFrame, most: int = REPORT_USAGE) -> Rows:
    """Return USAGE from the digest of that name, by day, the most bytes first; one Spark job.

    Crossings of a bridge are those of the side that saw more of it, as in EDGES, so that their sum over a bridge's
    rows is the bridge's `messages`. Beyond `most` rows those of the fewest bytes are one row, the last.
    """
    rows = _by_client(digest).unionByName(_by_bridge(digest))
    everything = Observation()
    totals = [F.sum(name).alias(name) for name in (*_FIGURES, *_BYTES, *_ESTIMATES)]
    unknown = [
        F.count(F.when(F.col(name).isNull(), F.lit(1))).alias(f"{name}_unknown")
        for name in _ESTIMATES
    ]
    bytes_ = sum((F.col(name) for name in _BYTES[1:]), F.col(_BYTES[0]))
    messages = sum((F.col(name) for name in _FIGURES[1:]), F.col(_FIGURES[0]))
    kept = (
        rows.observe(everything, F.count(F.lit(1)).alias("rows"), *totals, *unknown)
        .orderBy(bytes_.desc(), messages.desc(), *_NAMES)
        .limit(most)
        .toArrow()
        .to_pylist()
    )
    listed = [_row(row) for row in sorted(kept, key=lambda row: row["day_ns"])]
    rest = _rest(everything.get, kept)
    return [*listed, rest] if rest is not None else listed


def _sum(event: str, value: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("event") == event, F.col(value))), F.lit(0))


def _estimate(event: str) -> Column:
    """Return the sum of the weights of an event, null as soon as one is not known."""
    mine = F.col("event") == event
    known = F.count(F.when(mine & F.col("weight").isNull(), F.lit(1))) == 0
    return F.when(known, F.round(_sum(event, "weight")).cast("long"))


def _by_client(digest: DataFrame) -> DataFrame:
    zero = F.lit(0).cast("long")
    return (
        digest.where(F.col("event").isin("ingress", "deliver"))
        .groupBy("day_ns", "router", "vpn", CLIENT)
        .agg(
            _sum("ingress", "count").alias("published"),
            _sum("ingress", "bytes").alias("published_bytes"),
            _estimate("ingress").alias("published_estimated"),
            _sum("deliver", "count").alias("delivered"),
            _sum("deliver", "bytes").alias("delivered_bytes"),
            _estimate("deliver").alias("delivered_estimated"),
        )
        .withColumns(
            {
                "what": F.lit(CLIENT),
                **{name: F.lit(None).cast("string") for name in EDGE},
                **dict.fromkeys(("crossings", "crossing_bytes", "crossings_estimated"), zero),
            }
        )
    )


def _by_bridge(digest: DataFrame) -> DataFrame:
    event = F.col("event")
    sent = event == "bridge_send"
    known = F.lit(True)
    for name in ("router", "vpn", "peer_router", "peer_vpn"):
        known &= F.col(name).isNotNull()
    crossed = (
        digest.where(event.isin("bridge_send", "bridge_receive") & known)
        .withColumns(ends(sent))
        .select(*EDGE, "event", "origin_router", "origin_vpn", "day_ns", "count", "weight", "bytes")
    )
    sides = crossed.groupBy(*EDGE).agg(
        (_sum("bridge_send", "count") > _sum("bridge_receive", "count")).alias("by_sender")
    )
    zero = F.lit(0).cast("long")
    names = ("published", "delivered")
    return (
        crossed.join(F.broadcast(sides), list(EDGE))
        .where(F.col("by_sender") == sent)
        .groupBy(
            "day_ns",
            F.col("origin_router").alias("router"),
            F.col("origin_vpn").alias("vpn"),
            *EDGE,
        )
        .agg(
            F.sum("count").alias("crossings"),
            F.sum("bytes").alias("crossing_bytes"),
            F.when(
                F.count("weight") == F.count(F.lit(1)), F.round(F.sum("weight")).cast("long")
            ).alias("crossings_estimated"),
        )
        .withColumns(
            {
                "what": F.lit(BRIDGE),
                CLIENT: F.lit(None).cast("string"),
                **{
                    f"{name}{kind}": zero for name in names for kind in ("", "_bytes", "_estimated")
                },
            }
        )
    )


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    day = datetime.fromtimestamp(row["day_ns"] // SECOND_NS, UTC).date().isoformat()
    return {
        **{name: row[name] for name in USAGE.names if name in row},
        "day": day,
        "bridge": (row["bridge"] or None) if row["what"] == BRIDGE else None,
        "rows": 1,
    }


def _rest(everything: Mapping[str, Any], kept: Rows) -> dict[str, Any] | None:
    """Return what is not among the rows kept as one row; None if all are."""
    more = everything["rows"] - len(kept)
    if more <= 0:
        return None
    row: dict[str, Any] = {**dict.fromkeys(USAGE.names), "what": REST, "rows": more}
    for name in (*_FIGURES, *_BYTES):
        row[name] = everything[name] - sum(one[name] for one in kept)
    for name in _ESTIMATES:
        if not everything[f"{name}_unknown"]:
            row[name] = everything[name] - sum(one[name] for one in kept)
    return row


def not_attributed(rows: Rows, nodes: Rows) -> list[str]:
    """Return a note if rows of USAGE have fewer published messages than those of NODES."""
    known = sum(row["published"] for row in rows)
    published = sum(row["ingress"] or 0 for row in nodes)
    if known >= published:
        return []
    missing = counted(published - known, "published message")
    return [f"usage: {missing} of {published:,} cannot be told by client and day"]

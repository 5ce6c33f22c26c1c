"""Collects what is as small as the mesh from digests, finds a bridge's ends, and chooses the length of stretches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from vpnrouter.limits import REPORT_LINK_CHANGES
from vpnrouter.report.digests.columns import ends, weighed
from vpnrouter.report.schema import Edge
from vpnrouter.units import MILLISECOND_NS, SECOND_NS

_WIDTHS: Final = tuple(
    [count * MILLISECOND_NS for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    + [count * SECOND_NS for count in (1, 2, 5, 10, 15, 30)]
    + [count * 60 * SECOND_NS for count in (1, 2, 5, 10, 15, 30)]
    + [count * 3_600 * SECOND_NS for count in (1, 2, 3, 6, 12, 24, 48, 7 * 24, 30 * 24)]
)
"""Stretches that people count time in."""


def width_for(span_ns: int, most: int = 60) -> int:
    """Return the shortest usual stretch, in nanoseconds, that cuts `span_ns` into at most `most`.

    The longest one, 30 days, where none does.
    """
    return next((width for width in _WIDTHS if span_ns <= width * most), _WIDTHS[-1])


CROSSINGS: Final = ("bridge_send", "bridge_receive")
"""Events of messages on a bridge: at the remote router, and at the local one."""

CHANGES: Final = ("link_up", "link_down")
"""Events of a bridge's link; both ends write them down."""


def edge_of(row: Mapping[str, Any]) -> Edge | None:
    """Return the edge that a row with `remote`, `router`, `vpn`, `peer_router`, `peer_vpn` and `bridge` is about.

    None for a row that does not say both ends.
    """
    near = (row["router"], row["vpn"])
    far = (row["peer_router"], row["peer_vpn"])
    if None in near or None in far:
        return None
    start, goal = (near, far) if row["remote"] else (far, near)
    return Edge(*start, *goal, row["bridge"] or "")


def remote_end() -> Column:
    """Return whether the remote end wrote a row of PLACES: senders always are there."""
    return (F.col("event") == "bridge_send") | (
        F.col("event").isin(*CHANGES) & F.coalesce(F.col("remote"), F.lit(False))
    )


def with_edge(frame: DataFrame) -> DataFrame:
    """Return rows of PLACES that say both ends of a bridge, with the columns of EDGE in place of who wrote
    the row.
    """
    known = F.lit(True)
    for name in ("router", "vpn", "peer_router", "peer_vpn"):
        known &= F.col(name).isNotNull()
    return frame.where(known).withColumns(ends(remote_end()))


_BATCH_ROWS: Final = 10_000
_PLACE: Final = ("router", "vpn", "event", "bridge", "peer_router", "peer_vpn", "remote")


def rows_in(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, a batch at a time: as objects all of them would take ten times the room."""
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def table_of(rows: Iterable[Mapping[str, Any]], schema: StructType) -> pa.Table:
    """Return rows with at least the columns of `schema` as a table with exactly those."""
    return pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema))


def collected(frame: DataFrame, schema: StructType) -> pa.Table:
    """Return a small frame with the columns of `schema` as a table; Spark knows of some that they are never null,
    and a table of results says so of none.
    """
    return frame.toArrow().cast(to_arrow_schema(schema))


def totals(places: DataFrame) -> pa.Table:
    """Return one row for each event and place of PLACES, over all time.

    Columns: those of a place (`remote` as `remote_end` has it), `count`, `direct` (of mode Direct), `weight`, `bytes`,
    `first_ns`, `last_ns`, `peak` (count of the busiest stretch) and `stretches` (in how many it happened).
    """
    known = places.withColumns(
        {"remote": remote_end(), "bridge": F.coalesce(F.col("bridge"), F.lit(""))}
    )
    # Modes are rows of their own in the digest; a peak is of all of them together.
    by_stretch = known.groupBy(*_PLACE, "start_ns").agg(
        F.sum("count").alias("count"),
        F.sum(F.when(F.col("mode") == "direct", F.col("count")).otherwise(0)).alias("direct"),
        weighed(),
        F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    return (
        by_stretch.groupBy(*_PLACE)
        .agg(
            F.sum("count").alias("count"),
            F.sum("direct").alias("direct"),
            weighed(),
            F.sum("bytes").alias("bytes"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
            F.max("count").alias("peak"),
            F.count(F.lit(1)).alias("stretches"),
        )
        .toArrow()
    )


def link_changes(states: DataFrame) -> pa.Table:
    """Return from STATES one row for each end of a link, and one for each message VPN for its other rows.

    Columns: `router`, `vpn`, `first_ns`, `last_ns`; for a link also `bridge`, `peer_router`, `peer_vpn`, `remote`
    and `changes`, a list in order of time of `ts_ns`, `up` and `reason`, the last REPORT_LINK_CHANGES of
    them. For the other rows these are null, and the list is empty.
    """
    of_link = F.col("event").isin(*CHANGES)
    change = F.struct("ts_ns", (F.col("event") == "link_up").alias("up"), "reason")
    listed = F.col("changes")
    return (
        # Of a rejected link the VPN is what the peer asked for: there may be none of that name.
        states.where(F.col("vpn").isNotNull() & (F.col("event") != "link_rejected"))
        .groupBy(
            "router",
            "vpn",
            F.when(of_link, F.coalesce(F.col("bridge"), F.lit(""))).alias("bridge"),
            F.when(of_link, F.col("peer_router")).alias("peer_router"),
            F.when(of_link, F.col("peer_vpn")).alias("peer_vpn"),
            F.when(of_link, F.col("client").isNotNull()).alias("remote"),
        )
        .agg(
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
            F.sort_array(F.collect_list(F.when(of_link, change))).alias("changes"),
        )
        .withColumn(
            "changes",
            F.when(
                F.size(listed) > REPORT_LINK_CHANGES,
                F.slice(listed, -REPORT_LINK_CHANGES, REPORT_LINK_CHANGES),
            ).otherwise(listed),
        )
        .toArrow()
    )


def histogram() -> Column:
    """Return a group's buckets and counts as a list; rows of digests put together may repeat a bucket."""
    return F.collect_list(F.struct("bucket", "count"))

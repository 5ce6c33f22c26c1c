"""How much crossed each bridge when."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from vpnrouter.limits import REPORT_RATES
from vpnrouter.topology.flows.edges import Seen
from vpnrouter.topology.flows.ends import CROSSINGS, EDGE, Edge, edge_named, with_edge
from vpnrouter.topology.flows.gather import rows_in, table_of
from vpnrouter.topology.schema import EDGES
from vpnrouter.topology.tables import Rows

_FIGURES: Final = ("messages", "bytes", "guaranteed")


def rates(spark: SparkSession, places: DataFrame, seen: Mapping[Edge, Seen]) -> Rows:
    """RATES, ordered by edge and time, from PLACES: those of the side that saw more of the edge.

    `seen` are the edges (`edges.seen_edges`). Of more than REPORT_RATES rows those of the busiest edges.
    """
    kept = busiest(seen, REPORT_RATES)
    crossings = with_edge(places.where(F.col("event").isin(*CROSSINGS)))
    if len(kept) < sum(one.fuller.messages > 0 for one in seen.values()):
        names = StructType([EDGES[name] for name in EDGE])
        listed = table_of((dict(zip(EDGE, edge, strict=True)) for edge in kept), names)
        crossings = crossings.join(
            F.broadcast(spark.createDataFrame(listed, names)), list(EDGE), "left_semi"
        )
    sides = {f"{event}_{figure}": _of(event, figure) for event in CROSSINGS for figure in _FIGURES}
    table = (
        crossings.groupBy(*EDGE, "start_ns")
        .agg(*(column.alias(name) for name, column in sides.items()))
        .orderBy(*EDGE, "start_ns")
        .toArrow()
    )
    found = []
    for row in rows_in(table):
        edge = edge_named(row)
        event = CROSSINGS[0] if seen[edge].sent_counts else CROSSINGS[1]
        if row[f"{event}_messages"]:
            found.append(
                {
                    **dict(zip(EDGE, edge, strict=True)),
                    "start_ns": row["start_ns"],
                    **{figure: row[f"{event}_{figure}"] for figure in _FIGURES},
                }
            )
    return found


def busiest(seen: Mapping[Edge, Seen], most: int) -> list[Edge]:
    """The edges with most messages, as many as have at most `most` rows of rates together."""
    kept: list[Edge] = []
    rows = 0
    for edge in sorted(seen, key=lambda name: (-seen[name].fuller.messages, name)):
        side = seen[edge].fuller
        rows += side.stretches
        if rows > most:
            break
        if side.messages:
            kept.append(edge)
    return kept


def _of(event: str, figure: str) -> Column:
    values = {
        "messages": F.col("count"),
        "bytes": F.col("bytes"),
        "guaranteed": F.when(F.col("mode") != "direct", F.col("count")),
    }
    return F.coalesce(F.sum(F.when(F.col("event") == event, values[figure])), F.lit(0))

"""From digests to the tables about topology and flows: nine Spark jobs, the rest on the driver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_DISCARDS, REPORT_TOPICS, REPORT_WAYS
from vpnrouter.topology.flows.clocks import comparable
from vpnrouter.topology.flows.ends import (
    collected,
    link_changes,
    rows_in,
    table_of,
    totals,
)
from vpnrouter.topology.flows.tables import (
    busiest,
    delays,
    discards,
    edges,
    end_to_end,
    histograms,
    last_seen,
    latencies,
    lengths,
    links,
    nodes,
    rates,
    seen_edges,
    spans_of,
    timeline,
    topics,
    ways,
    ways_and_lengths,
    worst,
)
from vpnrouter.topology.schema import (
    CLOCKS,
    DISCARDS,
    EDGES,
    END_TO_END,
    LATENCIES,
    LENGTHS,
    LINKS,
    NODES,
    RATES,
    TIMELINE,
    TOPICS,
    WAYS,
)
from vpnrouter.topology.tables import Rows


@dataclass(frozen=True, slots=True)
class Flows:
    """The tables by name (schemas in `vpnrouter.topology.schema`), and of how many topics, counted in each
    message VPN, the table of topics has the busiest.
    """

    tables: dict[str, pa.Table]
    topic_count: int


def flows(
    spark: SparkSession,
    digests: Mapping[str, DataFrame],
    clocks: Rows,
    stage: Callable[[str], None] | None = None,
) -> Flows:
    """The tables nodes, edges, rates, latencies, end_to_end, clocks, links, ways, lengths, topics, discards and
    timeline.

    `digests` are places, paths, uses, losses, delays, hops and states by name; `clocks` the rows of
    `clocks.clock_offsets`, with which hops and delays were corrected. `stage` hears what begins.
    """
    begin = stage or _unheard
    references = comparable(clocks)
    begin("bridges")
    of_places = totals(digests["places"])
    changes = link_changes(digests["states"])
    seen = seen_edges(rows_in(of_places))
    first_seen = {edge: one.first_ns for edge, one in seen.items() if one.first_ns is not None}
    spans = spans_of(rows_in(changes), first_seen)
    percentiles, latency_rows = latencies(rows_in(histograms(digests["hops"])))
    rate_rows = rates(spark, digests["places"], seen)
    begin("message VPNs")
    node_rows = nodes(rows_in(of_places), rows_in(changes), seen)
    edge_rows = edges(seen, percentiles, spans, last_seen(node_rows), references)
    end_rows = end_to_end(rows_in(delays(digests["delays"])), references)
    begin("ways")
    taken = ways_and_lengths(digests["paths"], REPORT_WAYS).toArrow().to_pylist()
    published = sum(row["ingress"] or 0 for row in node_rows)
    begin("topics")
    counted = Observation()
    all_topics = topics(digests["uses"]).observe(counted, F.count(F.lit(1)).alias("topics"))
    topic_table = collected(busiest(all_topics, REPORT_TOPICS), TOPICS)
    begin("discards")
    discard_table = collected(worst(discards(digests["losses"]), REPORT_DISCARDS), DISCARDS)
    begin("timeline")
    tables = {
        "nodes": table_of(node_rows, NODES),
        "edges": table_of(edge_rows, EDGES),
        "rates": table_of(rate_rows, RATES),
        "latencies": table_of(latency_rows, LATENCIES),
        "end_to_end": table_of(end_rows, END_TO_END),
        "clocks": table_of(clocks, CLOCKS),
        "links": table_of(links(spans), LINKS),
        "ways": table_of(ways(taken), WAYS),
        "lengths": table_of(lengths(taken, published), LENGTHS),
        "topics": topic_table,
        "discards": discard_table,
        "timeline": collected(timeline(digests["places"]), TIMELINE),
    }
    return Flows(tables, int(counted.get["topics"]))


def _unheard(_: str) -> None:
    """Do nothing: nobody wants to know."""

"""All rules about trouble: digests in, findings out."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from vpnrouter.limits import REPORT_FINDINGS
from vpnrouter.topology.findings import Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.deliveries import (
    arrivals_back,
    doubles_by_place,
    duplicates,
    loops,
    stopped_loops,
    two_ways,
    ways_back,
)
from vpnrouter.topology.trouble.links import (
    alive,
    flapping_links,
    hot_bridges,
    stalled_bridges,
    unanswered,
)
from vpnrouter.topology.trouble.places import (
    black_holes,
    blockers,
    loads,
    skewed_clocks,
    skewed_partitions,
    standing,
    unmatched,
)
from vpnrouter.topology.trouble.words import Bridges, Excuses, bounded, losses_by_place


def find_trouble(
    digests: Mapping[str, DataFrame], edges: Rows, links: Rows, clocks: Rows, stretch_ns: int
) -> list[Finding]:
    """Everything that is wrong, worst first, at most REPORT_FINDINGS of a kind.

    `digests` by name; `places`, `paths`, `uses`, `losses`, `doubles`, `states` and `endpoints` are read.
    `edges`, `links` and `clocks` are rows of EDGES, LINKS and CLOCKS; `stretch_ns` is how long the stretches of
    the digests are, nanoseconds. Six Spark jobs, and one more each when there are candidates for a stall
    or a black hole.
    """
    bridges = Bridges(edges)
    losses = _rows(losses_by_place(digests["losses"]))
    ways = _rows(ways_back(digests["paths"]))
    doubles = _rows(doubles_by_place(digests["doubles"]))
    excuses = Excuses(arrivals_back(ways), losses, links)
    return bounded(
        [
            *loops(ways, losses),
            *stopped_loops(losses, bridges),
            *duplicates(doubles, excuses, bridges),
            *two_ways(doubles, excuses),
            *_black_holes(digests),
            *_stalls(digests["places"], bridges, links, clocks, stretch_ns),
            *blockers(losses, bridges),
            *hot_bridges(losses, bridges),
            *skewed_partitions(_rows(loads(digests["endpoints"]))),
            *flapping_links(links),
            *skewed_clocks(clocks),
        ],
        REPORT_FINDINGS,
    )


def _black_holes(digests: Mapping[str, DataFrame]) -> list[Finding]:
    lost = _rows(unmatched(digests["uses"]))
    filters = _rows(standing(digests["states"], lost)) if lost else []
    return black_holes(lost, filters)


def _stalls(
    places: DataFrame, bridges: Bridges, links: Rows, clocks: Rows, width_ns: int
) -> list[Finding]:
    candidates = _rows(unanswered(places, clocks, width_ns))
    if not candidates:
        return []
    lives = _rows(alive(places, candidates, clocks, width_ns))
    return stalled_bridges(candidates, lives, links, bridges, width_ns)


def _rows(frame: DataFrame) -> Rows:
    rows: Rows = frame.toArrow().to_pylist()
    return rows

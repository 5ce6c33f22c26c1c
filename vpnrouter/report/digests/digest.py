"""Makes all digests of trace rows, and combines digests of disjoint rows into those of all rows.

Only `doubles` cannot be combined exactly: copies of one message in different parts are not found. Whoever splits rows
keeps the rows of a message together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.digests.columns import Corrections, weighed
from vpnrouter.report.digests.condense import Condensed, condensed
from vpnrouter.report.digests.counts import (
    ages,
    clock_bounds,
    delays,
    endpoints,
    losses,
    paths,
    places,
    standing_at,
    states,
    usage,
    uses,
)
from vpnrouter.report.digests.journeys import (
    candidates,
    doubles,
    edge_places,
    hops,
    meetings,
    summed,
    two_ways,
)
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.engine.kept import KeptFrames
from vpnrouter.report.engine.progress import Progress
from vpnrouter.report.flows.clocks import (
    clock_ages,
    clock_offsets,
    moving_clocks,
    with_stretches,
)
from vpnrouter.report.flows.moving_clocks import followed
from vpnrouter.report.schema import Rows, conform
from vpnrouter.report.traces.rows import TraceRows

_SUMS: Final = frozenset(
    {"count", "bytes", "messages", "copies", "enqueued", "acknowledged"},
)
_LEAST: Final = frozenset(
    {"first_ns", "least_age_ns", "example_topic", "example_path", "example_trace"}
)
_MOST: Final = frozenset({"last_ns", "error_ns"})
_AS_THEY_ARE: Final = frozenset({"states"})
"""Digests whose rows are no sums."""


def combined(name: str, parts: DataFrame) -> DataFrame:
    """Return one digest `name` from the rows of several; the schema is the same."""
    schema = DIGESTS[name]
    if name in _AS_THEY_ARE:
        return conform(parts, schema)
    figures: dict[str, Column] = {}
    for column in schema.names:
        if column in _SUMS:
            figures[column] = F.sum(column)
        elif column in _LEAST:
            figures[column] = F.min(column)
        elif column in _MOST:
            figures[column] = F.max(column)
        elif column == "weight":
            figures[column] = weighed()
    keys = [column for column in schema.names if column not in figures]
    grouped = parts.groupBy(*keys).agg(*(value.alias(key) for key, value in figures.items()))
    return conform(grouped, schema)


@dataclass(frozen=True, kw_only=True)
class Digests:
    """The digests by name, as `vpnrouter.report.digests.schema` describes them, and what the clocks show. `rows` is how
    many trace rows they are of, None where that was not counted.
    """

    frames: Mapping[str, DataFrame]
    clocks: Rows
    rows: int | None = None


@contextmanager
def digested(
    traces: TraceRows,
    since_ns: int | None,
    width_ns: int,
    partitions: int,
    progress: Progress,
    *,
    small: bool = False,
    hosts: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[Digests]:
    """Digest trace rows from `since_ns` on; what is cached for it is released when the block ends.

    `partitions` for the one grouping of all rows. `small`: the digests will be, and what is derived from one partition
    needs no shuffle. `hosts` are the machines of routers, as `clock_offsets` wants them.

    Raises:
        WrongContexts: the rows have to be read without the contexts of their files.
    """
    frames: dict[str, DataFrame] = {}
    with KeptFrames(small=small) as few, KeptFrames() as many:

        def kept(stage: str, frame: DataFrame) -> DataFrame:
            progress.stage(stage)
            return few.keep(frame)

        def keep(stage: str, name: str, frame: DataFrame) -> DataFrame:
            frames[name] = kept(stage, frame)
            frames[name].count()
            return frames[name]

        rows = condensed(traces, width_ns, kept, small=small)
        standing = standing_at(states(rows.in_full), since_ns)
        states_ = keep("links and subscriptions", "states", standing)
        places_ = keep("message VPNs and bridges", "places", places(rows, states_, width_ns))
        paths_ = keep("ways", "paths", paths(rows))
        ages_ = keep("clocks", "ages", ages(rows, width_ns))
        clocks = _clocks(rows, clock_ages(ages_), hosts, width_ns)
        corrections = Corrections(clocks)
        uses_ = keep("topics", "uses", uses(rows))
        keep("losses", "losses", losses(rows, width_ns))
        keep("queues", "endpoints", endpoints(rows, width_ns))
        keep("usage", "usage", usage(rows))
        keep("delays", "delays", delays(rows, corrections))
        progress.stage("messages followed")
        edges = many.keep(edge_places(places_))
        sums = many.keep(summed(meetings(rows, partitions), edges, corrections))
        sums.count()
        keep("latencies", "hops", hops(sums, edges, corrections))
        twice = doubles(sums, edges, uses_)
        doubtful = many.keep(candidates(paths_))
        if not doubtful.isEmpty():
            twice = twice.unionByName(two_ways(rows, doubtful))
        keep("duplicates", "doubles", twice)
        assert frames.keys() == DIGESTS.keys()  # noqa: S101 - a digest that is forgotten is a defect
        yield Digests(frames=frames, clocks=clocks, rows=rows.count)


_CELLS: Final = 16
"""Parts of a stretch by which clocks that moved are followed: what is in the part in which one was set is not counted.
"""


def _clocks(
    rows: Condensed, known: Rows, hosts: Mapping[str, frozenset[str]] | None, width_ns: int
) -> Rows:
    """Return CLOCKS from rows of `clock_ages`. The trace rows are read once more where a clock moved."""
    clocks = clock_offsets(known, hosts)
    moving = moving_clocks(known, clocks, hosts)
    if not moving:
        return clocks
    cell_ns = max(1, width_ns // _CELLS)
    cells: dict[str, Rows] = {}
    for row in clock_bounds(rows, moving, cell_ns).toArrow().to_pylist():
        cells.setdefault(row["router"], []).append(row)
    stretches = {router: followed(mine, cell_ns) for router, mine in cells.items()}
    return with_stretches(clocks, moving, stretches)

"""From trace rows to digests, each kept until all that is derived from it has been derived."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from vpnrouter.topology.digests.corrections import Corrections
from vpnrouter.topology.digests.delays import delays
from vpnrouter.topology.digests.endpoints import endpoints
from vpnrouter.topology.digests.journeys import (
    corrected,
    doubles,
    edge_places,
    hops,
    meetings,
    summed,
)
from vpnrouter.topology.digests.losses import losses
from vpnrouter.topology.digests.paths import paths
from vpnrouter.topology.digests.places import places
from vpnrouter.topology.digests.schema import DIGESTS
from vpnrouter.topology.digests.states import standing_at, states
from vpnrouter.topology.digests.two_ways import candidates, two_ways
from vpnrouter.topology.digests.uses import uses
from vpnrouter.topology.engine.progress import Progress
from vpnrouter.topology.flows.clocks import clock_offsets, least_ages

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Digests:
    """The digests by name, as `vpnrouter.topology.digests.schema` describes them, and what the clocks show."""

    frames: Mapping[str, DataFrame]
    clocks: Rows


@contextmanager
def digested(
    traces: DataFrame,
    earlier: DataFrame,
    since_ns: int | None,
    width_ns: int,
    partitions: int,
    progress: Progress,
    *,
    small: bool = False,
    hosts: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[Digests]:
    """Digest the rows of TRACES; what is kept for it is given back when the block ends.

    `earlier` are rows of the same shape that end where `traces` end and may begin before `since_ns`, where
    those begin: what links were up already, and what subscriptions, is known from them. `partitions` for
    the one grouping of all rows. `small`: the digests will be, and what is derived from one partition needs no
    shuffle. `hosts` are the machines of routers, as `clock_offsets` wants them.
    """
    kept: list[DataFrame] = []

    def keep(stage: str, name: str, frame: DataFrame) -> DataFrame:
        progress.stage(stage)
        frame = (frame.coalesce(1) if small else frame).persist(StorageLevel.MEMORY_AND_DISK)
        kept.append(frame)
        frame.count()
        frames[name] = frame
        return frame

    frames: dict[str, DataFrame] = {}
    try:
        states_ = keep("links and subscriptions", "states", standing_at(states(earlier), since_ns))
        places_ = keep("message VPNs and bridges", "places", places(traces, states_, width_ns))
        paths_ = keep("ways", "paths", paths(traces))
        clocks = clock_offsets(least_ages(paths_).toArrow().to_pylist(), hosts)
        corrections = Corrections(clocks)
        uses_ = keep("topics", "uses", uses(traces))
        keep("losses", "losses", losses(traces, width_ns))
        keep("queues", "endpoints", endpoints(traces))
        keep("delays", "delays", delays(traces, corrections))
        progress.stage("messages followed")
        edges = edge_places(places_).persist()
        sums = summed(meetings(traces, partitions), corrected(edges, corrections)).persist(
            StorageLevel.MEMORY_AND_DISK
        )
        kept += [edges, sums]
        sums.count()
        keep("latencies", "hops", hops(sums, edges))
        twice = doubles(sums, edges, uses_)
        doubtful = candidates(paths_).persist()
        kept.append(doubtful)
        if not doubtful.isEmpty():
            twice = twice.unionByName(two_ways(traces, doubtful))
        keep("duplicates", "doubles", twice)
        assert frames.keys() == DIGESTS.keys()  # noqa: S101 - a digest that is forgotten is a defect
        yield Digests(frames=frames, clocks=clocks)
    finally:
        for frame in kept:
            frame.unpersist()

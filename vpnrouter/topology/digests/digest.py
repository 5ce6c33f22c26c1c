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
    bridged,
    corrected,
    doubles,
    edge_places,
    entered_twice,
    hops,
    meetings,
    received,
    summed,
)
from vpnrouter.topology.digests.losses import losses
from vpnrouter.topology.digests.paths import paths
from vpnrouter.topology.digests.places import places
from vpnrouter.topology.digests.schema import DIGESTS
from vpnrouter.topology.digests.states import standing_at, states
from vpnrouter.topology.digests.suspects import suspects
from vpnrouter.topology.digests.two_ways import candidates, two_ways
from vpnrouter.topology.digests.uses import uses
from vpnrouter.topology.engine.progress import Progress
from vpnrouter.topology.flows.clocks import clock_offsets, least_ages
from vpnrouter.topology.limits import REPORT_SUSPECTS

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
) -> Iterator[Digests]:
    """Digest the rows of TRACES; what is kept for it is given back when the block ends.

    `earlier` are rows of the same shape that end where `traces` end and may begin before `since_ns`, where
    those begin: what links were up already, and what subscriptions, is known from them. `partitions` for
    the one grouping of all rows. `small`: the digests will be, and what is derived from one partition needs no
    shuffle.
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
        clocks = clock_offsets(least_ages(paths_).toArrow().to_pylist())
        corrections = Corrections(clocks)
        uses_ = keep("topics", "uses", uses(traces))
        keep("losses", "losses", losses(traces, width_ns))
        keep("queues", "endpoints", endpoints(traces))
        keep("delays", "delays", delays(traces, corrections))
        progress.stage("messages followed")
        edges = edge_places(places_).persist()
        crossed = summed(
            meetings(bridged(traces), partitions), corrected(edges, corrections)
        ).persist(StorageLevel.MEMORY_AND_DISK)
        doubtful = candidates(paths_).persist()
        kept += [edges, crossed, doubtful]
        doubted = entered_twice(crossed, edges).unionByName(doubtful.select("router", "vpn"))
        suspected = _few(suspects(uses_, doubted))
        sums = crossed
        if suspected is None or not suspected.isEmpty():
            got = summed(
                meetings(received(traces, suspected), partitions), corrected(edges, corrections)
            ).persist(StorageLevel.MEMORY_AND_DISK)
            kept.append(got)
            sums = crossed.unionByName(got)
        keep("latencies", "hops", hops(sums, edges))
        twice = doubles(sums, edges, uses_)
        if not doubtful.isEmpty():
            twice = twice.unionByName(two_ways(traces, doubtful))
        keep("duplicates", "doubles", twice)
        assert frames.keys() == DIGESTS.keys()  # noqa: S101 - a digest that is forgotten is a defect
        yield Digests(frames=frames, clocks=clocks)
    finally:
        for frame in kept:
            frame.unpersist()


def _few(suspects: DataFrame) -> DataFrame | None:
    """The suspects as a table of their own; None when there are too many to hand them round."""
    found = suspects.limit(REPORT_SUSPECTS + 1).toArrow()
    if found.num_rows > REPORT_SUSPECTS:
        return None
    return suspects.sparkSession.createDataFrame(found, suspects.schema)

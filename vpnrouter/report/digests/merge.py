"""Merges digests of disjoint rows into those of all rows, with stretches that suit the whole time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.digests.columns import Corrections, stretch_of
from vpnrouter.report.digests.digest import Digests, combined
from vpnrouter.report.engine.kept import KeptFrames
from vpnrouter.report.flows.clocks import clock_ages, clock_offsets
from vpnrouter.report.flows.collect import width_for

TIMED: Final = {"hops": ("from_router", "to_router"), "delays": ("origin_router", "router")}
"""The digests of durations between two routers, and the columns of these."""

_STRETCHED: Final = ("places", "losses", "endpoints")
"""The digests whose stretches are those of the report."""


@contextmanager
def merged(
    parts: Mapping[str, DataFrame],
    hosts: Mapping[str, frozenset[str]],
    step_ns: int,
    *,
    small: bool = True,
) -> Iterator[tuple[Digests, int]]:
    """Yield the digests of all rows, and the length of their stretches, from the rows of several by digest.

    The stretches of the parts are `step_ns` long. `small`: one partition is enough. `hosts` are the machines of
    routers. What Spark keeps for it is released when the block ends.
    """
    with KeptFrames(small=small) as kept:
        width_ns = _width_for(parts["places"], step_ns)
        frames = {}
        for name, part in parts.items():
            wider = part
            if name in _STRETCHED:
                wider = part.withColumn("start_ns", stretch_of(F.col("start_ns"), width_ns))
            frames[name] = kept.keep(combined(name, wider))
        clocks = clock_offsets(clock_ages(frames["ages"]), hosts)
        for name in TIMED:
            frames[name] = settled(name, frames[name], Corrections(clocks))
        yield Digests(frames=frames, clocks=clocks), width_ns


def settled(name: str, digest: DataFrame, corrections: Corrections) -> DataFrame:
    """Return a digest without the durations that were counted before the two clocks compared, if they do now."""
    first, second = TIMED[name]
    compared = corrections.compare(F.col(first), F.col(second))
    return digest.where(F.col("corrected") | ~compared)


def _width_for(places: DataFrame, step_ns: int) -> int:
    """Return the length of a report's stretches: a multiple of `step_ns`."""
    ends = places.agg(F.min("first_ns"), F.max("last_ns")).first()
    if ends is None or ends[0] is None:
        return step_ns
    needed = width_for(ends[1] - ends[0])
    return step_ns * max(1, -(-needed // step_ns))

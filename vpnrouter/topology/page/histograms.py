"""Latencies of each bridge counted in steps of one scale, eight to a power of ten."""

import math
from dataclasses import dataclass
from typing import Final

from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.places import Places

STEPS: Final = 8
"""Steps to a power of ten: each is a third wider than the one before."""


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """`counts[i]` messages took from 10 ** ((first + i) / STEPS) nanoseconds to the next step's begin.

    `below` took less than a nanosecond: two clocks disagree by more than the way takes.
    """

    first: int
    counts: list[int]
    below: int


def histograms(latencies: Rows, places: Places) -> dict[int, Histogram]:
    """Rows of LATENCIES by edge."""
    steps: dict[int, dict[int, int]] = {}
    below: dict[int, int] = {}
    for row in latencies:
        edge = places.edge(row)
        if edge is None or row["latency_ns"] is None:
            continue
        mine = steps.setdefault(edge, {})
        if row["latency_ns"] < 1:
            below[edge] = below.get(edge, 0) + row["messages"]
        else:
            step = step_of(row["latency_ns"])
            mine[step] = mine.get(step, 0) + row["messages"]
    found = {}
    for edge, mine in steps.items():
        first, last = (min(mine), max(mine)) if mine else (0, -1)
        counts = [mine.get(step, 0) for step in range(first, last + 1)]
        found[edge] = Histogram(first=first, counts=counts, below=below.get(edge, 0))
    return found


def step_of(latency_ns: int) -> int:
    """The step of a latency of 1 ns or more."""
    return math.floor(math.log10(latency_ns) * STEPS + 1e-9)

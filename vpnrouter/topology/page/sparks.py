"""Small curves of each bridge's rate over time, on one scale of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vpnrouter.limits import REPORT_PAGE_STRETCHES
from vpnrouter.topology.page.contents import Contents
from vpnrouter.topology.page.figures import duration, short_count
from vpnrouter.topology.page.places import Places, title_of

SPARK_WIDTH: Final = 240.0
SPARK_HEIGHT: Final = 44.0
SPARKS: Final = 12
"""Bridges with a curve of their own on the page, the busiest; the panel has one for each."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Messages of each edge in stretches of `width_ns` from `first_ns` on, all of one length."""

    first_ns: int
    width_ns: int
    columns: int
    by_edge: dict[int, list[int]]


@dataclass(frozen=True, kw_only=True)
class Spark:
    """One bridge's curve: SVG path data, its figures in words, and the id of its arrow."""

    shape: str | None
    title: str
    line: str
    area: str
    total: str
    peak: str


def rates_of(contents: Contents, places: Places) -> Rates:
    """The rows of `contents.rates` by edge; stretches are joined where the page does not bear all."""
    known = [
        (places.edge(row), row["start_ns"], row["messages"] or 0)
        for row in contents.rates
        if row["start_ns"] is not None
    ]
    starts = [start for _, start, _ in known] + [row["start_ns"] for row in contents.timeline]
    if not known:
        return Rates(first_ns=0, width_ns=contents.timeline_width_ns, columns=0, by_edge={})
    first, last = min(starts), max(starts)
    stretches = (last - first) // contents.timeline_width_ns + 1
    joined = -(-stretches // REPORT_PAGE_STRETCHES)
    width = contents.timeline_width_ns * joined
    columns = -(-stretches // joined)
    by_edge: dict[int, list[int]] = {}
    for edge, start, messages in known:
        if edge is not None:
            by_edge.setdefault(edge, [0] * columns)[(start - first) // width] += messages
    return Rates(first_ns=first, width_ns=width, columns=columns, by_edge=by_edge)


def sparks(contents: Contents, rates: Rates, places: Places) -> list[Spark]:
    """Curves of the busiest bridges, each on a scale of its own."""
    busiest = sorted(rates.by_edge, key=lambda at: (-sum(rates.by_edge[at]), at))
    if rates.columns < 2:
        return []
    return [
        _spark(rates, at, title_of(contents.edges[at]), at in places.drawn_edges)
        for at in busiest[:SPARKS]
    ]


def _spark(rates: Rates, edge: int, title: str, drawn: bool) -> Spark:
    values = rates.by_edge[edge]
    line, area = lines(values, max(values), SPARK_WIDTH, SPARK_HEIGHT)
    return Spark(
        shape=f"edge-{edge}" if drawn else None,
        title=title,
        line=line,
        area=area,
        total=short_count(sum(values)),
        peak=f"{short_count(max(values))} in {duration(rates.width_ns)}",
    )


def lines(values: Sequence[int], top: int, width: float, height: float) -> tuple[str, str]:
    """SVG path data of a curve over `values`, and of the area below it."""
    step = width / len(values)
    top = max(top, 1)
    points = [(step * (at + 0.5), height * (1 - value / top)) for at, value in enumerate(values)]
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return line, f"{line}L{points[-1][0]:.1f} {height:.1f}L{points[0][0]:.1f} {height:.1f}Z"

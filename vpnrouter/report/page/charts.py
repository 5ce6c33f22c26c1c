"""Turns traffic over time, latencies and rates into shapes: geometry in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vpnrouter.limits import REPORT_PAGE_STRETCHES
from vpnrouter.report.flows.collect import width_for
from vpnrouter.report.page.contents import (
    Contents,
    ShapeIndex,
    count,
    duration,
    moment,
    short_count,
    title_of,
)
from vpnrouter.report.schema import Rows

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


def histograms(latencies: Rows, shapes: ShapeIndex) -> dict[int, Histogram]:
    """Return rows of LATENCIES by edge."""
    steps: dict[int, dict[int, int]] = {}
    below: dict[int, int] = {}
    for row in latencies:
        edge = shapes.edge(row)
        if edge is None or row["latency_ns"] is None:
            continue
        mine = steps.setdefault(edge, {})
        if row["latency_ns"] < 1:
            below[edge] = below.get(edge, 0) + row["messages"]
        else:
            step = step_of(row["latency_ns"])
            mine[step] = mine.get(step, 0) + row["messages"]
    by_edge = {}
    for edge, mine in steps.items():
        first, last = (min(mine), max(mine)) if mine else (0, -1)
        counts = [mine.get(step, 0) for step in range(first, last + 1)]
        by_edge[edge] = Histogram(first=first, counts=counts, below=below.get(edge, 0))
    return by_edge


def step_of(latency_ns: int) -> int:
    """Return the step of a latency of 1 ns or more."""
    return math.floor(math.log10(latency_ns) * STEPS + 1e-9)


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
class BridgeCurve:
    """One bridge's curve: SVG path data, its figures in words, and the id of its arrow."""

    shape: str | None
    title: str
    line: str
    area: str
    total: str
    peak: str


def rates_of(contents: Contents, shapes: ShapeIndex) -> Rates:
    """Return the rows of `contents.rates` by edge; stretches are joined where the page does not bear all."""
    known = [
        (shapes.edge(row), row["start_ns"], row["messages"] or 0)
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


def bridge_curves(contents: Contents, rates: Rates, shapes: ShapeIndex) -> list[BridgeCurve]:
    """Return curves of the busiest bridges, each on a scale of its own."""
    busiest = sorted(rates.by_edge, key=lambda at: (-sum(rates.by_edge[at]), at))
    if rates.columns < 2:
        return []
    return [
        _spark(rates, at, title_of(contents.edges[at]), at in shapes.drawn_edges)
        for at in busiest[:SPARKS]
    ]


def _spark(rates: Rates, edge: int, title: str, drawn: bool) -> BridgeCurve:
    values = rates.by_edge[edge]
    line, area = curve_paths(values, max(values), SPARK_WIDTH, SPARK_HEIGHT)
    return BridgeCurve(
        shape=f"edge-{edge}" if drawn else None,
        title=title,
        line=line,
        area=area,
        total=short_count(sum(values)),
        peak=f"{short_count(max(values))} in {duration(rates.width_ns)}",
    )


def curve_paths(values: Sequence[int], top: int, width: float, height: float) -> tuple[str, str]:
    """Return SVG path data of a curve over `values`, and of the area below it."""
    step = width / len(values)
    top = max(top, 1)
    points = [(step * (at + 0.5), height * (1 - value / top)) for at, value in enumerate(values)]
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return line, f"{line}L{points[-1][0]:.1f} {height:.1f}L{points[0][0]:.1f} {height:.1f}Z"


TIMELINE_WIDTH: Final = 1140.0
"""Width of the timeline's plot area."""

TIMELINE_HEIGHT: Final = 150.0
"""Height of the timeline's plot area."""

_TICKS_AT_MOST: Final = 8


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of the timeline as SVG path data."""

    name: str
    label: str
    line: str
    area: str
    total: str


@dataclass(frozen=True, kw_only=True)
class TimelineColumn:
    """An invisible column of the timeline whose tooltip has its figures."""

    x: float
    width: float
    title: str


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Events over time."""

    series: list[Series]
    stretches: list[TimelineColumn]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width_text: str


def bar(value: int, most: int) -> float:
    """Return the length of a bar, 0..100; every value above 0 is visible."""
    return 0.0 if most <= 0 or value <= 0 else max(round(value * 100 / most, 2), 0.6)


def timeline_chart(rows: Rows, width_ns: int) -> Timeline | None:
    """Return the lines of what happened in each stretch of `width_ns`; None when nothing did, or within one
    stretch only.
    """
    if len(rows) < 2:
        return None
    first = rows[0]["start_ns"]
    stretches = (rows[-1]["start_ns"] - first) // width_ns + 1
    # A clock that jumped years would give millions of empty stretches: then the known ones are
    # drawn side by side.
    dense = stretches <= 2_000
    positions = (
        [(row["start_ns"] - first) // width_ns for row in rows] if dense else list(range(len(rows)))
    )
    columns = stretches if dense else len(rows)
    names = [("ingress", "in"), ("bridged", "over bridges"), ("delivered", "delivered")]
    if any(row["discarded"] for row in rows):
        names.append(("discarded", "discarded"))
    most = max(max(row[name] or 0 for name, _ in names) for row in rows) or 1
    top = _round_up(most)
    step = TIMELINE_WIDTH / columns

    def series(name: str, label: str) -> Series:
        values = [0] * columns
        for position, row in zip(positions, rows, strict=True):
            values[position] = row[name] or 0
        line, area = curve_paths(values, top, TIMELINE_WIDTH, TIMELINE_HEIGHT)
        return Series(name=name, label=label, line=line, area=area, total=short_count(sum(values)))

    span_ns = columns * width_ns
    tick_ns = max(width_for(span_ns, _TICKS_AT_MOST), width_ns)
    aligned = range(-(-first // tick_ns) * tick_ns, first + span_ns, tick_ns) if dense else ()
    return Timeline(
        series=[series(name, label) for name, label in names],
        stretches=[
            TimelineColumn(
                x=step * position,
                width=step,
                title=f"{moment(row['start_ns'])}: "
                + ", ".join(f"{count(row[name])} {label}" for name, label in names),
            )
            for position, row in zip(positions, rows, strict=True)
        ],
        x_ticks=[
            Tick(at=(at - first) / span_ns * TIMELINE_WIDTH, label=_clock(at, span_ns))
            for at in aligned
        ],
        y_ticks=[
            Tick(at=TIMELINE_HEIGHT * (1 - part / 4), label=short_count(round(top * part / 4)))
            for part in (0, 2, 4)
        ],
        width_text=duration(width_ns),
    )


def _round_up(value: int) -> int:
    scale = 10 ** max(len(str(value)) - 1, 0)
    fitting: list[int] = [step * scale for step in (1, 2, 3, 4, 5, 6, 8) if step * scale >= value]
    return fitting[0] if fitting else 10 * scale


def _clock(at_ns: int, span_ns: int) -> str:
    text = moment(at_ns)
    if span_ns > 3 * 86_400 * 1_000_000_000:
        return text[:10]
    if span_ns > 86_400 * 1_000_000_000:
        return text[5:16]
    if span_ns > 600 * 1_000_000_000:
        return text[11:16]
    if span_ns <= 10_000_000_000:
        return f"{text[14:]}.{at_ns // 1_000_000 % 1_000:03}"
    return text[11:] or text


WIDTH: Final = 820.0
"""Width of the latency chart's plot area, beside its names."""

LATENCY_ROW: Final = 32.0
"""Height of one bridge in the latency chart."""

_BUSIEST: Final = 16
_SLOWEST: Final = 10
_SWELL: Final = 12.0


@dataclass(frozen=True, kw_only=True)
class LatencyRange:
    """One bridge's percentiles as places on the axis; `swell` is SVG path data of how the messages
    spread.
    """

    row: int
    y: float
    p50: float
    p95: float
    p99: float
    swell: str
    name: str
    title: str
    corrected: bool


@dataclass(frozen=True, kw_only=True)
class LatencyChart:
    """Latency of the busiest bridges and of the slowest; the latter come first.

    Bridges whose median is 0 or less are counted in `skewed`, not drawn: two clocks disagree by more
    than the way takes. `corrected` and `uncorrected` count the bridges with latencies.
    """

    ranges: list[LatencyRange]
    ticks: list[Tick]
    height: float
    skewed: int
    corrected: int
    uncorrected: int
    total: int


def latency_chart(edges: Rows, histograms: Mapping[int, Histogram]) -> LatencyChart | None:
    """Return the chart of all bridges whose latency is known; None when there is none."""
    known = [(at, edge) for at, edge in enumerate(edges) if (edge["latency_samples"] or 0) > 0]
    if not known:
        return None
    sound = [(at, edge) for at, edge in known if (edge["latency_p50_ns"] or 0) > 0]
    sound.sort(key=lambda pair: -(pair[1]["messages"] or 0))
    slow = sorted(sound[_BUSIEST:], key=lambda pair: -pair[1]["latency_p99_ns"])[:_SLOWEST]
    shown = sorted([*sound[:_BUSIEST], *slow], key=lambda pair: -pair[1]["latency_p99_ns"])
    corrected = sum(1 for _, edge in known if edge["latency_corrected"])
    low = math.floor(math.log10(min((edge["latency_p50_ns"] for _, edge in shown), default=1)))
    high = math.ceil(math.log10(max((edge["latency_p99_ns"] for _, edge in shown), default=1) + 1))
    span = max(high - low, 1)

    def at_power(power: float) -> float:
        return min(max((power - low) / span, -0.02), 1.02) * WIDTH

    def range_(index: int, at: int, edge: dict[str, int]) -> LatencyRange:
        y = (index + 0.5) * LATENCY_ROW
        p50, p95, p99 = (
            at_power(math.log10(max(edge[f"latency_p{share}_ns"], 1))) for share in (50, 95, 99)
        )
        return LatencyRange(
            row=at,
            y=y,
            p50=p50,
            p95=p95,
            p99=p99,
            swell=_swell(histograms.get(at), y, at_power),
            name=title_of(edge).partition(": ")[2],
            title=", ".join(
                f"p{share} {duration(edge[f'latency_p{share}_ns'])}" for share in (50, 95, 99)
            )
            + f" over {count(edge['latency_samples'])} messages, clocks "
            + ("corrected" if edge["latency_corrected"] else "not corrected"),
            corrected=bool(edge["latency_corrected"]),
        )

    return LatencyChart(
        ranges=[range_(index, at, edge) for index, (at, edge) in enumerate(shown)],
        ticks=[
            Tick(at=(power - low) / span * WIDTH, label=duration(10**power))
            for power in range(low, low + span + 1)
        ]
        if shown
        else [],
        height=len(shown) * LATENCY_ROW,
        skewed=len(known) - len(sound),
        corrected=corrected,
        uncorrected=len(known) - corrected,
        total=len(known),
    )


def _swell(histogram: Histogram | None, y: float, at_power: Callable[[float], float]) -> str:
    """Return a shape around the line at `y`, thicker where more messages took so long."""
    if histogram is None or not histogram.counts:
        return ""
    most = max(histogram.counts)
    # The root lets the few slow ones show beside the many quick ones.
    halves = [math.sqrt(number / most) * _SWELL for number in histogram.counts]
    middles = [(histogram.first + at + 0.5) / STEPS for at in range(len(halves))]
    left = at_power(histogram.first / STEPS)
    right = at_power((histogram.first + len(halves)) / STEPS)
    upper = [
        f"{at_power(power):.1f} {y - half:.1f}" for power, half in zip(middles, halves, strict=True)
    ]
    lower = [
        f"{at_power(power):.1f} {y + half:.1f}" for power, half in zip(middles, halves, strict=True)
    ]
    return (
        f"M{left:.1f} {y:.1f}L" + "L".join([*upper, f"{right:.1f} {y:.1f}", *reversed(lower)]) + "Z"
    )

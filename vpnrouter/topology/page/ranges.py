"""Latency of the bridges on one logarithmic axis: percentiles, and how the messages spread around
them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vpnrouter.topology.page.charts import Tick
from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.figures import count, duration
from vpnrouter.topology.page.histograms import STEPS, Histogram
from vpnrouter.topology.page.places import title_of

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
    """The chart of all bridges whose latency is known; None when there is none."""
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
    """A shape around the line at `y`, the thicker the more messages took so long."""
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

"""The report's bars and its timeline as shapes. Plain geometry in pixels."""

from dataclasses import dataclass
from typing import Final

from vpnrouter.topology.flows.stretches import width_for
from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.figures import count, duration, moment, short_count
from vpnrouter.topology.page.sparks import lines

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
    """One line of the timeline: SVG path data, and its points for whoever hovers."""

    name: str
    label: str
    line: str
    area: str
    total: str


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """An invisible column of the timeline that tells its figures."""

    x: float
    width: float
    title: str


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Events over time."""

    series: list[Series]
    stretches: list[Stretch]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width_text: str


def bar(value: int, most: int) -> float:
    """Length of a bar, 0..100, of which every value above 0 shows at least a sliver."""
    return 0.0 if most <= 0 or value <= 0 else max(round(value * 100 / most, 2), 0.6)


def timeline_chart(rows: Rows, width_ns: int) -> Timeline | None:
    """Lines of what happened in each stretch of `width_ns`; None when nothing did, or within one
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
        line, area = lines(values, top, TIMELINE_WIDTH, TIMELINE_HEIGHT)
        return Series(name=name, label=label, line=line, area=area, total=short_count(sum(values)))

    span_ns = columns * width_ns
    tick_ns = max(width_for(span_ns, _TICKS_AT_MOST), width_ns)
    aligned = range(-(-first // tick_ns) * tick_ns, first + span_ns, tick_ns) if dense else ()
    return Timeline(
        series=[series(name, label) for name, label in names],
        stretches=[
            Stretch(
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

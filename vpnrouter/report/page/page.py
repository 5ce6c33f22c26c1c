"""Builds the report as one HTML file that opens offline.

Everything is rendered here, with every text escaped; the script of the page only sorts, filters, zooms and shows what
the file holds. A content security policy forbids the network and any other script, so that a hostile topic name would
be harmless even if the escaping had a hole.
"""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vpnrouter.limits import REPORT_PAGE_ROWS
from vpnrouter.report.page import charts, tables
from vpnrouter.report.page.arrows import LABEL_SIZE, LETTER, visible_until
from vpnrouter.report.page.charts import histograms
from vpnrouter.report.page.contents import (
    NONE,
    STEPS,
    Contents,
    ShapeIndex,
    count,
    duration,
    grade,
    moment,
    place_of,
    share,
    short_count,
    size,
    visible,
)
from vpnrouter.report.page.drawing import Box, Drawing, Pill, draw
from vpnrouter.report.page.panel import details
from vpnrouter.report.page.tables import AREAS, area_of, label_of
from vpnrouter.report.schema import Rows

FIRST: Final = 6
"""Advice that is open when the page opens."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """Counts of the findings in one area, and its kinds, the most frequent first."""

    name: str
    errors: int
    warnings: int
    infos: int
    kinds: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`tone` is error, warning or good; `text` a sentence."""

    tone: str
    text: str
    errors: int
    warnings: int
    infos: int
    areas: list[Area]


@dataclass(frozen=True, kw_only=True)
class AdviceItem:
    """A piece of advice; `shape` is the id of what it is about in the drawing."""

    rank: int
    action: str
    place: str
    shape: str | None
    topic: str
    advice: str
    evidence: str
    effect: str


def verdict(contents: Contents) -> Verdict:
    """Return the findings as one sentence and by area."""
    severities = [row["severity"] for row in contents.findings]
    errors, warnings = severities.count("error"), severities.count("warning")
    infos = len(severities) - errors - warnings
    if errors:
        tone, text = "error", f"{_plural(errors, 'error')}, {_plural(warnings, 'warning')}"
    elif warnings:
        tone, text = "warning", f"No errors, {_plural(warnings, 'warning')}"
    else:
        tone, text = "good", "No errors, no warnings"
    return Verdict(
        tone=tone,
        text=text,
        errors=errors,
        warnings=warnings,
        infos=infos,
        areas=[area for area in (_area(contents, name) for name in AREAS) if area is not None],
    )


def advice_items(contents: Contents, shapes: ShapeIndex) -> list[AdviceItem]:
    """Return the advice by rank."""
    ordered = sorted(contents.advice, key=lambda row: (row["rank"] is None, row["rank"] or 0))
    return [
        AdviceItem(
            rank=at,
            action=visible(row["action"]).replace("_", " ") if row["action"] else NONE,
            place=place_of(row),
            shape=shapes.shape(row),
            topic=visible(row["topic"]) if row["topic"] else "",
            advice=visible(row["advice"] or ""),
            evidence=visible(row["evidence"] or ""),
            effect=visible(row["effect"] or ""),
        )
        for at, row in enumerate(ordered, 1)
    ]


def _area(contents: Contents, name: str) -> Area | None:
    mine = [row for row in contents.findings if area_of(row["kind"]) == name]
    if not mine:
        return None
    kinds: dict[str, int] = {}
    for row in mine:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    severities = [row["severity"] for row in mine]
    errors, warnings = severities.count("error"), severities.count("warning")
    often = sorted(kinds, key=lambda kind: (-kinds[kind], kind))
    return Area(
        name=name,
        errors=errors,
        warnings=warnings,
        infos=len(mine) - errors - warnings,
        kinds=", ".join(f"{label_of(kind)} {count(kinds[kind])}" for kind in often),
    )


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


__all__ = ["PAGE", "Contents", "page"]

PAGE: Final = "report.html"
"""Name of the page in a report's output directory."""

_LEAST: Final = (760.0, 400.0)
"""Pixels across and down of the smallest sheet."""

_SCREEN: Final = (1_000.0, 680.0)
"""Pixels across and down of the drawing on a usual screen."""

_ROOM: Final = 1.1
"""How much wider a sheet may become for its outermost names."""

_INDENT: Final = 10.0
"""Pixels from a box's edge to its name."""

_TABBED: Final = 200
"""Shapes that the tab key goes through; among more, the search box and the tables lead to them."""

_SCRIPTS: Final = ("panel.js", "drawing.js", "search.js", "tables.js")
_STYLES: Final = ("page.css", "drawing.css", "print.css")


def page(summary: dict[str, Any], contents: Contents) -> str:
    """Return the whole page. `summary` has the fields of `vpnrouter.report.build.Summary`."""
    shapes = ShapeIndex(contents.nodes, contents.edges)
    grades = grade(contents, shapes)
    drawing = draw(contents.nodes, contents.edges, grades, contents.providers)
    shapes.drawn_edges = frozenset(arrow.row for arrow in drawing.arrows if not arrow.feed)
    shapes.drawn_nodes = frozenset(card.row for box in drawing.boxes for card in box.cards)
    frame = _frame(drawing)
    rates = charts.rates_of(contents, shapes)
    counted = histograms(contents.latencies, shapes)
    estimated = _is_estimated(summary, contents.nodes)
    script = "\n".join(['"use strict";', "(() => {", *map(_asset, _SCRIPTS), "})();"])
    block = details(contents, grades, shapes, rates, counted, drawing.outside)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            notes=contents.notes,
            estimated=estimated,
            complete=_is_complete(summary, contents.nodes),
            verdict=verdict(contents),
            advice_items=advice_items(contents, shapes),
            advice_first=FIRST,
            drawing=drawing,
            grades=grades,
            frame=frame,
            unit=_unit(frame),
            names=_names(drawing, frame),
            tab=0 if len(drawing.arrows) + len(shapes.drawn_nodes) <= _TABBED else -1,
            busiest=_busiest(contents.edges, shapes),
            findings=tables.finding_sheet(contents.findings, shapes),
            changes=tables.change_sheet(contents.changes, shapes),
            edges=tables.edge_sheet(contents.edges, shapes, estimated=estimated),
            nodes=tables.node_sheet(contents.nodes, shapes, estimated=estimated),
            topics=tables.topic_sheet(contents.topics, contents.topic_count, estimated=estimated),
            discards=tables.discard_sheet(contents.discards, shapes, estimated=estimated),
            providers=tables.provider_sheet(
                contents.providers, shapes, drawing.outside, estimated=estimated
            ),
            usage_rest=sum(row["rows"] for row in contents.usage if row["what"] == "rest"),
            usage=tables.usage_sheet(contents.usage, shapes, estimated=estimated),
            delays=tables.delay_sheet(contents.end_to_end, shapes),
            clocks=tables.clock_sheet(contents.clocks),
            ways=tables.way_sheet(contents.ways),
            vpns=tables.vpn_sheet(contents.vpns, shapes),
            pairs=tables.pair_sheet(contents.pairs, shapes),
            what_if=tables.what_if_sheet(contents.what_if, shapes),
            blast_radius=tables.blast_radius_sheet(contents.blast_radius, shapes),
            growth=tables.growth_sheet(contents.growth, shapes),
            was_asked=any(row["kind"] == "asked" for row in contents.what_if),
            lengths=_lengths(contents.lengths),
            shape=_shape(contents),
            latency=charts.latency_chart(contents.edges, counted),
            timeline=charts.timeline_chart(contents.timeline, contents.timeline_width_ns),
            curves=charts.bridge_curves(contents, rates, shapes),
            curve_size=(charts.SPARK_WIDTH, charts.SPARK_HEIGHT),
            plot_width=charts.WIDTH,
            timeline_width=charts.TIMELINE_WIDTH,
            plot_height=charts.TIMELINE_HEIGHT,
            page_rows=REPORT_PAGE_ROWS,
            style=_trusted("\n".join(map(_asset, _STYLES))),
            script=_trusted(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            details=_trusted(block),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("vpnrouter.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=count,
        short=short_count,
        size=size,
        duration=duration,
        moment=moment,
        share=share,
        visible=visible,
        px=_pixels,
    )
    return environment


def _trusted(text: str) -> Markup:
    """Return a text that is HTML already: a file of this package, or JSON without any markup in it."""
    return Markup(text)  # noqa: S704


def _busiest(edges: Rows, shapes: ShapeIndex) -> str:
    """Return the id of the shape that is selected when the page opens."""
    drawn = sorted(shapes.drawn_edges)
    if not drawn:
        return "node-0"
    return f"edge-{max(drawn, key=lambda at: (edges[at]['messages'] or 0, -at))}"


def _frame(drawing: Drawing) -> tuple[float, float, float, float]:
    """Return the part of the plane that is visible at first: x, y, width, height."""
    width, height = max(drawing.width, _LEAST[0]), max(drawing.height, _LEAST[1])
    # Names grow where much is seen at once: the outermost ones need room to the right, which is seen as well then.
    letter = LABEL_SIZE * LETTER * max(width / _SCREEN[0], height / _SCREEN[1], 1.0)
    named: list[Box | Pill] = [*drawing.boxes, *drawing.pills]
    ends = [one.x + _INDENT + len(one.name) * letter for one in named]
    if max(ends, default=0.0) > _SCREEN[0]:
        share = LABEL_SIZE * LETTER / _SCREEN[0]
        ends += [(box.x + _INDENT) / max(0.5, 1.0 - len(box.name) * share) for box in drawing.boxes]
    width = max(width, min(max(ends, default=0.0), width * _ROOM))
    return (drawing.width - width) / 2, (drawing.height - height) / 2, width, height


def _unit(frame: tuple[float, float, float, float]) -> float:
    """Return sheet pixels to a screen pixel when all of the drawing is visible."""
    return max(frame[2] / _SCREEN[0], frame[3] / _SCREEN[1], 1.0)


def _names(
    drawing: Drawing, frame: tuple[float, float, float, float]
) -> list[tuple[Box | Pill, float]]:
    """Return the routers and providers, and the unit up to which their names are visible: those of most traffic
    longest.
    """
    named: list[Box | Pill] = [*drawing.boxes, *drawing.pills]
    loads = [float(sum(card.grade.load for card in box.cards)) for box in drawing.boxes]
    until = visible_until(
        [(one.x + _INDENT, one.name_y, one.name) for one in named],
        # Among them a provider counts as a busy message VPN.
        [*loads, *(float(STEPS) for _ in drawing.pills)],
        _unit(frame),
        # The name of a provider lies within its shape.
        [*(frame[0] + frame[2] for _ in drawing.boxes), *(math.inf for _ in drawing.pills)],
    )
    return list(zip(named, until, strict=True))


def _lengths(lengths: Rows) -> list[dict[str, Any]]:
    ordered = sorted(lengths, key=lambda row: row["hops"] or 0)
    most = max((row["messages"] or 0 for row in ordered), default=0)
    total = sum(row["messages"] or 0 for row in ordered) or 1
    return [
        {
            "hops": row["hops"] or 0,
            "messages": row["messages"],
            "bar": charts.bar(row["messages"] or 0, most),
            "share": (row["messages"] or 0) / total,
        }
        for row in ordered
    ]


def _shape(contents: Contents) -> dict[str, int]:
    return {
        "components": len({row["component"] for row in contents.vpns}),
        "articulations": sum(1 for row in contents.vpns if row["articulation"]),
        "cuts": sum(1 for row in contents.edges if row["cut"]),
    }


def _is_complete(summary: dict[str, Any], nodes: Rows) -> bool:
    """Return whether every router read states that it traced every message."""
    rates: dict[str, float] = summary["sampling"]
    return all(rates.get(node["router"]) == 1.0 for node in nodes if node["traced"])


def _is_estimated(summary: dict[str, Any], nodes: Rows) -> bool:
    """Return whether estimates differ from the counts."""
    return bool(summary["sampling"]) and not _is_complete(summary, nodes)


def _asset(name: str) -> str:
    return (resources.files("vpnrouter.report.page") / "templates" / name).read_text(
        encoding="utf-8"
    )


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""The report as one HTML file that opens offline.

Everything is rendered here, with every text escaped; the script of the page only sorts, zooms and
shows what already stands in its tables. A content security policy forbids the network and any
script but that one, so that a hostile topic name would be harmless even if the escaping had a hole.
"""

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vpnrouter.topology.limits import REPORT_PAGE_ROWS
from vpnrouter.topology.page import charts, figures, sheets
from vpnrouter.topology.page.drawing import draw

PAGE: Final = "report.html"
"""Name of the page in a report's output directory."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The rows of all tables, as `vpnrouter.topology.schema` describes them; `topic_count` counts
    all topics.
    """

    nodes: Rows
    edges: Rows
    topics: Rows
    topic_count: int
    discards: Rows
    timeline: Rows
    timeline_width_ns: int


def page(summary: dict[str, Any], findings: Findings) -> str:
    """The whole page. `summary` has the fields of `vpnrouter.topology.report.Summary`."""
    environment = Environment(
        loader=PackageLoader("vpnrouter.topology.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=figures.count,
        short=figures.short_count,
        size=figures.size,
        duration=figures.duration,
        moment=figures.moment,
        share=figures.share,
        visible=figures.visible,
        px=_pixels,
    )
    script = _asset("report.js")
    estimated = _is_estimated(summary, findings.nodes)
    edge_sheet = sheets.edge_sheet(findings.edges, estimated=estimated)
    return environment.get_template("report.html.j2").render(
        summary=summary,
        estimated=estimated,
        complete=_is_complete(summary, findings.nodes),
        drawing=draw(findings.nodes, findings.edges),
        edges=edge_sheet,
        busiest=_busiest(findings.edges),
        nodes=sheets.node_sheet(findings.nodes, estimated=estimated),
        topics=sheets.topic_sheet(findings.topics, findings.topic_count, estimated=estimated),
        discards=sheets.discard_sheet(findings.discards, estimated=estimated),
        latency=charts.latency_chart(findings.edges),
        timeline=charts.timeline_chart(findings.timeline, findings.timeline_width_ns),
        plot_width=charts.WIDTH,
        timeline_width=charts.TIMELINE_WIDTH,
        plot_height=charts.TIMELINE_HEIGHT,
        page_rows=REPORT_PAGE_ROWS,
        style=Markup(_asset("report.css")),  # noqa: S704  (a file of this package)
        script=Markup(script),  # noqa: S704  (a file of this package)
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _busiest(edges: Rows) -> str:
    """The id of the drawing's shape that is chosen when the page opens."""
    if not edges:
        return "node-0"
    return f"edge-{max(range(len(edges)), key=lambda at: (edges[at]['messages'], -at))}"


def _is_complete(summary: dict[str, Any], nodes: Rows) -> bool:
    """Whether every router whose traces were read says that it traced every message."""
    rates: dict[str, float] = summary["sampling"]
    return all(rates.get(node["router"]) == 1.0 for node in nodes if node["traced"])


def _is_estimated(summary: dict[str, Any], nodes: Rows) -> bool:
    """Whether estimates say more than the counts beside them."""
    return bool(summary["sampling"]) and not _is_complete(summary, nodes)


def _asset(name: str) -> str:
    return (resources.files("vpnrouter.topology.page") / "templates" / name).read_text(
        encoding="utf-8"
    )


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""Collects what the page's panel and tooltips show of each shape, as one block of compact JSON.

Keys are short because a large mesh has thousands of these: `t` title, `f` figures as texts, in the order of the
headings, `w` indexes of findings, `m` how many more findings there are. Bridges also have `e` the two message VPNs, `r`
rate, `h` histogram (first step, counts, how many below a nanosecond), `u` times up (begin and end in thousandths of the
span) and `n` how many there were. Feeds, the arrows of connectors, have in `e` a message VPN and a provider, in `i`
whether they lead in, and in `l` their links with their messages.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from vpnrouter.limits import REPORT_PAGE_SHAPE_FINDINGS, REPORT_PAGE_SPANS
from vpnrouter.report.page.charts import STEPS, Histogram, Rates
from vpnrouter.report.page.contents import (
    NONE,
    Contents,
    Grades,
    ShapeIndex,
    count,
    duration,
    moment,
    name_of,
    share,
    size,
    title_of,
    visible,
    yes_or_no,
)
from vpnrouter.report.page.outside import Feed, Outside
from vpnrouter.report.page.tables import label_of
from vpnrouter.report.schema import RANKS, Rows

_EDGE: Final = (
    ("Messages", "messages", count),
    ("Bytes", "bytes", size),
    ("Guaranteed", "guaranteed", count),
    ("Sent", "sent", count),
    ("Received", "received", count),
    ("Peak", "peak_messages", count),
    ("Latency p50", "latency_p50_ns", duration),
    ("Latency p95", "latency_p95_ns", duration),
    ("Latency p99", "latency_p99_ns", duration),
    ("Latency give or take", "latency_error_ns", duration),
    ("Link up", "link_ups", count),
    ("Link down", "link_downs", count),
    ("Time up", "up_ns", duration),
    ("First seen", "first_ns", moment),
    ("Last seen", "last_ns", moment),
)
_NODE: Final = (
    ("Published here", "ingress", count),
    ("Bytes", "ingress_bytes", size),
    ("Delivered", "delivered", count),
    ("Bridged in", "bridged_in", count),
    ("Bridged out", "bridged_out", count),
    ("Spooled", "spooled", count),
    ("Discarded", "discarded", count),
    ("Rejected", "rejected", count),
    ("First seen", "first_ns", moment),
    ("Last seen", "last_ns", moment),
)


def details(
    contents: Contents,
    grades: Grades,
    shapes: ShapeIndex,
    rates: Rates,
    histograms: dict[int, Histogram],
    outside: Outside,
) -> str:
    """Return the block of every drawn shape, harmless inside an HTML script element."""
    numbers: dict[int, int] = {}
    links = _links(contents.links, shapes)
    centrality = {(row["router"], row["vpn"]): row["centrality"] for row in contents.vpns}
    edges = {}
    for at in sorted(shapes.drawn_edges):
        edge = _edge(contents.edges[at], shapes)
        edge |= _worst(grades.edge_findings[at], contents.findings, numbers)
        if at in rates.by_edge:
            edge["r"] = rates.by_edge[at]
        if at in histograms:
            histogram = histograms[at]
            edge["h"] = [histogram.first, histogram.counts, histogram.below]
        if at in links:
            edge["u"] = _thousandths(links[at], contents.span)
            edge["n"] = len(links[at])
        edges[at] = edge
    nodes = {}
    for at in sorted(shapes.drawn_nodes):
        row = contents.nodes[at]
        facts = [spell(row[name]) for _, name, spell in _NODE]
        central = centrality.get((row["router"], row["vpn"]))
        facts.append(NONE if central is None else share(central))
        title = name_of(row["router"], row["vpn"])
        nodes[at] = {
            "t": title,
            "f": facts,
            **_worst(grades.node_findings[at], contents.findings, numbers),
        }
    block = {
        "edgeHeads": [
            *(label for label, _, _ in _EDGE),
            *("Clocks corrected", "Only way", "Centrality", "Configured"),
        ],
        "nodeHeads": [*(label for label, _, _ in _NODE), "Centrality"],
        "feedHeads": [label for label, _, _ in _FEED],
        "providerHeads": ["Messages from it", "Messages to it"],
        "edges": edges,
        "nodes": nodes,
        "feeds": dict(enumerate(map(_feed, outside.feeds))),
        "providers": {
            at: {"t": one.name, "f": [count(one.incoming), count(one.outgoing)]}
            for at, one in enumerate(outside.providers)
        },
        "findings": [
            [
                contents.findings[at]["severity"],
                label_of(contents.findings[at]["kind"]),
                visible(contents.findings[at]["detail"] or ""),
            ]
            for at in numbers
        ],
        "steps": STEPS,
        "stretch": duration(rates.width_ns),
        "from": moment(contents.span[0]),
        "until": moment(contents.span[1]),
    }
    return embedded(block)


def _edge(row: dict[str, Any], shapes: ShapeIndex) -> dict[str, Any]:
    """Return title, ends and facts of a row of EDGES."""
    facts = [spell(row[name]) for _, name, spell in _EDGE]
    facts += [
        yes_or_no(row["latency_corrected"]),
        yes_or_no(row["cut"]),
        NONE if row["centrality"] is None else share(row["centrality"]),
        yes_or_no(row["configured"]),
    ]
    ends = [
        shapes.node(row["from_router"], row["from_vpn"]),
        shapes.node(row["to_router"], row["to_vpn"]),
    ]
    return {"t": title_of(row), "e": ends, "f": facts}


_FEED: Final = (
    ("Messages", "messages", count),
    ("Bytes", "bytes", size),
    ("Direct", "direct", count),
    ("Guaranteed", "guaranteed", count),
    ("Redelivered", "redelivered", count),
    ("First seen", "first_ns", moment),
    ("Last seen", "last_ns", moment),
)


def _feed(feed: Feed) -> dict[str, Any]:
    """Return title, ends, facts and links of a feed."""
    facts = []
    for _, name, spell in _FEED:
        values = [row[name] for row in feed.rows]
        facts.append(spell({"first_ns": min, "last_ns": max}.get(name, sum)(values)))
    links = [(visible(row["link"]), count(row["messages"])) for row in feed.rows]
    return {
        "t": feed.title,
        "e": [feed.node, feed.provider],
        "i": feed.inward,
        "f": facts,
        "l": links[:REPORT_PAGE_SHAPE_FINDINGS],
    }


def _worst(mine: Sequence[int], findings: Rows, numbers: dict[int, int]) -> dict[str, Any]:
    """Return the worst of a shape's findings, and how many more it has. `numbers` numbers the findings on the page in
    the order of their first shape.
    """
    worst = sorted(mine, key=lambda at: RANKS.get(findings[at]["severity"], 3))
    listed = [numbers.setdefault(at, len(numbers)) for at in worst[:REPORT_PAGE_SHAPE_FINDINGS]]
    more = len(mine) - len(listed)
    return {**({"w": listed} if listed else {}), **({"m": more} if more else {})}


def embedded(block: object) -> str:
    """Return JSON that no HTML parser can take for markup: "<", ">", "&" and line separators are escapes."""
    text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _links(links: Rows, shapes: ShapeIndex) -> dict[int, list[tuple[int, int | None]]]:
    by_edge: dict[int, list[tuple[int, int | None]]] = {}
    for row in links:
        edge = shapes.edge(row)
        if edge is not None and row["up_ns"] is not None:
            by_edge.setdefault(edge, []).append((row["up_ns"], row["down_ns"]))
    return {edge: sorted(spans, key=lambda one: one[0]) for edge, spans in by_edge.items()}


def _thousandths(
    spans: list[tuple[int, int | None]], span: tuple[int, int]
) -> list[tuple[int, int]]:
    first, last = span
    length = max(last - first, 1)

    def part(moment_ns: int) -> int:
        return min(max((moment_ns - first) * 1_000 // length, 0), 1_000)

    return [
        (part(up), part(last if down is None else down)) for up, down in spans[-REPORT_PAGE_SPANS:]
    ]

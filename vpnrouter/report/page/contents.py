"""Holds the contents of the page, formats numbers and times for readers, and finds the shape of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from vpnrouter.report.schema import EDGE, Rows
from vpnrouter.text import printable


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The rows of the tables in `vpnrouter.report.schema`, under the same names.

    Both ends of every edge are among the nodes. Every other table may be empty. `topic_count` counts all topics,
    `timeline_width_ns` is the length of a stretch of `timeline` and `rates`, `span` the first and last nanosecond
    reported on, `notes` are sentences about the report itself.
    """

    nodes: Rows
    edges: Rows
    topics: Rows = field(default_factory=list)
    topic_count: int = 0
    discards: Rows = field(default_factory=list)
    providers: Rows = field(default_factory=list)
    timeline: Rows = field(default_factory=list)
    usage: Rows = field(default_factory=list)
    timeline_width_ns: int = 1_000_000_000
    rates: Rows = field(default_factory=list)
    latencies: Rows = field(default_factory=list)
    end_to_end: Rows = field(default_factory=list)
    clocks: Rows = field(default_factory=list)
    links: Rows = field(default_factory=list)
    ways: Rows = field(default_factory=list)
    lengths: Rows = field(default_factory=list)
    vpns: Rows = field(default_factory=list)
    pairs: Rows = field(default_factory=list)
    what_if: Rows = field(default_factory=list)
    blast_radius: Rows = field(default_factory=list)
    growth: Rows = field(default_factory=list)
    findings: Rows = field(default_factory=list)
    advice: Rows = field(default_factory=list)
    changes: Rows = field(default_factory=list)
    span: tuple[int, int] = (0, 0)
    notes: list[str] = field(default_factory=list)


NONE: Final = "–"
"""Stands where there is no value."""

_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES: Final = ((1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_COUNTS: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k"))


def count(value: int | None) -> str:
    """Return 12345 as "12,345"."""
    return NONE if value is None else f"{value:,}"


def short_count(value: int | None) -> str:
    """Return 12345 as "12.3k", where there is little room; exact below 10,000."""
    if value is None:
        return NONE
    for least, unit in _COUNTS:
        if value >= least:
            scaled = value / (1_000 if unit == "k" else least)
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return f"{value:,}"


def size(value: int | None) -> str:
    """Return bytes with a binary unit, three digits: 12345 as "12.1 KiB"."""
    if value is None:
        return NONE
    scaled = float(value)
    unit = 0
    while abs(scaled) >= 1024 and unit < len(_BYTES) - 1:
        scaled /= 1024
        unit += 1
    if unit == 0:
        return f"{value} B"
    return f"{scaled:.{2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0}f} {_BYTES[unit]}"


def duration(value: int | None) -> str:
    """Return nanoseconds, three digits in the unit that fits: 305000 as "305 µs", 90 s as "1 min 30 s"."""
    if value is None:
        return NONE
    magnitude = abs(value)
    if magnitude < 1_000:
        return f"{value} ns"
    if magnitude >= 60_000_000_000:
        return _long_duration(magnitude // 1_000_000_000, negative=value < 0)
    # 999.6 µs would read as 1e+03: from there on it is a millisecond.
    unit_ns, unit = next((pair for pair in _TIMES if magnitude < 999.5 * pair[0]), _TIMES[-1])
    return f"{value / unit_ns:.3g} {unit}"


def moment(value: int | None) -> str:
    """Return nanoseconds since 1970 as a UTC time of second precision."""
    if value is None:
        return NONE
    try:
        return datetime.fromtimestamp(value // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        # A router with a broken clock may write any number.
        return f"{value} ns"


def share(value: float) -> str:
    """Return 0.0125 as "1.25 %"."""
    return f"{value * 100:.3g} %"


def decimal(value: float | None) -> str:
    """Return a number that may have a fraction: 1234567.8 as "1,234,568", 12.345 as "12.35"."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def yes_or_no(value: bool | None) -> str:
    """Return the cell of a value that is true, false or unknown."""
    return NONE if value is None else "yes" if value else "no"


def visible(text: str | None) -> str:
    """Return `text` with control characters made visible."""
    return NONE if text is None else printable(text)


def _long_duration(seconds: int, *, negative: bool) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    text = " ".join(f"{number} {unit}" for number, unit in parts[:2])
    return f"-{text}" if negative else text


Row = dict[str, Any]
_ENDS: Final = EDGE[:4]


class ShapeIndex:
    """Finds nodes and edges by name; `drawn_nodes` and `drawn_edges` are those with a shape."""

    def __init__(self, nodes: Rows, edges: Rows) -> None:
        self._nodes = {(row["router"], row["vpn"]): at for at, row in enumerate(nodes)}
        self._first_of_router: dict[str, int] = {}
        for at, row in enumerate(nodes):
            self._first_of_router.setdefault(row["router"], at)
        self._edges: dict[tuple[Any, ...], int] = {}
        self._ends: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(edges):
            ends = tuple(row[name] for name in _ENDS)
            self._edges[*ends, row["bridge"]] = at
            self._ends.setdefault(ends, []).append(at)
        self.drawn_nodes: frozenset[int] = frozenset(range(len(nodes)))
        self.drawn_edges: frozenset[int] = frozenset(range(len(edges)))

    def edge(self, row: Row) -> int | None:
        """Return the edge that a row with the columns of an edge is about."""
        return self._edges.get((*(row[name] for name in _ENDS), row["bridge"]))

    def edges_of(self, row: Row) -> list[int]:
        """Return the edges that a row with a place and its peer is about; more than one where it names no
        bridge.
        """
        ends = (row["peer_router"], row["peer_vpn"], row["router"], row["vpn"])
        if row["bridge"] is None:
            return self._ends.get(ends, [])
        at = self._edges.get((*ends, row["bridge"]))
        return [] if at is None else [at]

    def node(self, router: str | None, vpn: str | None) -> int | None:
        """Return the message VPN of this name; the first of its router where the row names none."""
        if router is None:
            return None
        return self._first_of_router.get(router) if vpn is None else self._nodes.get((router, vpn))

    def shape(self, row: Row) -> str | None:
        """Return the id of the shape that a row is about: its bridge, else its message VPN."""
        for at in self.edges_of(row):
            if at in self.drawn_edges:
                return f"edge-{at}"
        at_node = self.node(row["router"], row["vpn"])
        return f"node-{at_node}" if at_node in self.drawn_nodes else None


def name_of(router: str | None, vpn: str | None) -> str:
    """Return a message VPN's name, "router/vpn"; the router's alone where there is no VPN."""
    return visible(router) if vpn is None else f"{visible(router)}/{visible(vpn)}"


def place_of(row: Row) -> str:
    """Return where a finding, an advice or a change is, in words: "bridge name, from → to" or "router/vpn"."""
    here = name_of(row["router"], row["vpn"]) if row["router"] is not None else ""
    if row["peer_router"] is not None:
        here = f"{name_of(row['peer_router'], row['peer_vpn'])} → {here}"
    if row["bridge"] is not None:
        here = f"{visible(row['bridge'])}: {here}" if here else visible(row["bridge"])
    return here


def title_of(edge: Row) -> str:
    """Return a bridge's name and ends."""
    name = visible(edge["bridge"]) if edge["bridge"] else "bridge"
    start = name_of(edge["from_router"], edge["from_vpn"])
    return f"{name}: {start} → {name_of(edge['to_router'], edge['to_vpn'])}"


def has_reconnected(edge: Row) -> bool:
    """Return whether a link went down and came up again. Every link goes down when a router stops."""
    return (edge["link_downs"] or 0) > 0 and (edge["link_ups"] or 0) > 1


STEPS: Final = 5
"""Grades of a measure, 1 to 5; 0 is for what has none."""

_SEVERITIES: Final = {"info": 1, "warning": 2, "error": 3}
PLAIN, CUT, UNPLANNED = 0, 1, 2
"""Grades of structure: one way of several, the only way, not in the configuration."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """One shape's grades; `errors` and `warnings` count its findings."""

    load: int = 0
    trouble: int = 0
    latency: int = 0
    structure: int = 0
    errors: int = 0
    warnings: int = 0

    @property
    def classes(self) -> str:
        """The grades as CSS classes: "l3 t0 y2 s1"."""
        return f"l{self.load} t{self.trouble} y{self.latency} s{self.structure}"


@dataclass(frozen=True, kw_only=True)
class Grades:
    """Grades and findings (by index) of all nodes and edges, and the labels of the scales' ends."""

    nodes: list[Grade]
    edges: list[Grade]
    node_findings: list[list[int]]
    edge_findings: list[list[int]]
    load_ends: tuple[str, str]
    latency_ends: tuple[str, str]


def grade(contents: Contents, shapes: ShapeIndex) -> Grades:
    """Return the grades of all rows of `contents.nodes` and `contents.edges`."""
    edges = contents.edges
    node_findings: list[list[int]] = [[] for _ in contents.nodes]
    edge_findings: list[list[int]] = [[] for _ in edges]
    for at, finding in enumerate(contents.findings):
        on_edges = shapes.edges_of(finding) if finding["peer_router"] is not None else []
        for edge in on_edges:
            edge_findings[edge].append(at)
        node = shapes.node(finding["router"], finding["vpn"])
        if not on_edges and node is not None:
            node_findings[node].append(at)
    load_of, load_ends = _scale([edge["messages"] or 0 for edge in edges], short_count)
    node_load, _ = _scale([_through(row) for row in contents.nodes], short_count)
    slow: dict[tuple[str, str], int] = {}
    for row in contents.end_to_end:
        key = (row["router"], row["vpn"])
        slow[key] = max(slow.get(key, 0), row["p95_ns"] or 0)
    latencies = [edge["latency_p95_ns"] or 0 for edge in edges]
    latency_of, latency_ends = _scale(latencies, duration)
    node_latency, _ = _scale(list(slow.values()), duration)
    holding = {(row["router"], row["vpn"]) for row in contents.vpns if row["articulation"]}
    return Grades(
        nodes=[
            _graded(
                contents.findings,
                node_findings[at],
                load=node_load(_through(row)),
                latency=node_latency(slow.get((row["router"], row["vpn"]), 0)),
                structure=CUT if (row["router"], row["vpn"]) in holding else PLAIN,
                uneasy=False,
            )
            for at, row in enumerate(contents.nodes)
        ],
        edges=[
            _graded(
                contents.findings,
                edge_findings[at],
                load=load_of(row["messages"] or 0),
                latency=latency_of(latencies[at]),
                structure=UNPLANNED if row["configured"] is False else CUT if row["cut"] else PLAIN,
                uneasy=has_reconnected(row),
            )
            for at, row in enumerate(edges)
        ],
        node_findings=node_findings,
        edge_findings=edge_findings,
        load_ends=load_ends,
        latency_ends=latency_ends,
    )


def _through(node: dict[str, int | None]) -> int:
    return (node["ingress"] or 0) + (node["bridged_in"] or 0)


def _graded(
    findings: Rows, mine: list[int], *, load: int, latency: int, structure: int, uneasy: bool
) -> Grade:
    severities = [findings[at]["severity"] for at in mine]
    worst = max((_SEVERITIES.get(severity, 0) for severity in severities), default=0)
    return Grade(
        load=load,
        trouble=max(worst, _SEVERITIES["warning"] if uneasy else 0),
        latency=latency,
        structure=structure,
        errors=severities.count("error"),
        warnings=severities.count("warning"),
    )


def _scale(
    values: Sequence[int], spell: Callable[[int], str]
) -> tuple[Callable[[int], int], tuple[str, str]]:
    """Return a logarithmic scale of STEPS from the least value above 0 to the greatest, and the labels of its ends."""
    known = [value for value in values if value > 0]
    if not known:
        return _none, ("", "")
    low, high = math.log(min(known)), math.log(max(known))

    def step(value: int) -> int:
        if value <= 0:
            return 0
        if high - low < 1e-9:
            return STEPS // 2 + 1
        return min(int((math.log(value) - low) / (high - low) * STEPS) + 1, STEPS)

    return step, (spell(min(known)), spell(max(known)))


def _none(_: int) -> int:
    return 0

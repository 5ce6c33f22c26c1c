"""How each shape of the drawing is graded in each of the four views that colour it.

A grade is a small number, and the page's style gives each a colour: the drawing itself holds no
colours, so that one file serves light, dark and paper.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vpnrouter.topology.page.contents import Contents, Rows
from vpnrouter.topology.page.figures import duration, short_count
from vpnrouter.topology.page.places import Places, came_back

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
    """Grades of all nodes and edges, findings of each by index, and what the scales' ends stand
    for.
    """

    nodes: list[Grade]
    edges: list[Grade]
    node_findings: list[list[int]]
    edge_findings: list[list[int]]
    load_ends: tuple[str, str]
    latency_ends: tuple[str, str]


def grade(contents: Contents, places: Places) -> Grades:
    """Grade every row of `contents.nodes` and `contents.edges`."""
    edges = contents.edges
    node_findings: list[list[int]] = [[] for _ in contents.nodes]
    edge_findings: list[list[int]] = [[] for _ in edges]
    for at, finding in enumerate(contents.findings):
        on_edges = places.edges_of(finding) if finding["peer_router"] is not None else []
        for edge in on_edges:
            edge_findings[edge].append(at)
        node = places.node(finding["router"], finding["vpn"])
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
                uneasy=came_back(row),
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
    worst = max((_SEVERITIES.get(one, 0) for one in severities), default=0)
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
    """Steps on a logarithmic scale from the least value above 0 to the greatest, and its ends in
    words.
    """
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

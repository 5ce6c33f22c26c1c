"""Describes the structure of a mesh: components, cut points, and how well pairs are linked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vpnrouter.limits import REPORT_PAIR_STEPS, REPORT_PAIRS, REPORT_STRUCTURE_FINDINGS
from vpnrouter.report.schema import INFO, Finding, Rows
from vpnrouter.report.structure.centrality import Centrality, WidestPaths, centrality
from vpnrouter.report.structure.cuts import (
    Cutoff,
    Cuts,
    PathSearch,
    RedundantLink,
    StepBudget,
    StepLimitReached,
    cuts,
    redundant_links,
)
from vpnrouter.report.structure.graph import Mesh, components


def pairs(
    mesh: Mesh,
    cuts: Cuts,
    components: list[int],
    traffic: Rows | None = None,
    most: int = REPORT_PAIRS,
    most_steps: int = REPORT_PAIR_STEPS,
) -> Rows:
    """Return rows of PAIRS, at most so many, for pairs that hang together.

    `traffic` are rows of END_TO_END: their pairs come first, the busiest before the others, then pairs of the
    busiest message VPNs, the weakest linked first. `links` and `hops` are null for pairs that the search had
    no time for (`most_steps` joints looked at). The bridges' directions play no part.
    """
    sent = _sent(mesh, traffic or [])
    widest = WidestPaths(mesh)
    steps = StepBudget(most_steps)
    rows: list[tuple[tuple[int, int, int, int, int], int, int]] = []
    for one, other in _chosen(mesh, sent, components, most):
        hops, links = _measured(mesh, cuts, steps, one, other)
        order = (-sent.get((one, other), 0), links or most_steps, -(hops or 0), one, other)
        rows.append((order, hops or 0, links or 0))
    return [
        {
            "router": mesh.places[one][0],
            "vpn": mesh.places[one][1],
            "other_router": mesh.places[other][0],
            "other_vpn": mesh.places[other][1],
            "links": links or None,
            "hops": hops or None,
            "widest": widest.between(one, other),
        }
        for (*_, one, other), hops, links in sorted(rows)
    ]


def _sent(mesh: Mesh, traffic: Rows) -> dict[tuple[int, int], int]:
    """Return messages from end to end, both directions together, by pair of places."""
    sent: dict[tuple[int, int], int] = {}
    for row in traffic:
        one = mesh.numbers.get((row["origin_router"], row["origin_vpn"]))
        other = mesh.numbers.get((row["router"], row["vpn"]))
        if one is not None and other is not None and one != other:
            pair = (min(one, other), max(one, other))
            sent[pair] = sent.get(pair, 0) + (row["messages"] or 0)
    return sent


def _chosen(
    mesh: Mesh, sent: dict[tuple[int, int], int], components: list[int], most: int
) -> Iterator[tuple[int, int]]:
    together = [pair for pair in sent if components[pair[0]] == components[pair[1]]]
    first = sorted(together, key=lambda pair: (-sent[pair], pair))[:most]
    yield from first
    left = most - len(first)
    if left <= 0:
        return
    load = [0] * len(mesh.places)
    for joint in mesh.joints:
        load[joint.one] += joint.messages
        load[joint.other] += joint.messages
    linked = [place for place in range(len(mesh.places)) if mesh.neighbours[place]]
    busiest = sorted(linked, key=lambda place: (-load[place], place))
    chosen = set(first)
    # A pair of the first n comes before any pair of a further one, so that few places are enough.
    for count, other in enumerate(busiest):
        for one in busiest[:count]:
            pair = (min(one, other), max(one, other))
            if pair not in chosen and components[one] == components[other]:
                yield pair
                left -= 1
                if left == 0:
                    return


def _measured(
    mesh: Mesh, cuts: Cuts, steps: StepBudget, one: int, other: int
) -> tuple[int | None, int | None]:
    """Return hops and links, None if the search limit was reached."""
    ways = PathSearch(mesh, steps)
    try:
        way = ways.shortest(one, other)
    except StepLimitReached:
        return None, None
    if way is None:
        return None, None
    if cuts.blocks[one] != cuts.blocks[other]:
        return len(way), 1
    try:
        return len(way), ways.links(one, other, way)
    except StepLimitReached:
        return len(way), None


class Standing(NamedTuple):
    """What EDGES says of a bridge's place in the mesh."""

    cut: bool
    centrality: float


@dataclass(frozen=True, kw_only=True)
class Structure:
    """What the mesh looks like. `vpns` and `pairs` are rows of VPNS and PAIRS; `edges` stand in the order of
    the rows of EDGES that it was made from. `starts`: from how many message VPNs shortest ways were counted
    (all from which a bridge leads away, or a sample).
    """

    vpns: Rows
    pairs: Rows
    edges: list[Standing]
    findings: list[Finding]
    redundant_links: list[RedundantLink]
    starts: int

    def merged(self, edges: Rows) -> Rows:
        """Return the rows of EDGES with `cut` and `centrality` filled in."""
        return [
            {**row, "cut": standing.cut, "centrality": standing.centrality}
            for row, standing in zip(edges, self.edges, strict=True)
        ]


def structure(nodes: Rows, edges: Rows, traffic: Rows | None = None) -> Structure:
    """Return the structure of NODES and EDGES; `traffic`, rows of END_TO_END, shows which pairs matter most."""
    mesh = Mesh(nodes, edges)
    parts = components(mesh)
    found = cuts(mesh)
    central = centrality(mesh)
    return Structure(
        vpns=_vpns(mesh, parts, found, central),
        pairs=pairs(mesh, found, parts, traffic or []),
        edges=_standings(mesh, found, central),
        findings=[*_articulations(mesh, parts, found), *_cut_bridges(mesh, parts, found, edges)],
        redundant_links=redundant_links(mesh, found, parts),
        starts=central.starts,
    )


def _vpns(mesh: Mesh, parts: Sequence[int], cuts: Cuts, central: Centrality) -> Rows:
    into = [0] * len(mesh.places)
    out = [0] * len(mesh.places)
    for ends in mesh.ends:
        if ends is not None:
            out[ends[0]] += 1
            into[ends[1]] += 1
    return [
        {
            "router": router,
            "vpn": vpn,
            "component": parts[place],
            "articulation": place in cuts.places,
            "centrality": central.places[place],
            "bridges_in": into[place],
            "bridges_out": out[place],
        }
        for place, (router, vpn) in enumerate(mesh.places)
    ]


def _standings(mesh: Mesh, cuts: Cuts, central: Centrality) -> list[Standing]:
    cut = {row for joint in cuts.joints for row in mesh.joints[joint].rows}
    return [Standing(row in cut, share) for row, share in enumerate(central.rows)]


def _articulations(mesh: Mesh, parts: Sequence[int], cuts: Cuts) -> list[Finding]:
    sizes = _sizes(parts)
    return [
        Finding(
            kind="articulation",
            severity=INFO,
            router=mesh.places[place][0],
            vpn=mesh.places[place][1],
            messages=parting.messages,
            value=float(parting.places),
            detail=_told(mesh, parting, sizes[parts[place]] - 1),
        )
        for place, parting in _weightiest(cuts.places)
    ]


def _cut_bridges(mesh: Mesh, parts: Sequence[int], cuts: Cuts, edges: Rows) -> list[Finding]:
    """Return one finding for each cut joint, about its busier direction."""
    sizes = _sizes(parts)
    findings = []
    for number, parting in _weightiest(cuts.joints):
        joint = mesh.joints[number]
        row = edges[max(joint.rows, key=lambda one: (edges[one]["messages"] or 0, -one))]
        findings.append(
            Finding(
                kind="cut_bridge",
                severity=INFO,
                router=row["to_router"],
                vpn=row["to_vpn"],
                peer_router=row["from_router"],
                peer_vpn=row["from_vpn"],
                bridge=row["bridge"],
                messages=parting.messages,
                bytes=sum(edges[one]["bytes"] or 0 for one in joint.rows),
                value=float(parting.places),
                detail=_told(mesh, parting, sizes[parts[joint.one]]),
            )
        )
    return findings


def _sizes(parts: Sequence[int]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for part in parts:
        sizes[part] = sizes.get(part, 0) + 1
    return sizes


def _weightiest(partings: dict[int, Cutoff]) -> list[tuple[int, Cutoff]]:
    ordered = sorted(partings.items(), key=lambda one: (-one[1].messages, -one[1].places, one[0]))
    return ordered[:REPORT_STRUCTURE_FINDINGS]


def _told(mesh: Mesh, parting: Cutoff, places: int) -> str:
    names = ", ".join(mesh.name(place) for place in parting.part)
    more = parting.places - len(parting.part)
    if more:
        names += f" and {more:,} more"
    rest = places - parting.places
    vpns = "message VPN" if parting.places == 1 else "message VPNs"
    return f"its loss cuts off {parting.places:,} {vpns} ({names}) from the other {rest:,}"

"""Represents the mesh as a graph: message VPNs by number, the joints between them, and its components.

A *joint* is two message VPNs with at least one bridge between them, whichever way it leads. Its `links` are how
many connections hold it together: two message VPNs share one connection for both directions (LINK-39), so a
bridge and the one that leads back go together, and only further bridges of one direction are links of their own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

import networkx as nx

from vpnrouter.report.schema import Rows

Place = tuple[str, str]
"""Router and message VPN."""


class Joint(NamedTuple):
    """Two message VPNs, by number, `one` below `other`; `messages` crossed between them either way.

    `rows` are the bridges between them: numbers of rows of EDGES.
    """

    one: int
    other: int
    links: int
    messages: int
    rows: tuple[int, ...]

    def beyond(self, here: int) -> int:
        """Return the end that is not `here`."""
        return self.other if here == self.one else self.one


@final
class Mesh:
    """NODES and EDGES by number.

    `places` are in order of name, `ends` the (from, to) of each row of EDGES, None where the row does not name
    both; `neighbours` lists for each place (neighbour, joint), in order. A bridge from a message VPN to itself
    is no joint. Message VPNs that only a bridge names are places as well.
    """

    __slots__ = ("ends", "joints", "neighbours", "numbers", "places")

    def __init__(self, nodes: Rows, edges: Rows) -> None:
        named = {(row["router"], row["vpn"]) for row in nodes}
        for row in edges:
            named.update((start_of(row), goal_of(row)))
        self.places: Final[list[Place]] = sorted(one for one in named if None not in one)
        self.numbers: Final = {place: number for number, place in enumerate(self.places)}
        self.ends: Final[list[tuple[int, int] | None]] = [self._ends_of(row) for row in edges]
        self.joints: Final = self._joined(edges)
        self.neighbours: Final[list[list[tuple[int, int]]]] = [[] for _ in self.places]
        for number, joint in enumerate(self.joints):
            self.neighbours[joint.one].append((joint.other, number))
            self.neighbours[joint.other].append((joint.one, number))

    def _ends_of(self, row: dict[str, Any]) -> tuple[int, int] | None:
        start, goal = self.numbers.get(start_of(row)), self.numbers.get(goal_of(row))
        return None if start is None or goal is None else (start, goal)

    def _joined(self, edges: Rows) -> list[Joint]:
        between: dict[tuple[int, int], list[int]] = {}
        for number, ends in enumerate(self.ends):
            if ends is not None and ends[0] != ends[1]:
                between.setdefault((min(ends), max(ends)), []).append(number)
        joints = []
        for (one, other), rows in sorted(between.items()):
            forth = {edges[row]["bridge"] for row in rows if self.ends[row] == (one, other)}
            back = {edges[row]["bridge"] for row in rows if self.ends[row] == (other, one)}
            messages = sum(edges[row]["messages"] or 0 for row in rows)
            links = max(len(forth), len(back))
            joints.append(Joint(one, other, links, messages, tuple(rows)))
        return joints

    def name(self, number: int) -> str:
        """Return a place as "router/vpn"."""
        return "/".join(self.places[number])

    def arcs(self) -> dict[tuple[int, int], list[int]]:
        """Return the directions that messages can take, each with its rows of EDGES."""
        messages_by_arc: dict[tuple[int, int], list[int]] = {}
        for row, ends in enumerate(self.ends):
            if ends is not None and ends[0] != ends[1]:
                messages_by_arc.setdefault(ends, []).append(row)
        return messages_by_arc

    def undirected(self) -> nx.Graph[int]:
        """Return the joints as a networkx graph, with `links` and `messages`."""
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(len(self.places)))
        graph.add_edges_from(
            (joint.one, joint.other, {"links": joint.links, "messages": joint.messages})
            for joint in self.joints
        )
        return graph

    def directed(self) -> nx.DiGraph[int]:
        """Return the directions of messages as a networkx graph."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.places)))
        graph.add_edges_from(self.arcs())
        return graph


def start_of(edge: dict[str, Any]) -> Place:
    """Return where messages come from on a row of EDGES."""
    return edge["from_router"], edge["from_vpn"]


def goal_of(edge: dict[str, Any]) -> Place:
    """Return where messages go to on a row of EDGES."""
    return edge["to_router"], edge["to_vpn"]


def components(mesh: Mesh) -> list[int]:
    """Return the component of each place, from 1, the largest first; of equal ones that of the first name."""
    component_of = [0] * len(mesh.places)
    parts = nx.connected_components(mesh.undirected())
    for number, part in enumerate(sorted(parts, key=lambda part: (-len(part), min(part))), 1):
        for place in part:
            component_of[place] = number
    return component_of

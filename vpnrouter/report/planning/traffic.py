"""Holds what went over a mesh: the ways that messages took, who got them, and how much of it when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.report.schema import Rows, edge_named
from vpnrouter.report.structure.graph import Mesh
from vpnrouter.units import SECOND_NS

Figures = NDArray[np.float64]
Pair = tuple[int, int]
"""Where messages entered first, and where they were received: places by number."""


class Route(NamedTuple):
    """`messages` that came to the last of `places`, over the bridge `row` (a row of EDGES), and had visited the others
    before, in order: they entered at the first one.
    """

    places: tuple[int, ...]
    row: int
    messages: int

    @property
    def origin(self) -> int:
        """Where the messages entered."""
        return self.places[0]

    @property
    def goal(self) -> int:
        """Where they came to."""
        return self.places[-1]


@final
class Traffic:
    """NODES and EDGES as a mesh with what crossed it.

    `routes` are in the order given, `received` has the messages of each pair, one with itself for those that crossed
    no bridge. `rates` are messages by row of EDGES and stretch, `published` by place and stretch. `known` says of
    which rows of EDGES the rates are. `seconds` is the time of all, `first_ns` the
    begin of the first stretch.

    Routes by number: `over_row` those whose last bridge is a row of EDGES; `over` those that step from one place to
    another before, with the position of the other; `through` those that touch a place, with its position; `from_place`
    those that begin there. `at_place` is `received` by each of its two ends.
    """

    __slots__ = (
        "at_place",
        "edges",
        "first_ns",
        "from_place",
        "into",
        "known",
        "mesh",
        "over",
        "over_row",
        "published",
        "rates",
        "received",
        "routes",
        "seconds",
        "through",
    )

    def __init__(
        self, nodes: Rows, edges: Rows, seen: Observed, span: tuple[int, int], width_ns: int
    ) -> None:
        """Take rows of NODES and EDGES; `span` in nanoseconds, `width_ns` the length of a stretch."""
        self.mesh: Final = Mesh(nodes, edges)
        self.edges: Final = edges
        self.seconds: Final = (span[1] - span[0]) / SECOND_NS
        self.into: Final = self._arcs_into()
        self.routes: Final = self._completed(list(self._followed(seen.routes)))
        self.received: Final = self._pairs(seen.deliveries)
        self.over_row: Final[dict[int, list[int]]] = {}
        self.over: Final[dict[Pair, list[tuple[int, int]]]] = {}
        self.through: Final[dict[int, list[tuple[int, int]]]] = {}
        self.from_place: Final[dict[int, list[int]]] = {}
        self.at_place: Final[dict[int, dict[Pair, int]]] = {}
        self._index()
        first = span[0] - span[0] % width_ns
        self.first_ns: Final = first
        count = (span[1] - first) // width_ns + 1
        self.rates: Final = np.zeros((len(edges), count))
        self.published: Final = np.zeros((len(self.mesh.places), count))
        self.known: Final = np.zeros(len(edges), dtype=np.bool_)
        rows = {edge_named(row): number for number, row in enumerate(edges)}
        for row in seen.rates:
            number = rows[edge_named(row)]
            self.rates[number, _stretch(row, first, width_ns, count)] += row["messages"]
            self.known[number] = True
        for row in seen.published:
            place = self.mesh.numbers.get((row["router"], row["vpn"]))
            if place is not None:
                self.published[place, _stretch(row, first, width_ns, count)] += row["count"]

    def _index(self) -> None:
        for number, route in enumerate(self.routes):
            self.over_row.setdefault(route.row, []).append(number)
            self.from_place.setdefault(route.origin, []).append(number)
            for at, place in enumerate(route.places):
                self.through.setdefault(place, []).append((number, at))
            for at, ends in enumerate(pairwise(route.places[:-1]), 1):
                self.over.setdefault(ends, []).append((number, at))
        for pair, messages in self.received.items():
            for place in {*pair}:
                self.at_place.setdefault(place, {})[pair] = messages

    def _arcs_into(self) -> list[list[tuple[int, int]]]:
        """Return for each place the (place before, row of EDGES) of all bridges into it, the busiest first."""
        into: list[list[tuple[int, int]]] = [[] for _ in self.mesh.places]
        busiest = sorted(
            range(len(self.edges)), key=lambda row: (-(self.edges[row]["messages"] or 0), row)
        )
        for row in busiest:
            ends = self.mesh.ends[row]
            if ends is not None and ends[0] != ends[1]:
                into[ends[1]].append((ends[0], row))
        return into

    def _followed(self, routes: Rows) -> Iterable[Route]:
        numbers = {f"{router}/{vpn}": at for (router, vpn), at in self.mesh.numbers.items()}
        rows: dict[tuple[tuple[int, ...] | None, str], int] = {
            (ends, edge["bridge"] or ""): row
            for row, (ends, edge) in enumerate(zip(self.mesh.ends, self.edges, strict=True))
        }
        for one in routes:
            steps = [numbers.get(step) for step in (*_steps(one), f"{one['router']}/{one['vpn']}")]
            places = tuple(place for place in steps if place is not None)
            row = rows.get((places[-2:], one["bridge"]))
            # What came back to where it had been is a loop, and no way to depend on.
            if row is not None and len({*places}) == len(steps):
                yield Route(places, row, one["count"])

    def _completed(self, routes: list[Route]) -> list[Route]:
        """Return the routes with those to the places on their ways: of no messages where none are known, as at a router
        that does not trace.
        """
        known = {route.places for route in routes}
        busiest: dict[tuple[int, ...], int] = {
            (start, goal): row
            for goal, arcs in enumerate(self.into)
            for start, row in reversed(arcs)
        }
        more = []
        for route in routes:
            places = route.places[:-1]
            while len(places) > 1 and places not in known and places[-2:] in busiest:
                known.add(places)
                more.append(Route(places, busiest[places[-2:]], 0))
                places = places[:-1]
        return routes + more

    def _pairs(self, deliveries: Rows) -> dict[Pair, int]:
        received: dict[Pair, int] = {}
        for row in deliveries:
            origin = self.mesh.numbers.get((row["origin_router"], row["origin_vpn"]))
            place = self.mesh.numbers.get((row["router"], row["vpn"]))
            if origin is not None and place is not None:
                received[origin, place] = received.get((origin, place), 0) + row["messages"]
        return received

    def per_second(self, messages: float) -> float | None:
        """Return a rate; None when all was in one moment."""
        return messages / self.seconds if self.seconds > 0 else None

    def peak(self, row: int) -> float:
        """Return the messages of the busiest stretch of a bridge, 0 if its rates are not known."""
        return float(self.rates[row].max())


class Observed(NamedTuple):
    """What Traffic is made of: rows of `vpnrouter.report.planning.routes`, and RATES."""

    routes: Rows
    deliveries: Rows
    published: Rows
    rates: Rows


def _steps(route: Mapping[str, Any]) -> list[str]:
    if route["path"] is not None:
        return str(route["path"]).split(">")
    origin = f"{route['origin_router']}/{route['origin_vpn']}"
    peer = f"{route['peer_router']}/{route['peer_vpn']}"
    return [peer] if origin == peer else [origin, peer]


def _stretch(row: Mapping[str, Any], first: int, width_ns: int, count: int) -> int:
    number: int = (row["start_ns"] - first) // width_ns
    return max(0, min(count - 1, number))

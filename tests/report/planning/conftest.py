"""Meshes with traffic, from ways in words: "a>b>c" are message VPNs a/v, b/v and c/v."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from vpnrouter.report.planning.traffic import Observed, Traffic
from vpnrouter.report.schema import EDGES, Rows

SECOND = 1_000_000_000


def _place(name: str) -> tuple[str, str]:
    router, _, vpn = name.partition("/")
    return router, vpn or "v"


def _ends(arc: str) -> dict[str, str]:
    start, goal, *name = arc.split(">")
    names = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
    return dict(zip(names, (*_place(start), *_place(goal), *(name or ["b"])), strict=True))


def _traffic(
    arcs: Sequence[str],
    ways: Mapping[str, int],
    received: Mapping[str, int] | None = None,
    rates: Mapping[str, Sequence[int]] | None = None,
    published: Mapping[str, Sequence[int]] | None = None,
    stretches: int = 4,
) -> Traffic:
    rows: Rows = []
    load: dict[str, int] = dict.fromkeys(arcs, 0)
    for way, count in ways.items():
        text, _, bridge = way.partition(":")
        steps = text.split(">")
        arc = ">".join(steps[-2:]) + (f">{bridge}" if bridge else "")
        load[arc] += count
        (router, vpn), (peer_router, peer_vpn) = _place(steps[-1]), _place(steps[-2])
        origin = _place(steps[0])
        rows.append(
            {
                "path": ">".join("/".join(_place(step)) for step in steps[:-1]),
                "router": router,
                "vpn": vpn,
                "bridge": bridge or "b",
                "peer_router": peer_router,
                "peer_vpn": peer_vpn,
                "origin_router": origin[0],
                "origin_vpn": origin[1],
                "count": count,
            }
        )
    names = sorted({step for arc in arcs for step in arc.split(">")[:2]})
    edges = [
        {**dict.fromkeys(EDGES.names), **_ends(arc), "messages": load[arc], "bytes": load[arc]}
        for arc in arcs
    ]
    pairs = ways if received is None else received
    deliveries = []
    for pair, count in pairs.items():
        steps = pair.partition(":")[0].split(">")
        origin, goal = _place(steps[0]), _place(steps[-1])
        deliveries.append(
            {"origin_router": origin[0], "origin_vpn": origin[1], "router": goal[0]}
            | {"vpn": goal[1], "messages": count}
        )
    by_stretch = [
        {**_ends(arc), "start_ns": at * SECOND, "messages": count}
        for arc, counts in (rates or {arc: (n // 2, n - n // 2) for arc, n in load.items()}).items()
        for at, count in enumerate(counts)
        if count
    ]
    at_places = [
        {"router": _place(name)[0], "vpn": _place(name)[1], "start_ns": at * SECOND, "count": count}
        for name, counts in (published or {}).items()
        for at, count in enumerate(counts)
    ]
    nodes = [dict(zip(("router", "vpn"), _place(name), strict=True)) for name in names]
    observed = Observed(rows, deliveries, at_places, by_stretch)
    return Traffic(nodes, edges, observed, (0, stretches * SECOND), SECOND)


@pytest.fixture
def traffic() -> Callable[..., Traffic]:
    """Makes the traffic of four seconds (`stretches`) from bridges "a>b" (or "a>b>name"), and messages by way "a>b>c"
    (or "a>b>c:name"). `received` are messages by pair "a>c", by default those of the ways; `rates` are messages by
    bridge and second, by default half and half in the first two; `published` those by message VPN and second.
    """
    return _traffic


@pytest.fixture
def both() -> Callable[[str], list[str]]:
    """Makes bridges in both directions from "a-b b-c"."""

    def make(pairs: str) -> list[str]:
        ends = [pair.split("-") for pair in pairs.split()]
        return [arc for one, other in ends for arc in (f"{one}>{other}", f"{other}>{one}")]

    return make

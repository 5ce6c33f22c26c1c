"""A router whose clock is wrong."""

from typing import Final

import numpy as np

from vpnrouter.errors import OperationError
from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.plan import Plan

_SKEW_S: Final = (0.05, 5.0)
_LEAST_ROUTERS: Final = 4
_SECOND_NS: Final = 1_000_000_000


def clock_skew(ground: Ground) -> None:
    """The clock of one router is tens of milliseconds to seconds off; never of the one with most links.

    Raises:
        OperationError: too few routers exchange messages to say whose clock is wrong.
    """
    mesh = ground.plan.mesh
    near = _comparable(ground.plan)
    skewed = {fault["router"] for fault in ground.faults if fault["kind"] == "clock_skew"}
    largest = max(_components(near), key=len, default=set[int]())
    if len(largest) < _LEAST_ROUTERS * (len(skewed) + 1):
        raise OperationError("too few routers for a skewed clock: more --vpns")
    busiest = max(largest, key=lambda router: (len(near[router]), router))
    free = [
        router
        for router in sorted(largest)
        if router != busiest and mesh.network.routers[router] not in skewed
    ]
    chosen = int(ground.rng.choice(free))
    low, high = np.log(_SKEW_S)
    offset_s = float(np.exp(ground.rng.uniform(low, high)))
    if ground.rng.random() < 0.5:
        offset_s = -offset_s
    ground.plan.clocks_ns[chosen] = round(offset_s * _SECOND_NS)
    ground.faults.append(
        {"kind": "clock_skew", "router": mesh.network.routers[chosen], "value": offset_s}
    )


def _comparable(plan: Plan) -> dict[int, set[int]]:
    """Routers whose messages reach each other, both ways: only of these can traces show how their clocks differ."""
    sites = plan.mesh.sites
    heard: dict[int, set[int]] = {}
    for feed in plan.feeds:
        origin = sites[feed.origin].router
        for bridges in feed.onward.values():
            for number in bridges:
                target = sites[plan.mesh.bridges[number].target].router
                heard.setdefault(target, set()).add(origin)
    return {
        router: both
        for router, origins in heard.items()
        if (both := {one for one in origins if one != router and router in heard.get(one, ())})
    }


def _components(near: dict[int, set[int]]) -> list[set[int]]:
    left = set(near)
    found = []
    while left:
        reached: set[int] = set()
        edge = [min(left)]
        while edge:
            router = edge.pop()
            if router not in reached:
                reached.add(router)
                edge += near[router]
        left -= reached
        found.append(reached)
    return found

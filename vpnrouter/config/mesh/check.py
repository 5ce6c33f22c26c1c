"""Checks the mesh that the configurations of several routers make together.

Do the halves of each bridge fit, does a topic go round or arrive twice, does anything attracted never
come? A remote that none of the files describes is noted and left alone. docs/mesh-check.md lists all
findings.
"""

from __future__ import annotations

from collections.abc import Sequence

from vpnrouter import limits
from vpnrouter.config.mesh.attraction import (
    check_filters_alone,
    check_filters_there,
    check_queue,
    report_broken_chains,
    report_without_source,
)
from vpnrouter.config.mesh.bridge_pairs import check_half, check_pairs, report_wrong_router
from vpnrouter.config.mesh.double_delivery import report_doubles
from vpnrouter.config.mesh.graph import Budget, Graph
from vpnrouter.config.mesh.loops import report_loops, report_too_far
from vpnrouter.config.mesh.queues import check_end_to_end, check_losing_queues, check_shared_queues
from vpnrouter.config.mesh.remotes import ConfiguredRemote, Routers, check_names, remotes
from vpnrouter.config.problem import Problem
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded

_SEARCHES = 3
"""Searches from each message VPN: loops, double delivery, hop limits."""


def check_mesh(mesh: Sequence[Loaded], steps: int = limits.MESH_CHECK_STEPS) -> list[Problem]:
    """Return all findings that only show when the configurations are seen together.

    `steps` bounds the searches, in comparisons of topic sets.
    """
    found = MeshProblems()
    check_names(found, mesh)
    routers = Routers(mesh)
    graph = Graph(mesh)
    fitting: list[tuple[ConfiguredRemote, Loaded]] = []
    seen: set[tuple[str, ...]] = set()
    for loaded in mesh:
        for place in remotes(loaded):
            bridge = (loaded.positions.file, place.msg_vpn, place.bridge_name)
            if bridge not in seen:
                seen.add(bridge)
                check_filters_alone(found, graph, place)
            peer = _peer(found, place, routers)
            if peer is not None and check_half(found, place, peer, routers):
                check_filters_there(found, place, peer)
                check_queue(found, graph, place, peer)
                fitting.append((place, peer))
    check_pairs(found, fitting)
    check_shared_queues(found, fitting)
    check_losing_queues(found, graph, fitting)
    check_end_to_end(found, mesh, fitting)
    graph.connect(fitting)
    report_without_source(found, graph, routers)
    report_broken_chains(found, graph)
    _search(found, graph, mesh, steps)
    return found.problems


def _peer(found: MeshProblems, place: ConfiguredRemote, routers: Routers) -> Loaded | None:
    """Return the router that a remote means, and report it if none is known."""
    target = routers.resolve(place)
    if target.peer is not None:
        return target.peer
    other = routers.listening_instead(place)
    if other is not None:
        report_wrong_router(found, place, other)
    else:
        message = f"unknown: {target.unknown}; what lies behind this remote is not judged"
        found.add("note", place.loaded, place.path, message)
    return None


def _search(found: MeshProblems, graph: Graph, mesh: Sequence[Loaded], steps: int) -> None:
    if not graph.crossings:
        return
    budget = Budget(graph, steps, _SEARCHES * len(graph.vpns))
    report_loops(found, graph, budget)
    for target in range(len(graph.vpns)):
        report_doubles(found, graph, target, budget)
    report_too_far(found, graph, budget)
    if budget.cut:
        more = f" and {len(budget.cut) - 1} more" if len(budget.cut) > 1 else ""
        found.add(
            "note",
            mesh[0],
            ("router",),
            f"the search was cut after {steps:,} comparisons: {budget.cut[0]}{more}; what was found"
            " stands, there may be more",
        )

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
    report_untaken,
    report_without_source,
)
from vpnrouter.config.mesh.bridge_pairs import check_half, check_pairs, report_wrong_router
from vpnrouter.config.mesh.double_delivery import report_doubles
from vpnrouter.config.mesh.graph import Budget, Graph
from vpnrouter.config.mesh.loops import report_loops, report_too_far
from vpnrouter.config.mesh.providers import report_provider_doubles
from vpnrouter.config.mesh.queues import check_end_to_end, check_losing_queues, check_shared_queues
from vpnrouter.config.mesh.remotes import ConfiguredRemote, Routers, check_names, remotes
from vpnrouter.config.problem import Problem
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded

_SEARCHES = 4
"""Searches from each message VPN: loops, double delivery, hop limits, connectors."""


def check_mesh(mesh: Sequence[Loaded], steps: int = limits.MESH_CHECK_STEPS) -> list[Problem]:
    """Return all findings that only show when the configurations are seen together.

    `steps` bounds the searches, in comparisons of topic sets.
    """
    problems = MeshProblems()
    check_names(problems, mesh)
    routers = Routers(mesh)
    graph = Graph(mesh)
    fitting: list[tuple[ConfiguredRemote, Loaded]] = []
    seen: set[tuple[str, ...]] = set()
    for loaded in mesh:
        for place in remotes(loaded):
            bridge = (loaded.positions.file, place.msg_vpn, place.bridge_name)
            if bridge not in seen:
                seen.add(bridge)
                check_filters_alone(problems, graph, place)
            peer = _peer(problems, place, routers)
            if peer is not None and check_half(problems, place, peer, routers):
                check_filters_there(problems, place, peer)
                check_queue(problems, graph, place, peer)
                fitting.append((place, peer))
    check_pairs(problems, fitting)
    check_shared_queues(problems, fitting)
    check_losing_queues(problems, graph, fitting)
    check_end_to_end(problems, mesh, fitting)
    graph.connect(fitting)
    report_without_source(problems, graph, routers)
    report_broken_chains(problems, graph)
    report_untaken(problems, graph)
    _search(problems, graph, mesh, steps)
    return problems.problems


def _peer(problems: MeshProblems, configured: ConfiguredRemote, routers: Routers) -> Loaded | None:
    """Return the router that a remote means, and report it if none is known."""
    target = routers.resolve(configured)
    if target.peer is not None:
        return target.peer
    other = routers.listening_instead(configured)
    if other is not None:
        report_wrong_router(problems, configured, other)
    else:
        message = f"unknown: {target.unknown}; what lies behind this remote is not judged"
        problems.add("note", configured.loaded, configured.path, message)
    return None


def _search(problems: MeshProblems, graph: Graph, mesh: Sequence[Loaded], steps: int) -> None:
    if not graph.crossings:
        return
    budget = Budget(graph, steps, _SEARCHES * len(graph.vpns))
    report_loops(problems, graph, budget)
    for target in range(len(graph.vpns)):
        report_doubles(problems, graph, target, budget)
    report_too_far(problems, graph, budget)
    report_provider_doubles(problems, graph, budget)
    if budget.cut:
        more = f" and {len(budget.cut) - 1} more" if len(budget.cut) > 1 else ""
        problems.add(
            "note",
            mesh[0],
            ("router",),
            f"the search was cut after {steps:,} comparisons: {budget.cut[0]}{more}; what was found"
            " stands, there may be more",
        )

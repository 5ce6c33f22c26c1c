"""vpnrouter.report.page.figures: how shapes are coloured."""

from collections.abc import Callable
from typing import Any

from vpnrouter.report.page.figures import (
    CUT,
    PLAIN,
    UNPLANNED,
    Contents,
    Grades,
    Places,
    grade,
)
from vpnrouter.report.schema import FINDINGS

Make = Callable[..., dict[str, Any]]


def graded(contents: Contents) -> Grades:
    """Grades of all shapes."""
    return grade(contents, Places(contents.nodes, contents.edges))


def test_load_and_latency_are_logarithmic_steps(node: Make, edge: Make) -> None:
    """From the least to the greatest in five steps, nothing for none; the scale's ends are in words."""
    edges = [
        edge("a/x", "b/y", bridge=f"b{messages}", messages=messages, latency=latency)
        for messages, latency in (
            (0, None),
            (1, (1, 1_000, 1)),
            (100, (1, 10_000, 1)),
            (10_000, (1, 100_000_000, 1)),
        )
    ]
    grades = graded(Contents(nodes=[node("a", "x"), node("b", "y")], edges=edges))
    assert [one.load for one in grades.edges] == [0, 1, 3, 5]
    assert [one.latency for one in grades.edges] == [0, 1, 2, 5]
    assert grades.load_ends == ("1", "10.0k")
    assert grades.latency_ends == ("1 µs", "100 ms")


def test_the_worst_finding_counts(node: Make, edge: Make) -> None:
    """Errors over warnings over notes; a bridge's findings are not its VPN's; links that came back warn."""
    nodes = [node("a", "x"), node("b", "y")]
    edges = [edge("a/x", "b/y"), edge("b/y", "a/x", link_ups=2, link_downs=2)]
    blank = dict.fromkeys(FINDINGS.names)
    on_bridge = {"router": "b", "vpn": "y", "peer_router": "a", "peer_vpn": "x", "bridge": "fares"}
    findings = [
        blank | on_bridge | {"kind": "cut_bridge", "severity": "info"},
        blank | on_bridge | {"kind": "hot_bridge", "severity": "error"},
        blank | {"router": "a", "vpn": "x", "kind": "black_hole", "severity": "warning"},
    ]
    grades = graded(Contents(nodes=nodes, edges=edges, findings=findings))
    assert [one.trouble for one in grades.edges] == [3, 2]
    assert [one.trouble for one in grades.nodes] == [2, 0]
    assert grades.edge_findings == [[0, 1], []]
    assert grades.node_findings == [[2], []]
    assert (grades.edges[0].errors, grades.edges[0].warnings) == (1, 0)


def test_structure(node: Make, edge: Make) -> None:
    """Only ways, articulation points, and what the configuration does not know."""
    nodes = [node("a", "x"), node("b", "y")]
    edges = [
        edge("a/x", "b/y", bridge="1", cut=True, configured=None),
        edge("a/x", "b/y", bridge="2", cut=False, configured=True),
        edge("a/x", "b/y", bridge="3", cut=True, configured=False),
    ]
    vpns = [{"router": "a", "vpn": "x", "articulation": True, "centrality": 0.5, "component": 1}]
    grades = graded(Contents(nodes=nodes, edges=edges, vpns=vpns))
    assert [one.structure for one in grades.edges] == [CUT, PLAIN, UNPLANNED]
    assert [one.structure for one in grades.nodes] == [CUT, PLAIN]
    assert grades.nodes[0].classes.split()[-1] == f"s{CUT}"

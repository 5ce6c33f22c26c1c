"""vpnrouter.report.output: a report in figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.report.analysis import Analysis
from vpnrouter.report.inventory import Inventory, SetAside, TraceFile
from vpnrouter.report.output import summary_of
from vpnrouter.report.schema import ERROR, INFO, WARNING, Finding

Make = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]


def file(router: str, rows: int, sample: float | None) -> TraceFile:
    """A trace file."""
    path = Path(f"/traces/{router}.parquet")
    return TraceFile(
        path=path, rows=rows, size_bytes=10, router=router, router_from="metadata", sample=sample
    )


@pytest.fixture
def nodes(node: Make) -> Rows:
    """Two message VPNs on one router, and one known only as the other end of a bridge."""
    return [
        node("edge", "blue", ingress=10, ingress_estimated=40, discarded=2, rejected=1)
        | {"delivered": 1, "delivered_estimated": 4},
        node("edge", "green", ingress=5, ingress_estimated=20, delivered=3, delivered_estimated=12),
        node("core", "yellow", traced=False),
    ]


def analysis(nodes: Rows, edges: Rows, *findings: Finding) -> Analysis:
    """An analysis of these."""
    return Analysis(
        tables={"nodes": nodes, "edges": edges, "advice": [{}, {}]},
        findings=list(findings),
        topic_count=99,
        width_ns=1,
        span=(7, 9),
        notes=["something was not judged"],
    )


def test_the_figures(nodes: Rows, edge: Make, tmp_path: Path) -> None:
    """Counts are sums over the tables; findings are counted by kind and by severity."""
    edges = [
        edge("core/yellow", "edge/blue", messages=6, messages_estimated=24),
        edge("core/yellow", "edge/green", messages=1, messages_estimated=4),
    ]
    kinds = (("loop", ERROR), ("black_hole", WARNING), ("black_hole", WARNING), ("covered", INFO))
    found = [Finding(kind=kind, severity=severity) for kind, severity in kinds]  # type: ignore[arg-type]
    bad = SetAside(path=Path("/traces/bad.parquet"), reason="damaged")
    inventory = Inventory(files=(file("edge", 30, 0.25), file("core", 12, None)), set_aside=(bad,))
    summary = summary_of(inventory, analysis(nodes, edges, *found), tmp_path, 1.234)
    assert (summary.files, summary.rows, summary.size_bytes) == (2, 42, 20)
    assert summary.set_aside == [{"path": "/traces/bad.parquet", "reason": "damaged"}]
    assert summary.sampling == {"edge": 0.25}
    assert (summary.routers, summary.vpns, summary.bridges, summary.topics) == (2, 3, 2, 99)
    assert (summary.ingress, summary.ingress_estimated) == (15, 60)
    assert (summary.bridged, summary.bridged_estimated) == (7, 28)
    assert (summary.delivered, summary.delivered_estimated) == (4, 16)
    assert (summary.discarded, summary.rejected) == (2, 1)
    assert summary.findings == {"loop": 1, "black_hole": 2, "covered": 1}
    assert (summary.errors, summary.warnings, summary.advice) == (1, 2, 2)
    assert (summary.first_ns, summary.last_ns, summary.seconds) == (7, 9, 1.2)
    assert summary.notes == ["something was not judged"]
    assert summary.page == str(tmp_path / "report.html")


def test_an_estimate_needs_every_rate(nodes: Rows, edge: Make, tmp_path: Path) -> None:
    """Where one message VPN or one bridge has none, the sum has none; the others keep theirs."""
    nodes[1]["ingress_estimated"] = None
    edges = [edge("core/yellow", "edge/blue", messages=6, messages_estimated=None)]
    inventory = Inventory(files=(), set_aside=())
    summary = summary_of(inventory, analysis(nodes, edges), tmp_path, 1.0)
    assert (summary.ingress, summary.ingress_estimated) == (15, None)
    assert (summary.bridged, summary.bridged_estimated) == (6, None)
    assert summary.delivered_estimated == 16


def test_nothing_at_all(tmp_path: Path) -> None:
    """A mesh in which nothing was seen has figures as well, and no page where none was asked for."""
    inventory = Inventory(files=(), set_aside=())
    summary = summary_of(inventory, analysis([], []), tmp_path, 0.0, paged=False)
    assert (summary.vpns, summary.ingress, summary.ingress_estimated) == (0, 0, 0)
    assert (summary.findings, summary.errors, summary.warnings) == ({}, 0, 0)
    assert summary.page == ""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.advice.context import Scene
from vpnrouter.report.advice.ways import (
    moves,
    relieve_endpoint,
    set_clock,
    spread_partitions,
)
from vpnrouter.report.schema import ERROR, Finding

Make = Callable[..., dict[str, Any]]
MakeScene = Callable[..., Scene]
MakeFinding = Callable[..., Finding]


def test_an_endpoint_that_blocks(scene: MakeScene, finding: MakeFinding) -> None:
    """Its spans together, and the bridge that stands behind it."""
    findings = [
        finding(
            "head_of_line",
            "a/x > b/x",
            severity=ERROR,
            bridge="q",
            endpoint="orders",
            reason="full",
            messages=10,
            value=seconds,
        )
        for seconds in (5.0, 7.0)
    ]
    stalled = finding("stalled_bridge", "a/x > b/x", bridge="q", messages=300)
    (item,) = relieve_endpoint(scene(*findings), [*findings, stalled])
    assert item.advice.startswith("Give endpoint orders in b/x a higher quota")
    assert item.evidence == (
        "It refused 20 times for 12.0 s in all (full) what came first, and with it bridge q"
        " (a/x to b/x). 300 messages stood before the bridge."
    )
    assert (item.severity, item.gain, item.endpoint) == (ERROR, 320, "orders")


def test_partitions_and_clocks(scene: MakeScene, finding: MakeFinding) -> None:
    """Each says what to change and takes its evidence from the finding."""
    skew = finding("skewed_partition", "a/x", endpoint="q", messages=50, value=3.2)
    (item,) = spread_partitions(scene(skew), [skew])
    assert "queue q in a/x" in item.advice
    assert "3.2 times the mean" in item.evidence
    clock = finding("clock_skew", router="a", peer_router="b", value=-2.5)
    (item,) = set_clock(scene(clock), [clock])
    assert (item.router, item.peer_router) == ("a", "b")
    assert "2.5 s off" in item.evidence


@pytest.mark.parametrize(
    ("ingress", "other", "advised"),
    [(0, 100, True), (400, 100, True), (2_000, 100, False), (0, 1_500, False)],
)
def test_a_message_vpn_that_only_passes_on(
    scene: MakeScene, edge: Make, node: Make, ingress: int, other: int, advised: bool
) -> None:
    """Only where few clients are near it and most of it goes to and from one other router."""
    edges = [
        edge("far/x", "near/relay", messages=1_000, bytes=10),
        edge("near/relay", "far/y", messages=1_000, bytes=10),
        edge("near/relay", "else/x", messages=other),
    ]
    found = list(moves(scene(edges=edges, nodes=[node("near", "relay", ingress=ingress)])))
    assert [one.advice for one in found] == (
        ["Move message VPN relay from router near to router far, or bridge past it."]
        if advised
        else []
    )
    if advised:
        assert found[0].effect.startswith("2,000 messages and 20 B")


def test_no_move_within_a_router(scene: MakeScene, edge: Make, node: Make) -> None:
    """What joins message VPNs of one router is where it should be, and what is not traced is not judged."""
    edges = [edge("a/x", "a/y", messages=9_000), edge("b/x", "b/z", messages=9_000)]
    nodes = [node("a", "y"), node("b", "z", traced=False)]
    assert list(moves(scene(edges=edges, nodes=nodes))) == []

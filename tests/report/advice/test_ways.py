from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.advice.context import Scene
from vpnrouter.report.advice.ways import (
    add_link,
    break_loop,
    drop_way,
    end_in_vain,
    relieve_bridge,
    repair_link,
)
from vpnrouter.report.schema import ERROR, INFO, Finding
from vpnrouter.report.structure.cuts import SecondWay

Make = Callable[..., dict[str, Any]]
MakeScene = Callable[..., Scene]
MakeFinding = Callable[..., Finding]
CLEAR: dict[str, Any] = {"cut": False}


@pytest.mark.parametrize(
    "detail",
    [
        "5 times a message came back on the loop a/x>b/y y>c/z>a/x.",
        "5 times a message came back on the loop a/x>b/y y>c/z>a/x. And 1,200 more of this kind.",
        "a/x>b/y y>c/z>a/x",
    ],
)
def test_the_least_bridge_of_a_loop(
    scene: MakeScene, finding: MakeFinding, edge: Make, detail: str
) -> None:
    """It gives up the filter that all the others have as well."""
    edges = [
        edge("a/x", "b/y y", messages=50, **CLEAR),
        edge("b/y y", "c/z", messages=20, **CLEAR),
        edge("c/z", "a/x", messages=90, **CLEAR),
    ]
    held = [
        {"router": "a", "vpn": "x", "client": "#bridge/b/y y/fares", "filter": ">"},
        {"router": "b", "vpn": "y y", "client": "#bridge/c/z/fares", "filter": "t/*"},
        {"router": "b", "vpn": "y y", "client": "#bridge/c/z/fares", "filter": "u"},
        {"router": "c", "vpn": "z", "client": "#bridge/a/x/fares", "filter": "t/>"},
    ]
    loop = finding("loop", "a/x", severity=ERROR, messages=5, bytes=100, detail=detail)
    (item,) = break_loop(scene(loop, edges=edges, subscriptions=held), [loop])
    assert item.advice.startswith("Drop the remote subscription t/* on bridge fares (b/y y to c/z)")
    assert (item.router, item.peer_vpn, item.topic, item.gain) == ("c", "y y", "t/*", 5)
    assert "this bridge carries the least of the loop, 20 messages." in item.evidence


def test_a_loop_of_unknown_bridges(scene: MakeScene, finding: MakeFinding) -> None:
    """There is still something to say."""
    loop = finding("loop", "a/x", severity=ERROR, detail="it goes round")
    (item,) = break_loop(scene(loop), [loop])
    assert item.advice == "Drop one of the remote subscriptions that make a loop at a/x."


def test_a_loop_that_was_stopped(scene: MakeScene, finding: MakeFinding) -> None:
    """Both reasons for one bridge are one piece of advice."""
    findings = [
        finding("loop_stopped", "a/x > b/x", bridge="q", messages=3, severity=INFO, reason=one)
        for one in ("loop-detected", "ttl-exceeded")
    ]
    (item,) = end_in_vain(scene(*findings), findings)
    assert "bridge q (a/x to b/x)" in item.advice
    assert "6 traced messages came over it only to be discarded (loop-detected, ttl-exceeded)" in (
        item.evidence
    )


def test_two_ways_and_their_duplicates(scene: MakeScene, finding: MakeFinding) -> None:
    """Duplicates at clients where messages come by two ways have their cause there."""
    findings = [
        finding("duplicate", "a/x", client="c", messages=9, value=9.0, detail="dup."),
        finding("two_ways", "a/x", messages=4, value=4.0, detail="Both b/x:q and c/x:r."),
    ]
    (item,) = drop_way(scene(*findings), findings)
    assert item.advice.startswith("Let what comes to a/x by two ways come by one")
    assert (item.evidence, item.effect) == (
        "Both b/x:q and c/x:r.",
        "4 copies less of 4 traced messages.",
    )
    (alone,) = drop_way(scene(*findings[:1]), findings[:1])
    assert alone.advice.startswith("See why c in a/x gets messages twice")


def test_a_link_that_fails(scene: MakeScene, finding: MakeFinding, edge: Make) -> None:
    """Flaps and stalls of one bridge, and how much hangs on it."""
    findings = [
        finding("flapping_link", "a/x > b/x", bridge="fares", value=12.0, detail="Flaps."),
        finding("stalled_bridge", "a/x > b/x", bridge="fares", value=90.0, detail="Stands."),
    ]
    here = scene(*findings, edges=[edge("a/x", "b/x", messages=1_000, cut=True)])
    (item,) = repair_link(here, findings)
    assert item.evidence == "Flaps. Stands."
    assert item.effect == (
        "12 interruptions less and 90.0 s less without messages, for 1,000 traced messages that"
        " cross, and nothing leads around it."
    )
    (stall,) = repair_link(scene(findings[1]), findings[1:])
    assert stall.advice.startswith("Find out what holds up bridge fares (a/x to b/x)")


def test_a_hot_bridge(scene: MakeScene, finding: MakeFinding) -> None:
    """Where it brings what nobody wants, that is what to take away first."""
    hot = finding("hot_bridge", "a/x > b/x", bridge="q", messages=70, bytes=7_000, value=0.25)
    broad = finding("over_broad", "a/x > b/x", bridge="q", messages=500)
    other = finding("over_broad", "a/x > c/x", bridge="q", messages=500)
    (plain,) = relieve_bridge(scene(hot, other), [hot])
    assert "a second bridge" in plain.advice
    (item,) = relieve_bridge(scene(hot, broad), [hot])
    assert "which bring what nobody receives" in item.advice
    assert "70 traced messages, 25.0 % of its load" in item.evidence
    assert "500 messages on it were wanted by nobody" in item.evidence


def test_a_second_way(edge: Make) -> None:
    """For cut bridges, around an articulation point, and beside the only link."""
    edges = [edge("a/x", "b/x", messages=5), edge("b/x", "c/x", bridge="q", messages=9)]
    way = SecondWay(("a", "x"), ("c", "x"), 3, 14, (0, 1), None, beside=False)
    item = add_link(way, edges)
    assert item.advice == "Add a link between a/x and c/x."
    assert item.evidence.startswith(
        "Today each of these holds together what falls apart without it:"
    )
    assert (item.bridge, item.severity) == ("q", INFO)
    assert item.effect == "3 pairs of message VPNs get a second way."
    beside = add_link(way._replace(rows=(0,), beside=True), edges)
    assert beside.advice == "Add a second link beside the one between a/x and c/x."
    assert "bridge fares (a/x to b/x) is the only link there" in beside.evidence
    past = add_link(way._replace(rows=(), past=("b", "x")), edges)
    assert (past.router, past.bridge) == ("b", None)

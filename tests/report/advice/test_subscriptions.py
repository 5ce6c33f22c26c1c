from collections.abc import Callable
from typing import Any

from vpnrouter.report.advice.context import Scene
from vpnrouter.report.advice.subscriptions import (
    add_for_black_holes,
    drop_covered,
    drop_unmatched,
    narrow,
)
from vpnrouter.report.schema import INFO, Finding

Make = Callable[..., dict[str, Any]]
MakeScene = Callable[..., Scene]
MakeFinding = Callable[..., Finding]


def test_idle_subscriptions(scene: MakeScene, finding: MakeFinding) -> None:
    """Clients with the same idle filters are one piece of advice, others have one each."""
    idle = [
        finding("never_matched", "a/x", client="one", topic="old/>", messages=10),
        finding("never_matched", "a/x", client="two", topic="old/>", messages=10),
        finding("never_matched", "a/x", client="three", topic="b", messages=10),
        finding("never_matched", "a/x", client="three", topic="c", messages=10),
    ]
    both, three = drop_unmatched(scene(*idle), idle)
    assert both.advice == "Drop the subscription old/> of clients one, two in a/x."
    assert (both.topic, both.client) == ("old/>", None)
    assert three.advice == "Drop the subscriptions b, c of client three in a/x."
    assert (three.topic, three.client) == (None, "three")
    assert "none of up to 10 traced messages" in three.evidence


def test_a_black_hole_that_others_wait_for(
    scene: MakeScene, finding: MakeFinding, edge: Make
) -> None:
    """The subscription goes on each bridge of the way there; who waits is not told to give up."""
    hole = finding("black_hole", "a/x", topic="fares/eu", messages=40, bytes=2_048)
    lost = finding("black_hole", "a/x", topic="junk", messages=2, bytes=10)
    idle = finding("never_matched", "c/x", client="shop", topic="fares/>")
    here = scene(hole, lost, idle, edges=[edge("a/x", "b/x"), edge("b/x", "c/x", bridge="on")])
    bridged, junk = add_for_black_holes(here, [hole, lost])
    assert bridged.advice == (
        "Add the remote subscription fares/> on bridge fares (a/x to b/x) and on bridge on (b/x to c/x)."
    )
    assert (bridged.router, bridged.peer_router, bridged.bridge) == ("c", "b", "on")
    assert (bridged.topic, bridged.gain) == ("fares/>", 40)
    assert "40 traced messages on fares/eu matched nothing, while shop in c/x" in bridged.evidence
    assert "2.00 KiB" in bridged.effect
    assert junk.advice == "In a/x: subscribe to junk, or stop publishing there."
    assert list(drop_unmatched(here, [idle])) == []


def test_a_black_hole_without_a_way(scene: MakeScene, finding: MakeFinding) -> None:
    """Then a bridge is needed."""
    hole = finding("black_hole", "a/x", topic="fares/eu", messages=40)
    idle = finding("never_matched", "c/x", client="shop", topic="fares/>")
    (item,) = add_for_black_holes(scene(hole, idle), [hole])
    assert item.advice == "Add a bridge from a/x to c/x with the remote subscription fares/>."
    assert (item.router, item.peer_router, item.bridge) == ("c", "a", None)


def test_a_bridge_that_brings_too_much(scene: MakeScene, finding: MakeFinding, edge: Make) -> None:
    """What to subscribe to instead, what to drop and what to leave out, in one sentence."""
    fields = {"bridge": "fares", "client": "#bridge/b/x/fares", "bytes": 512}
    findings = [
        finding(
            "over_broad", "a/x > b/x", topic=">", messages=90, value=0.9, detail="p/>, q", **fields
        ),
        finding(
            "over_broad",
            "a/x > b/x",
            topic="old/>",
            messages=5,
            value=1.0,
            detail="drop it",
            **fields,
        ),
        finding("wasted_crossing", "a/x > b/x", topic="r/1", messages=5, value=0.2, **fields),
    ]
    (item,) = narrow(scene(edges=[edge("a/x", "b/x", messages=200)]), findings)
    assert item.advice == (
        "On bridge fares (a/x to b/x): subscribe to p/>, q in place of >; drop the subscription old/>;"
        " leave out r/1 with an exception or a narrower filter."
    )
    assert item.evidence == (
        "100 messages that nobody received crossed it, of 200 messages in all;"
        " the worst filter wastes 100.0 %."
    )
    assert item.effect == "100 messages and 1.50 KiB of traced payload need not cross."
    assert (item.gain, item.topic) == (100, None)


def test_covered(scene: MakeScene, finding: MakeFinding) -> None:
    """A filter that another one takes in."""
    one = finding("covered", "a/x", client="c", topic="a/b", severity=INFO, detail="a/> covers it")
    (item,) = drop_covered(scene(one), [one])
    assert item.advice == "Drop the subscription a/b of client c in a/x."
    assert item.evidence == "Of a/b: a/> covers it."
    assert item.score == 0.0

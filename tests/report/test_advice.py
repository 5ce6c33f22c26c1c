"""Findings of one cause become one piece of advice, the most urgent first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from vpnrouter.report.advice import advise as module
from vpnrouter.report.advice.advise import REMEDIES, advise
from vpnrouter.report.advice.context import (
    Advice,
    MeshContext,
)
from vpnrouter.report.advice.paths import (
    add_link,
    break_loop,
    drop_redundant_path,
    moves,
    narrow_stopped_loop,
    relieve_bridge,
    relieve_endpoint,
    repair_link,
    set_clock,
    spread_partitions,
)
from vpnrouter.report.advice.subscriptions import (
    add_for_black_holes,
    add_to_configuration,
    apply_configuration,
    drop_covered,
    drop_unmatched,
    narrow,
)
from vpnrouter.report.schema import ADVICE, ERROR, INFO, WARNING, Finding, Rows, Severity
from vpnrouter.report.structure.cuts import RedundantLink
from vpnrouter.report.structure.structure import structure


def finding(kind: str, place: str = "", **more: Any) -> Finding:
    """Makes a finding from its kind, its place "router/vpn" or "from > to" and other fields."""
    start, _, goal = place.rpartition(" > ")
    fields: dict[str, Any] = {"severity": WARNING}
    if goal:
        fields["router"], _, fields["vpn"] = goal.partition("/")
    if start:
        fields["peer_router"], _, fields["peer_vpn"] = start.partition("/")
    return Finding(kind=kind, **{**fields, **more})


def context(
    *findings: Finding,
    edges: Sequence[Any] = (),
    nodes: Sequence[Any] = (),
    subscriptions: Sequence[Any] = (),
) -> MeshContext:
    """Makes a context of findings, edges, nodes and what bridges subscribe to."""
    return MeshContext(findings, list(nodes), list(edges), list(subscriptions))


Make = Callable[..., dict[str, Any]]


@pytest.fixture
def edges(edge: Make) -> Rows:
    """A ring of three: nothing hangs on one link."""
    ring = ["a/x", "b/x", "c/x", "a/x"]
    return [edge(start, goal, messages=9) for start, goal in pairwise(ring)]


def actions(rows: Rows) -> list[tuple[str, Any]]:
    """Action and router of each piece of advice."""
    return [(row["action"], row["router"]) for row in rows]


def test_the_worst_first(edges: Rows) -> None:
    """By severity, then by what is gained; every row has every column."""
    findings = [
        finding("covered", "a/x", severity=INFO, client="c", topic="t"),
        finding("black_hole", "a/x", topic="t", messages=10),
        finding("black_hole", "b/x", topic="t", messages=10_000),
        finding("loop", "c/x", severity=ERROR, messages=1, detail="c/x>a/x>b/x>c/x"),
        finding("not_examined", "a/x", severity=INFO),
        finding("overlapping", "a/x", severity=INFO, client="c", topic="t"),
    ]
    rows = advise(findings, [], edges, structure([], edges))
    assert actions(rows) == [
        ("break_loop", "a"),
        ("add_subscription", "b"),
        ("add_subscription", "a"),
        ("drop_subscription", "a"),
    ]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    assert all(sorted(row) == sorted(ADVICE.names) for row in rows)
    assert all(row["advice"] and row["evidence"] and row["effect"] for row in rows)


@pytest.mark.parametrize("kind", sorted(REMEDIES))
def test_every_kind_leads_to_advice(edges: Rows, kind: str) -> None:
    """Even with hardly anything filled in."""
    for place in ("a/x", "b/x > a/x"):
        one = finding(kind, place, bridge="fares", topic="t/1", client="c")
        (row,) = advise([one], [], edges, structure([], edges))
        texts = (row["advice"], row["evidence"], row["effect"])
        assert all(text.endswith(".") and "None" not in text for text in texts), texts


def test_one_cause_one_advice(edges: Rows) -> None:
    """A bridge that stands behind a full queue, one that flaps and stands, one that brings too much."""
    findings = [
        finding("head_of_line", "b/x > a/x", bridge="fares", endpoint="q", value=9.0),
        finding("stalled_bridge", "b/x > a/x", bridge="fares", value=9.0, messages=77),
        finding("flapping_link", "a/x > c/x", bridge="fares", value=9.0),
        finding("stalled_bridge", "a/x > c/x", bridge="fares", value=9.0),
        finding("over_broad", "c/x > b/x", bridge="fares", topic=">", detail="t/>"),
        finding("wasted_crossing", "c/x > b/x", bridge="fares", topic="u"),
        finding("two_ways", "b/x", messages=5),
        finding("duplicate", "b/x", client="c", messages=5),
        finding("never_matched", "c/x", client="c", topic="v"),
        finding("covered", "c/x", client="c", topic="v"),
    ]
    rows = advise(findings, [], edges, structure([], edges))
    assert sorted(actions(rows)) == [
        ("drop_subscription", "c"),
        ("drop_way", "b"),
        ("narrow_subscription", "b"),
        ("relieve_endpoint", "a"),
        ("repair_link", "c"),
    ]
    blocked = next(row for row in rows if row["action"] == "relieve_endpoint")
    assert "77 messages stood before the bridge" in blocked["evidence"]


def test_a_black_hole_saves_a_subscription(edges: Rows) -> None:
    """What nobody matched is not dropped where messages are found for it, in whichever order they come."""
    findings = [
        finding("never_matched", "b/x", client="c", topic="t/>"),
        finding("black_hole", "a/x", topic="t/1", messages=10),
    ]
    (row,) = advise(findings, [], edges, structure([], edges))
    assert row["advice"] == "Add the remote subscription “t/>” on bridge fares (a/x to b/x)."


def test_what_is_new_says_so(edges: Rows) -> None:
    """With changes to compare with."""
    change = {
        "what": "finding",
        "change": "new",
        "measure": "clock_skew",
        "router": "a",
        **dict.fromkeys(("vpn", "peer_router", "peer_vpn", "bridge")),
    }
    findings = [finding("clock_skew", router=router, value=3.0) for router in "ab"]
    rows = advise(findings, [], edges, structure([], edges), [change])
    marked = [row["router"] for row in rows if row["evidence"].endswith("compared with.")]
    assert marked == ["a"]


def test_links_to_add_come_last(edge: Make) -> None:
    """Structure is no trouble by itself."""
    edges = [edge("a/x", "b/x", messages=10**9), edge("b/x", "c/x", messages=10**9)]
    findings = [finding("clock_skew", router="a", value=3.0)]
    rows = advise(findings, [], edges, structure([], edges))
    assert actions(rows)[0] == ("set_clock", "a")
    assert {action for action, _ in actions(rows)[1:]} == {"add_link"}


def test_bounded(edges: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """No action hides the others, and the list ends."""
    monkeypatch.setattr(module, "REPORT_ADVICE", 3)
    monkeypatch.setattr(module, "REPORT_ADVICE_ACTION", 2)
    findings = [
        finding("black_hole", f"r{number}/x", topic="t", messages=number) for number in range(9)
    ]
    findings += [finding("clock_skew", router=router, value=1.0) for router in "abc"]
    rows = advise(findings, [], edges, structure([], edges))
    assert [row["action"] for row in rows] == ["add_subscription", "add_subscription", "set_clock"]


def test_what_follows_goes_without_saying() -> None:
    """A missing message VPN has no bridges, and a missing bridge has no subscriptions."""
    findings = [
        finding("missing_vpn", "a/x", severity=ERROR, detail="at f:1:1"),
        finding("missing_bridge", "b/x > a/x", severity=ERROR, bridge="p"),
        finding("missing_bridge", "b/x > a/y", severity=ERROR, bridge="q"),
        finding("missing_subscription", "b/x > a/y", severity=ERROR, bridge="q", topic="t"),
    ]
    (item,) = apply_configuration(context(*findings), findings)
    assert item.advice == (
        "See whether router a runs with the configuration given, and why it lacks message VPN a/x,"
        " bridge q (b/x to a/y)."
    )
    assert item.evidence == (
        "1 message VPN, 1 bridge configured and not seen; of the first: at f:1:1."
    )
    assert (item.severity, item.router, item.vpn) == (ERROR, "a", None)


def test_what_no_file_has() -> None:
    """To be written down, or to go."""
    findings = [
        finding("unknown_vpn", "a/x", detail="was seen, and is not configured"),
        finding("unknown_bridge", "b/x > a/y", bridge="q", messages=7),
    ]
    (item,) = add_to_configuration(context(*findings), findings)
    assert item.advice.endswith("message VPN a/x, bridge q (b/x to a/y).")
    assert (item.gain, item.severity) == (7, WARNING)


def item(severity: Severity, gain: int) -> Advice:
    """A piece of advice of this weight."""
    return Advice(
        action="set_clock", severity=severity, gain=gain, advice="a", evidence="e", effect="f"
    )


def test_an_endpoint_that_blocks() -> None:
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
    (item,) = relieve_endpoint(context(*findings), [*findings, stalled])
    assert item.advice.startswith("Give endpoint “orders” in b/x a higher quota")
    assert item.evidence == (
        "It refused 20 times for 12.0 s in all (full) what came first, and with it bridge q"
        " (a/x to b/x). 300 messages stood before the bridge."
    )
    assert (item.severity, item.gain, item.endpoint) == (ERROR, 320, "orders")


def test_partitions_and_clocks() -> None:
    """Each says what to change and takes its evidence from the finding."""
    skew = finding("skewed_partition", "a/x", endpoint="q", messages=50, value=3.2)
    (item,) = spread_partitions(context(skew), [skew])
    assert "queue “q” in a/x" in item.advice
    assert "3.2 times the mean" in item.evidence
    clock = finding("clock_skew", router="a", peer_router="b", value=-2.5)
    (item,) = set_clock(context(clock), [clock])
    assert (item.router, item.peer_router) == ("a", "b")
    assert "2.5 s off" in item.evidence


@pytest.mark.parametrize(
    ("ingress", "other", "advised"),
    [(0, 100, True), (400, 100, True), (2_000, 100, False), (0, 1_500, False)],
)
def test_a_message_vpn_that_only_passes_on(
    edge: Make, node: Make, ingress: int, other: int, advised: bool
) -> None:
    """Only where few clients are near it and most of it goes to and from one other router."""
    edges = [
        edge("far/x", "near/relay", messages=1_000, bytes=10),
        edge("near/relay", "far/y", messages=1_000, bytes=10),
        edge("near/relay", "else/x", messages=other),
    ]
    found = list(moves(context(edges=edges, nodes=[node("near", "relay", ingress=ingress)])))
    assert [one.advice for one in found] == (
        ["Move message VPN relay from router near to router far, or bridge past it."]
        if advised
        else []
    )
    if advised:
        assert found[0].effect.startswith("2,000 messages and 20 B")


def test_no_move_within_a_router(edge: Make, node: Make) -> None:
    """What joins message VPNs of one router is where it should be, and what is not traced is not judged."""
    edges = [edge("a/x", "a/y", messages=9_000), edge("b/x", "b/z", messages=9_000)]
    nodes = [node("a", "y"), node("b", "z", traced=False)]
    assert list(moves(context(edges=edges, nodes=nodes))) == []


def test_who_waits_for_a_topic() -> None:
    """Clients of other message VPNs whose filter matches, in either dialect; bridges do not count."""
    waiting = [
        finding("never_matched", "b/x", client="one", topic="fares/+"),
        finding("never_matched", "b/x", client="two", topic="fares/>"),
        finding("never_matched", "b/x", client="#bridge/c/x/y", topic="fares/>", bridge="y"),
        finding("never_matched", "a/x", client="three", topic="fares/>"),
        finding("never_matched", "b/x", client="four", topic="#share//"),
    ]
    here = context(*waiting)
    assert [one.client for one in here.wanted.elsewhere(("a", "x"), "fares/eu")] == ["one", "two"]


def test_idle_subscriptions() -> None:
    """Clients with the same idle filters are one piece of advice, others have one each."""
    idle = [
        finding("never_matched", "a/x", client="one", topic="old/>", messages=10),
        finding("never_matched", "a/x", client="two", topic="old/>", messages=10),
        finding("never_matched", "a/x", client="three", topic="b", messages=10),
        finding("never_matched", "a/x", client="three", topic="c", messages=10),
    ]
    both, three = drop_unmatched(context(*idle), idle)
    assert both.advice == "Drop the subscription “old/>” of clients “one”, “two” in a/x."
    assert (both.topic, both.client) == ("old/>", None)
    assert three.advice == "Drop the subscriptions “b”, “c” of client “three” in a/x."
    assert (three.topic, three.client) == (None, "three")
    assert "none of up to 10 traced messages" in three.evidence


def test_a_black_hole_that_others_wait_for(edge: Make) -> None:
    """The subscription goes on each bridge of the way there; who waits is not told to give up."""
    hole = finding("black_hole", "a/x", topic="fares/eu", messages=40, bytes=2_048)
    lost = finding("black_hole", "a/x", topic="junk", messages=2, bytes=10)
    idle = finding("never_matched", "c/x", client="shop", topic="fares/>")
    here = context(hole, lost, idle, edges=[edge("a/x", "b/x"), edge("b/x", "c/x", bridge="on")])
    bridged, junk = add_for_black_holes(here, [hole, lost])
    assert bridged.advice == (
        "Add the remote subscription “fares/>” on bridge fares (a/x to b/x) and on bridge on (b/x to c/x)."
    )
    assert (bridged.router, bridged.peer_router, bridged.bridge) == ("c", "b", "on")
    assert (bridged.topic, bridged.gain) == ("fares/>", 40)
    assert (
        "40 traced messages on “fares/eu” matched nothing, while “shop” in c/x" in bridged.evidence
    )
    assert "2.00 KiB" in bridged.effect
    assert junk.advice == "In a/x: subscribe to “junk”, or stop publishing there."
    assert list(drop_unmatched(here, [idle])) == []


def test_a_black_hole_without_a_way() -> None:
    """Then a bridge is needed."""
    hole = finding("black_hole", "a/x", topic="fares/eu", messages=40)
    idle = finding("never_matched", "c/x", client="shop", topic="fares/>")
    (item,) = add_for_black_holes(context(hole, idle), [hole])
    assert item.advice == "Add a bridge from a/x to c/x with the remote subscription “fares/>”."
    assert (item.router, item.peer_router, item.bridge) == ("c", "a", None)


def test_a_bridge_that_brings_too_much(edge: Make) -> None:
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
    (item,) = narrow(context(edges=[edge("a/x", "b/x", messages=200)]), findings)
    assert item.advice == (
        "On bridge fares (a/x to b/x): subscribe to p/>, q in place of >; drop the subscription old/>;"
        " leave out “r/1” with an exception or a narrower filter."
    )
    assert item.evidence == (
        "100 messages that nobody received crossed it, of 200 messages in all;"
        " the worst filter wastes 100.0 %."
    )
    assert item.effect == "100 messages and 1.50 KiB of traced payload need not cross."
    assert (item.gain, item.topic) == (100, None)


def test_covered() -> None:
    """A filter that another one covers."""
    one = finding("covered", "a/x", client="c", topic="a/b", severity=INFO, detail="a/> covers it")
    (item,) = drop_covered(context(one), [one])
    assert item.advice == "Drop the subscription “a/b” of client “c” in a/x."
    assert item.evidence == "Of a/b: a/> covers it."
    assert item.score == 0.0


CLEAR: dict[str, Any] = {"cut": False}


@pytest.mark.parametrize(
    "detail",
    [
        "5 times a message came back on the loop a/x>b/y y>c/z>a/x.",
        "5 times a message came back on the loop a/x>b/y y>c/z>a/x. And 1,200 more of this kind.",
        "a/x>b/y y>c/z>a/x",
    ],
)
def test_the_least_bridge_of_a_loop(edge: Make, detail: str) -> None:
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
    (item,) = break_loop(context(loop, edges=edges, subscriptions=held), [loop])
    assert item.advice.startswith(
        "Drop the remote subscription “t/*” on bridge fares (b/y y to c/z)"
    )
    assert (item.router, item.peer_vpn, item.topic, item.gain) == ("c", "y y", "t/*", 5)
    assert "this bridge carries the least of the loop, 20 messages." in item.evidence


def test_a_loop_of_unknown_bridges() -> None:
    """There is still something to say."""
    loop = finding("loop", "a/x", severity=ERROR, detail="it goes round")
    (item,) = break_loop(context(loop), [loop])
    assert item.advice == "Drop one of the remote subscriptions that make a loop at a/x."


def test_a_loop_through_a_provider(edge: Make) -> None:
    """Without a bridge in it a link is to go; with one, that bridge may."""
    detail = "1 time a message came back through a provider on the loop a/x>mqtt://b:1>{}a/x."
    alone = finding("loop", "a/x", severity=ERROR, detail=detail.format(""))
    (item,) = break_loop(context(alone), [alone])
    assert item.advice == "Drop one of the links to and from mqtt://b:1 that make a loop at a/x."
    mixed = finding("loop", "a/x", severity=ERROR, detail=detail.format("c/z>"))
    (item,) = break_loop(context(mixed, edges=[edge("c/z", "a/x", **CLEAR)]), [mixed])
    assert "on bridge fares (c/z to a/x)" in item.advice


def test_a_loop_that_was_stopped() -> None:
    """Both reasons for one bridge are one piece of advice."""
    findings = [
        finding("loop_stopped", "a/x > b/x", bridge="q", messages=3, severity=INFO, reason=one)
        for one in ("loop-detected", "ttl-exceeded")
    ]
    (item,) = narrow_stopped_loop(context(*findings), findings)
    assert "bridge q (a/x to b/x)" in item.advice
    assert "6 traced messages came over it only to be discarded (loop-detected, ttl-exceeded)" in (
        item.evidence
    )


def test_two_ways_and_their_duplicates() -> None:
    """Duplicates at clients where messages come by two ways have their cause there."""
    findings = [
        finding("duplicate", "a/x", client="c", messages=9, value=9.0, detail="dup."),
        finding("two_ways", "a/x", messages=4, value=4.0, detail="Both b/x:q and c/x:r."),
    ]
    (item,) = drop_redundant_path(context(*findings), findings)
    assert item.advice.startswith("Let what comes to a/x by two ways come by one")
    assert (item.evidence, item.effect) == (
        "Both b/x:q and c/x:r.",
        "4 copies less of 4 traced messages.",
    )
    (alone,) = drop_redundant_path(context(*findings[:1]), findings[:1])
    assert alone.advice.startswith("See why c in a/x gets messages twice")


def test_a_link_that_fails(edge: Make) -> None:
    """Flaps and stalls of one bridge, and how much hangs on it."""
    findings = [
        finding("flapping_link", "a/x > b/x", bridge="fares", value=12.0, detail="Flaps."),
        finding("stalled_bridge", "a/x > b/x", bridge="fares", value=90.0, detail="Stands."),
    ]
    here = context(*findings, edges=[edge("a/x", "b/x", messages=1_000, cut=True)])
    (item,) = repair_link(here, findings)
    assert item.evidence == "Flaps. Stands."
    assert item.effect == (
        "12 interruptions less and 90.0 s less without messages, for 1,000 traced messages that"
        " cross, and nothing leads around it."
    )
    (stall,) = repair_link(context(findings[1]), findings[1:])
    assert stall.advice.startswith("Find out what holds up bridge fares (a/x to b/x)")


def test_a_hot_bridge() -> None:
    """Where it brings what nobody wants, that is what to take away first."""
    hot = finding("hot_bridge", "a/x > b/x", bridge="q", messages=70, bytes=7_000, value=0.25)
    broad = finding("over_broad", "a/x > b/x", bridge="q", messages=500)
    other = finding("over_broad", "a/x > c/x", bridge="q", messages=500)
    (plain,) = relieve_bridge(context(hot, other), [hot])
    assert "a second bridge" in plain.advice
    (item,) = relieve_bridge(context(hot, broad), [hot])
    assert "which bring what nobody receives" in item.advice
    assert "70 traced messages, 25.0 % of its load" in item.evidence
    assert "500 messages on it were wanted by nobody" in item.evidence


def test_a_second_way(edge: Make) -> None:
    """For cut bridges, around an articulation point, and beside the only link."""
    edges = [edge("a/x", "b/x", messages=5), edge("b/x", "c/x", bridge="q", messages=9)]
    way = RedundantLink(("a", "x"), ("c", "x"), 3, 14, (0, 1), None, beside=False)
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

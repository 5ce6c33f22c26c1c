"""What a mesh loses without a router or a bridge, where its load goes, and what twice the load does."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.planning.questions import Questions, parse_questions
from vpnrouter.report.planning.traffic import Traffic
from vpnrouter.report.planning.what_if import Outcome, WhatIf, bridge_name, what_if
from vpnrouter.report.schema import WHAT_IF, Rows
from vpnrouter.report.structure.cuts import StepLimitReached

Make = Callable[..., Traffic]
Both = Callable[[str], list[str]]


def answer(traffic: Traffic, *names: str) -> Outcome:
    """What comes without routers "a" and bridges "a>b" (or "a>b>name")."""
    places = [at for at, (router, _) in enumerate(traffic.mesh.places) if router in names]
    rows = [at for at, edge in enumerate(traffic.edges) if _arc(edge) in names]
    return WhatIf(traffic).without(places, rows)


def _arc(edge: dict[str, Any]) -> str:
    name = "" if edge["bridge"] == "b" else f">{edge['bridge']}"
    return f"{edge['from_router']}>{edge['to_router']}{name}"


def lost(traffic: Traffic, outcome: Outcome) -> dict[str, int]:
    """Messages of lost pairs, "a>c"."""
    names = [router for router, _ in traffic.mesh.places]
    return {f"{names[one]}>{names[other]}": count for (one, other), count in outcome.lost.items()}


def added(traffic: Traffic, outcome: Outcome) -> dict[str, int]:
    """Messages more by bridge."""
    return {_arc(traffic.edges[one.row]): one.added for one in outcome.rises}


def test_a_chain_falls_apart(traffic: Make, both: Both) -> None:
    """What hangs behind the break is lost with it; pairs on one side are not concerned; nothing has another way."""
    made = traffic(both("a-b b-c c-d"), {"a>b": 8, "a>b>c": 8, "a>b>c>d": 8, "d>c": 5})
    outcome = answer(made, "b>c")
    assert lost(made, outcome) == {"a>c": 8, "a>d": 8}
    assert (outcome.rises, outcome.rerouted, outcome.own) == ([], 0, 0)
    outcome = answer(made, "b")
    assert lost(made, outcome) == {"a>c": 8, "a>d": 8}
    assert outcome.own == 8
    assert lost(made, answer(made, "c>b")) == {}


def test_a_ring_leads_the_other_way_round(traffic: Make, both: Both) -> None:
    """The place behind the break gets its messages from the nearest place that has them, and passes them on."""
    ways = {"a>b": 10, "a>b>c": 10, "a>b>c>d": 4, "d>e": 6}
    made = traffic(both("a-b b-c c-d d-e e-a"), ways)
    outcome = answer(made, "b>c")
    assert added(made, outcome) == {"a>e": 10, "e>d": 10, "d>c": 10}
    assert (lost(made, outcome), outcome.rerouted) == ({}, 10)
    outcome = answer(made, "c")
    assert added(made, outcome) == {"a>e": 4, "e>d": 4}
    assert (lost(made, outcome), outcome.own, outcome.rerouted) == ({}, 10, 4)


def test_a_bridge_beside_takes_over(traffic: Make) -> None:
    """Two bridges of one direction: nothing is lost, the ways over both go on."""
    made = traffic(["a>b>x", "a>b>y", "b>c"], {"a>b:x": 30, "a>b:y": 10, "a>b>c": 5})
    outcome = answer(made, "a>b>x")
    assert added(made, outcome) == {"a>b>y": 30}
    # 30 of x, half and half in two seconds, beside 5 in each.
    assert [one.peak for one in outcome.rises] == [20 / 5]
    assert outcome.lost == {}
    assert lost(made, answer(made, "a>b>x", "a>b>y")) == {"a>b": 40, "a>c": 5}


def test_a_lost_place_does_not_take_others_with_it(traffic: Make) -> None:
    """With bridges of one direction c has a way of its own where b has none, and what comes behind c hangs on that."""
    ways = {"a>b": 7, "a>b>c": 7, "a>b>c>d": 7}
    made = traffic(["a>b", "b>c", "a>x", "x>c", "c>d"], ways)
    outcome = answer(made, "a>b")
    assert lost(made, outcome) == {"a>b": 7}
    assert added(made, outcome) == {"a>x": 7, "x>c": 7}


def test_several_vpns_of_a_router_go_together(traffic: Make) -> None:
    """A way that steps through two message VPNs of the router breaks once."""
    arcs = ["a>r/one", "r/one>r/two", "r/two>c", "a>c>spare"]
    made = traffic(arcs, {"a>r/one": 9, "a>r/one>r/two": 9, "a>r/one>r/two>c": 9})
    outcome = answer(made, "r")
    assert added(made, outcome) == {"a>c>spare": 9}
    assert (outcome.lost, outcome.own) == ({}, 18)


def test_load_moves_with_its_times(traffic: Make) -> None:
    """The busiest stretch after is where both are busy; an idle bridge has no factor."""
    arcs = ["a>b", "a>c", "c>b"]
    rates = {"a>b": [8, 0, 2, 0], "a>c": [1, 6, 1, 0]}
    made = traffic(arcs, {"a>b": 10, "a>c": 8}, rates=rates)
    (busy, idle) = answer(made, "a>b").rises
    assert (_arc(made.edges[busy.row]), busy.added, busy.peak) == ("a>c", 10, 9 / 6)
    assert (_arc(made.edges[idle.row]), idle.added, idle.peak) == ("c>b", 10, None)


def test_twice_the_load(traffic: Make) -> None:
    """What a message VPN publishes comes once more, when it was published: a bridge exceeds its peak only if it is
    busy then.
    """
    rates = {"a>b": [4, 4, 10, 0], "b>c": [1, 1, 10, 0]}
    made = traffic(
        ["a>b", "b>c"],
        {"a>b": 18, "a>b>c": 8, "b>c": 4},
        rates=rates,
        published={"a": [9, 9, 0, 0], "b": [0, 0, 3, 0]},
    )
    numbers = made.mesh.numbers
    first = WhatIf(made).doubled(numbers["a", "v"]).rises
    assert [(one.added, one.peak) for one in first] == [(18, 13 / 10), (8, 1.0)]
    (second,) = WhatIf(made).doubled(numbers["b", "v"]).rises
    assert (_arc(made.edges[second.row]), second.added, second.peak) == ("b>c", 4, 14 / 10)
    assert WhatIf(made).doubled(numbers["c", "v"]) == Outcome()


def random_traffic(make: Make, draw: random.Random) -> Traffic:
    """A random mesh of one-way and two-way bridges, with ways that are shortest ones."""
    count = draw.randrange(4, 14)
    names = [f"r{at // 2}/v{at}" for at in range(count)]
    arcs: set[tuple[int, int]] = set()
    for _ in range(draw.randrange(count, 3 * count)):
        one, other = draw.sample(range(count), 2)
        arcs.add((one, other))
        if draw.random() < 0.5:
            arcs.add((other, one))
    out: dict[int, list[int]] = {}
    for one, other in sorted(arcs):
        out.setdefault(one, []).append(other)
    ways: dict[tuple[int, ...], int] = {}
    for origin in range(count):
        before = {origin: origin}
        rim = deque([origin])
        while rim:
            here = rim.popleft()
            for there in out.get(here, ()):
                if there not in before:
                    before[there] = here
                    rim.append(there)
        for goal in before:
            way = [goal]
            while way[-1] != origin:
                way.append(before[way[-1]])
            if goal != origin and draw.random() < 0.6:
                # What comes to a place has come to all places before.
                for end in range(1, len(way)):
                    part = tuple(reversed(way[-end - 1 :]))
                    ways[part] = ways.get(part, 0) + draw.randrange(1, 20)
    texts = [f"{names[one]}>{names[other]}" for one, other in sorted(arcs)]
    return make(texts, {">".join(names[at] for at in way): count for way, count in ways.items()})


@pytest.mark.parametrize("seed", range(60))
def test_against_another_calculation(traffic: Make, seed: int) -> None:
    """For each bridge and each router: pairs are apart if no way of bridges leads from one to the other any more, and
    what is rerouted goes over as many bridges as the shortest way from a place that has it.
    """
    made = random_traffic(traffic, random.Random(seed))
    graph = made.mesh.directed()
    routers: dict[str, list[int]] = {}
    for at, (router, _) in enumerate(made.mesh.places):
        routers.setdefault(router, []).append(at)
    breaks = [((), (row,)) for row in range(len(made.edges))]
    breaks += [(tuple(places), ()) for places in routers.values()]  # type: ignore[misc]
    for places, rows in breaks:
        left = nx.DiGraph(graph)
        left.remove_edges_from([made.mesh.ends[row] for row in rows])
        left.remove_nodes_from(places)
        outcome = WhatIf(made).without(places, rows)
        pairs = {
            (one.places[0], one.places[-1])
            for one in made.routes
            if not {one.places[0], one.places[-1]} & {*places}
        }
        apart = {pair for pair in pairs if not nx.has_path(left, *pair)}
        assert outcome.lost == {pair: made.received[pair] for pair in apart}
        assert sum(one.added for one in outcome.rises) == _crossings(made, left, places)
        own = [n for pair, n in made.received.items() if {*pair} & {*places}]
        assert outcome.own == sum(own)


def _crossings(made: Traffic, left: Any, places: tuple[int, ...]) -> int:
    """Crossings that are made instead of those that go, by the rules in words: place after place along each way."""
    total = 0
    fine: dict[tuple[int, ...], bool] = {}
    for route in sorted(made.routes, key=lambda one: len(one.places)):
        way = route.places
        if way[0] in places or way[-1] in places:
            continue
        # Who has the messages: all up to the first break.
        have = [way[0]]
        for one, other in pairwise(way):
            if not left.has_edge(one, other):
                break
            have.append(other)
        if len(have) == len(way):
            fine[way] = True
            continue
        previous = max(at for at in range(len(way) - 1) if way[at] not in places)
        whole = previous == len(way) - 2 and left.has_edge(way[previous], way[-1])
        if whole and fine[way[: previous + 1]]:
            fine[way] = True
            continue
        lengths = [
            nx.shortest_path_length(left, one, way[-1])
            for one in have
            if nx.has_path(left, one, way[-1])
        ]
        fine[way] = bool(lengths)
        total += min(lengths, default=0) * route.messages
    return total


def test_rows_of_the_worst(traffic: Make, both: Both) -> None:
    """Of each kind those that lose the most come first, and as many as there may be; names and figures are in place."""
    ways = {"a>b": 8, "a>b>c": 8, "c>d": 4}
    made = traffic(both("a-b b-c c-d d-b"), ways, published={"a": [4, 0, 0, 0]})
    rows, notes = what_if(made, most=2)
    assert notes == []
    assert all(row.keys() == set(WHAT_IF.names) for row in rows)
    kinds = [(row["kind"], row["question"]) for row in rows]
    assert kinds == [
        ("router", "without b"),
        ("router", "without a"),
        ("bridge", "without b/v:b"),
        ("bridge", "without c/v:b"),
        ("double", "double a/v"),
    ]
    router, _, bridge, _, double = rows
    assert (router["pairs_lost"], router["lost_per_s"], router["own_per_s"]) == (1, 2.0, 2.0)
    assert router["detail"] == "1 pair of message VPNs is apart, first a/v and c/v"
    assert (bridge["peer_router"], bridge["router"], bridge["vpns_lost"]) == ("a", "b", 3)
    assert double["detail"].startswith("2 bridges carry more, first b/v:b with")
    assert (double["before_per_s"], double["after_per_s"], double["rise_factor"]) == (2.0, 4.0, 2.0)
    assert (double["pairs_lost"], double["lost_per_s"]) == (None, None)


def test_what_takes_too_long_is_told(traffic: Make, both: Both) -> None:
    """The busiest are worked out first."""
    made = traffic(both("a-b b-c c-d d-b"), {"a>b": 8, "a>b>c": 8, "c>d": 4})
    with pytest.raises(StepLimitReached):
        WhatIf(made, 1).without((), (0,))
    whole = [row["question"] for row in what_if(made).rows]
    rows, (note,) = what_if(made, most_steps=20)
    found = [row["question"] for row in rows]
    assert {"without b", "without b/v:b"} <= set(found) < set(whole)
    left = len(whole) - len(found)
    assert note.startswith(
        f"what if: {left} routers and bridges that carry the least took too long"
    )


def test_questions_asked(traffic: Make, both: Both) -> None:
    """Only these are answered, with all effects; what goes together is one; what nobody has seen is told."""
    made = traffic(both("a-b b-c c-d d-b"), {"a>b": 8, "a>b>c": 8, "c>d": 4}, published={"a": [4]})
    questions = Questions(("b/v:b", "c"), ("a/v", "x/y"))
    rows, _ = what_if(made, questions)
    found = [(row["question"], row["effect"], row["router"], row["peer_router"]) for row in rows]
    assert found == [
        ("without b/v:b, c", "summary", None, None),
        ("without b/v:b, c", "lost", "b", "a"),
        ("double a/v", "summary", "a", None),
        ("double a/v", "rise", "b", "a"),
        ("double a/v", "rise", "c", "b"),
        ("double x/y", "summary", "x", None),
    ]
    assert {row["kind"] for row in rows} == {"asked"}
    assert rows[-1]["detail"] == "not in the traces: x/y"
    (unknown,) = what_if(made, Questions(("nobody",))).rows
    assert (unknown["detail"], unknown["rising"]) == ("not in the traces: nobody", None)
    (alone, *_) = what_if(made, Questions(("a/v:b",))).rows
    assert (alone["router"], alone["bridge"], alone["peer_router"]) == ("a", "b", "b")
    # From two remote message VPNs.
    (both_ends, *_) = what_if(made, Questions(("c/v:b",))).rows
    assert (both_ends["router"], both_ends["bridge"], both_ends["peer_router"]) == ("c", "b", None)
    (router, *_) = what_if(made, Questions(("c",))).rows
    assert (router["router"], router["vpn"]) == ("c", None)
    assert bridge_name(made.edges[0]) == "b/v:b"


def test_names_on_the_command_line() -> None:
    """Routers, bridges by their local end, message VPNs; a name twice is one question."""
    questions = parse_questions(["core", "core/a/b:fares", "core"], ["edge/blue"])
    assert questions == Questions(("core", "core/a/b:fares"), ("edge/blue",))
    for wrong in ("", "core/yellow", "core/yellow:", "/yellow:x", "core/:x"):
        with pytest.raises(OperationError, match="neither ROUTER nor"):
            parse_questions([wrong], [])
    for wrong in ("core", "core/", "/v"):
        with pytest.raises(OperationError, match="is not ROUTER/VPN"):
            parse_questions([], [wrong])


def test_loops_and_unknown_places_are_no_ways(traffic: Make) -> None:
    """A way that comes back to where it was is left out, and so is one through a place that nobody knows."""
    made = traffic(["a>b", "b>a"], {"a>b": 3, "a>b>a": 3, "b>a": 1})
    assert [one.places for one in made.routes] == [(0, 1), (1, 0)]
    rows: Rows = what_if(made).rows
    assert rows

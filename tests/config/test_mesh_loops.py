"""Loops, held against a naive walk as well."""

import runpy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.mesh.graph import Budget
from vpnrouter.config.mesh.loops import report_loops
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.topics.grammar import SMF
from vpnrouter.topics.oracle import oracle_matches

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, mesh, told, graph_of = (
    KIT[name] for name in ("bridge", "vpn", "mesh", "told", "graph_of")
)


def ring(*filters: str, **more: Any) -> dict[str, Any]:
    """A ring of message VPNs; the bridge from each to the next has one of the filters."""
    names = [f"{letter}/v" for letter in "abcdefgh"[: len(filters)]]
    return {
        name: vpn({"round": bridge(names[index - 1], filters=[filters[index - 1]], **more)})
        for index, name in enumerate(names)
    }


def test_ring() -> None:
    """A topic that all bridges of a ring attract goes round; it is a note that says what stops it."""
    (only,) = told(mesh(ring("w/>", "*/x/>", "w/x/*")), about="loop")
    assert ": note: msg_vpns.v.bridges.round: loop: topic w/x/x published in a/v" in only
    assert "a/v -> b/v -> c/v -> a/v; the visited path stops it in c/v" in only


def test_ring_without_a_common_topic() -> None:
    """Bridges in a ring are no loop as long as no topic passes all of them."""
    assert told(mesh(ring("w/>", "*/x/>", "w/y/*")), about="loop") == []


def test_pair_is_no_loop() -> None:
    """A bridge each way between two message VPNs is the usual bi-directional bridge."""
    assert told(mesh(ring(">", ">"))) == []


def test_hop_limit_below_the_ring() -> None:
    """Nothing goes all the way round where the hop limit ends it before."""
    assert told(mesh(ring(">", ">", ">", max_ttl=2)), about="loop") == []


def test_full_mesh_is_one_tangle() -> None:
    """All loops of one topic among the same message VPNs are told once."""
    names = [f"{letter}/v" for letter in "abcde"]
    data = {
        name: vpn(
            {f"from-{other[0]}": bridge(other, filters=[">"]) for other in names if other != name}
        )
        for name in names
    }
    (only,) = told(mesh(data), about="loop: ")
    assert only.endswith("; 2 more message VPNs are part of such loops")


def test_loop_that_nobody_can_enter() -> None:
    """A ring round which only topics go that nobody may publish there is left alone."""
    data = ring("w", "w", "w")
    for each in data.values():
        each["acl_profiles"] = {"default": {"publish_topic": {"default_action": "disallow"}}}
    assert told(mesh(data), about="loop") == []
    del data["b/v"]["acl_profiles"]
    (only,) = told(mesh(data), about="loop: ")
    assert "published in b/v" in only


FILTERS = ["a", "a/*", "a/>", ">", "*/b", "*", "a/b", "*/*/c"]
TOPICS = ["a", "b", "a/b", "c/b", "a/c", "a/b/c", "x/x/c"]


@st.composite
def meshes(draw: st.DrawFn, limits: list[int]) -> dict[str, dict[str, Any]]:
    """Three to five message VPNs with some bridges between them."""
    names = [f"{letter}/v" for letter in "abcde"[: draw(st.integers(3, 5))]]
    data = {name: vpn() for name in names}
    for number in range(draw(st.integers(3, 10))):
        target, source = draw(st.permutations(names))[:2]
        data[target]["bridges"][f"n{number}"] = bridge(
            source,
            filters=draw(st.lists(st.sampled_from(FILTERS), min_size=1, max_size=2, unique=True)),
            max_ttl=draw(st.sampled_from(limits)),
        )
    return data


def goes_round(
    data: dict[str, dict[str, Any]], way: tuple[str, ...], topic: str, least: int = 3
) -> list[tuple[str, ...]]:
    """The ways back to the first message VPN of `way`, through `least` message VPNs or more."""
    found: list[tuple[str, ...]] = []
    for target, msg_vpn in data.items():
        for each in msg_vpn["bridges"].values():
            source = each["remote_msg_vpns"][0]
            if (
                f"{source['router']}/{source['name']}" != way[-1]
                or len(way) > each["max_ttl"]
                or not any(
                    oracle_matches(text, SMF, topic) for text in each["remote_subscriptions"]
                )
            ):
                continue
            if target == way[0] and len(way) >= least:
                found.append((*way, target))
            elif target not in way:
                found += goes_round(data, (*way, target), topic, least)
    return found


def loops_of(data: dict[str, dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """The loops that are told, each as its topic and the names of its message VPNs."""
    graph = graph_of(mesh(data))
    found = []
    for loop in report_loops(MeshProblems(), graph, Budget(graph, 10_000_000, 1)):
        crossings = [graph.crossings[number] for number in loop.crossings]
        names = [graph.vpns[each.source].name for each in crossings]
        found.append((loop.topic, (*names, names[0])))
    return found


@given(meshes([1, 2, 3, 4, 8]))
def test_told_loops_are_loops(data: dict[str, dict[str, Any]]) -> None:
    """A topic that is said to go round does so step by step."""
    for topic, way in loops_of(data):
        assert way in goes_round(data, way[:1], topic)


@given(meshes([8]))
def test_no_tangle_is_missed(data: dict[str, dict[str, Any]]) -> None:
    """Where some topic goes round, a loop is told."""
    if any(goes_round(data, (name,), topic) for name in data for topic in TOPICS):
        assert loops_of(data)

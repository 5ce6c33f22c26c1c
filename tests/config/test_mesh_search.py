"""The frontier of a search, and its budget."""

import runpy
from pathlib import Path
from typing import Any

from vpnrouter.config.mesh.graph import Budget, Frontier, Step
from vpnrouter.config.mesh.topics import TopicSet
from vpnrouter.topics.grammar import SMF, parse_filter

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
vpn, mesh, graph_of = (KIT[name] for name in ("vpn", "mesh", "graph_of"))


def world() -> tuple[Any, Any]:
    """A graph of one message VPN, and sets of topics by filter."""
    graph = graph_of(mesh({"a/v": vpn()}))

    def topics(text: str) -> TopicSet:
        return TopicSet(graph.topics.number(parse_filter(text, SMF)))

    return graph, topics


def test_two_labels_are_enough() -> None:
    """A third label tells nothing new of topics that two have told of; nor does a label twice."""
    graph, topics = world()
    frontier = Frontier(graph)
    for label in (1, 2):
        step = Step(0, topics("w/>"), label, 0, 0, None)
        assert frontier.is_new(step)
        frontier.take(step)
        assert not frontier.is_new(step)
    assert not frontier.is_new(Step(0, topics("w/x"), 3, 0, 0, None))
    assert frontier.is_new(Step(0, topics("v"), 3, 0, 0, None))
    assert frontier.is_new(Step(0, topics("w/x"), 3, -1, 0, None))
    assert len(frontier.taken(0)) == 2
    assert frontier.taken(1) == []


def test_settled_topics_are_followed_no_further() -> None:
    """What is settled is neither new nor next."""
    graph, topics = world()
    frontier = Frontier(graph)
    first = Step(0, topics("w/>"), 1, 0, 0, None)
    second = Step(0, topics("v/>"), 1, 1, 1, first)
    frontier.take(first)
    frontier.take(second)
    frontier.settle(topics("w/>"))
    assert not frontier.is_new(Step(0, topics("w/x"), 2, 0, 0, None))
    assert frontier.next() is second
    assert frontier.next() is None
    assert second.crossings() == [1, 0]


def test_budget_is_shared_out() -> None:
    """Each search has its share of what the ones before it left, and what was cut is named."""
    graph, _ = world()
    start = graph.topics.steps
    budget = Budget(graph, 100, 2)
    budget.begin()
    graph.topics.steps += 50
    assert not budget.over()
    graph.topics.steps += 1
    assert budget.over()
    budget.end("first", start)
    start = graph.topics.steps
    budget.begin()
    graph.topics.steps += 49
    assert not budget.over()
    graph.topics.steps += 1
    assert budget.over()
    budget.end("", start)
    assert budget.cut == ["first"]

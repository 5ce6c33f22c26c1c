"""Hop limits: chains of bridges that are longer than the last one's `max_ttl`."""

from typing import NamedTuple

from vpnrouter.config.mesh_finding import MeshFindings
from vpnrouter.config.mesh_graph import Crossing, Graph
from vpnrouter.config.mesh_search import Budget, Frontier, Step

_ONE_LABEL = 0


class TooFar(NamedTuple):
    """A topic that, published in `origin`, is discarded at the end of `route`, first bridge first."""

    origin: int
    topic: str
    route: list[int]


def find_too_far(graph: Graph, target: int, budget: Budget) -> tuple[list[TooFar], bool]:
    """Messages that a chain brings to the door of `target` and that its last bridge's hop limit keeps
    out, one for each last bridge, if they do not come in another way. False: the budget ended it.
    """
    frontier = Frontier(graph)
    found: dict[int, TooFar] = {}
    for number in graph.vpns[target].into:
        crossing = graph.crossings[number]
        for topics in () if crossing.mapped else crossing.sure:
            last = Step(crossing.source, topics, _ONE_LABEL, 0, number, None)
            if frontier.is_new(last, labels=1):
                frontier.take(last)
    while (step := frontier.next()) is not None:
        if budget.over():
            return list(found.values()), False
        # `cost` is how many bridges lie between this message VPN and the last bridge.
        ways = step.crossings()
        if ways[-1] in found:
            continue
        if step.cost >= graph.crossings[ways[-1]].max_ttl:
            lost = _lost(graph, target, step, ways)
            if lost is not None:
                found[ways[-1]] = lost
            continue
        for number in graph.vpns[step.vpn].into:
            crossing = graph.crossings[number]
            if crossing.source == target or crossing.mapped:
                continue
            for topics in crossing.sure:
                common = graph.topics.common(step.topics, topics)
                if common is not None:
                    onward = Step(crossing.source, common, _ONE_LABEL, step.cost + 1, number, step)
                    if frontier.is_new(onward, labels=1):
                        frontier.take(onward)
    return list(found.values()), True


def _lost(graph: Graph, target: int, step: Step, ways: list[int]) -> TooFar | None:
    part = graph.vpns[step.vpn].publishers.part_of(step.topics)
    topic = graph.topics.example(part) if part is not None else None
    if topic is None:
        return None
    passed = [graph.crossings[number] for number in ways]
    if not graph.fits(topic, {step.vpn, *(each.target for each in passed)}):
        return None
    hops = graph.reached(topic, step.vpn)
    door = passed[-1].source
    if target in hops or door not in hops or hops[door] < passed[-1].max_ttl:
        return None
    return TooFar(step.vpn, topic, ways)


def tell_too_far(found: MeshFindings, graph: Graph, budget: Budget) -> list[TooFar]:
    """Search the whole mesh for hop limits that chains exceed and tell them."""
    told: list[TooFar] = []
    if any(crossing.mapped for crossing in graph.crossings):
        return told  # a message may come by another way, under another name
    for target, vpn in enumerate(graph.vpns):
        begun = graph.topics.steps
        budget.begin()
        lost, done = find_too_far(graph, target, budget)
        budget.end("" if done else f"hop limits before {vpn.name}", begun)
        told += lost
    # A chain that is too long is so for many bridges: one finding for each topic is enough.
    by_topic: dict[str, list[TooFar]] = {}
    for each in told:
        by_topic.setdefault(each.topic, []).append(each)
    for alike in by_topic.values():
        _tell(found, graph, alike)
    return told


def _tell(found: MeshFindings, graph: Graph, alike: list[TooFar]) -> None:
    lost = alike[0]
    route = [graph.crossings[number] for number in lost.route]
    last: Crossing = route[-1]
    place = last.place
    path = (*place.bridge_path, "max_ttl")
    more = f"; {len(alike) - 1} more bridges keep the topic out so" if len(alike) > 1 else ""
    found.tell_key(
        "warning",
        place.loaded,
        path if place.loaded.positions.has(path) else place.bridge_path,
        f"hop limit: topic {lost.topic} published in {graph.vpns[lost.origin].name} never arrives:"
        f" {graph.route(lost.origin, route)} is {len(route)} bridges, and max_ttl is"
        f" {last.max_ttl}{more}",
    )

"""Finds topics that reach a message VPN by two ways.

From each message VPN the search goes back along its bridges, each with a label of its own. Where two
labels meet on one topic, a message published there arrives by both. At run time a message VPN passes
on the first copy alone, so only the place where the ways come together is told, nothing behind it.
"""

from __future__ import annotations

from typing import NamedTuple, final

from vpnrouter.config.mesh.graph import Budget, Crossing, Frontier, Graph, Step
from vpnrouter.config.mesh.topics import TopicSet
from vpnrouter.config.problem_list import MeshProblems

_DIRECT, _QUEUE = 0, 1


class DoubleDelivery(NamedTuple):
    """A topic that, published in `origin`, reaches `target` over both `routes`, first bridge first.

    `by_queue` says of each route whether its last bridge takes the topic from a queue.
    """

    target: int
    origin: int
    topic: str
    routes: tuple[list[int], list[int]]
    by_queue: tuple[bool, bool]


@final
class DoubleSearch:
    """Finds double deliveries into one message VPN, at most one for each pair of ways in."""

    __slots__ = ("_frontier", "_graph", "_labels", "_target", "found")

    def __init__(self, graph: Graph, target: int) -> None:
        self._graph = graph
        self._target = target
        self._frontier = Frontier(graph)
        self._labels: dict[tuple[tuple[str, str, str], int], int] = {}
        self.found: dict[tuple[int, int], DoubleDelivery] = {}

    def run(self, budget: Budget) -> bool:
        """Search. Return False when the budget ended it."""
        for number in self._graph.vpns[self._target].into:
            crossing = self._graph.crossings[number]
            if crossing.mapped:
                continue
            for kind, sets in ((_DIRECT, crossing.direct), (_QUEUE, crossing.queue)):
                # The remotes of one bridge are alternatives: together they are one way in.
                label = self._labels.setdefault((crossing.bridge, kind), len(self._labels))
                for topics in sets:
                    cost = 1 - crossing.max_ttl
                    self._arrive(Step(crossing.source, topics, label, cost, number, None))
        if len(self._labels) < 2:
            return True
        while (step := self._frontier.next()) is not None:
            if budget.over():
                return False
            self._go_back(step)
        return True

    def _go_back(self, step: Step) -> None:
        graph = self._graph
        for number in graph.vpns[step.vpn].into:
            crossing = graph.crossings[number]
            # `-cost` is how many bridges may have been crossed before this one.
            cost = 1 - min(crossing.max_ttl, -step.cost)
            if crossing.source == self._target or crossing.mapped or cost > 0:
                continue
            for topics in crossing.sure:
                common = graph.topics.common(step.topics, topics)
                if common is not None:
                    self._arrive(Step(crossing.source, common, step.label, cost, number, step))

    def _arrive(self, step: Step) -> None:
        if not self._frontier.is_new(step):
            return
        for other in self._frontier.taken(step.vpn):
            if other.label != step.label:
                common = self._graph.topics.common(other.topics, step.topics)
                if common is not None:
                    self._meet(common, other, step)
        if not self._frontier.is_settled(step.topics):
            self._frontier.take(step)

    def _meet(self, common: TopicSet, one: Step, other: Step) -> None:
        graph = self._graph
        part = graph.vpns[one.vpn].publishers.part_of(common)
        topic = graph.topics.example(part) if part is not None else None
        if part is None or topic is None:
            return
        routes = one.crossings(), other.crossings()
        passed = [graph.crossings[number] for number in (*routes[0], *routes[1])]
        vpns = {one.vpn, *(each.target for each in passed)}
        if not graph.fits(topic, vpns) or needs_two_remotes(passed):
            return
        self._frontier.settle(part)
        by_queue = self._by_queue(one), self._by_queue(other)
        pair = (min(one.label, other.label), max(one.label, other.label))
        self.found.setdefault(pair, DoubleDelivery(self._target, one.vpn, topic, routes, by_queue))

    def _by_queue(self, step: Step) -> bool:
        return any(
            label == step.label and kind == _QUEUE for (_, kind), label in self._labels.items()
        )


def needs_two_remotes(passed: list[Crossing]) -> bool:
    """Return whether two remotes of one bridge would have to be in use at the same time."""
    used: dict[tuple[str, str, str], int] = {}
    return any(used.setdefault(each.bridge, each.number) != each.number for each in passed)


def report_doubles(
    problems: MeshProblems, graph: Graph, target: int, budget: Budget
) -> list[DoubleDelivery]:
    """Search one message VPN for double deliveries and report them."""
    start = graph.topics.steps
    budget.begin()
    search = DoubleSearch(graph, target)
    done = search.run(budget)
    for double in search.found.values():
        _report(problems, graph, double)
    name = graph.vpns[target].name
    budget.end("" if done else f"double delivery into {name}", start)
    return list(search.found.values())


def _report(problems: MeshProblems, graph: Graph, double: DoubleDelivery) -> None:
    routes = [[graph.crossings[number] for number in route] for route in double.routes]
    ways = [
        f"{graph.route(double.origin, route)} ({_how(route[-1], by_queue)})"
        for route, by_queue in zip(routes, double.by_queue, strict=True)
    ]
    last = routes[1][-1]
    place = last.configured
    what = (
        f"topic {double.topic} published in {graph.vpns[double.origin].name} reaches"
        f" {graph.vpns[double.target].name} twice: {ways[0]} and {ways[1]}"
    )
    passed = [*routes[0], *routes[1]]
    if any(double.by_queue):
        place = routes[0][-1].configured if double.by_queue[0] else place
        problems.add(
            "warning",
            place.loaded,
            (*place.path, "queue_binding"),
            f"double delivery: {what}; both copies are delivered{_when(passed)}",
        )
        return
    more = _more_ways(graph, double, {route[-1].bridge for route in routes})
    problems.add_key(
        "note",
        place.loaded,
        place.bridge_path,
        f"redundant traffic: {what}; the second copy is discarded there{more}{_when(passed)}",
    )


def _how(crossing: Crossing, by_queue: bool) -> str:
    queue = crossing.configured.remote.queue_binding
    by = f"by queue {queue}" if by_queue else "Direct"
    return f"bridge {crossing.configured.bridge_name}, {by}"


def _when(passed: list[Crossing]) -> str:
    """Return an addition for what happens only after a fail-over, else ""."""
    second = next((each for each in passed if not each.preferred), None)
    if second is None:
        return ""
    remote = second.configured.remote
    name = second.configured.bridge_name
    return f", while bridge {name} takes from {remote.name} at {remote.location}"


def _more_ways(graph: Graph, double: DoubleDelivery, reported: set[tuple[str, str, str]]) -> str:
    """Return how many more bridges bring the topic as well."""
    hops = graph.reached(double.topic, double.origin, without=double.target)
    more = {
        crossing.bridge
        for crossing in (graph.crossings[each] for each in graph.vpns[double.target].into)
        if crossing.source in hops
        and hops[crossing.source] < crossing.max_ttl
        and graph.carries(crossing, double.topic)
    } - reported
    if not more:
        return ""
    return f"; {len(more)} more bridge{'s bring' if len(more) > 1 else ' brings'} it as well"

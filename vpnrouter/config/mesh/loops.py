"""Finds bridges over which a topic travels all the way round, and chains longer than a hop limit.

Two message VPNs with a bridge each way are no loop: that is the usual bi-directional bridge, over which
nothing goes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, final

from vpnrouter.config.mesh.graph import Budget, Crossing, Frontier, Graph, Step
from vpnrouter.config.problem_list import MeshProblems

_ONE_LABEL = 0


class TooFar(NamedTuple):
    """A topic that, published in `origin`, is discarded at the end of `route`, first bridge first."""

    origin: int
    topic: str
    route: list[int]


def find_too_far(graph: Graph, target: int, budget: Budget) -> tuple[list[TooFar], bool]:
    """Return messages that a chain brings to the door of `target` and that its last bridge's hop limit keeps
    out, one for each last bridge, if they do not come in another way. False: the budget ended it.
    """
    frontier = Frontier(graph)
    lost_by_bridge: dict[int, TooFar] = {}
    for number in graph.vpns[target].into:
        crossing = graph.crossings[number]
        for topics in () if crossing.mapped else crossing.sure:
            last = Step(crossing.source, topics, _ONE_LABEL, 0, number, None)
            if frontier.is_new(last, labels=1):
                frontier.take(last)
    while (step := frontier.next()) is not None:
        if budget.over():
            return list(lost_by_bridge.values()), False
        # `cost` is how many bridges lie between this message VPN and the last bridge.
        ways = step.crossings()
        if ways[-1] in lost_by_bridge:
            continue
        if step.cost >= graph.crossings[ways[-1]].max_ttl:
            lost = _lost(graph, target, step, ways)
            if lost is not None:
                lost_by_bridge[ways[-1]] = lost
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
    return list(lost_by_bridge.values()), True


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


def report_too_far(problems: MeshProblems, graph: Graph, budget: Budget) -> list[TooFar]:
    """Search the whole mesh for hop limits that chains exceed and report them."""
    reported: list[TooFar] = []
    if any(crossing.mapped for crossing in graph.crossings):
        return reported  # a message may come by another way, under another name
    for target, vpn in enumerate(graph.vpns):
        first_step = graph.topics.steps
        budget.begin()
        lost, done = find_too_far(graph, target, budget)
        budget.end("" if done else f"hop limits before {vpn.name}", first_step)
        reported += lost
    # A chain that is too long is so for many bridges: one finding for each topic is enough.
    by_topic: dict[str, list[TooFar]] = {}
    for each in reported:
        by_topic.setdefault(each.topic, []).append(each)
    for alike in by_topic.values():
        _report(problems, graph, alike)
    return reported


def _report(problems: MeshProblems, graph: Graph, alike: list[TooFar]) -> None:
    lost = alike[0]
    route = [graph.crossings[number] for number in lost.route]
    last: Crossing = route[-1]
    place = last.configured
    path = (*place.bridge_path, "max_ttl")
    more = f"; {len(alike) - 1} more bridges keep the topic out so" if len(alike) > 1 else ""
    problems.add_key(
        "warning",
        place.loaded,
        path if place.loaded.positions.has(path) else place.bridge_path,
        f"hop limit: topic {lost.topic} published in {graph.vpns[lost.origin].name} never arrives:"
        f" {graph.route(lost.origin, route)} is {len(route)} bridges, and max_ttl is"
        f" {last.max_ttl}{more}",
    )


class Loop(NamedTuple):
    """A topic and the bridges that bring it, published where the first of them begins, back there.

    `tangle` holds all message VPNs that the topic can go round through together with these.
    """

    topic: str
    crossings: list[int]
    tangle: frozenset[int]


@final
class LoopSearch:
    """Finds loops, from one message VPN after the other. One already searched is left out later on."""

    __slots__ = ("_done", "_graph", "_start", "loops")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._done: set[int] = set()
        self._start = -1
        self.loops: list[Loop] = []

    def run(self, start: int, budget: Budget) -> bool:
        """Search for loops through `start`. Return False when the budget ended it."""
        graph, frontier = self._graph, Frontier(self._graph)
        self._start = start
        if graph.vpns[start].into:
            for number in graph.vpns[start].out:
                crossing = graph.crossings[number]
                for topics in crossing.sure if self._usable(crossing) else ():
                    first = Step(crossing.target, topics, crossing.target, 1, number, None)
                    if frontier.is_new(first):
                        frontier.take(first)
        self._done.add(start)
        while (step := frontier.next()) is not None:
            if budget.over():
                return False
            self._go_on(frontier, step)
        return True

    def _usable(self, crossing: Crossing) -> bool:
        return not crossing.mapped and (
            crossing.target == self._start or crossing.target not in self._done
        )

    def _go_on(self, frontier: Frontier, step: Step) -> None:
        graph = self._graph
        for number in graph.vpns[step.vpn].out:
            crossing = graph.crossings[number]
            if not self._usable(crossing):
                continue
            closes = crossing.target == self._start
            if closes and step.label == step.vpn:
                continue  # straight back: the other half of a bi-directional bridge
            for topics in crossing.sure:
                common = graph.topics.common(step.topics, topics)
                if common is None or frontier.is_settled(common):
                    continue
                onward = Step(crossing.target, common, step.label, step.cost + 1, number, step)
                if closes:
                    self._close(frontier, onward)
                elif frontier.is_new(onward):
                    frontier.take(onward)

    def _close(self, frontier: Frontier, last: Step) -> None:
        graph = self._graph
        ring = last.crossings()[::-1]
        for turn in range(len(ring)):
            turned = [graph.crossings[each] for each in (*ring[turn:], *ring[:turn])]
            part = graph.vpns[turned[0].source].publishers.part_of(last.topics)
            if part is None or any(
                hops > crossing.max_ttl for hops, crossing in enumerate(turned, 1)
            ):
                continue
            topic = graph.topics.example(part)
            vpns = {each.target for each in turned}
            if topic is None or not graph.fits(topic, vpns):
                continue
            frontier.settle(part)
            if not self._is_reported(vpns, turned):
                numbers = [each.number for each in turned]
                self.loops.append(Loop(topic, numbers, _tangle(graph, topic, self._start)))
            return

    def _is_reported(self, vpns: set[int], ring: list[Crossing]) -> bool:
        """Return whether a loop that is already reported has all these bridges."""
        return any(
            vpns <= loop.tangle and all(self._graph.carries(each, loop.topic) for each in ring)
            for loop in self.loops
        )


def _tangle(graph: Graph, topic: str, start: int) -> frozenset[int]:
    """Return the message VPNs that the topic reaches from `start`, and from which it comes back."""

    def spread(numbers: Callable[[int], Iterable[int]], end: Callable[[Crossing], int]) -> set[int]:
        seen, waiting = {start}, deque([start])
        while waiting:
            for number in numbers(waiting.popleft()):
                crossing = graph.crossings[number]
                there = end(crossing)
                if there not in seen and graph.carries(crossing, topic):
                    seen.add(there)
                    waiting.append(there)
        return seen

    ahead = spread(lambda vpn: graph.vpns[vpn].out, lambda crossing: crossing.target)
    behind = spread(lambda vpn: graph.vpns[vpn].into, lambda crossing: crossing.source)
    return frozenset(ahead & behind)


def report_loops(problems: MeshProblems, graph: Graph, budget: Budget) -> list[Loop]:
    """Search the whole mesh for loops and report them."""
    search = LoopSearch(graph)
    for start, vpn in enumerate(graph.vpns):
        first_step = graph.topics.steps
        budget.begin()
        done = search.run(start, budget)
        budget.end("" if done else f"loops through {vpn.name}", first_step)
    for loop in search.loops:
        crossings = [graph.crossings[number] for number in loop.crossings]
        last = crossings[-1]
        origin, stop = crossings[0].source, graph.vpns[last.source].name
        others = len(loop.tangle) - len(crossings)
        more = f"; {others} more message VPNs are part of such loops" if others > 0 else ""
        remote = next(
            (crossing.configured.remote for crossing in crossings if not crossing.preferred), None
        )
        when = f", while a bridge takes from {remote.name} at {remote.location}" if remote else ""
        problems.add_key(
            "note",
            last.configured.loaded,
            last.configured.bridge_path,
            f"loop: topic {loop.topic} published in {graph.vpns[origin].name} can go all the way"
            f" round: {graph.route(origin, crossings)}; the visited path stops it in {stop}, which"
            f" discards a copy of each message (loop-detected){when}{more}",
        )
    return search.loops

"""Finds messages that connectors of several message VPNs bring twice: to a provider, or into a message VPN.

Between them the messages go over bridges. A message that a message VPN or a provider has seen does not enter it again
where all connectors speak MQTT 5, which carries the path. But two copies that took different ways know nothing of each
other. Connectors of one message VPN are compared where its file is checked by itself.
"""

from __future__ import annotations

from typing import NamedTuple, final

from vpnrouter.config.checks.connectors import LinkCrossing, link_crossings
from vpnrouter.config.mesh.graph import Budget, Frontier, Graph, Step
from vpnrouter.config.mesh.topics import TopicSet
from vpnrouter.config.problem_list import MeshProblems

_START = -1
"""In the place of a bridge, of the step that begins a search."""


class _Link(NamedTuple):
    """A link of a connector, and the message VPN (by number) that it serves."""

    vpn: int
    crossing: LinkCrossing
    topics: TopicSet


@final
class ConnectorSearch:
    """Finds what crosses twice between the message VPNs of a mesh and one provider.

    At most one finding is told for each pair of message VPNs and each kind.
    """

    __slots__ = ("_graph", "_inbound", "_outbound", "_problems", "_provider", "_told")

    def __init__(self, problems: MeshProblems, graph: Graph, provider: str) -> None:
        self._problems = problems
        self._graph = graph
        self._provider = provider
        self._inbound: list[_Link] = []
        self._outbound: list[_Link] = []
        self._told: set[tuple[str, frozenset[int]]] = set()

    def add(self, vpn: int, crossing: LinkCrossing) -> None:
        """Add a link to the provider."""
        topics = self._graph.topics.of(crossing.filter)
        if topics is not None:
            links = self._inbound if crossing.inbound else self._outbound
            links.append(_Link(vpn, crossing, topics))

    def run(self, budget: Budget) -> bool:
        """Search. Return False when the budget ended it."""
        if len({link.vpn for link in (*self._inbound, *self._outbound)}) < 2:
            return True
        for link in self._inbound:
            for step in self._spread(link.vpn, link.topics, budget):
                self._arrives(link, step)
        for origin, vpn in enumerate(self._graph.vpns):
            steps: list[Step] = []
            for link in self._outbound:
                part = vpn.publishers.part_of(link.topics)
                if part is not None:
                    steps += self._spread(origin, part, budget)
            self._leaves(origin, steps)
        return not budget.over()

    def _spread(self, origin: int, topics: TopicSet, budget: Budget) -> list[Step]:
        """Return how far topics get over bridges from a message VPN, which is the first step."""
        graph, frontier = self._graph, Frontier(self._graph)
        frontier.take(Step(origin, topics, 0, 0, _START, None))
        steps: list[Step] = []
        while (step := frontier.next()) is not None and not budget.over():
            steps.append(step)
            for number in graph.vpns[step.vpn].out:
                crossing = graph.crossings[number]
                if crossing.mapped or crossing.target == origin or step.cost >= crossing.max_ttl:
                    continue
                for sure in crossing.sure:
                    common = graph.topics.common(step.topics, sure)
                    if common is None:
                        continue
                    onward = Step(crossing.target, common, 0, step.cost + 1, number, step)
                    if frontier.is_new(onward, labels=1):
                        frontier.take(onward)
        return steps

    def _arrives(self, link: _Link, step: Step) -> None:
        """Tell of what the provider gives to one message VPN, and bridges bring to another that has it already."""
        for other in self._inbound:
            if other.vpn != step.vpn or other.vpn == link.vpn:
                continue
            topic = self._witness(step, (step.topics, other.topics))
            if topic is not None:
                ways = (self._way((), other), self._way((self._provider,), link, step))
                into = self._graph.vpns[other.vpn].name
                self._tell(
                    "in", other, link, f"topic {topic} of {self._provider} reaches {into}", ways
                )

    def _leaves(self, origin: int, steps: list[Step]) -> None:
        """Tell of what is published in `origin` and leaves for the provider from two message VPNs, or comes back."""
        out = [(link, step) for link in self._outbound for step in steps if step.vpn == link.vpn]
        for position, (link, step) in enumerate(out):
            for other, other_step in out[:position]:
                if other.vpn != link.vpn:
                    self._leaves_twice(origin, (other, other_step), (link, step))
            for back in self._inbound:
                if back.vpn != link.vpn:
                    self._comes_back(origin, link, step, back, steps)

    def _leaves_twice(self, origin: int, one: tuple[_Link, Step], two: tuple[_Link, Step]) -> None:
        sets = (one[1].topics, one[0].topics, two[1].topics, two[0].topics)
        topic = self._witness(two[1], sets, one[1])
        if topic is not None:
            start = self._graph.vpns[origin].name
            ways = tuple(self._way((), link, step, out=True) for link, step in (one, two))
            what = f"topic {topic} published in {start} reaches {self._provider}"
            self._tell("out", two[0], one[0], what, ways)

    def _comes_back(
        self, origin: int, link: _Link, step: Step, back: _Link, steps: list[Step]
    ) -> None:
        """Tell of what the provider gives to a message VPN that bridges bring it to as well."""
        for reached in steps:
            if reached.vpn != back.vpn:
                continue
            visited = back.vpn in _places(step)
            versions = {link.crossing.version, back.crossing.version}
            if visited and versions == {"5"}:
                continue  # the path says so
            sets = (step.topics, link.topics, back.topics, reached.topics)
            topic = self._witness(step, sets, reached)
            if topic is None:
                continue
            start, into = (self._graph.vpns[number].name for number in (origin, back.vpn))
            by_provider = f"{self._way((), link, step, out=True)} -> {into} (connector {back.crossing.connector})"
            by_bridge = self._graph.route(
                origin, [self._graph.crossings[each] for each in _passed(reached)]
            )
            what = f"topic {topic} published in {start} reaches {into}"
            doubtful = visited and "3.1.1" not in versions
            self._tell("back", back, link, what, (by_bridge, by_provider), doubtful=doubtful)

    def _witness(
        self, step: Step, sets: tuple[TopicSet, ...], other: Step | None = None
    ) -> str | None:
        """Return a topic that is in all sets and that all message VPNs on the way take."""
        topics = self._graph.topics
        common: TopicSet | None = sets[0]
        for each in sets[1:]:
            common = topics.common(common, each) if common is not None else None
        topic = topics.example(common) if common is not None else None
        vpns: set[int] = set()
        for last in (step, other):
            vpns |= _places(last)
        return topic if topic is not None and self._graph.fits(topic, vpns) else None

    def _way(
        self, before: tuple[str, ...], link: _Link, step: Step | None = None, *, out: bool = False
    ) -> str:
        """Return a way for people: `mqtt://broker:1883 -> r1/blue (connector erp) -> r2/blue`."""
        graph = self._graph
        by = f"(connector {link.crossing.connector})"
        if step is None:
            return f"{self._provider} -> {graph.vpns[link.vpn].name} {by}"
        passed = [graph.crossings[number] for number in _passed(step)]
        origin = passed[0].source if passed else step.vpn
        if out:
            return f"{graph.route(origin, passed)} -> {self._provider} {by}"
        first, *others = graph.route(origin, passed).split(" -> ")
        return " -> ".join((*before, f"{first} {by}", *others))

    def _tell(
        self,
        kind: str,
        place: _Link,
        other: _Link,
        what: str,
        ways: tuple[str, ...],
        *,
        doubtful: bool = False,
    ) -> None:
        pair = (kind, frozenset((place.vpn, other.vpn)))
        if pair in self._told:
            return
        self._told.add(pair)
        when = " if the provider speaks no MQTT 5" if doubtful else ""
        self._problems.add_key(
            "warning" if doubtful else "error",
            self._graph.vpns[place.vpn].loaded,
            place.crossing.path,
            f"double delivery: {what} twice{when}: {ways[0]} and {ways[1]}",
        )


def _passed(step: Step) -> list[int]:
    """Return the bridges of a way, the first one first."""
    return step.crossings()[-2::-1]


def _places(step: Step | None) -> set[int]:
    """Return the message VPNs of a way."""
    found: set[int] = set()
    while step is not None:
        found.add(step.vpn)
        step = step.before
    return found


def report_provider_doubles(problems: MeshProblems, graph: Graph, budget: Budget) -> None:
    """Search the whole mesh for what connectors bring twice, and report it."""
    searches: dict[str, ConnectorSearch] = {}
    for number, vpn in enumerate(graph.vpns):
        for crossing in link_crossings(vpn.loaded.config, vpn.name.partition("/")[2]):
            provider = crossing.provider
            search = searches.setdefault(provider, ConnectorSearch(problems, graph, provider))
            search.add(number, crossing)
    for provider, search in searches.items():
        start = graph.topics.steps
        budget.begin()
        done = search.run(budget)
        budget.end("" if done else f"double delivery by {provider}", start)

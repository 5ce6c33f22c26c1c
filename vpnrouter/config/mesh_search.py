"""Search over a mesh: how far topics get, step by step, within a bound.

A search keeps, for each message VPN, the sets of topics that get there. A set that another one holds
is not followed again. So it is paths of sets that are counted, not paths: a full mesh in which all
bridges attract the same costs no more than its bridges.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from vpnrouter.config.mesh_graph import Graph
    from vpnrouter.config.mesh_topics import TopicSet


class Step(NamedTuple):
    """Topics at a message VPN. `label` says which way was taken first, `cost` grows with each bridge.

    `crossing` is the bridge between this step and the one before it.
    """

    vpn: int
    topics: TopicSet
    label: int
    cost: int
    crossing: int
    before: Step | None

    def crossings(self) -> list[int]:
        """The bridges of the whole way, this step's first."""
        found = [self.crossing]
        step = self.before
        while step is not None:
            found.append(step.crossing)
            step = step.before
        return found


@final
class Frontier:
    """The steps of one search: those taken at each message VPN, and those to go on from.

    At most two steps with different labels are kept for the same topics: what a third one could tell,
    these two tell.
    """

    __slots__ = ("_graph", "_taken", "settled", "waiting")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._taken: dict[int, list[Step]] = {}
        self.waiting: deque[Step] = deque()
        self.settled: list[TopicSet] = []
        """Topics of which enough is known; they are followed no further."""

    def taken(self, vpn: int) -> list[Step]:
        """The steps kept at a message VPN."""
        return self._taken.get(vpn, [])

    def settle(self, topics: TopicSet) -> None:
        """Follow these topics no further."""
        self.settled.append(topics)

    def is_settled(self, topics: TopicSet) -> bool:
        """Whether all of these topics are settled."""
        holds_all = self._graph.topics.holds_all
        return any(holds_all(each, topics) for each in self.settled)

    def is_new(self, step: Step, labels: int = 2) -> bool:
        """Whether a step tells more than those taken; `labels` is how many labels may tell the same."""
        if self.is_settled(step.topics):
            return False
        same: set[int] = set()
        holds_all = self._graph.topics.holds_all
        for each in self._taken.get(step.vpn, ()):
            if each.cost <= step.cost and holds_all(each.topics, step.topics):
                same.add(each.label)
                if each.label == step.label or len(same) >= labels:
                    return False
        return True

    def next(self) -> Step | None:
        """The step to go on from; None when the search is at its end."""
        while self.waiting:
            step = self.waiting.popleft()
            if not self.is_settled(step.topics):
                return step
        return None

    def take(self, step: Step) -> None:
        """Keep a step and go on from it later."""
        self._taken.setdefault(step.vpn, []).append(step)
        self.waiting.append(step)


@final
class Budget:
    """The comparisons that searches may take, shared out among the message VPNs.

    What one leaves is for the next ones. `cut` lists the searches that were ended early.
    """

    __slots__ = ("_graph", "_left", "_shares", "_until", "cut")

    def __init__(self, graph: Graph, steps: int, shares: int) -> None:
        self._graph = graph
        self._left = steps
        self._shares = max(1, shares)
        self._until = 0
        self.cut: list[str] = []

    def begin(self) -> None:
        """A search begins: it has its share of what is left."""
        self._until = self._graph.topics.steps + self._left // self._shares

    def over(self) -> bool:
        """Whether the search has used up its share."""
        return self._graph.topics.steps > self._until

    def end(self, what: str, start: int) -> None:
        """The search that was begun at `start` steps ends; `what` names it if it was cut."""
        used = self._graph.topics.steps - start
        self._left = max(0, self._left - used)
        self._shares = max(1, self._shares - 1)
        if what:
            self.cut.append(what)

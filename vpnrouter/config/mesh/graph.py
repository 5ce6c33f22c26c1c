"""The graph of a mesh, and a bounded search for how far topics get in it.

A search keeps, for each message VPN, the sets of topics that get there. A set that another one holds
is not followed again. So it is paths of sets that are counted, not paths: a full mesh in which all
bridges attract the same costs no more than its bridges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.checks.message_vpns import DIALECTS
from vpnrouter.config.mesh.remotes import ConfiguredRemote
from vpnrouter.config.mesh.topics import Publishers, Topics, TopicSet
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.router import Loaded
from vpnrouter.errors import TopicError
from vpnrouter.settings.endpoint import Queue
from vpnrouter.topics.grammar import Filter, parse_filter


@final
class Vpn:
    """One message VPN. `into` and `out` are the crossings that lead here and away, by number."""

    __slots__ = ("into", "loaded", "msg_vpn", "name", "out", "publishers")

    def __init__(self, loaded: Loaded, name: str, msg_vpn: MsgVpn, topics: Topics) -> None:
        self.loaded = loaded
        self.name = f"{loaded.config.router.name}/{name}"
        self.msg_vpn = msg_vpn
        self.publishers = Publishers(topics, msg_vpn)
        self.into: list[int] = []
        self.out: list[int] = []


class Crossing(NamedTuple):
    """A bridge, by one of its remotes, as the way from `source` to `target` (message VPNs by number).

    `direct` and `queue` are what is sure to cross: by remote subscription, and by the bound queue.
    `maybe` is what may cross or not: shared subscriptions and those with a selector. `mapped`: topics
    change their names on the way, so nothing is sure.
    """

    number: int
    configured: ConfiguredRemote
    source: int
    target: int
    direct: tuple[TopicSet, ...]
    queue: tuple[TopicSet, ...]
    maybe: tuple[TopicSet, ...]
    max_ttl: int
    mapped: bool
    preferred: bool

    @property
    def sure(self) -> tuple[TopicSet, ...]:
        """What is sure to cross."""
        return self.direct + self.queue

    @property
    def all_kinds(self) -> tuple[TopicSet, ...]:
        """What may cross at all, under the name that it has in the remote message VPN."""
        return self.direct + self.queue + self.maybe

    @property
    def bridge(self) -> tuple[str, str, str]:
        """Router, message VPN and name of the bridge: the same for all its remotes."""
        return (
            self.configured.loaded.config.router.name, self.configured.msg_vpn, self.configured.bridge_name
        )  # fmt: skip


class Attraction(NamedTuple):
    """What a bridge asks its remote message VPN for: surely, and perhaps."""

    sure: tuple[TopicSet, ...]
    maybe: tuple[TopicSet, ...]


@final
class Graph:
    """Message VPNs and crossings, by number."""

    __slots__ = ("crossings", "numbers", "topics", "vpns")

    def __init__(self, mesh: Sequence[Loaded]) -> None:
        self.topics = Topics()
        self.vpns: list[Vpn] = []
        self.crossings: list[Crossing] = []
        self.numbers: dict[tuple[str, str], int] = {}
        for loaded in mesh:
            for name, msg_vpn in loaded.config.msg_vpns.items():
                key = (loaded.config.router.name, name)
                if msg_vpn.enabled and key not in self.numbers:
                    self.numbers[key] = len(self.vpns)
                    self.vpns.append(Vpn(loaded, name, msg_vpn, self.topics))

    def connect(self, fitting: Iterable[tuple[ConfiguredRemote, Loaded]]) -> None:
        """Add the remotes that fit the routers that they mean."""
        for place, peer in fitting:
            router = place.loaded.config.router.name
            target = self.numbers.get((router, place.msg_vpn))
            source = self.numbers.get((peer.config.router.name, place.remote.name))
            if source is None or target is None or source == target:
                continue
            if self.vpns[target].loaded is not place.loaded:
                continue  # another router of the same name: told elsewhere
            attraction = attraction_of(self.topics, place.bridge)
            number = len(self.crossings)
            crossing = Crossing(
                number,
                place,
                source,
                target,
                direct=attraction.sure,
                queue=self._queue(self.vpns[source].msg_vpn, place.remote.queue_binding),
                maybe=attraction.maybe,
                max_ttl=place.bridge.max_ttl,
                mapped=any(rule.direction != "out" for rule in place.bridge.topic_mapping),
                preferred=_is_first(place),
            )
            self.crossings.append(crossing)
            self.vpns[source].out.append(number)
            self.vpns[target].into.append(number)
        self._mark_outward()

    def _mark_outward(self) -> None:
        outward = {
            (each.target, each.source)
            for each in self.crossings
            if any(rule.direction != "in" for rule in each.configured.bridge.topic_mapping)
        }
        for number, crossing in enumerate(self.crossings):
            # Both bridges of a pair share one connection, and such a rule holds for it both ways.
            if (crossing.source, crossing.target) in outward:
                self.crossings[number] = crossing._replace(mapped=True)

    def _queue(self, vpn: MsgVpn, name: str | None) -> tuple[TopicSet, ...]:
        queue = vpn.queues.get(name) if name is not None else None
        return queue_topics(self.topics, queue) if queue is not None else ()

    def carries(self, crossing: Crossing, topic: str) -> bool:
        """Return whether a message with this topic is sure to cross."""
        return not crossing.mapped and any(self.topics.holds(each, topic) for each in crossing.sure)

    def reached(self, topic: str, origin: int, without: int = -1) -> dict[int, int]:
        """Return the message VPNs that a message published in `origin` is sure to reach, `without` one, each
        with the least number of bridges to it.
        """
        hops = {origin: 0}
        waiting = deque([origin])
        while waiting:
            here = waiting.popleft()
            for number in self.vpns[here].out:
                crossing = self.crossings[number]
                there = crossing.target
                self.topics.steps += 1
                if there in hops or there == without or hops[here] >= crossing.max_ttl:
                    continue
                if self.carries(crossing, topic):
                    hops[there] = hops[here] + 1
                    waiting.append(there)
        return hops

    def fits(self, topic: str, vpns: Iterable[int]) -> bool:
        """Return whether the topic keeps the bounds of these message VPNs."""
        size, levels = len(topic.encode()), topic.count("/") + 1
        return all(
            size <= self.vpns[vpn].msg_vpn.max_topic_bytes
            and levels <= self.vpns[vpn].msg_vpn.max_topic_levels
            for vpn in vpns
        )

    def route(self, origin: int, crossings: Iterable[Crossing]) -> str:
        """Return the path for people: `edge/blue -> core/yellow`."""
        names = [
            self.vpns[origin].name,
            *(self.vpns[crossing.target].name for crossing in crossings),
        ]
        return " -> ".join(names)


def _is_first(configured: ConfiguredRemote) -> bool:
    """Return whether a bridge takes from this remote as long as it can."""
    enabled = [
        remote_msg_vpn
        for remote_msg_vpn in configured.bridge.remote_msg_vpns
        if remote_msg_vpn.enabled
    ]
    return min(enabled, key=lambda each: each.connect_order) is configured.remote


def attraction_of(topics: Topics, bridge: Bridge) -> Attraction:
    """Return what the remote subscriptions of a bridge attract, without its exceptions."""
    parsed: list[tuple[Filter, bool]] = []
    exceptions: list[Filter] = []
    for subscription in bridge.remote_subscriptions:
        try:
            filter_ = parse_filter(
                subscription.topic, DIALECTS[bridge.topic_syntax], exceptions=True
            )
        except TopicError:
            continue  # reported where the file is checked by itself
        if filter_.exception:
            exceptions.append(filter_)
        else:
            parsed.append((filter_, not filter_.share and subscription.selector is None))
    sure: list[TopicSet] = []
    maybe: list[TopicSet] = []
    for filter_, is_sure in parsed:
        attracted = topics.of(filter_, exceptions)
        if attracted is not None:
            (sure if is_sure else maybe).append(attracted)
    return Attraction(tuple(dict.fromkeys(sure)), tuple(dict.fromkeys(maybe)))


def queue_topics(topics: Topics, queue: Queue) -> tuple[TopicSet, ...]:
    """Return what the subscriptions of a queue attract."""
    parsed: list[Filter] = []
    for text in queue.subscriptions:
        try:
            parsed.append(parse_filter(text, DIALECTS[queue.topic_syntax], exceptions=True))
        except TopicError:
            continue
    exceptions = [each for each in parsed if each.exception]
    attracted = [topics.of(filter_, exceptions) for filter_ in parsed if not filter_.exception]
    return tuple(dict.fromkeys(part for part in attracted if part is not None))


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
        """Return the bridges of the whole path, this step's first."""
        crossings = [self.crossing]
        step = self.before
        while step is not None:
            crossings.append(step.crossing)
            step = step.before
        return crossings


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
        """Return the steps kept at a message VPN."""
        return self._taken.get(vpn, [])

    def settle(self, topics: TopicSet) -> None:
        """Follow these topics no further."""
        self.settled.append(topics)

    def is_settled(self, topics: TopicSet) -> bool:
        """Return whether all of these topics are settled."""
        holds_all = self._graph.topics.holds_all
        return any(holds_all(each, topics) for each in self.settled)

    def is_new(self, step: Step, labels: int = 2) -> bool:
        """Return whether a step adds something to those kept; `labels` is how many labels may add the same."""
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
        """Return the step to go on from; None when the search is at its end."""
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
        """Begin a search, which has its share of what is left."""
        self._until = self._graph.topics.steps + self._left // self._shares

    def over(self) -> bool:
        """Return whether the search has used up its share."""
        return self._graph.topics.steps > self._until

    def end(self, what: str, start: int) -> None:
        """End the search that was begun at `start` steps; `what` names it if it was cut."""
        used = self._graph.topics.steps - start
        self._left = max(0, self._left - used)
        self._shares = max(1, self._shares - 1)
        if what:
            self.cut.append(what)

"""The graph of a mesh: message VPNs "router/vpn", and the bridges that lead from one to another."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.filters import DIALECTS
from vpnrouter.config.load import Loaded
from vpnrouter.config.mesh_access import Publishers
from vpnrouter.config.mesh_remotes import Place
from vpnrouter.config.mesh_topics import Topics, TopicSet
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.queue import Queue
from vpnrouter.errors import TopicError
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
    place: Place
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
            self.place.loaded.config.router.name, self.place.msg_vpn, self.place.bridge_name
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

    def connect(self, fitting: Iterable[tuple[Place, Loaded]]) -> None:
        """Add the remotes that fit the routers which they mean."""
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
                attraction.sure,
                self._queue(self.vpns[source].msg_vpn, place.remote.queue_binding),
                attraction.maybe,
                place.bridge.max_ttl,
                any(rule.direction != "out" for rule in place.bridge.topic_mapping),
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
            if any(rule.direction != "in" for rule in each.place.bridge.topic_mapping)
        }
        for number, crossing in enumerate(self.crossings):
            # Both bridges of a pair share one connection, and such a rule holds for it both ways.
            if (crossing.source, crossing.target) in outward:
                self.crossings[number] = crossing._replace(mapped=True)

    def _queue(self, vpn: MsgVpn, name: str | None) -> tuple[TopicSet, ...]:
        queue = vpn.queues.get(name) if name is not None else None
        return queue_topics(self.topics, queue) if queue is not None else ()

    def carries(self, crossing: Crossing, topic: str) -> bool:
        """Whether a message with this topic is sure to cross."""
        return not crossing.mapped and any(self.topics.holds(each, topic) for each in crossing.sure)

    def reached(self, topic: str, origin: int, without: int = -1) -> dict[int, int]:
        """The message VPNs that a message published in `origin` is sure to reach, `without` one, each
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
        """Whether the topic keeps the bounds of these message VPNs."""
        size, levels = len(topic.encode()), topic.count("/") + 1
        return all(
            size <= self.vpns[each].msg_vpn.max_topic_bytes
            and levels <= self.vpns[each].msg_vpn.max_topic_levels
            for each in vpns
        )

    def route(self, origin: int, crossings: Iterable[Crossing]) -> str:
        """The way as people read it: `edge/blue -> core/yellow`."""
        names = [self.vpns[origin].name, *(self.vpns[each.target].name for each in crossings)]
        return " -> ".join(names)


def _is_first(place: Place) -> bool:
    """Whether a bridge takes from this remote as long as it can."""
    enabled = [each for each in place.bridge.remote_msg_vpns if each.enabled]
    return min(enabled, key=lambda each: each.connect_order) is place.remote


def attraction_of(topics: Topics, bridge: Bridge) -> Attraction:
    """What the remote subscriptions of a bridge attract, its exceptions taken away."""
    parsed: list[tuple[Filter, bool]] = []
    exceptions: list[Filter] = []
    for subscription in bridge.remote_subscriptions:
        try:
            filter_ = parse_filter(
                subscription.topic, DIALECTS[bridge.topic_syntax], exceptions=True
            )
        except TopicError:
            continue  # told where the file is checked by itself
        if filter_.exception:
            exceptions.append(filter_)
        else:
            parsed.append((filter_, not filter_.share and subscription.selector is None))
    sure: list[TopicSet] = []
    maybe: list[TopicSet] = []
    for filter_, is_sure in parsed:
        found = topics.of(filter_, exceptions)
        if found is not None:
            (sure if is_sure else maybe).append(found)
    return Attraction(tuple(dict.fromkeys(sure)), tuple(dict.fromkeys(maybe)))


def queue_topics(topics: Topics, queue: Queue) -> tuple[TopicSet, ...]:
    """What the subscriptions of a queue attract."""
    parsed: list[Filter] = []
    for text in queue.subscriptions:
        try:
            parsed.append(parse_filter(text, DIALECTS[queue.topic_syntax], exceptions=True))
        except TopicError:
            continue
    exceptions = [each for each in parsed if each.exception]
    found = [topics.of(each, exceptions) for each in parsed if not each.exception]
    return tuple(dict.fromkeys(each for each in found if each is not None))

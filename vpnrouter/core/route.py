"""Describes where messages of one topic go inside one message VPN: the value that the route cache keeps.

Shared subscriptions are part of it: each message goes to one member of the group, in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast, final

from mypy_extensions import i64

from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.selection import HEAVY, estimate, wants
from vpnrouter.core.subscriber import (
    FRAME_MQTT4,
    FRAME_MQTT5,
    FRAME_OWN,
    EndpointSubscriber,
    Subscriber,
    Subscription,
)
from vpnrouter.topics.grammar import MQTT, parse_filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.message import Message, Source
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.trace.sampler import Sampler


@final
class ShareGroup:
    """Members of one share name and filter. Round robin; members without a connection are passed over."""

    __slots__ = ("_turn", "members", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[Subscription] = []
        self._turn = 0

    def add(self, member: Subscription) -> None:
        """Join; a second subscription of the same subscriber replaces its first."""
        self.remove(member.subscriber)
        self.members.append(member)

    def remove(self, subscriber: Subscriber) -> None:
        """Leave; nothing happens when not a member."""
        self.members = [member for member in self.members if member.subscriber is not subscriber]

    @property
    def has_link(self) -> bool:
        """True when the client of a link is among the members."""
        links = [member for member in self.members if member.subscriber.is_link]
        return bool(links)

    def choose(
        self, message: Message, excluded: set[Subscriber], most_qos: int = 2
    ) -> Subscription | None:
        """Return the subscription of the next member, of `most_qos` or less; None when nobody can take the message.

        Members without room are passed over, so that one slow member costs the group nothing. So are members whose
        selector does not match, those in `excluded`, and a link's client when the message came over it or has been at
        its other end.
        """
        count = len(self.members)
        full: Subscription | None = None
        for step in range(count):
            index = (self._turn + step) % count
            member = self.members[index]
            subscriber = member.subscriber
            if not subscriber.connected or member.qos > most_qos:
                continue
            if not _may_take(member, message, excluded):
                continue
            if subscriber.outbox.size >= subscriber.outbox.limit:
                full = full or member
                continue
            self._turn = index + 1
            return member
        # Where all are full, one of them counts the loss.
        return full

    @property
    def durable(self) -> bool:
        """True when the group takes guaranteed messages as such: a member has QoS 1 or 2."""
        keeping = [member for member in self.members if member.qos]
        return bool(keeping)

    def choose_durable(self, message: Message, excluded: set[Subscriber]) -> Subscription | None:
        """Return the next member whose endpoint is to keep a guaranteed message: a connected one if there is one.

        One whose endpoint cannot take it is passed over where another one's can.
        """
        chosen = self._next_durable(message, excluded, False)
        if chosen < 0:
            return None
        if not _has_room(self.members[chosen], message):
            # Only now are the endpoints of all members looked at.
            other = self._next_durable(message, excluded, True)
            chosen = chosen if other < 0 else other
        self._turn = chosen + 1
        return self.members[chosen]

    def keeps(self, message: Message, excluded: set[Subscriber]) -> bool:
        """Return whether a member of QoS 1 or 2 takes a guaranteed message: then the others are not offered it."""
        return self.durable and self._next_durable(message, excluded, False) >= 0

    def _next_durable(self, message: Message, excluded: set[Subscriber], with_room: bool) -> int:
        """Return the place of the next member of QoS 1 or 2, of a connected one if there is one; -1 for none."""
        count = len(self.members)
        away = -1
        for step in range(count):
            index = (self._turn + step) % count
            member = self.members[index]
            if not member.qos or not _may_take(member, message, excluded):
                continue
            if with_room and not _has_room(member, message):
                continue
            if member.subscriber.connected:
                return index
            if away < 0:
                away = index
        return away

    def misses(self, message: Message, excluded: set[Subscriber]) -> bool:
        """True when a member would take `message` if it were connected."""
        away = [member for member in self.members if not member.subscriber.connected]
        wanting = [member for member in away if _may_take(member, message, excluded)]
        return bool(wanting)


def _has_room(member: Subscription, message: Message) -> bool:
    endpoint = member.subscriber.endpoint
    return endpoint is None or not endpoint.obstacle(message, message.size)


def _may_take(member: Subscription, message: Message, excluded: set[Subscriber]) -> bool:
    subscriber = member.subscriber
    if subscriber.gone:
        return False
    if subscriber.is_link and (subscriber is message.source or subscriber.vpn_id in message.path):
        return False
    if excluded and subscriber in excluded:
        return False
    selector = member.selector
    return selector is None or wants(selector, message)


# Most routes have nothing in these lists. They share the empty ones, so that tens of thousands of cached routes are
# few objects for the garbage collector. Nothing may be added to the shared ones.
_NO_OUTBOXES: Final[list[Outbox]] = []
_NO_SUBSCRIBERS: Final[list[Subscriber]] = []
_NOBODY: Final[set[Subscriber]] = set()
_NO_GROUPS: Final[list[ShareGroup]] = []
_NO_ENDPOINTS: Final[list[EndpointSubscriber]] = []


@final
class Target:
    """One subscriber and the subscriptions of it that matched.

    `selective` says that all of them have a selector: each message has to be looked at.
    """

    __slots__ = ("selective", "subscriber", "subscriptions")

    def __init__(self, subscriber: Subscriber, subscription: Subscription) -> None:
        self.subscriber = subscriber
        self.subscriptions = [subscription]
        self.selective = False

    def wanting(self, message: Message) -> list[Subscription]:
        """Return the subscriptions that `message` matches; none when all have selectors that refuse it."""
        if not self.selective:
            return self.subscriptions
        found: list[Subscription] = []
        for subscription in self.subscriptions:
            selector = subscription.selector
            if selector is None or wants(selector, message):
                found.append(subscription)
        return found


POINTER_BYTES: Final = 8
TARGET_POINTERS: Final = 20
ROUTE_BYTES: Final = 600
"""Memory of a pointer, of a Target in pointers, and of a Route with its place in the cache and without its topic."""

_NO_TARGETS: Final[list[Target]] = []

_T = TypeVar("_T")


def _with(found: list[_T], one: _T) -> list[_T]:
    """The list with one more, or a new one in the place of a shared empty one."""
    if found:
        found.append(one)
        return found
    return [one]


@final
class Route:
    """Receivers by the form in which they take a frame.

    `plain4`, `plain5` are the outboxes of subscribers for whom any frame of their protocol will do, `fan_out` of them;
    `receivers4` and `receivers5` the same subscribers, for traces. `links` are bridges that attract the topic,
    `special` those who need a frame of their own, `groups` the shared subscriptions.
    `excluded` are subscribers that have an exception for the topic or may not be sent it (Subscriber.rule): they
    are no targets, and groups pass them over.
    `many_links`: a message may leave the VPN by two ways or more, a queue being one of them, and needs an id.
    `one_link` takes batches, where it is the only way out and has no selector; else None. `turn` and
    `link_turn` are deliver.py's.
    `endpoints` are queues and topic endpoints, which keep Direct messages too, `sessions` subscribers whose
    endpoint keeps guaranteed ones. `destinations` are all these endpoints, `queues` the first kind alone, both only
    where `endpoints_fixed`: no selector, no-local or group decides. `demoted` are those to whom a
    guaranteed message goes as Direct. `missing_queue`: the topic names a queue that does not exist;
    `guard` is the queue that it names; publishers need a permission for it (refusals.py). `guarded`:
    one of these two is set.
    `plain` is True when only `plain4` and `plain5` matter. `uniform`: there are receivers, and besides those two only
    `one_link`, which takes any frame; frames of such routes that have the same receivers cross together. `sole4` or
    `sole5` is the only receiver, if there is only one and it is plain.
    `raw` is the topic's bytes, `stamp` is forward.py's, `allowed_by` the last publish rule that let its publisher
    through. An evaluation of all selectors of the route costs `selector_cost` and looks at `selector_looks` times the
    characters of a message at most (Selector); `at_once` messages without properties cost a turn, where there are
    selectors. `lost` messages of `lost_of` that nobody wanted are in no row yet (discard_rows.py). `sampler` is what
    `picking` (a TopicSamplers) chose for the topic.
    """

    __slots__ = (
        "allowed_by",
        "at_once",
        "demoted",
        "demoted_special",
        "destinations",
        "endpoints",
        "endpoints_fixed",
        "excluded",
        "fan_out",
        "groups",
        "guard",
        "guarded",
        "link_turn",
        "links",
        "lost",
        "lost_of",
        "many_links",
        "missing_queue",
        "one_link",
        "picking",
        "plain",
        "plain4",
        "plain5",
        "queues",
        "raw",
        "receivers4",
        "receivers5",
        "sampler",
        "selector_cost",
        "selector_looks",
        "sessions",
        "sole4",
        "sole5",
        "special",
        "stamp",
        "topic",
        "turn",
        "uniform",
    )

    def __init__(self, topic: str, raw: bytes) -> None:
        # What `scan` reads of each frame's route comes first: compiled, that is two lines of the processor's cache.
        self.stamp: i64 = 0
        self.raw = raw
        self.allowed_by: BoundRule | None = None
        self.sole4: Outbox | None = None
        self.sole5: Outbox | None = None
        self.fan_out: i64 = 0
        self.guard: EndpointSubscriber | None = None
        self.plain = True
        self.uniform = False
        self.one_link: Subscriber | None = None
        self.plain4: list[Outbox] = _NO_OUTBOXES
        self.plain5: list[Outbox] = _NO_OUTBOXES
        self.picking: object | None = None
        self.sampler: Sampler | None = None
        self.lost: i64 = 0
        self.lost_of: Source | None = None
        self.topic = topic
        self.receivers4: list[Subscriber] = _NO_SUBSCRIBERS
        self.receivers5: list[Subscriber] = _NO_SUBSCRIBERS
        self.links: list[Target] = _NO_TARGETS
        self.special: list[Target] = _NO_TARGETS
        self.groups: list[ShareGroup] = _NO_GROUPS
        self.excluded: set[Subscriber] = _NOBODY
        self.endpoints: list[Target] = _NO_TARGETS
        self.sessions: list[Target] = _NO_TARGETS
        self.queues: list[EndpointSubscriber] = _NO_ENDPOINTS
        self.destinations: list[EndpointSubscriber] = _NO_ENDPOINTS
        self.endpoints_fixed = True
        self.demoted: list[Subscriber] = _NO_SUBSCRIBERS
        self.demoted_special: list[Target] = _NO_TARGETS
        self.missing_queue = False
        self.guarded = False
        self.many_links = False
        self.selector_cost: i64 = 0
        self.selector_looks: i64 = 0
        self.at_once: i64 = 0
        self.turn = 0
        self.link_turn = 0

    @property
    def empty(self) -> bool:
        """Return whether there is no receiver."""
        return self.plain and not self.plain4 and not self.plain5

    def may_put(self, username: ClientUsername | None, rule: BoundRule | None) -> bool:
        """Return whether a client may publish to the queue that the topic names, if it names one.

        The ACL profile allows the topic already. A client that may consume from the queue may publish to it. Another
        client needs an exception of the ACL profile, `rule`, that names `$queue/…` without a wildcard in the first
        level: the field has no permission to publish to a queue, and everybody could fill a `no-access` queue.
        `username` is None for publishers that are no clients; they may.
        """
        queue = self.guard
        if queue is None or username is None or queue.takes_from_all:
            return True
        if username.permission_on(queue.settings) >= CONSUME:
            return True
        return rule is not None and rule.names(self.topic)

    def exclude(self, subscriber: Subscriber) -> None:
        """Exclude the subscriber: it has an exception for the topic, or may not be sent it."""
        if self.excluded:
            self.excluded.add(subscriber)
        else:
            self.excluded = {subscriber}

    def leave_out(self, by_subscriber: dict[Subscriber, Target]) -> None:
        """Exclude subscribers that may not be sent the topic; those with the same rule in a row are checked once."""
        asked: BoundRule | None = None
        allowed = True
        subscribers = list(by_subscriber)
        for group in self.groups:
            subscribers += [member.subscriber for member in group.members]
        for subscriber in subscribers:
            rule = subscriber.rule
            if rule is None:
                continue
            if rule is not asked:
                asked = rule
                allowed = rule.allows_topic(self.topic)
            if not allowed:
                self.exclude(subscriber)

    def place(self, target: Target) -> None:
        """Put a target where its form of a frame belongs."""
        subscriber = target.subscriber
        plain = True
        selective = True
        for subscription in target.subscriptions:
            if not subscription.plain:
                plain = False
            if subscription.selector is None:
                selective = False
            else:
                self.count(subscription.selector)
        target.selective = selective
        if subscriber.is_endpoint:
            self.endpoints = _with(self.endpoints, target)
            return
        if subscriber.endpoint is not None and _keeps(target):
            self.sessions = _with(self.sessions, target)
            if not subscriber.connected:
                return
        if subscriber.is_link:
            self.links = _with(self.links, target)
            return
        if selective:
            plain = False
        if plain and subscriber.frame == FRAME_MQTT4:
            self.plain4 = _with(self.plain4, subscriber.outbox)
            self.receivers4 = _with(self.receivers4, subscriber)
        elif plain and subscriber.frame == FRAME_MQTT5:
            self.plain5 = _with(self.plain5, subscriber.outbox)
            self.receivers5 = _with(self.receivers5, subscriber)
        else:
            self.special = _with(self.special, target)

    def find_keepers(self) -> None:
        """Find the endpoints that keep guaranteed messages, and the receivers that get them as Direct."""
        for target in self.endpoints:
            if target.selective:
                self.endpoints_fixed = False
            for subscription in target.subscriptions:
                if subscription.no_local:
                    self.endpoints_fixed = False
            self.queues = _with(self.queues, cast("EndpointSubscriber", target.subscriber))
        self.destinations = self.queues.copy()
        # A set: of thousands of sessions, each is looked for.
        keeping: set[Subscriber] = set()
        for target in self.sessions:
            keeping.add(target.subscriber)
            if target.subscriber.endpoint is not None:
                self.destinations.append(target.subscriber.endpoint)
            for subscription in target.subscriptions:
                if subscription.no_local or subscription.selector is not None:
                    self.endpoints_fixed = False
        for group in self.groups:
            if group.durable:
                self.endpoints_fixed = False
        for subscriber in self.receivers4 + self.receivers5:
            if subscriber not in keeping:
                self.demoted = _with(self.demoted, subscriber)
        for target in self.special:
            if target.subscriber not in keeping:
                self.demoted_special = _with(self.demoted_special, target)

    def count(self, selector: Selector) -> None:
        """Count what a selector costs at most, for each message."""
        self.selector_cost += selector.cost
        self.selector_looks += selector.looks

    def selectors(self) -> list[Selector]:
        """Return the selectors of all receivers, some of them several times."""
        subscriptions: list[Subscription] = []
        for targets in (self.special, self.links, self.endpoints, self.sessions):
            for target in targets:
                subscriptions += target.subscriptions
        for group in self.groups:
            subscriptions += group.members
        return [one.selector for one in subscriptions if one.selector is not None]

    def size(self) -> int:
        """Bytes of memory that the route takes in the cache, about."""
        pointers = 2 * (len(self.plain4) + len(self.plain5)) + len(self.demoted)
        pointers += len(self.groups) + len(self.queues) + len(self.destinations)
        pointers += 4 * len(self.excluded)
        for targets in (self.links, self.special, self.endpoints, self.sessions):
            pointers += TARGET_POINTERS * len(targets)
            for target in targets:
                pointers += len(target.subscriptions)
        return ROUTE_BYTES + 2 * len(self.raw) + POINTER_BYTES * pointers

    def targets(self) -> list[Subscriber]:
        """Everybody named in the route, shared groups left out (they choose per message)."""
        return (
            self.receivers4
            + self.receivers5
            + [target.subscriber for target in self.links]
            + [target.subscriber for target in self.special]
        )


def build(
    topic: str, raw: bytes, matched: list[object], groups: Mapping[Filter, ShareGroup]
) -> Route:
    """The route for `topic` (its bytes are `raw`) from the trie's matches (Subscription objects, any order).

    A subscriber with several matching subscriptions appears once, so that it gets one copy
    (MQTT 5, 3.3.4: the choice we make of the two allowed). One with a matching exception gets none.
    """
    route = Route(topic, raw)
    by_subscriber: dict[Subscriber, Target] = {}
    # In the order of the matches, each group once.
    sharing: dict[ShareGroup, None] = {}
    for item in matched:
        subscription = cast(Subscription, item)
        if subscription.subscriber.gone:
            continue
        if subscription.exception:
            route.exclude(subscription.subscriber)
            continue
        if subscription.filter.share:
            sharing[groups[subscription.filter]] = None
            continue
        subscriber = subscription.subscriber
        if not subscriber.connected and subscription.qos == 0:
            continue
        target = by_subscriber.get(subscriber)
        if target is None:
            by_subscriber[subscriber] = Target(subscriber, subscription)
        else:
            target.subscriptions.append(subscription)
    if sharing:
        route.groups = list(sharing)
        for group in route.groups:
            for member in group.members:
                if member.selector is not None:
                    route.count(member.selector)
    route.leave_out(by_subscriber)
    for target in by_subscriber.values():
        if target.subscriber not in route.excluded:
            route.place(target)
    if route.endpoints or route.sessions or route.groups:
        route.find_keepers()
    else:
        if route.receivers4 or route.receivers5:
            route.demoted = route.receivers4 + route.receivers5
        route.demoted_special = route.special
    route.plain = not (route.links or route.special or route.groups or route.endpoints)
    # A bridge may take the message from a queue as well.
    ways = len(route.links) + len(route.endpoints)
    for group in route.groups:
        if group.has_link:
            ways += 1
    if ways > 1:
        route.many_links = True
    elif route.links and not route.links[0].selective:
        route.one_link = route.links[0].subscriber
    if route.selector_cost:
        route.at_once = HEAVY // estimate(route, len(raw))
    route.fan_out = len(route.plain4) + len(route.plain5)
    if route.plain:
        route.uniform = not route.empty
        if route.fan_out == 1:
            route.sole4 = route.plain4[0] if route.plain4 else None
            route.sole5 = route.plain5[0] if route.plain5 else None
    elif route.one_link is not None and route.one_link.frame != FRAME_OWN:
        route.uniform = not (route.special or route.groups or route.endpoints)
    return route


def point_to_point(topic: str, raw: bytes, queue: EndpointSubscriber | None) -> Route:
    """The route of a topic that names a queue. `raw` may write the name with escapes, and `topic` has it itself."""
    route = Route(topic, raw)
    route.guarded = True
    if queue is None:
        route.missing_queue = True
        return route
    route.guard = queue
    route.endpoints = [Target(queue, Subscription(parse_filter(raw.decode(), MQTT), queue))]
    route.plain = False
    route.find_keepers()
    return route


def _keeps(target: Target) -> bool:
    keeping = [subscription for subscription in target.subscriptions if subscription.qos]
    return bool(keeping)

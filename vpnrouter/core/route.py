"""Where messages of one topic go inside one message VPN: the value the route cache holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, final

from mypy_extensions import i64

from vpnrouter.core.groups import ShareGroup
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT4, FRAME_MQTT5, Subscriber, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.message import Message
    from vpnrouter.topics.grammar import Filter


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
        """The subscriptions for which `message` will do; none when all have selectors that refuse it."""
        if not self.selective:
            return self.subscriptions
        found: list[Subscription] = []
        for subscription in self.subscriptions:
            selector = subscription.selector
            if selector is None or selector.matches(message.properties()):
                found.append(subscription)
        return found


@final
class Route:
    """Receivers by the form in which they take a frame.

    `plain4`, `plain5` are the outboxes of subscribers for whom any frame of their protocol will do;
    `plain_receivers` the same subscribers, for traces. `links` are bridges that attract the topic,
    `special` those who need a frame of their own, `groups` the shared subscriptions.
    `excluded` are subscribers with an exception for the topic: no target, and no member of a group here.
    `many_links`: a message may leave the VPN over two links or more and needs an id. `one_link` takes
    batches, where it is the only way out and has no selector; else None. `turn`, `link_turn` are deliver_to_one.py's.
    `plain` is True when only `plain4` and `plain5` matter. `raw` is the topic's bytes, `stamp` is slots.py's,
    `allowed_by` the last publish rule that let its publisher through.
    """

    __slots__ = (
        "allowed_by",
        "excluded",
        "groups",
        "link_turn",
        "links",
        "many_links",
        "one_link",
        "plain",
        "plain4",
        "plain5",
        "raw",
        "receivers4",
        "receivers5",
        "special",
        "stamp",
        "topic",
        "turn",
    )

    def __init__(self, topic: str, raw: bytes) -> None:
        self.topic = topic
        self.raw = raw
        self.stamp: i64 = 0
        self.allowed_by: BoundRule | None = None
        self.plain4: list[Outbox] = []
        self.plain5: list[Outbox] = []
        self.receivers4: list[Subscriber] = []
        self.receivers5: list[Subscriber] = []
        self.links: list[Target] = []
        self.special: list[Target] = []
        self.groups: list[ShareGroup] = []
        self.excluded: list[Subscriber] = []
        self.many_links = False
        self.one_link: Subscriber | None = None
        self.turn = 0
        self.link_turn = 0
        self.plain = True

    @property
    def empty(self) -> bool:
        """True when nobody is to get the message."""
        return self.plain and not self.plain4 and not self.plain5

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
    for item in matched:
        subscription = cast(Subscription, item)
        if subscription.exception:
            route.excluded.append(subscription.subscriber)
            continue
        if subscription.filter.share:
            group = groups[subscription.filter]
            if group not in route.groups:
                route.groups.append(group)
            continue
        subscriber = subscription.subscriber
        if not subscriber.connected:
            continue
        target = by_subscriber.get(subscriber)
        if target is None:
            by_subscriber[subscriber] = Target(subscriber, subscription)
        else:
            target.subscriptions.append(subscription)
    for target in by_subscriber.values():
        if target.subscriber not in route.excluded:
            _place(route, target)
    route.plain = not (route.links or route.special or route.groups)
    ways = len(route.links)
    for group in route.groups:
        if group.has_link:
            ways += 1
    if ways > 1:
        route.many_links = True
    elif route.links and not route.links[0].selective:
        route.one_link = route.links[0].subscriber
    return route


def _place(route: Route, target: Target) -> None:
    subscriber = target.subscriber
    plain = True
    selective = True
    for subscription in target.subscriptions:
        if not subscription.plain:
            plain = False
        if subscription.selector is None:
            selective = False
    target.selective = selective
    if subscriber.is_link:
        route.links.append(target)
        return
    if selective:
        plain = False
    if plain and subscriber.frame == FRAME_MQTT4:
        route.plain4.append(subscriber.outbox)
        route.receivers4.append(subscriber)
    elif plain and subscriber.frame == FRAME_MQTT5:
        route.plain5.append(subscriber.outbox)
        route.receivers5.append(subscriber)
    else:
        route.special.append(target)

"""Who gets a topic now: asked of the very route that a message to it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.core.route import QUEUE_PREFIX, build, point_to_point
from vpnrouter.core.subscriber import Subscription
from vpnrouter.topics.grammar import parse_topic

if TYPE_CHECKING:
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.vpn import MessageVpn


def matching(vpn: MessageVpn, topic: str) -> list[Subscription]:
    """The subscriptions by which somebody is sent, or keeps, a message to `topic` that is published now.

    Of a shared subscription all members that may be chosen. No message is at hand: selectors, no-local and
    where a message has been decide later. The route is made afresh and left out of the cache: whoever looks
    drives nothing out. Raises TopicError for what is no topic.
    """
    raw = topic.encode()
    text = parse_topic(raw, vpn.limits.max_topic_levels, vpn.limits.max_topic_bytes)
    if text.startswith(QUEUE_PREFIX):
        route = point_to_point(text, raw, vpn.queue(text[len(QUEUE_PREFIX) :]))
        return [found for target in route.endpoints for found in target.subscriptions]
    matched = [found for found in vpn.trie.match(text) if isinstance(found, Subscription)]
    route = build(text, raw, [*matched], vpn.groups)
    receivers: set[Subscriber] = {*route.receivers4, *route.receivers5}
    for target in (*route.special, *route.links, *route.endpoints, *route.sessions):
        receivers.add(target.subscriber)
    excluded = route.excluded
    found = []
    for subscription in matched:
        subscriber = subscription.subscriber
        if subscription.exception or not (subscriber.connected or subscription.qos):
            continue
        chosen = (
            subscriber not in excluded if subscription.filter.share else subscriber in receivers
        )
        if chosen and (not isinstance(subscriber, LinkClient) or subscriber.wants(raw)):
            found.append(subscription)
    return found

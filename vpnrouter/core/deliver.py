"""Delivers one message to receivers that need their own frame, to groups, and to exactly one consumer.

Deliver-to-one: a message with the MQTT 5 user property `deliver-to-one` = `true` (or `1`) goes to exactly one
consumer. Consumers in the message VPN come first, in turn; a client counts as one, and so does a share group. When
none of them can take it, one link gets it, by the deliver-to-one priority of its subscriptions. Subscriptions for
everything (`deliver_always`, a link's priority 0) get their copy besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.discard_reasons import CLIENT_NOT_CONNECTED
from vpnrouter.core.route import Route
from vpnrouter.core.subscriber import FRAME_MQTT4
from vpnrouter.core.tracing import frame5

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Target
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.vpn import MessageVpn


OFFERS_SHIFT: Final = 2
"""Receivers that take the same frame cost one part of a turn (TurnContext.work) for each 2**OFFERS_SHIFT of them. Each
of the others costs one."""

NOBODY: Final = 0
"""Nobody wanted the message."""

ABSENT: Final = 1
"""Only groups wanted it whose members are away; counted by its reason."""

OFFERED: Final = 2
"""At least one receiver was offered the message. It counts itself what it has no room for or refuses."""


def deliver_special(vpn: MessageVpn, route: Route, message: Message, links_have_it: bool) -> int:
    """Deliver to special receivers, links and groups; return the outcome.

    `links_have_it`: the route's one link got the message in a batch.
    """
    if route.many_links and message.message_id == 0:
        message.message_id = vpn.context.ids.new_message_id()
    vpn.context.work += len(route.special)
    outcome = NOBODY
    for target in route.special:
        subscriptions = target.wanting(message) if target.selective else target.subscriptions
        if subscriptions:
            target.subscriber.deliver(message, subscriptions)
            outcome = OFFERED
    if route.links and not links_have_it and to_links(route, message):
        outcome = OFFERED
    for group in route.groups:
        member = group.choose(message, route.excluded)
        if member is not None:
            member.subscriber.deliver(message, [member])
            outcome = OFFERED
        elif group.misses(message, route.excluded):
            vpn.discard(message, CLIENT_NOT_CONNECTED)
            if outcome == NOBODY:
                outcome = ABSENT
    spool = vpn.context.spool
    if route.endpoints and spool is not None and spool.promote(vpn, route, message):
        outcome = OFFERED
    return outcome


def demote(vpn: MessageVpn, route: Route, message: Message) -> bool:
    """Deliver a guaranteed message as Direct to client subscriptions; True when one was offered it.

    It never holds the publisher: a receiver without room counts the loss (promise LANDING).
    """
    offered = False
    vpn.context.work += (len(route.demoted) >> OFFERS_SHIFT) + len(route.demoted_special)
    for subscriber in route.demoted:
        if subscriber.frame == FRAME_MQTT4:
            frame = message.frame4()
        else:
            frame = frame5(vpn, subscriber, message)
        taken = subscriber.outbox.offer(frame, 1)
        offered = True
        if message.traced:
            vpn.trace_outcome(subscriber, message, taken)
    for target in route.demoted_special:
        subscriptions = target.wanting(message) if target.selective else target.subscriptions
        if subscriptions:
            target.subscriber.deliver(message, subscriptions)
            offered = True
    if route.links:
        if route.many_links and message.message_id == 0:
            message.message_id = vpn.context.ids.new_message_id()
        if to_links(route, message):
            offered = True
    for group in route.groups:
        if group.keeps(message, route.excluded):
            continue
        member = group.choose(message, route.excluded)
        if member is not None:
            member.subscriber.deliver(message, [member])
            offered = True
    return offered


def to_links(route: Route, message: Message) -> bool:
    """Deliver to the links of a route; True when one was offered the message. Its message id is set.

    A link never gets back what came over it (promise NOLOCAL).
    """
    offered = False
    for target in route.links:
        subscriber = target.subscriber
        if subscriber is message.source:
            continue
        subscriptions = target.wanting(message) if target.selective else target.subscriptions
        if subscriptions:
            subscriber.deliver(message, subscriptions)
            offered = True
    return offered


LOWEST_PRIORITY: Final = 4
"""The last of the deliver-to-one priorities 1 to 4."""


_UNABLE: Final = 0
_AWAY: Final = 1
_FULL: Final = 2
_TAKEN: Final = 3


def deliver_to_one(vpn: MessageVpn, route: Route, message: Message) -> int:
    """Deliver to one consumer, and to subscriptions for everything; return the outcome.

    Receivers without room are passed over; where all are full, one of them counts the loss.
    """
    if route.many_links and message.message_id == 0:
        message.message_id = vpn.context.ids.new_message_id()
    outcome = NOBODY
    for target in route.special:
        subscriptions = target.wanting(message)
        if _always(subscriptions):
            target.subscriber.deliver(message, subscriptions)
            outcome = OFFERED
    if copies_to_links(route, message):
        outcome = OFFERED
    count = len(route.receivers4) + len(route.receivers5) + len(route.special) + len(route.groups)
    full = -1
    absent = False
    for step in range(count):
        index = (route.turn + step) % count
        answer = _offer_local(vpn, route, message, index, False)
        if answer == _TAKEN:
            route.turn = index + 1
            return OFFERED
        if answer == _FULL and full < 0:
            full = index
        elif answer == _AWAY:
            absent = True
    if _offer_link(route, message, False):
        return OFFERED
    if full >= 0:
        _offer_local(vpn, route, message, full, True)
        return OFFERED
    if _offer_link(route, message, True):
        return OFFERED
    if absent and outcome == NOBODY:
        vpn.discard(message, CLIENT_NOT_CONNECTED)
        return ABSENT
    return outcome


def copies_to_links(route: Route, message: Message) -> bool:
    """Deliver only to links that subscribe to everything; True when there was one."""
    offered = False
    for target in route.links:
        if target.subscriber is message.source:
            continue
        subscriptions = target.wanting(message)
        if _always(subscriptions):
            target.subscriber.deliver(message, subscriptions)
            offered = True
    return offered


def _always(subscriptions: list[Subscription]) -> bool:
    for subscription in subscriptions:
        if subscription.deliver_always:
            return True
        if subscription.dto_priority == 0 and subscription.subscriber.is_link:
            return True
    return False


def _full(subscriber: Subscriber) -> bool:
    return subscriber.outbox.size >= subscriber.outbox.limit


def _offer_local(
    vpn: MessageVpn, route: Route, message: Message, index: int, even_full: bool
) -> int:
    """Offer the message to consumer `index` of the route; a full one only when `even_full`."""
    plain = len(route.receivers4)
    if index < plain:
        return _offer_plain(vpn, route.receivers4[index], message, even_full)
    index -= plain
    plain = len(route.receivers5)
    if index < plain:
        return _offer_plain(vpn, route.receivers5[index], message, even_full)
    index -= plain
    if index < len(route.special):
        return _offer_special(route.special[index], message, even_full)
    group = route.groups[index - len(route.special)]
    member = group.choose(message, route.excluded)
    if member is None:
        return _AWAY if group.misses(message, route.excluded) else _UNABLE
    if _full(member.subscriber) and not even_full:
        return _FULL
    member.subscriber.deliver(message, [member])
    return _TAKEN


def _offer_plain(vpn: MessageVpn, subscriber: Subscriber, message: Message, even_full: bool) -> int:
    if _full(subscriber) and not even_full:
        return _FULL
    if subscriber.frame == FRAME_MQTT4:
        frame = message.frame4()
    else:
        frame = frame5(vpn, subscriber, message)
    taken = subscriber.outbox.offer(frame, 1)
    if message.traced:
        vpn.trace_outcome(subscriber, message, taken)
    return _TAKEN


def _offer_special(target: Target, message: Message, even_full: bool) -> int:
    subscriber = target.subscriber
    subscriptions = target.wanting(message)
    if subscriber is message.source:
        subscriptions = [one for one in subscriptions if not one.no_local]
    if not subscriptions or _always(subscriptions):
        return _UNABLE
    if _full(subscriber) and not even_full:
        return _FULL
    subscriber.deliver(message, subscriptions)
    return _TAKEN


def _offer_link(route: Route, message: Message, even_full: bool) -> bool:
    """Offer the message to one link, by priority and then in turn; True when one took it."""
    links = route.links
    count = len(links)
    for priority in range(1, LOWEST_PRIORITY + 1):
        for step in range(count):
            index = (route.link_turn + step) % count
            target = links[index]
            subscriber = target.subscriber
            if subscriber is message.source or subscriber.vpn_id in message.path:
                continue
            if _full(subscriber) and not even_full:
                continue
            subscriptions = target.wanting(message)
            if _always(subscriptions) or _priority(subscriptions) != priority:
                continue
            subscriber.deliver(message, subscriptions)
            route.link_turn = index + 1
            return True
    return False


def _priority(subscriptions: list[Subscription]) -> int:
    """The best priority of a link's subscriptions; 0 when there are none."""
    best = 0
    for subscription in subscriptions:
        if best == 0 or subscription.dto_priority < best:
            best = subscription.dto_priority
    return best


def demote_to_one(vpn: MessageVpn, route: Route, message: Message) -> bool:
    """Offer the Direct copy of a guaranteed message to one receiver; True when one was offered it.

    Endpoints keep theirs besides: deliver-to-one concerns the Direct copy alone.
    """
    others = Route(route.topic, route.raw)
    others.receivers4 = [each for each in route.demoted if each.frame == FRAME_MQTT4]
    others.receivers5 = [each for each in route.demoted if each.frame != FRAME_MQTT4]
    others.special = route.demoted_special
    others.links = route.links
    others.many_links = route.many_links
    others.excluded = route.excluded
    others.groups = [group for group in route.groups if not group.keeps(message, route.excluded)]
    others.turn = route.turn
    others.link_turn = route.link_turn
    offered = deliver_to_one(vpn, others, message) == OFFERED
    route.turn = others.turn
    route.link_turn = others.link_turn
    return offered

"""Deliver one message to those for whom a copy of its frame will not do: special receivers, links, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.discards import CLIENT_NOT_CONNECTED
from vpnrouter.core.subscriber import FRAME_MQTT4
from vpnrouter.core.traces import frame5

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.vpn import MessageVpn

NOBODY: Final = 0
"""Nobody wanted the message."""

ABSENT: Final = 1
"""Only groups wanted it whose members are away; counted by its reason."""

OFFERED: Final = 2
"""At least one receiver was offered the message. It counts itself what it has no room for or refuses."""


def deliver_special(vpn: MessageVpn, route: Route, message: Message, links_have_it: bool) -> int:
    """Deliver to those who need a frame of their own, to links and to groups; what became of it.

    `links_have_it` says that the route's one link got the message in a batch.
    """
    if route.many_links and message.message_id == 0:
        message.message_id = vpn.plane.ids.new_message_id()
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
    spool = vpn.plane.spool
    if route.endpoints and spool is not None and spool.promote(vpn, route, message):
        outcome = OFFERED
    return outcome


def demote(vpn: MessageVpn, route: Route, message: Message) -> bool:
    """Deliver a guaranteed message as Direct to those who keep none; True when one was offered it.

    It never holds the publisher: who has no room counts the loss (promise LANDING).
    """
    offered = False
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
            message.message_id = vpn.plane.ids.new_message_id()
        if to_links(route, message):
            offered = True
    for group in route.groups:
        if group.durable:
            continue
        member = group.choose(message, route.excluded)
        if member is not None:
            member.subscriber.deliver(message, [member])
            offered = True
    return offered


def to_links(route: Route, message: Message) -> bool:
    """Deliver to the links of a route, whose message id is set; True when one was offered the message.

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

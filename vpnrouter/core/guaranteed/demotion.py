"""A guaranteed message that wants one consumer, where it goes as Direct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.deliver import OFFERED
from vpnrouter.core.deliver_to_one import deliver_to_one
from vpnrouter.core.route import Route
from vpnrouter.core.subscriber import FRAME_MQTT4

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def demote_to_one(vpn: MessageVpn, route: Route, message: Message) -> bool:
    """Offer the message to one of those who keep none; True when one was offered it.

    Endpoints have it besides: deliver-to-one is about the Direct copy alone.
    """
    others = Route(route.topic, route.raw)
    others.receivers4 = [each for each in route.demoted if each.frame == FRAME_MQTT4]
    others.receivers5 = [each for each in route.demoted if each.frame != FRAME_MQTT4]
    others.special = route.demoted_special
    others.links = route.links
    others.many_links = route.many_links
    others.excluded = route.excluded
    others.groups = [group for group in route.groups if not group.durable]
    others.turn = route.turn
    others.link_turn = route.link_turn
    offered = deliver_to_one(vpn, others, message) == OFFERED
    route.turn = others.turn
    route.link_turn = others.link_turn
    return offered

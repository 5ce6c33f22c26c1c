"""Retain a message: in memory, and in the spool, so that it outlives a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core import client_events
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.guaranteed.stored import to_record
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def retain(vpn: MessageVpn, message: Message) -> None:
    """Retain `message` on its topic; the topic is forgotten where the message is empty or has no room.

    In the spool it counts towards the quotas of the message VPN and the router. A message VPN that may not use the
    spool retains in memory alone.
    """
    retained = vpn.retained
    spool = vpn.plane.spool
    topic = message.topic
    before = retained.size_of(topic)
    kept = spool is not None and vpn.limits.max_msg_spool_usage > 0
    if spool is not None and kept and message.payload:
        more = size_of(message) - before
        if more > 0 and spool.obstacle(vpn, more):
            retained.refuse(topic)
            client_events.no_retained_left(vpn)
            spool.ledger.delete(keys.retained(vpn.name, topic))
            return
    if not retained.keep(message):
        client_events.no_retained_left(vpn)
    if spool is None:
        return
    if retained.expired:
        forget_expired(vpn)
    key = keys.retained(vpn.name, topic)
    if kept and message.payload and retained.has(topic):
        plane = vpn.plane
        spool.ledger.put(key, to_record(message, plane.now_ns, plane.steady_ns))
    elif before:
        spool.ledger.delete(key)


def forget_expired(vpn: MessageVpn) -> None:
    """Delete expired retained messages from the spool."""
    spool = vpn.plane.spool
    expired = vpn.retained.expired
    while expired:
        topic = expired.pop()
        if spool is not None and not vpn.retained.has(topic):
            spool.ledger.delete(keys.retained(vpn.name, topic))

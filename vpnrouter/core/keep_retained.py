"""Retain a message: in memory, and in the spool, so that it outlives a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.stored import to_record
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def retain(vpn: MessageVpn, message: Message) -> None:
    """Keep `message` as the last one of its topic, or forget the topic where it is empty."""
    retained = vpn.retained
    before = retained.has(message.topic)
    retained.keep(message)
    spool = vpn.plane.spool
    if spool is None:
        return
    key = keys.retained(vpn.name, message.topic)
    if message.payload and retained.has(message.topic):
        plane = vpn.plane
        spool.ledger.put(key, to_record(message, plane.now_ns, plane.steady_ns))
    elif before:
        spool.ledger.delete(key)

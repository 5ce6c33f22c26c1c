"""What of a session outlives the router: rows in the spool, written in the unit of what they belong to.

One row tells of the session, one of each subscription (its key is the session's, a NUL, and the filter: a
client id has no NUL in it, MQTT-1.5.4-2), so that a client with many subscriptions writes each of them once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.guaranteed.stored import to_record
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.mqtt.session import MqttSession, Will
    from vpnrouter.core.subscriber import Subscription

SEPARATOR: Final = "\0"

WILL_END: Final = b"\0"
"""Separates the JSON about a will from its message."""


def number_of(session: MqttSession, spool: Spool) -> int:
    """The number that the session's messages and packet identifiers are kept under; drawn when first needed."""
    if session.number == 0:
        session.number = spool.number()
        if session.durable:
            keep(session)
    return session.number


def keep(session: MqttSession) -> None:
    """Write down a session that is to last, as it is now: `left_ns` is 0 while its client is here."""
    spool = spool_of(session.vpn.plane)
    if spool is None:
        return
    row = {
        "level": session.level,
        "expiry": session.expiry_s,
        "number": session.number,
        "endpoint": session.endpoint is not None,
        "left_ns": 0 if session.connected else session.vpn.plane.steady_ns,
        "owner": session.owner,
    }
    spool.ledger.put(keys.session(session.vpn.name, session.client_name), json.dumps(row).encode())
    if spool.fault is not None:
        spool.fault("session-saved")


def keep_subscription(session: MqttSession, subscription: Subscription) -> None:
    """Write down one subscription with its options."""
    spool = spool_of(session.vpn.plane)
    if spool is None:
        return
    row = {
        "qos": subscription.granted,
        "no_local": subscription.no_local,
        "retain_as_published": subscription.retain_as_published,
        "identifier": subscription.identifier,
    }
    spool.ledger.put(_subscription(session, subscription.key), json.dumps(row).encode())


def forget_subscription(session: MqttSession, text: str) -> None:
    """Delete the row of one subscription."""
    spool = spool_of(session.vpn.plane)
    if spool is not None:
        spool.ledger.delete(_subscription(session, text))


def erase(session: MqttSession) -> None:
    """Delete all rows of a session, but those of its endpoint."""
    spool = spool_of(session.vpn.plane)
    if spool is None:
        return
    ledger = spool.ledger
    ledger.delete(keys.session(session.vpn.name, session.client_name))
    for text in session.subscriptions:
        ledger.delete(_subscription(session, text))
    for packet_id in session.inbound:
        ledger.delete(keys.inbound(session.number, packet_id))
    if session.outbound is not None and session.number:
        for packet_id in session.outbound.identifiers():
            ledger.delete(keys.outbound(session.number, packet_id))


def keep_will(session: MqttSession, will: Will) -> None:
    """Store the will of a session: a router that is killed publishes it when it is back.

    The stored `due_ns` is wall clock time while the delay runs, 0 while the client is connected.
    """
    plane = session.vpn.plane
    spool = spool_of(plane)
    if spool is None:
        return
    message = will.message
    row = {
        "delay": will.delay_s,
        "expiry": will.expiry_s,
        "qos": message.qos,
        "owner": session.owner,
        "due_ns": will.due_ns - plane.now_ns + plane.steady_ns if will.due_ns else 0,
    }
    record = to_record(message, plane.now_ns, plane.steady_ns)
    key = keys.will(session.vpn.name, session.client_name)
    spool.ledger.put(key, json.dumps(row).encode() + WILL_END + record)


def forget_will(session: MqttSession) -> None:
    """Delete the stored will: the same unit publishes it, or it will never be published."""
    spool = spool_of(session.vpn.plane)
    if spool is not None:
        spool.ledger.delete(keys.will(session.vpn.name, session.client_name))


def _subscription(session: MqttSession, text: str) -> bytes:
    return keys.session(session.vpn.name, session.client_name + SEPARATOR + text)

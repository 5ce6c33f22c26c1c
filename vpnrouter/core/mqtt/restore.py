"""MQTT sessions that outlived the router: from their rows in the spool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed.endpoint import endpoint_of
from vpnrouter.core.guaranteed.message_record import from_record
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.handover import leftover, restore_handover
from vpnrouter.core.mqtt.outbound_rows import OutboundRows
from vpnrouter.core.mqtt.qos_sender import KEYED, SYNCED, QosSender
from vpnrouter.core.mqtt.session import (
    CONNECTOR_PREFIX,
    NEVER_S,
    SEPARATOR,
    WILL_END,
    MqttSession,
    Will,
)
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, SpoolError, TopicError
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.mqtt.handover import Handover
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.spool.store import Store

_DAMAGED_SUBSCRIPTION: Final = "an MQTT subscription in the spool is damaged"


@final
class StoredSession:
    """The stored row of one session. `left_ns` is wall clock time, 0 if its client was connected to the end.

    Earlier versions wrote as `creator` who made the endpoint, which was the owner.
    """

    __slots__ = ("endpoint", "expiry_s", "left_ns", "level", "number", "owner")

    def __init__(self, value: bytes) -> None:
        """Raises SpoolError when `value` is no such row."""
        try:
            said = json.loads(value)
            self.level = int(said["level"])
            self.expiry_s = int(said["expiry"])
            self.number = int(said["number"])
            self.endpoint = bool(said["endpoint"])
            self.left_ns = int(said["left_ns"])
            self.owner = str(said.get("owner") or said.get("creator", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise SpoolError("an MQTT session in the spool is damaged", "corrupt") from error

    def left(self, wall_ns: int) -> int:
        """Return the nanoseconds until the session expires: all of its interval if its client was connected."""
        return (self.left_ns or wall_ns) + self.expiry_s * SECOND_NS - wall_ns


def restore_sessions(vpn: MessageVpn, store: Store) -> list[Endpoint]:
    """Restore the sessions of a message VPN with subscriptions and packet identifiers; return their endpoints.

    Sessions that have expired, or whose client username was removed (promise OWNER), are deleted. A message VPN without
    ACL profiles is not configured itself. Call this before anything else in `vpn`, with the clocks set. Raises
    SpoolError for what cannot be read.
    """
    spool = spool_of(vpn.context)
    if spool is None:
        return []
    found: list[Endpoint] = []
    session: MqttSession | None = None
    ended: EndedSession | None = None
    current = ""
    for key, value in store.scan(keys.of_vpn(keys.SESSION, vpn.name)):
        _, rest = keys.vpn_and_rest(key)
        client_id, separator, text = rest.decode().partition(SEPARATOR)
        if client_id.startswith(CONNECTOR_PREFIX):
            # A session at the server of somebody else (connectors/provider_session.py).
            continue
        if separator and not client_id:
            found.append(restore_handover(spool, vpn, value).endpoint)
        elif not separator:
            current = client_id
            row = StoredSession(value)
            session = None
            if not (vpn.acl_profiles and row.owner and rights_of(vpn, row.owner) is None):
                session = restore_session(vpn, spool, client_id, row)
            if session is None:
                ended = EndedSession(vpn, store, row, found)
                spool.ledger.delete(key)
                _erase(spool, store, row.number)
                continue
            ended = None
            if session.number:
                _identifiers(session, store)
            endpoint = endpoint_of(session)
            if endpoint is not None:
                found.append(endpoint)
        elif session is None or client_id != current:
            spool.ledger.delete(key)
            if ended is not None and client_id == current:
                ended.subscription(spool, text, value)
        else:
            _subscribe(vpn, session, text, value)
    if vpn.acl_profiles:
        for client in vpn.clients.values():
            if isinstance(client, MqttSession) and client.owner:
                rights = rights_of(vpn, client.owner)
                if rights is not None:
                    client.judge(rights)
    return found


@final
class EndedSession:
    """A session of `row` that is restored no more. What waits for it in shared subscriptions is for their others.

    The endpoint of that is put into `found`.
    """

    __slots__ = ("_found", "_half_sent", "_handover", "_row", "_vpn")

    def __init__(
        self, vpn: MessageVpn, store: Store, row: StoredSession, found: list[Endpoint]
    ) -> None:
        self._vpn = vpn
        self._row = row
        self._found = found
        self._half_sent = set(OutboundRows(store, row.number).sent) if row.number else set()
        self._handover: Handover | None = None

    def subscription(self, spool: Spool, text: str, value: bytes) -> None:
        """Take the row of one of its subscriptions. Raises SpoolError for what is no such row."""
        try:
            filter_ = parse_filter(text, MQTT)
            kept = int(json.loads(value)["qos"]) > 0 and self._row.endpoint
        except (ValueError, KeyError, TypeError) as error:
            raise SpoolError(_DAMAGED_SUBSCRIPTION, "corrupt") from error
        except TopicError:
            return
        if not (kept and filter_.share):
            return
        handover = self._handover
        if handover is None:
            handover = leftover(spool, self._vpn, self._row.number, self._half_sent)
            self._handover = handover
            self._found.append(handover.endpoint)
        handover.share(filter_)
        handover.keep()


def restore_session(
    vpn: MessageVpn, spool: Spool, client_id: str, row: StoredSession
) -> MqttSession | None:
    """One session as its client left it, without subscriptions; None when it has expired."""
    left_ns = row.left(vpn.context.steady_ns)
    if row.expiry_s == 0 or (left_ns <= 0 and row.expiry_s != NEVER_S):
        return None
    session = MqttSession(vpn, client_id, Outbox(vpn.context.ready, 0), row.owner)
    session.level = row.level
    session.expiry_s = row.expiry_s
    session.durable = True
    session.number = row.number
    if row.endpoint:
        session.make_endpoint(spool)
        session.outbound = QosSender(session)
    vpn.clients[client_id] = session
    session.last()
    session.expire_in(left_ns)
    return session


def restore_wills(vpn: MessageVpn, store: Store) -> int:
    """Publish the wills of clients that were connected when the router crashed; returns how many.

    Call this when the endpoints are filled. The will is due (MQTT 5, 3.1.2.5): at once, or after its delay where the
    session lives on. A will that its client username may no longer publish is forgotten. Raises SpoolError for what
    cannot be read.
    """
    spool = spool_of(vpn.context)
    if spool is None:
        return 0
    count = 0
    context = vpn.context
    for key, value in store.scan(keys.of_vpn(keys.WILL, vpn.name)):
        _, rest = keys.vpn_and_rest(key)
        client_id = rest.decode()
        will, owner, due_ns = _read_will(value, context)
        will.message.source_name = client_id
        known = vpn.clients.get(client_id)
        session: MqttSession | None = None
        if isinstance(known, MqttSession) and known.owner in ("", owner):
            session = known
        rights = rights_of(vpn, owner)
        if rights is None or not rights.username.enabled:
            spool.ledger.delete(key)
            continue
        left_ns = 0
        if session is not None:
            left_ns = min(will.delay_s, session.expiry_s) * SECOND_NS
            if due_ns:
                left_ns = min(left_ns, due_ns - context.steady_ns)
        else:
            # Its session ended with the connection, or while the router was down.
            session = MqttSession(vpn, client_id, Outbox(context.ready, 0), owner)
        session.judge(rights)
        session.will_kept = True
        if left_ns > 0:
            session.await_will(will, left_ns)
        else:
            session.will = will
            session.publish_will()
            count += 1
    return count


def _read_will(value: bytes, context: RouterContext) -> tuple[Will, str, int]:
    """A stored will, its client username, and when it was due (wall clock), 0 while its client was connected."""
    said, _, record = value.partition(WILL_END)
    try:
        row = json.loads(said)
        message = from_record(record, context.now_ns, context.steady_ns)
        # It is a new message, as if it came now.
        message.ingress_ns = 0
        message.qos = int(row["qos"])
        will = Will(message, int(row["delay"]), int(row["expiry"]))
        return will, str(row["owner"]), int(row["due_ns"])
    except (ValueError, KeyError, TypeError, SpoolError) as error:
        raise SpoolError("the will of an MQTT client in the spool is damaged", "corrupt") from error


def _erase(spool: Spool, store: Store, number: int) -> None:
    """Delete the stored state of a session that has expired."""
    if number:
        spool.ledger.delete(keys.endpoint(number))
        for prefix in (keys.inbound(number, 0)[:-2], keys.outbound(number, 0)[:-2]):
            for key, _ in store.scan(prefix):
                spool.ledger.delete(key)


def _identifiers(session: MqttSession, store: Store) -> None:
    """Packet identifiers that both sides still know (MQTT 5, 4.1)."""
    number = session.number
    for key, value in store.scan(keys.inbound(number, 0)[:-2]):
        session.inbound.add(keys.second_of(key))
        if len(value) == keys.ID_BYTES:
            session.carried[keys.second_of(key)] = keys.unpack_id(value)
    rows = OutboundRows(store, number)
    if rows.sent or rows.due:
        outbound = session.outbound = session.outbound or QosSender(session)
        for message_id, packet_id in rows.sent.items():
            outbound.sent(message_id, packet_id, 2)
        for packet_id in rows.due:
            outbound.releasing[packet_id] = SYNCED | KEYED
        outbound.turn = rows.turn


def _subscribe(vpn: MessageVpn, session: MqttSession, text: str, value: bytes) -> None:
    """Restore one subscription, unless the message VPN would no longer take it; its messages stay."""
    try:
        said = json.loads(value)
        subscription = Subscription(
            parse_filter(text, MQTT),
            session,
            int(said["qos"]),
            bool(said["no_local"]),
            bool(said["retain_as_published"]),
            int(said["identifier"]),
        )
        vpn.subscribe(subscription)
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolError(_DAMAGED_SUBSCRIPTION, "corrupt") from error
    except (TopicError, Refused):
        return

"""What the event log is told of clients: at logins and logouts, never for each message.

Nothing here costs more than a comparison where nobody keeps a log (`plane.events` is None).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.terms import QUEUE, TOPIC_ENDPOINT
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow
    from vpnrouter.core.login import Admission
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import Kind

PUBLISH_DENIED: Final = 1
SUBSCRIBE_DENIED: Final = 2
TOO_BIG: Final = 4
LARGE: Final = 8
BIND_FAILED: Final = 16
"""Bits of `Publisher.told`: the one-shot events that a connection has had."""

_ONE_SHOTS: Final[dict[int, Kind]] = {
    PUBLISH_DENIED: table.PUBLISH_DENIED,
    SUBSCRIBE_DENIED: table.SUBSCRIBE_DENIED,
    TOO_BIG: table.TOO_BIG,
    LARGE: table.LARGE_MESSAGE,
    BIND_FAILED: table.BIND_FAILED,
}

_PROTOCOLS: Final = {3: "MQTT 3.1", 4: "MQTT 3.1.1", 5: "MQTT 5"}


def connected(connection: MqttConnection, publisher: Publisher) -> None:
    """A client is logged in."""
    events = connection.plane.events
    if events is None:
        return
    name = publisher.subscriber.client_name
    protocol = _PROTOCOLS.get(connection.level, "MQTT")
    vpn = publisher.vpn.name
    text = f"VPN {vpn} client {name} {_who(connection)} connected: {protocol}"
    events.raise_event(table.CONNECT, vpn, name, text)


def disconnected(connection: MqttConnection, publisher: Publisher, why: str) -> None:
    """The connection of a client that was logged in has ended, for `why`."""
    events = connection.plane.events
    if events is None:
        return
    name = publisher.subscriber.client_name
    vpn = publisher.vpn.name
    received = publisher.messages
    sent = publisher.subscriber.outbox.messages
    text = (
        f"VPN {vpn} client {name} {_who(connection)} disconnected: {why};"
        f" received {received:,} sent {sent:,} messages"
    )
    events.raise_event(table.DISCONNECT, vpn, name, text)


def login_refused(connection: MqttConnection, vpn: MessageVpn | None, why: str) -> None:
    """A client was not let in to `vpn` (None: which one was not found out), for `why`: more than it is told."""
    connection.router.logins_refused += 1
    _connect_failed(connection, vpn, why)


def protocol_error(connection: MqttConnection, why: str) -> None:
    """A client did what MQTT forbids. Whoever has not even sent a CONNECT is no client."""
    publisher = connection.publisher
    if publisher is None:
        if connection.connect_packet is not None:
            admission = connection.admission
            _connect_failed(connection, None if admission is None else admission.vpn, why)
        return
    events = connection.plane.events
    if events is not None:
        vpn = publisher.vpn.name
        name = publisher.subscriber.client_name
        events.raise_event(
            table.PARSE_ERROR, vpn, name, f"VPN {vpn} client {name} {_who(connection)}: {why}"
        )


def once(publisher: Publisher, what: int, text: str) -> None:
    """A one-shot event, one of the bits above: told once until the client reconnects or it is cleared.

    The caller has looked at `publisher.told`.
    """
    publisher.told |= what
    events = publisher.vpn.plane.events
    if events is not None:
        vpn = publisher.vpn.name
        name = publisher.subscriber.client_name
        events.raise_event(_ONE_SHOTS[what], vpn, name, f"VPN {vpn} client {name}: {text}")


def rights_changed(session: MqttSession, rights: Admission, changed: list[str]) -> None:
    """Tell that the rights of a session have changed; `changed` names which."""
    events = session.vpn.plane.events
    if events is None:
        return
    vpn = session.vpn.name
    name = session.client_name
    text = (
        f"VPN {vpn} client {name} username {rights.username.name}: may do something else from now on:"
        f" {', '.join(changed)} (ACL profile {rights.acl.name}, client profile {rights.profile.name})"
    )
    events.raise_event(table.PERMISSIONS, vpn, name, text)


def session_ended(session: MqttSession, why: str) -> None:
    """Tell that a change of the configuration ended a session, for `why`, with what waited in it."""
    events = session.vpn.plane.events
    if events is None:
        return
    vpn = session.vpn.name
    name = session.client_name
    waiting = 0 if session.endpoint is None else session.endpoint.spooled_count
    text = f"VPN {vpn} client {name} username {session.owner}: session ended: {why}"
    events.raise_event(table.SESSION_END, vpn, name, f"{text}; {waiting:,} messages discarded")


def flow(publisher: Publisher, *, opened: bool) -> None:
    """A client publishes its first guaranteed message, or its connection ended after some."""
    events = publisher.vpn.plane.events
    if events is None:
        return
    vpn = publisher.vpn.name
    name = publisher.subscriber.client_name
    kind = table.OPEN_FLOW if opened else table.CLOSE_FLOW
    what = "opened" if opened else f"closed: {publisher.spooled:,} messages spooled"
    events.raise_event(kind, vpn, name, f"VPN {vpn} client {name}: publisher flow {what}")


def bound(endpoint: Endpoint, consumer: Flow, *, bind: bool) -> None:
    """A consumer came to a queue or topic endpoint, or went."""
    events = endpoint.vpn.plane.events
    if events is None or endpoint.kind not in (QUEUE, TOPIC_ENDPOINT):
        return
    vpn = endpoint.vpn.name
    name = consumer.client_name
    what = "queue" if endpoint.kind == QUEUE else "topic endpoint"
    count = len(endpoint.flows)
    text = (
        f"VPN {vpn} client {name}: {'bound to' if bind else 'unbound from'} {what} {endpoint.name}"
    )
    events.raise_event(table.BIND if bind else table.UNBIND, vpn, name, f"{text}; {count} bound")


def no_connection_left(vpn: MessageVpn, bound_: int) -> None:
    """A login was refused because the message VPN has its `max_connection_count`."""
    events = vpn.plane.events
    if events is not None:
        text = f"VPN {vpn.name}: max_connection_count {bound_:,} reached; logins are refused"
        events.raise_once(table.CONNECTIONS_EXCEEDED, vpn.name, "", text)


def no_subscription_left(vpn: MessageVpn) -> None:
    """A subscription was refused because the message VPN has its `max_subscription_count`."""
    events = vpn.plane.events
    if events is not None:
        most = vpn.limits.max_subscription_count
        text = f"VPN {vpn.name}: max_subscription_count {most:,} reached; subscriptions are refused"
        events.raise_once(table.SUBSCRIPTIONS_EXCEEDED, vpn.name, "", text)


def no_retained_left(vpn: MessageVpn) -> None:
    """Tell that a message was not retained: the message VPN has as much as it may have, or the spool is full."""
    events = vpn.plane.events
    if events is not None:
        retained = vpn.retained
        text = (
            f"VPN {vpn.name}: no room for more retained messages ({len(retained):,} with {retained.bytes_:,} bytes);"
            " others are delivered and not retained"
        )
        events.raise_once(table.RETAINED_EXCEEDED, vpn.name, "", text)


def _connect_failed(connection: MqttConnection, vpn: MessageVpn | None, why: str) -> None:
    events = connection.plane.events
    packet = connection.connect_packet
    if events is None or packet is None:
        return
    # Not what a stranger calls one.
    place = "" if vpn is None or vpn.name not in connection.router.vpns else vpn.name
    text = (
        f"VPN {place or '?'} client {packet.client_id} username {packet.username or ''}"
        f" from {connection.peer}: connect failed: {why}"
    )
    events.raise_event(table.CONNECT_FAIL, place, packet.client_id, text)


def _who(connection: MqttConnection) -> str:
    admission = connection.admission
    username = "" if admission is None else admission.username.name
    return f"username {username} from {connection.peer}"

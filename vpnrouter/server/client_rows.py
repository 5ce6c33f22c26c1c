"""One client of a message VPN as monitoring shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter.bridges.link import Link
from vpnrouter.core.guaranteed.terms import KIND_NAMES
from vpnrouter.core.losses import (
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    REFUSED,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.mqtt.session import SECOND_NS, MqttSession
from vpnrouter.management.client_source import ClientStatus, SubscriptionStatus
from vpnrouter.server.cleared import reasons_since
from vpnrouter.server.transport import transport_of
from vpnrouter.topics.grammar import MQTT

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import Subscriber, Subscription

CLIENT: Final = "client"
BRIDGE: Final = "bridge"
"""Holders of subscriptions besides endpoints, which are called by their kinds."""


class Counted(NamedTuple):
    """What one connection has counted; discards by reason."""

    rx_messages: int = 0
    rx_bytes: int = 0
    tx_messages: int = 0
    tx_bytes: int = 0
    rx_discards: dict[str, int] = {}  # noqa: RUF012 - never changed
    tx_discards: dict[str, int] = {}  # noqa: RUF012

    def since(self, base: Counted) -> Counted:
        """The same, from when the counts stood at `base`."""
        return Counted(
            self.rx_messages - base.rx_messages,
            self.rx_bytes - base.rx_bytes,
            self.tx_messages - base.tx_messages,
            self.tx_bytes - base.tx_bytes,
            reasons_since(self.rx_discards, base.rx_discards),
            reasons_since(self.tx_discards, base.tx_discards),
        )


NOTHING = Counted()


def counted_by(connection: Connection) -> Counted:
    """What the connection of a client has counted until now."""
    publisher = publisher_of(connection)
    if publisher is None:
        return NOTHING
    outbox = connection.outbox
    received = {
        NO_SUBSCRIPTION_MATCH: publisher.unmatched,
        PUBLISH_TOPIC_ACL: publisher.acl_denied,
        REFUSED: publisher.refused,
    }
    sent = {TRANSMIT_CONGESTION: outbox.discarded}
    if isinstance(connection, Link) and connection.client is not None:
        for reason, count in connection.client.discarded.counts.items():
            sent[reason] = sent.get(reason, 0) + count
    return Counted(
        publisher.messages,
        publisher.bytes_,
        outbox.messages,
        outbox.bytes_,
        {reason: count for reason, count in received.items() if count},
        {reason: count for reason, count in sent.items() if count},
    )


def publisher_of(connection: Connection) -> Publisher | None:
    """The publishing side of a client's connection; None before the login and after the end."""
    if isinstance(connection, MqttConnection):
        return connection.publisher
    return connection.sink if isinstance(connection, Link) else None


def status_of(
    msg_vpn: str, client: Subscriber, connection: Connection | None, base: Counted, now_ns: int
) -> ClientStatus:
    """A client and the connection that it has, if it has one; `base` is what is not shown of the counts."""
    counted = NOTHING if connection is None else counted_by(connection).since(base)
    admission = None if connection is None else connection.admission
    session = client if isinstance(client, MqttSession) else None
    address, tls = ("", "") if connection is None else transport_of(connection)
    username = "" if session is None else session.owner
    discarded = dict(counted.rx_discards)
    for reason, count in counted.tx_discards.items():
        discarded[reason] = discarded.get(reason, 0) + count
    size = 0 if connection is None else connection.outbox.size
    since_ns = now_ns if connection is None else connection.since_ns
    return ClientStatus(
        msg_vpn_name=msg_vpn,
        client_name=client.client_name,
        client_username=username if admission is None else admission.username.name,
        client_id="" if session is None else session.client_name,
        client_address=address,
        client_profile_name="" if admission is None else admission.profile.name,
        acl_profile_name="" if admission is None else admission.acl.name,
        platform=_platform(session),
        connected=connection is not None,
        clean_session=session is None or session.expiry_s == 0,
        keepalive=_keepalive_s(connection),
        tls_version=tls,
        uptime=max(0, now_ns - since_ns) // SECOND_NS,
        subscription_count=len(client.subscriptions),
        rx_msg_count=counted.rx_messages,
        rx_byte_count=counted.rx_bytes,
        tx_msg_count=counted.tx_messages,
        tx_byte_count=counted.tx_bytes,
        rx_discarded_msg_count=sum(counted.rx_discards.values()),
        tx_discarded_msg_count=sum(counted.tx_discards.values()),
        discarded=discarded,
        slow_subscriber=connection is not None
        and (
            size >= connection.outbox.limit or counted.tx_discards.get(TRANSMIT_CONGESTION, 0) > 0
        ),
        outbox_bytes=size,
        bind_count=_binds(client, connection),
    )


def _platform(session: MqttSession | None) -> str:
    if session is None:
        return "vpnrouter link"
    return "MQTT 5" if session.level == 5 else "MQTT 3.1.1"


def _keepalive_s(connection: Connection | None) -> int:
    """The interval that holds: what the client asked for, or what its profile allows (MQTT 5, 3.2.2.3.14)."""
    if not isinstance(connection, MqttConnection) or connection.connect_packet is None:
        return 0
    asked = connection.connect_packet.keep_alive_s
    admission = connection.admission
    most = 0 if admission is None else admission.profile.max_keepalive_timeout
    return most if most and not 0 < asked <= most else asked


def _binds(client: Subscriber, connection: Connection | None) -> int:
    if isinstance(client, MqttSession):
        return 0 if client.outbound is None else len(client.outbound.flows)
    if isinstance(connection, Link) and connection.outbound is not None:
        flows = connection.outbound.flows
        return 0 if flows is None else len(flows.queues())
    return 0


# -- subscriptions -------------------------------------------------------------------------------


def holder_of(subscriber: Subscriber) -> tuple[str, str]:
    """Kind and name of whoever holds a subscription, as `SubscriptionStatus` has them."""
    if subscriber.is_endpoint:
        # Only endpoints are marked so.
        endpoint: Endpoint = subscriber  # type: ignore[assignment]
        return KIND_NAMES[endpoint.kind], endpoint.name
    return BRIDGE if subscriber.is_link else CLIENT, subscriber.client_name


def subscription_status(msg_vpn: str, subscription: Subscription) -> SubscriptionStatus:
    """One subscription."""
    filter_ = subscription.filter
    subscriber = subscription.subscriber
    holder, name = holder_of(subscriber)
    selector = subscription.selector
    return SubscriptionStatus(
        msg_vpn_name=msg_vpn,
        subscription_topic=subscription.key,
        syntax="mqtt" if filter_.dialect == MQTT else "smf",
        holder=holder,
        name=name,
        qos=subscription.qos,
        share_name=filter_.share,
        selector="" if selector is None else selector.text,
        connected=subscriber.connected,
    )

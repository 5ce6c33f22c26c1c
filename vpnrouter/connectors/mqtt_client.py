"""A connector's connection to an MQTT broker: the router is the client, over a session of its own.

Messages go over the session as those of a client do (`core/mqtt`): what the session subscribes to goes out, what the
broker publishes comes in. Of the three qualities of service each is the QoS of MQTT that keeps it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.links import LinkTopics, outward
from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK, CONSUME, DELETE, QUEUE
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.login import Admission
from vpnrouter.core.mqtt.connect import join
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.mqtt.consumer_flow import MqttFlow
from vpnrouter.core.mqtt.dialled import Dialled
from vpnrouter.core.mqtt.qos_sender import QosSender
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX, NEVER_S, MqttSession
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, TopicError
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.connectors.links import Link
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.message import Message
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.mqtt.packets import Packet

LEVELS: Final = (5, 0x84, 4)
"""Versions to try, in this order: MQTT 5; 3.1.1 with the bit by which brokers know a bridge, so that they do not echo
its messages (mosquitto, VerneMQ and others); and plain 3.1.1."""

PING: Final = 0
RETRY: Final = 1
"""Kinds of timers."""

RETRY_NS: Final = 200 * MILLISECOND_NS
"""Time after which a message that the message VPN refused is tried again."""


class ConnectorCallbacks(ABC):
    """What a connector's connection tells whoever dialled it."""

    @abstractmethod
    def joined(self, client: MqttClient) -> None:
        """The provider has accepted the login."""

    @abstractmethod
    def lost(self, client: MqttClient, why: str, *, other_version: bool) -> None:
        """The connection is over; `other_version`: the provider might take another version of the protocol."""

    @abstractmethod
    def link_refused(self, link: str, why: str) -> None:
        """A link cannot carry messages; "" where it can again."""


def rights(vpn: MessageVpn) -> Admission:
    """Return the rights of a connector: it may do everything, for the configuration says what it does."""
    username = ClientUsername(
        CONNECTOR_PREFIX.removesuffix("/"),
        guaranteed_endpoint_permission_override_enabled=True,
        listed=False,
    )
    profile = ClientProfile(
        CONNECTOR_PREFIX.removesuffix("/"),
        allow_guaranteed_endpoint_create_enabled=True,
        allow_guaranteed_msg_receive_enabled=True,
        allow_guaranteed_msg_send_enabled=True,
    )
    return Admission(vpn, username, profile, AclProfile(username.name, True), False, b"")


def session_of(vpn: MessageVpn, name: str) -> MqttSession:
    """Return the session of the connector `name`, which outlives connections and the router; made if it is new."""
    client_name = CONNECTOR_PREFIX + name
    known = vpn.clients.get(client_name)
    if isinstance(known, MqttSession):
        return known
    session = MqttSession(vpn, client_name, Outbox(vpn.context.ready, 0))
    session.expiry_s = NEVER_S
    session.durable = vpn.context.spool is not None
    vpn.clients[client_name] = session
    session.last()
    return session


def attract(session: MqttSession, links: list[Link], *, no_local: bool) -> None:
    """Let the session subscribe to what `links` take from topics at most once, and to nothing else.

    `no_local`: something comes in from the provider, which must not go out again.
    """
    vpn = session.vpn
    wanted: dict[str, Subscription] = {}
    for link in links:
        if link.inbound or link.from_queue or link.qos or not link.enabled:
            continue
        subscription = Subscription(
            link.filter,
            session,
            no_local=no_local,
            retain_as_published=link.keeps_retained,
            selector=link.selector,
        )
        subscription.configured = True
        wanted.setdefault(subscription.key, subscription)
    vpn.drop(session)
    for subscription in wanted.values():
        vpn.subscribe(subscription)


@final
class MqttClient(Dialled):
    """One connection of a connector, from its CONNECT on. `level` is one of LEVELS.

    `suback_due`: the links that wait for a SUBACK, by packet identifier.
    """

    def __init__(
        self,
        owner: ConnectorCallbacks,
        router: Router,
        peer: str,
        session: MqttSession,
        name: str,
        links: list[Link],
        settings: ProviderSettings,
        level: int,
    ) -> None:
        self.connection = MqttConnection(router, peer, session.vpn.name)
        self._owner = owner
        self._session = session
        self._name = name
        self._links = [link for link in links if link.enabled]
        links = self._links
        self._settings = settings
        self._level = level
        self._joined = False
        self._inward = LinkTopics(link for link in links if link.inbound)
        self._outward = LinkTopics(link for link in links if not link.inbound and not link.qos)
        self._of_flow = {link.name: LinkTopics([link]) for link in links if not link.inbound}
        self._held: tuple[Message, int] | None = None
        self._suback_due: dict[int, Link] = {}
        self._retains = True
        self._why = ""
        self._other_version = False
        self._pinged_ns = 0

    def begin(self) -> None:
        """Send CONNECT."""
        settings = self._settings
        properties = Properties()
        if self._level == 5:
            properties.session_expiry_interval = NEVER_S
            properties.receive_maximum = limits.RECEIVE_MAXIMUM
        packet = Connect(
            settings.client_id,
            False,
            settings.keep_alive_s,
            self._level,
            settings.username,
            settings.password,
            None,
            properties,
        )
        self.connection.greet(self, packet, limits.CONNECT_TIMEOUT_S)

    def end(self, why: str) -> None:
        """Log out."""
        self.connection.put_out(why)

    @override
    def owning_connection(self) -> Connection | None:
        return self.connection

    # -- what the provider answers ---------------------------------------------------------------

    @override
    def answer(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            self._answered(packet)
        elif isinstance(packet, Suback):
            self._granted(packet)
        elif isinstance(packet, Disconnect):
            self._fail(
                f"the provider ended the connection: {_said(packet.reason_code, packet.properties)}"
            )

    def _answered(self, packet: Connack) -> None:
        code = packet.reason_code
        if code != reason.SUCCESS:
            self._other_version = code == reason.UNSUPPORTED_PROTOCOL_VERSION
            self._fail(f"the provider refused the login: {_said(code, packet.properties)}")
            return
        properties = packet.properties
        if properties.maximum_qos is not None:
            for link in self._links:
                if link.qos > properties.maximum_qos:
                    self._fail(
                        f"the provider knows no QoS {link.qos}, which the quality of service of link"
                        f" {link.name} needs"
                    )
                    return
        self._retains = properties.retain_available != 0
        session = self._session
        connection = self.connection
        plain = all(link.plain for link in self._links if link.inbound)
        join(
            connection,
            rights(session.vpn),
            session,
            present=packet.session_present,
            receive_maximum=properties.receive_maximum or 0,
            max_packet=properties.maximum_packet_size or 0,
            one_by_one=not plain,
        )
        self._joined = True
        self._subscribe()
        self._bind_flows()
        self._ping(connection.context.now_ns)
        self._owner.joined(self)

    def _subscribe(self) -> None:
        """Ask for what the links bring in, and no more for what no link brings in any more."""
        connection = self.connection
        session = self._session
        asked = [link.source for link in self._links if link.inbound]
        number = 1
        gone = [text for text in session.asked if text not in asked]
        if gone:
            connection.outbox.control(encode(Unsubscribe(number, gone), connection.level))
        if session.asked != asked:
            session.asked = asked
            session.keep()
        for link in self._links:
            if not link.inbound:
                continue
            if link.qos and connection.ingress is None:
                self._owner.link_refused(link.name, refusals.SERVICE_UNAVAILABLE)
                continue
            number += 1
            request = SubscriptionRequest(
                link.source,
                link.qos,
                no_local=connection.level == 5 and not link.source.startswith("$share/"),
                retain_as_published=link.keeps_retained,
                retain_handling=1,
            )
            self._suback_due[number] = link
            connection.outbox.control(encode(Subscribe(number, [request]), connection.level))

    def _granted(self, packet: Suback) -> None:
        link = self._suback_due.pop(packet.packet_id, None)
        if link is None:
            return
        code = packet.reason_codes[0] if packet.reason_codes else reason.UNSPECIFIED_ERROR
        why = ""
        if code >= reason.UNSPECIFIED_ERROR:
            why = f"the provider refused {link.source}: {_said(code, packet.properties)}"
        elif code < link.qos:
            why = f"the provider grants QoS {code} for {link.source}, less than its quality of service needs"
            connection = self.connection
            gone = Unsubscribe(packet.packet_id, [link.source])
            connection.outbox.control(encode(gone, connection.level))
        self._owner.link_refused(link.name, why)

    def _bind_flows(self) -> None:
        """Consume from the queues that links take from, and from what is kept of topics for links."""
        for link in self._links:
            if link.inbound or not (link.from_queue or link.qos):
                continue
            why = ""
            try:
                self._bind(link)
            except Refused as refusal:
                why = f"{link.source}: {refusal.reason}"
            self._owner.link_refused(link.name, why)

    def _bind(self, link: Link) -> None:
        """Bind a flow under the name of its link. Raises Refused."""
        session = self._session
        spool = spool_of(session.vpn.context)
        place = (QUEUE, link.source)
        if not link.from_queue:
            place = (CONNECTOR_LINK, f"{self._name}/{link.name}")
        endpoint = endpoints_of(session.vpn).get(place)
        if endpoint is None or spool is None:
            raise Refused(refusals.QUEUE_NOT_FOUND, 0)
        session.number_in(spool)
        outbound = session.outbound
        if outbound is None:
            outbound = session.outbound = QosSender(session)
            outbound.plug(session.receive_maximum)
        # What is kept for a link was selected when it was kept.
        selector = link.selector if link.from_queue else None
        flow = MqttFlow(outbound, endpoint, link.name, link.qos, selector)
        outbound.flows[link.name] = flow
        try:
            endpoint.bind(flow, DELETE, CONSUME)
        except Refused:
            outbound.flows.pop(link.name, None)
            raise
        self.connection.guaranteed = True
        flow.wake()

    # -- messages that come in -------------------------------------------------------------------

    @override
    def topic(self, topic: bytes) -> bytes:
        image, link = self._inward.of(topic)
        if link is None:
            raise TopicError(f"no link takes {topic.decode()!r}")
        return image

    @override
    def retained_in(self, topic: bytes) -> bool:
        link = self._inward.of(topic)[1]
        return link is None or link.keeps_retained

    @override
    def retained_out(self, flow: str) -> bool:
        # Of Direct messages the subscription decides.
        links = self._of_flow.get(flow)
        return self._retains and (links is None or links.links[0].keeps_retained)

    @override
    def outward(self, topic: bytes, flow: str) -> bytes:
        try:
            links = self._of_flow[flow] if flow else self._outward
            return links.of(outward(topic))[0]
        except TopicError:
            return b""

    @override
    def held_back(self, message: Message, token: int) -> None:
        self._held = (message, token & 0xFFFF)
        connection = self.connection
        connection.hold()
        context = connection.context
        context.timers.arm(context.now_ns + RETRY_NS, self, RETRY)

    def _retry(self) -> None:
        held = self._held
        connection = self.connection
        if held is None or connection.ingress is None:
            return
        self._held = None
        connection.held = False
        connection.publish_again(*held)
        # It may be held again: the message is refused again, or selectors are evaluated first.
        if not connection.held:
            connection.release()

    # -- life ------------------------------------------------------------------------------------

    def _ping(self, now_ns: int) -> None:
        """Show that the router lives, and look whether the provider does (MQTT 5, 3.1.2.10)."""
        connection = self.connection
        every_ns = self._settings.keep_alive_s * SECOND_NS
        silent_ns = now_ns - connection.heard_ns
        if silent_ns > every_ns * 3 // 2 and not connection.paused:
            connection.cut_off("the provider gives no sign of life")
            return
        connection.outbox.control(encode(Pingreq(), connection.level))
        connection.context.timers.arm(now_ns + every_ns, self, PING)

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        if self.connection.closing:
            return
        if kind == RETRY:
            self._retry()
        else:
            self._ping(now_ns)

    def _fail(self, why: str) -> None:
        self._why = why
        self.connection.put_out(why)

    @override
    def ended(self, why: str) -> None:
        self._held = None
        if not self._joined and not self._why:
            # A broker that knows only another version may close without a word.
            self._other_version = True
        self._owner.lost(self, self._why or why, other_version=self._other_version)


def _said(code: int, properties: Properties) -> str:
    text = properties.reason_string
    return f"{reason.reason_text(code)}{f' ({text})' if text else ''}"

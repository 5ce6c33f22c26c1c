"""A connector's connection to an MQTT broker: the login, the links' subscriptions, and what either side publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.links import LinkTopics
from vpnrouter.connectors.mqtt.connection import JOINED, MqttProviderConnection
from vpnrouter.connectors.mqtt.incoming import Incoming, digest_of
from vpnrouter.connectors.mqtt.outgoing import MqttOutwardFlow, Outgoing
from vpnrouter.connectors.mqtt.publishing import Publishing
from vpnrouter.connectors.provider import ENDED, LOOKS, Loss, Provider
from vpnrouter.connectors.provider_timers import ProviderTimers
from vpnrouter.connectors.visited import entry_of, visited
from vpnrouter.core.discard_reasons import (
    DUPLICATE,
    MSG_TOO_BIG,
    NOT_SUBSCRIBED,
    PAUSED,
    TOPIC_PARSE_ERROR,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import NEVER_S
from vpnrouter.core.tracing import outcome, sent_out
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.topics.algebra import intersects
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import read_varint
from vpnrouter.wire.mqtt.packets import (
    BRIDGE_BIT,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.publish_block import split_publish_properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBLISH, PUBREC, PUBREL

if TYPE_CHECKING:
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardFlow, OutwardLink
    from vpnrouter.connectors.provider import ConnectorCallbacks
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.vpn import MessageVpn

LEVELS: Final = (5, 0x84, 4)
"""Versions to try, in this order: MQTT 5; 3.1.1 with the bit by which brokers know a bridge, so that they do not echo
its messages (mosquitto, VerneMQ and others); and plain 3.1.1."""

GREET: Final = 0
PING: Final = 1
PROVE: Final = 2
WATCH: Final = 3
"""Kinds of timers: CONNACK is late, PINGREQ is due for the keep-alive, PINGREQ is due for a proof, a look is due
whether messages are answered."""

PROVE_NS: Final = 100 * MILLISECOND_NS
"""How soon it is proved that the provider has what was acknowledged to it."""

BLOCK_SHIFT: Final = 4
"""What properties cost, by their bytes: so many bits are shifted out of the number."""

PLAIN: Final = 4
"""Of these the one in which a provider echoes what it gets, and clears RETAIN of what is published meanwhile."""

PROTOCOLS: Final[dict[int, str]] = {5: "MQTT 5", 0x84: "MQTT 3.1.1", 4: "MQTT 3.1.1"}


def _echoed(terms: LinkSettings, outward: list[LinkSettings]) -> str:
    """Return the link outward whose messages a link inward would bring back as they are, "" for none."""
    if terms.rule is not None or terms.queue_target:
        return ""
    for other in outward:
        plain = other.rule is None and not other.from_queue
        if plain and intersects(terms.filter, other.filter):
            return other.name
    return ""


def _brought_back(terms: LinkSettings, vpn: MessageVpn, outward: list[LinkSettings]) -> str:
    """Return the link outward of another connection whose messages a link inward would bring back, under whatever name;
    "" for none. A queue may have what its subscriptions bring, and where it has none, everything.
    """
    for other in outward:
        filters = [other.filter]
        queue = vpn.queue(other.source) if other.from_queue else None
        if other.rule is not None:
            filters = [other.rule.image]
        elif queue is not None and queue.subscriptions:
            filters = [
                each.filter for each in queue.subscriptions.values() if not each.filter.exception
            ]
        for filter_ in filters:
            if intersects(terms.filter, filter_):
                return other.name
    return ""


@final
class MqttClient(Provider):
    """One connection of a connector, from its CONNECT on. `level` is one of LEVELS. `beside` are the links that take
    messages out over other connections of the connector.

    `leaving`: it only logs in to end the session at the provider.
    """

    def __init__(
        self,
        owner: ConnectorCallbacks,
        vpn: MessageVpn,
        peer: str,
        session: ProviderSession,
        home: MemoryAccount,
        inward: list[InwardLink],
        outward: list[OutwardLink],
        settings: ProviderSettings,
        level: int,
        *,
        beside: list[LinkSettings] | None = None,
        leaving: bool = False,
    ) -> None:
        bounds = vpn.limits
        most = bounds.max_msg_size + bounds.max_topic_bytes + limits.PROPERTY_BYTES
        connection = MqttProviderConnection(vpn.context, self, peer, home, most)
        super().__init__(
            connection,
            vpn,
            session.client_name,
            PROTOCOLS[level],
            settings,
            carries_path=level == LEVELS[0],
        )
        self.mqtt_connection = connection
        self._owner = owner
        self._session = session
        self._settings = settings
        self._level = level
        self._leaving = leaving
        self._beside = beside or []
        wire_level = level & ~BRIDGE_BIT
        self._wire_level = wire_level
        self.publishing = Publishing(vpn, settings.place, wire_level)
        self.incoming = Incoming(self, connection, session, wire_level)
        self.outgoing = Outgoing(connection, session, self.publishing, outward)
        self._inward = {link.terms.name: link for link in inward}
        self._carried: set[str] = set()
        self._topics = LinkTopics([])
        self._numbers = {link.terms.name: at for at, link in enumerate(inward, 1)}
        self._overlap = _overlap([link.terms for link in inward])
        self._asked: dict[int, InwardLink] = {}
        # The request that the provider has to answer next, as a look found it, and since when.
        self._owed = 0
        self._owed_ns = 0
        # Links whose subscription the provider may have lost.
        self._renewed: set[str] = set()
        # PINGREQs sent and answered; the one behind the subscriptions, until which what is retained may come anew.
        self._pings = 0
        self._pongs = 0
        self._settled_ping = 0
        self._keep_alive_ns = settings.keep_alive_s * SECOND_NS
        self._proving = False
        self._most_qos = 2
        # What the provider has said that it does not offer.
        self._no_wildcards = False
        self._no_shares = False
        self._no_session = False
        self._refused_version = False
        self._joined = False
        self._by_us = False
        # The PINGREQ whose answer shows that the provider is alive and still owes an answer to a message; 0 for none.
        self._decisive_ping = 0
        self._unanswered = False
        self._renews = False
        self._proved = False
        self._timers = ProviderTimers(self)

    # -- login -----------------------------------------------------------------------------------

    @override
    def begin(self) -> None:
        settings = self._settings
        properties = Properties()
        if self._level == 5:
            unfinished = not self._leaving or bool(self._session.releasing)
            properties.session_expiry_interval = NEVER_S if unfinished else 0
            properties.receive_maximum = limits.RECEIVE_MAXIMUM
            properties.maximum_packet_size = self.mqtt_connection.most
        packet = Connect(
            settings.client_id,
            self._leaving and not self._session.releasing,
            settings.keep_alive_s,
            self._level,
            settings.username or None,
            settings.password,
            None,
            properties,
        )
        self._timers.arm(GREET, limits.CONNECT_TIMEOUT_S * SECOND_NS)
        self.connection.outbox.control(encode(packet, self._wire_level))

    def _answered(self, packet: Connack) -> None:
        code = packet.reason_code
        properties = packet.properties
        if code >= reason.UNSPECIFIED_ERROR:
            self._refused_version = code == reason.UNSUPPORTED_PROTOCOL_VERSION
            self.end(f"the provider refused the login: {self._said(code, properties)}")
            return
        self._timers.cancel(GREET)
        self.mqtt_connection.state = JOINED
        self._joined = True
        if self._leaving:
            self._finish(present=packet.session_present)
            return
        publishing = self.publishing
        publishing.max_packet = properties.maximum_packet_size or 0
        publishing.retains = properties.retain_available != 0
        if properties.maximum_qos is not None:
            self._most_qos = properties.maximum_qos
        self._no_wildcards = properties.wildcard_subscription_available == 0
        self._no_shares = properties.shared_subscription_available == 0
        # MQTT 5, 3.2.2.3.2: for ever was asked for.
        self._no_session = properties.session_expiry_interval == 0
        if properties.server_keep_alive is not None:
            # MQTT 5, 3.2.2.3.14.
            self._keep_alive_ns = properties.server_keep_alive * SECOND_NS
        session = self._session
        if not packet.session_present:
            session.lost_by_provider()
        if session.is_new or session.level != self._level:
            session.level = self._level
            session.keep()
        outgoing = self.outgoing
        exchanges = 0 if self._level == LEVELS[0] else self._settings.receive_maximum
        outgoing.take_window(properties.receive_maximum or 0, exchanges)
        outgoing.resume()
        self.connection.guaranteed = True
        self._leave_out_gone()
        outgoing.sweep()
        self._owner.joined(self)
        self._begin_pings()

    def _finish(self, *, present: bool) -> None:
        """Release what the provider has got, which is not here any more: its session ends with the next login."""
        releasing = self._session.releasing
        if not present:
            releasing.clear()
        for packet_id in releasing:
            self.outgoing.send_pubrel(packet_id)
        if not releasing:
            self.end("the session is over")

    def completed(self, packet_id: int) -> None:
        """The provider has ended the exchange of a QoS 2 message."""
        self.outgoing.pubcomp(packet_id)
        if self._leaving and not self._session.releasing:
            self.end("the session is over")

    def _begin_pings(self) -> None:
        """Ask for the first sign of life: what was subscribed to is behind it, and suspects wait for it."""
        outgoing = self.outgoing
        self._proving = outgoing.suspects
        outgoing.proving = self._proving
        self._ping()
        self._settled_ping = self._pings
        if self._keep_alive_ns:
            self._timers.arm(PING, self._keep_alive_ns)
        self._watch()

    @override
    def obstacle(self, terms: LinkSettings) -> str:
        if terms.qos > self._most_qos:
            return (
                f"the provider knows no QoS {terms.qos}, which its quality of service needs;"
                f" it takes QoS {self._most_qos} at most"
            )
        if terms.qos and self._session.spool is None:
            return "guaranteed messages are disabled here"
        if terms.qos == 2 and self._no_session:
            return "the provider keeps no session, which its quality of service needs"
        if terms.inbound and self._no_shares and terms.source.startswith("$share/"):
            return "the provider knows no shared subscriptions"
        if terms.inbound and self._no_wildcards and ("#" in terms.source or "+" in terms.source):
            return "the provider takes no filters with wildcards"
        return self._echo_of(terms) if self._level != LEVELS[0] and terms.inbound else ""

    def _echo_of(self, terms: LinkSettings) -> str:
        """Return why a link would only bring back what another one takes out, "" where it would not."""
        if self._level == PLAIN:
            own = [link.terms for link in self.outgoing.links]
            name = _echoed(terms, own)
            if name:
                return (
                    "the provider speaks MQTT 3.1.1 and knows no bridges: it would bring back what link"
                    f" {name} takes out"
                )
        name = _brought_back(terms, self.vpn, self._beside)
        if not name:
            return ""
        return (
            f"the provider speaks MQTT 3.1.1: it would bring back what link {name} takes out over another"
            " connection"
        )

    # -- subscriptions ---------------------------------------------------------------------------

    def _leave_out_gone(self) -> None:
        """Ask for no more of what no link brings in any more."""
        session = self._session
        wanted = {link.terms.source for link in self._inward.values() if link.terms.enabled}
        gone = [text for text in session.asked if text not in wanted]
        if gone:
            number = self.outgoing.next_id()
            packet = Unsubscribe(number, gone)
            self.connection.outbox.control(encode(packet, self._wire_level))
            for text in gone:
                del session.asked[text]
            session.keep()

    @override
    def ask(self, link: InwardLink) -> None:
        terms = link.terms
        self._carry(link, True)
        if self._session.asked.get(terms.source, -1) == terms.qos:
            if terms.qos:
                # The provider has it: over 3.1.1 another SUBSCRIBE would bring all that is retained once more.
                link.opened()
                return
            # RabbitMQ keeps none of QoS 0 over connections, though it says that the session is there.
            self._renewed.add(terms.name)
        number = self._next_number()
        request = SubscriptionRequest(
            terms.source,
            terms.qos,
            no_local=self._level == 5 and not terms.source.startswith("$share/"),
            retain_as_published=terms.keeps_retained,
            retain_handling=1,
        )
        packet = Subscribe(number, [request])
        if self._level == 5 and self._overlap:
            packet.properties.subscription_identifiers = [self._numbers[terms.name]]
        self._asked[number] = link
        self.connection.outbox.control(encode(packet, self._wire_level))

    def _carry(self, link: InwardLink, carries: bool) -> None:
        """Let a link take messages, or none: they are then for the next one that takes their topics."""
        if carries:
            self._carried.add(link.terms.name)
        else:
            self._carried.discard(link.terms.name)
        self._topics = LinkTopics(
            [each.terms for name, each in self._inward.items() if name in self._carried]
        )

    def _next_number(self) -> int:
        while True:
            number = self.outgoing.next_id()
            if number not in self._asked:
                return number

    def _granted(self, packet: Suback) -> None:
        link = self._asked.pop(packet.packet_id, None)
        if link is None:
            return
        terms = link.terms
        code = packet.reason_codes[0] if packet.reason_codes else reason.UNSPECIFIED_ERROR
        if code >= reason.UNSPECIFIED_ERROR:
            said = self._said(code, packet.properties)
            self._carry(link, False)
            link.refused(f"the provider refused {terms.source}: {said}")
        elif code > 2:
            self._carry(link, False)
            link.refused(f"the provider grants QoS {code} for {terms.source}, which MQTT has not")
        elif code < terms.qos:
            self._carry(link, False)
            link.refused(
                f"the provider grants QoS {code} for {terms.source}, less than its quality of"
                " service needs"
            )
            packet_out = Unsubscribe(self._next_number(), [terms.source])
            self.connection.outbox.control(encode(packet_out, self._wire_level))
        else:
            self._session.asked[terms.source] = terms.qos
            self._session.keep()
            link.opened()

    # -- what the provider answers ---------------------------------------------------------------

    def answer(self, data: bytes, pos: int, length: int) -> None:
        """Take a CONNACK, SUBACK, UNSUBACK, PINGRESP or DISCONNECT. Raises ProtocolError."""
        self.vpn.context.work += length >> BLOCK_SHIFT
        packet = decode(data, pos, length, self._wire_level, True)
        if isinstance(packet, Connack):
            self._answered(packet)
        elif isinstance(packet, Suback):
            self._granted(packet)
        elif isinstance(packet, Pingresp):
            self._ponged()
        elif isinstance(packet, Disconnect):
            said = self._said(packet.reason_code, packet.properties)
            self.mqtt_connection.end(f"{ENDED}: {said}")

    def acknowledge(self, data: bytes, pos: int, length: int) -> None:
        """Take a PUBACK, PUBREC, PUBREL or PUBCOMP in its long form. Raises ProtocolError."""
        packet = decode(data, pos, length, self._wire_level, True)
        if not isinstance(packet, Ack):
            return
        code = packet.reason_code
        why = ""
        if code >= reason.UNSPECIFIED_ERROR:
            why = f"the provider refused it: {self._said(code, packet.properties)}"
        kind = packet.packet_type
        if kind == PUBACK:
            self.outgoing.puback(packet.packet_id, code, why)
        elif kind == PUBREC:
            self.outgoing.pubrec(packet.packet_id, code, why)
        elif kind == PUBREL:
            self.incoming.release(packet.packet_id)
        else:
            self.completed(packet.packet_id)

    # -- messages that come in -------------------------------------------------------------------

    def publish(self, data: bytes, pos: int, length: int) -> None:
        """Take the PUBLISH in `data[pos:pos + length]`. Raises ProtocolError for what MQTT forbids."""
        end = pos + length
        first = data[pos]
        qos = (first >> 1) & 3
        topic, packet_id, start = _head(data, pos, end, qos)
        block = b""
        expiry_s = -1
        context = self.vpn.context
        identifiers: list[int] = []
        if self._wire_level == 5:
            size, start = read_varint(data, start, end)
            if start + size > end:
                raise ProtocolError(reason.MALFORMED_PACKET, "the properties run beyond the packet")
            block, alias, expiry_s = split_publish_properties(data, start, start + size)
            if alias:
                raise ProtocolError(
                    reason.TOPIC_ALIAS_INVALID,
                    "a topic alias, though none is allowed (MQTT-3.3.2-8)",
                )
            if size and self._overlap:
                field = decode_properties(data, start - _varint_bytes(size), end, PUBLISH)[0]
                identifiers = field.subscription_identifiers
            start += size
            context.work += size >> BLOCK_SHIFT
        link, image, flaw = self._link_of(topic, identifiers)
        if link is None:
            self._pass_over(packet_id, qos, flaw)
            return
        digest = b""
        if qos == 1 and link.terms.qos == 2:
            digest = digest_of(topic, data[start:end])
        if qos and self.incoming.is_known(packet_id, qos, first & 8 != 0, digest):
            link.counters.messages += 1
            link.counters.bytes_ += length
            link.counters.duplicates += 1
            return
        block, path = visited(block)
        path.append(entry_of(self.place, carries_path=self.carries_path))
        retained = first & 1 == 1
        message = Message(
            image, data[start:end], block, retained and link.terms.keeps_retained, link.source
        )
        message.qos = qos
        message.persistent = qos > 0
        message.path = path
        message.hops = len(path)
        if expiry_s >= 0:
            message.expires_ns = context.now_ns + expiry_s * SECOND_NS
        self._take(link, message, packet_id, digest, length, flaw, retained=retained)

    def _take(
        self,
        link: InwardLink,
        message: Message,
        packet_id: int,
        digest: bytes,
        length: int,
        flaw: str,
        *,
        retained: bool,
    ) -> None:
        qos = message.qos
        incoming = self.incoming
        why = link.takes(message, length) or flaw
        if not why and retained and self._pongs < self._settled_ping and self._came(link, message):
            why = DUPLICATE
        if why and not (qos and link.buries(why)):
            link.discards(message, why)
            if qos:
                self._leave_out(packet_id, qos)
        elif qos:
            link.enter(message, incoming, incoming.token(packet_id, qos, digest), why)
            incoming.hold_back()
        elif link.status.paused:
            link.discards(message, PAUSED)
        else:
            link.enter_direct(message, self.connection)

    def _came(self, link: InwardLink, message: Message) -> bool:
        """Return whether a message that came because of a subscription, since it is retained, has come before."""
        terms = link.terms
        if terms.name in self._renewed and (not terms.keeps_retained or self._level == PLAIN):
            # It is not retained here, or has come without RETAIN, so that nothing shows what has come.
            return True
        return link.has_retained(message)

    def _link_of(
        self, topic: bytes, identifiers: list[int]
    ) -> tuple[InwardLink | None, bytes, str]:
        """Return the link that takes a message, and its topic here; or the topic that it came with, and why it can have
        none here. None for no link, and why none takes it.
        """
        flaw = ""
        try:
            image, terms = self._topics.of(topic)
        except TopicError:
            image, terms = topic, self._topics.taker(topic)
            flaw = TOPIC_PARSE_ERROR
        except UnicodeDecodeError:
            return None, topic, TOPIC_PARSE_ERROR
        if terms is None:
            return None, topic, NOT_SUBSCRIBED
        if identifiers and self._numbers[terms.name] not in identifiers:
            # The copy of another link's subscription: the first link has its own.
            return None, topic, DUPLICATE
        return self._inward[terms.name], image, flaw

    def _pass_over(self, packet_id: int, qos: int, why: str) -> None:
        self.unclaimed[why] = self.unclaimed.get(why, 0) + 1
        self.vpn.discards.add(why)
        if qos and not self.incoming.is_known(packet_id, qos, False, b""):
            self._leave_out(packet_id, qos)

    def _leave_out(self, packet_id: int, qos: int) -> None:
        """Acknowledge a message that goes nowhere: it would come again."""
        incoming = self.incoming
        token = incoming.token(packet_id, qos, b"")
        incoming.remember(token)
        incoming.leave_out(token)

    def passes_over(self, data: bytes, pos: int, end: int, length: int) -> None:
        """Acknowledge a message of `length` bytes, too large to be taken, of which the first are in `data[pos:end]`.

        Raises ProtocolError for what MQTT forbids.
        """
        qos = (data[pos] >> 1) & 3
        topic, packet_id, _ = _head(data, pos, end, qos)
        link = self._link_of(topic, [])[0]
        if link is None:
            self._pass_over(packet_id, qos, MSG_TOO_BIG)
            return
        link.passed_over(length, MSG_TOO_BIG)
        if qos and not self.incoming.is_known(packet_id, qos, False, b""):
            self._leave_out(packet_id, qos)

    # -- messages that leave ---------------------------------------------------------------------

    @override
    def flow(self, link: OutwardLink, endpoint: Endpoint) -> OutwardFlow:
        return MqttOutwardFlow(self.outgoing, link, endpoint)

    @override
    def send_direct(self, link: OutwardLink, message: Message, topic: bytes) -> str:
        publishing = self.publishing
        retain = publishing.retain(link.terms, message)
        frame = publishing.frame(message, topic, retain, 0, client=link.client_name)
        if not frame:
            return MSG_TOO_BIG
        taken = self.connection.outbox.offer(frame, 1)
        if message.traced and link.tap is not None:
            if taken:
                sent_out(self.vpn, link.tap, message, link.label, self.place)
            else:
                outcome(self.vpn, link.tap, message, taken)
        return "" if taken else TRANSMIT_CONGESTION

    # -- life ------------------------------------------------------------------------------------

    def _ping(self) -> None:
        self._pings += 1
        self.incoming.pings = self._pings
        self.connection.outbox.control(encode(Pingreq(), self._wire_level))

    def _ponged(self) -> None:
        self._pongs += 1
        self.incoming.proved(self._pongs)
        if self._proving:
            self._proving = False
            self.incoming.when_answered()

    def begin_sending(self) -> None:
        """Send: the provider lives, and what it is sent now, alone, is what it answers, or ends the connection for."""
        self._proved = True
        self.outgoing.begin()

    def prove_later(self) -> None:
        """Have it proved that the provider has the acknowledgements that are out."""
        self._timers.arm(PROVE, PROVE_NS)

    @override
    def on_timer(self, kind: int) -> None:
        connection = self.connection
        if connection.closing:
            return
        now_ns = connection.context.now_ns
        if kind == GREET:
            self.end("no CONNACK in time")
        elif kind == PROVE:
            if self.incoming.unproved and self._pings == self._pongs:
                self._ping()
            if self.incoming.unproved:
                self._timers.arm(PROVE, PROVE_NS)
        elif kind == WATCH:
            self._look(now_ns)
        else:
            silent_ns = now_ns - connection.heard_ns
            if silent_ns > self._keep_alive_ns * 3 // 2 and not connection.paused:
                self._by_us = True
                connection.cut_off("the provider gives no sign of life")
                return
            self._ping()
            self.outgoing.sweep()
            self._timers.arm(PING, self._keep_alive_ns)

    def _look(self, now_ns: int) -> None:
        """End a connection over which the provider answers PINGREQ, but a message or SUBSCRIBE not for too long."""
        asked_ns = self._unanswered_since(now_ns)
        since_ns = min(self.outgoing.unanswered_since(now_ns), asked_ns)
        if now_ns - since_ns < self._settings.answer_timeout_s * SECOND_NS:
            self._decisive_ping = 0
        elif not self._decisive_ping:
            self._ping()
            self._decisive_ping = self._pings
        elif self._pongs >= self._decisive_ping:
            self._unanswered = True
            seconds = (now_ns - since_ns) // SECOND_NS
            what = "a message" if asked_ns > since_ns else "SUBSCRIBE"
            self.connection.cut_off(f"the provider has not answered {what} for {seconds} s")
            return
        self._watch()

    def _unanswered_since(self, now_ns: int) -> int:
        """Return since when the provider owes the answer to the same SUBSCRIBE, as seen at looks; `now_ns` for none."""
        owed = next(iter(self._asked), 0)
        if owed == 0 or owed != self._owed:
            self._owed = owed
            self._owed_ns = now_ns
        return self._owed_ns

    def _watch(self) -> None:
        timeout_s = self._settings.answer_timeout_s
        if timeout_s:
            self._timers.arm(WATCH, timeout_s * SECOND_NS // LOOKS)

    @override
    def end(self, why: str) -> None:
        self._by_us = True
        connection = self.mqtt_connection
        if connection.state == JOINED:
            connection.outbox.control(
                encode(Disconnect(reason.NORMAL_DISCONNECTION), self._wire_level)
            )
        connection.end(why)

    @override
    def renew(self, why: str) -> None:
        self._renews = True
        self.end(why)

    def violated(self, error: ProtocolError) -> None:
        """End the connection for a violation of MQTT by the provider."""
        connection = self.mqtt_connection
        # What cannot be read as an answer to CONNECT may be one of another version.
        self._refused_version = not self._joined
        self._by_us = True
        if connection.state == JOINED and self._level == 5:
            connection.outbox.control(encode(Disconnect(error.reason_code), 5))
        connection.end(f"the provider broke the protocol: {error}")

    @property
    def _closed_without_a_word(self) -> bool:
        """Whether the provider closed instead of answering CONNECT: it may know only another version.

        Not where this one has worked before: then it has other troubles.
        """
        return not (self._joined or self._by_us or self._session.level == self._level)

    def _said(self, code: int, properties: Properties) -> str:
        text = properties.reason_string
        return f"{reason.reason_text(code)}{f' ({self.scrubbed(text)})' if text else ''}"

    @override
    def ended(self, why: str) -> None:
        # What was on the way goes back to its queues.
        self._timers.stop()
        outgoing = self.outgoing
        oldest = None if self._by_us else outgoing.oldest()
        said = self._unanswered or why.startswith(ENDED)
        outgoing.end()
        self._owner.lost(
            self,
            Loss(
                why,
                joined=self._joined,
                other_version=self._refused_version or self._closed_without_a_word,
                renews=self._renews,
                link="" if oldest is None else oldest.flow.link.terms.name,
                message_id=0 if oldest is None else oldest.message_id,
                asked=""
                if self._by_us or not self._asked
                else next(iter(self._asked.values())).terms.name,
                blame=why if said else f"{ENDED}: {why}",
                suspected=self._proved and outgoing.was_alone,
            ),
        )


def _overlap(inward: list[LinkSettings]) -> bool:
    """Return whether two links may take the same message."""
    for at, terms in enumerate(inward):
        for other in inward[:at]:
            if intersects(terms.filter, other.filter):
                return True
    return False


def _varint_bytes(number: int) -> int:
    """Return how many bytes a length takes (MQTT 5, 1.5.5)."""
    return 1 if number < 128 else 2 if number < 16_384 else 3 if number < 2_097_152 else 4


def _head(data: bytes, pos: int, end: int, qos: int) -> tuple[bytes, int, int]:
    """Return topic and packet identifier (0 for none) of the PUBLISH at `pos`, and where the rest begins.

    Raises ProtocolError.
    """
    if qos == 3:
        raise ProtocolError(reason.MALFORMED_PACKET, "QoS 3 (MQTT-3.3.1-4)")
    body = pos + 2
    while data[body - 1] & 0x80:
        body += 1
    if end - body < 2:
        raise ProtocolError(reason.MALFORMED_PACKET, "PUBLISH without a topic")
    start = body + 2 + (data[body] << 8 | data[body + 1])
    topic = data[body + 2 : start]
    if start > end or not topic:
        raise ProtocolError(
            reason.MALFORMED_PACKET, "the topic is empty, or runs beyond the packet"
        )
    if qos == 0:
        return topic, 0, start
    if start + 2 > end:
        raise ProtocolError(reason.MALFORMED_PACKET, "PUBLISH without its packet identifier")
    packet_id = data[start] << 8 | data[start + 1]
    if packet_id == 0:
        raise ProtocolError(reason.PROTOCOL_ERROR, "packet identifier 0 (MQTT-2.2.1-3)")
    return topic, packet_id, start + 2

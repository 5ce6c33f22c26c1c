"""One MQTT connection: which packet is allowed when, and what it does.

The table `ALLOWED` is the state machine: a packet that is not in it for the current state is a
protocol error. Bytes in, effects on the router out; no socket in sight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.access import covered
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import NO_LOCAL_DELIVERY
from vpnrouter.core.fault_barrier import ReleaseStep
from vpnrouter.core.forward import PUBLISH_QOS0, scan, trace
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.connect import ConnectHandler
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.mqtt.subscribe import SubscribeJob, UnsubscribeJob
from vpnrouter.core.route import Route
from vpnrouter.core.selection import Selection, heavy, must_wait
from vpnrouter.core.tracing import read
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.events import table
from vpnrouter.trace.events import DISCARD
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode, encode_ack
from vpnrouter.wire.mqtt.fields import frame_at, read_varint
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Disconnect, Subscribe, Unsubscribe
from vpnrouter.wire.mqtt.publish_block import split_publish_properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from vpnrouter.core.login import Admission
    from vpnrouter.core.mqtt.qos_receiver import QosReceiver
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.router import Router
    from vpnrouter.core.timers import Job, Timer
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import EventType

WAITING: Final = 0
"""Transport open, no CONNECT yet."""

VERIFYING: Final = 1
"""CONNECT accepted so far; the edge verifies the password."""

READY: Final = 2
"""CONNACK with success is out."""

ENDED: Final = 3
"""Nothing more is read."""

ALLOWED: Final[dict[tuple[int, int], str]] = {
    (WAITING, 1): "connect",
    (READY, 3): "publish",
    (READY, 4): "acknowledge",
    (READY, 5): "acknowledge",
    (READY, 6): "acknowledge",
    (READY, 7): "acknowledge",
    (READY, 8): "subscribe",
    (READY, 10): "unsubscribe",
    (READY, 12): "ping",
    (READY, 14): "disconnect",
    (READY, 15): "auth",
}
"""(state, packet type) → what happens."""

ANSWERED_UNREAD: Final = (
    reason.UNSUPPORTED_PROTOCOL_VERSION,
    reason.CLIENT_IDENTIFIER_NOT_VALID,
)
"""What a CONNECT that cannot be decoded is answered for (3.1.1, MQTT-3.1.2-2 and MQTT-3.1.3-8)."""

CONNECT_TIMEOUT: Final = 0
KEEP_ALIVE: Final = 1

PACKET_COPIES: Final = 3
"""Bytes that a packet takes while it is handled in slices, for each of its own."""

PACKET_WORK: Final = 5
"""What a packet costs that is handled alone, in parts of a turn (TurnContext.work)."""

BLOCK_SHIFT: Final = 4
"""What properties and filters cost, by their bytes: so many bits are shifted out of the number."""

ACK_BYTES: Final = 512
ACK_WORK: Final = 60
"""Bytes of short acknowledgements that are handled at once, and what they cost."""

PUBLISH_QOS1: Final = 0x32
"""PUBLISH, QoS 1, neither duplicate nor retained."""

SHORT_PUBACK: Final = 0x40
SHORT_PUBREC: Final = 0x50
SHORT_PUBREL: Final = 0x62
SHORT_PUBCOMP: Final = 0x70

PINGRESP: Final = b"\xd0\x00"

_PROTOCOLS: Final = {3: "MQTT 3.1", 4: "MQTT 3.1.1", 5: "MQTT 5"}


@final
class MqttConnection(ClientConnection):
    """One connection. `ingress` takes QoS 1 and 2, None where the client may not publish them."""

    __slots__ = (
        "_alias_topics",
        "_keep_alive_ns",
        "_timer",
        "connect_packet",
        "ingress",
        "level",
        "max_packet",
        "session",
        "state",
        "wants_problem_information",
    )

    def __init__(self, router: Router, peer: str, listener_vpn: str) -> None:
        super().__init__(router, peer, listener_vpn)
        self.state = WAITING
        self.level = 4
        self.max_packet = limits.CONNECT_BYTES
        self.session: MqttSession | None = None
        self.ingress: QosReceiver | None = None
        self.connect_packet: Connect | None = None
        self.wants_problem_information = True
        self._alias_topics: dict[int, bytes] = {}
        self._keep_alive_ns = 0
        self._timer: Timer | None = self.context.timers.arm(
            self.context.now_ns + limits.CONNECT_TIMEOUT_S * SECOND_NS, self, CONNECT_TIMEOUT
        )

    # -- input -----------------------------------------------------------------------------------

    @override
    def consume(self, data: bytes, pos: int) -> int:
        if self.state == ENDED:
            return -1
        end = len(data)
        context = self.context
        try:
            while pos < end and not self.paused:
                if context.work > context.allowance:
                    self.rest()
                    break
                publisher = self.publisher
                if publisher is not None:
                    first = data[pos]
                    before = pos
                    if first == PUBLISH_QOS0:
                        pos = scan(publisher, data, pos, end)
                    elif first == PUBLISH_QOS1:
                        pos = self._scan_publish(data, pos, end)
                    elif first & 0xC0 == 0x40:
                        pos = self._scan_acks(data, pos, min(end, pos + ACK_BYTES))
                        context.work += ACK_WORK
                    if pos >= end or self.paused:
                        break
                    if pos != before and data[pos] != first:
                        continue
                length = frame_at(data, pos, end, self.max_packet)
                if length == 0:
                    break
                context.work += PACKET_WORK
                self._handle(data, pos, length)
                pos += length
                if self.state == ENDED:
                    return -1
        except ProtocolError as error:
            self.router.protocol_errors += 1
            self.report_protocol_error(str(error))
            self.fail(error.reason_code, str(error))
            return -1
        return pos

    @override
    def largest(self) -> int:
        return self.max_packet

    def _handle(self, data: bytes, pos: int, length: int) -> None:
        kind = data[pos] >> 4
        action = ALLOWED.get((self.state, kind))
        if action is None:
            raise ProtocolError(
                reason.PROTOCOL_ERROR, f"packet type {kind} is not allowed in state {self.state}"
            )
        if action == "ping":
            decode(data, pos, length, self.level)
            self.outbox.control(PINGRESP)
            return
        if action == "publish":
            self._publish(data, pos, length)
            return
        self.context.work += length >> BLOCK_SHIFT
        packet = decode(data, pos, length, self.level)
        if action == "acknowledge":
            self._acknowledge(cast(Ack, packet))
        elif action == "subscribe":
            if self.session is not None:
                self._begin(SubscribeJob(self, self.session, cast(Subscribe, packet)), length)
        elif action == "unsubscribe":
            if self.session is not None:
                self._begin(UnsubscribeJob(self, self.session, cast(Unsubscribe, packet)), length)
        elif action == "disconnect":
            self._disconnect(cast(Disconnect, packet))
        elif action == "auth":
            raise ProtocolError(
                reason.PROTOCOL_ERROR, f"{type(packet).__name__} without a method (MQTT-4.12.0-6)"
            )
        else:
            ConnectHandler(self, cast(Connect, packet)).begin(length)

    def _begin(self, job: Job, length: int) -> None:
        """Run the job in this turn if it is short; otherwise the client's next packets wait for it (MQTT-4.6.0-1)."""
        if not job.step():
            self.hold()
            self.context.jobs.add(job)
            self.keep_packet(PACKET_COPIES * length)

    # -- acknowledgements ------------------------------------------------------------------------

    def _scan_acks(self, buf: bytes, pos: i64, end: i64) -> i64:
        """Handle the four-byte acknowledgements that begin at `pos`; return the position of the first other byte."""
        while end - pos >= 4 and buf[pos + 1] == 2:
            kind: i64 = buf[pos]
            high: i64 = buf[pos + 2]
            low: i64 = buf[pos + 3]
            packet_id: i64 = high << 8 | low
            if packet_id == 0:
                return pos
            session = self.session
            outbound = None if session is None else session.outbound
            if kind == SHORT_PUBACK:
                if outbound is not None:
                    outbound.puback(packet_id, 0)
            elif kind == SHORT_PUBREL:
                self._pubrel(packet_id)
            elif kind == SHORT_PUBREC:
                self._pubrec(packet_id, 0)
            elif kind == SHORT_PUBCOMP:
                if outbound is not None:
                    outbound.pubcomp(packet_id)
            else:
                return pos
            pos += 4
        return pos

    def _acknowledge(self, packet: Ack) -> None:
        """Handle an acknowledgement in its long form, with a reason code or properties."""
        kind = packet.packet_type
        session = self.session
        outbound = None if session is None else session.outbound
        if kind == PUBREC:
            self._pubrec(packet.packet_id, packet.reason_code)
        elif kind == PUBREL:
            self._pubrel(packet.packet_id)
        elif outbound is not None and kind == PUBACK:
            outbound.puback(packet.packet_id, packet.reason_code)
        elif outbound is not None:
            outbound.pubcomp(packet.packet_id)

    def _pubrec(self, packet_id: int, code: int) -> None:
        """A QoS 2 message is the client's. One that nobody knows is answered so (MQTT 5, 4.3.3)."""
        session = self.session
        if session is None:
            return
        outbound = session.outbound
        known = outbound is not None and outbound.pubrec(packet_id, code)
        if not known and code < reason.UNSPECIFIED_ERROR:
            unknown = reason.PACKET_IDENTIFIER_NOT_FOUND
            self.outbox.control(encode_ack(PUBREL, packet_id, self.level, unknown))

    def _pubrel(self, packet_id: int) -> None:
        """The client has done with a QoS 2 message that it published."""
        ingress = self.ingress
        if ingress is not None:
            ingress.release(packet_id)
        else:
            unknown = reason.PACKET_IDENTIFIER_NOT_FOUND
            self.outbox.control(encode_ack(PUBCOMP, packet_id, self.level, unknown))

    # -- messages --------------------------------------------------------------------------------

    def _scan_publish(self, buf: bytes, pos: i64, end: i64) -> i64:
        """Take the plain QoS 1 frames that begin at `pos`; return the position of the first other byte.

        Plain are those without properties, allowed, small enough, on a known topic; all others are left to `_publish`.
        Raises ProtocolError for more messages than the client may send.
        """
        ingress = self.ingress
        publisher = self.publisher
        if ingress is None or publisher is None or not ingress.session.sends:
            return pos
        routes = publisher.vpn.cache.entries
        extra: i64 = publisher.extra
        max_frame: i64 = publisher.max_frame
        rule = publisher.rule
        source = publisher.subscriber
        sampler = publisher.sampler
        picking = publisher.picking
        context = self.context
        while end - pos > 6 and not self.paused:
            if buf[pos] != PUBLISH_QOS1:
                return pos
            length: i64 = buf[pos + 1]
            body: i64 = pos + 2
            if length > 127:
                second: i64 = buf[pos + 2]
                if second > 127 or second == 0:
                    return pos
                length = (length & 127) | second << 7
                body = pos + 3
            following: i64 = body + length
            if following > end or following - pos > max_frame or length < 5:
                return pos
            high: i64 = buf[body]
            low: i64 = buf[body + 1]
            topic_end: i64 = body + 2 + (high << 8 | low)
            start: i64 = topic_end + 2 + extra
            if start > following or (extra == 1 and buf[topic_end + 2] != 0):
                return pos
            high = buf[topic_end]
            low = buf[topic_end + 1]
            packet_id: i64 = high << 8 | low
            topic = buf[body + 2 : topic_end]
            found = routes.get(topic)
            if found is None or packet_id == 0:
                return pos
            route = cast(Route, found)
            if rule is not None and route.allowed_by is not rule and not publisher.allowed(route):
                return pos
            if route.guarded and (
                route.missing_queue or not route.may_put(publisher.username, rule)
            ):
                return pos
            publisher.messages += 1
            publisher.bytes_ += following - pos
            if ingress.begin(packet_id, 1):
                message = Message(topic, buf[start:following], b"", False, source)
                message.qos = 1
                if picking is not None:
                    sampler = publisher.sampler_for(route)
                sampler.left -= 1
                if sampler.left == 0:
                    sampler.next()
                    trace(publisher, message)
                if route.selector_cost:
                    self._pass_on(publisher, route, message, packet_id)
                    if context.work > context.allowance:
                        return following
                else:
                    ingress.publish(message, packet_id)
            pos = following
        return pos

    def _pass_on(
        self, publisher: Publisher, route: Route, message: Message, packet_id: int
    ) -> None:
        """Deliver a message, later where its receivers have much to select or the spool has much to write."""
        if (route.selector_cost and heavy(route, message)) or must_wait(publisher.vpn, message):
            SelectedPublish(self, publisher, route, message, packet_id).begin()
            return
        deliver(publisher, self.ingress, message, packet_id)
        publisher.vpn.context.work += MEASURE.work()

    def _publish(self, data: bytes, pos: int, length: int) -> None:
        """Check and deliver the one PUBLISH in `data[pos:pos + length]`.

        Raises ProtocolError for what MQTT forbids. A Direct message that is not allowed or too big is discarded and
        counted; a guaranteed one gets a negative acknowledgement.
        """
        publisher = self.publisher
        if publisher is None:
            return
        vpn = publisher.vpn
        first = data[pos]
        qos = (first >> 1) & 3
        ingress = self.ingress
        if qos == 3:
            raise ProtocolError(reason.MALFORMED_PACKET, "QoS 3 (MQTT-3.3.1-4)")
        if qos and ingress is None:
            raise ProtocolError(reason.QOS_NOT_SUPPORTED, "maximum QoS is 0 (MQTT-3.2.2-11)")
        if qos == 0 and first & 0x08:
            raise ProtocolError(reason.MALFORMED_PACKET, "DUP with QoS 0 (MQTT-3.3.1-2)")
        end = pos + length
        body = pos + 2
        while data[body - 1] & 0x80:
            body += 1
        if end - body < 2:
            raise ProtocolError(reason.MALFORMED_PACKET, "PUBLISH without a topic")
        topic_end = body + 2 + (data[body] << 8 | data[body + 1])
        if topic_end > end:
            raise ProtocolError(reason.MALFORMED_PACKET, "the topic runs beyond the packet")
        topic = data[body + 2 : topic_end]
        start = topic_end
        packet_id = 0
        if qos:
            start += 2
            if start > end:
                raise ProtocolError(
                    reason.MALFORMED_PACKET, "PUBLISH without its packet identifier"
                )
            packet_id = data[topic_end] << 8 | data[topic_end + 1]
            if packet_id == 0:
                raise ProtocolError(reason.PROTOCOL_ERROR, "packet identifier 0 (MQTT-2.2.1-3)")
        block = b""
        expiry_s = -1
        alias = 0
        if self.level == 5:
            size, start = read_varint(data, start, end)
            if start + size > end:
                raise ProtocolError(reason.MALFORMED_PACKET, "the properties run beyond the packet")
            block, alias, expiry_s = split_publish_properties(data, start, start + size, True)
            start += size
        topic = self._topic_of_alias(alias, topic)
        retain = first & 0x01 == 1
        try:
            route = vpn.route(topic)
        except TopicError as error:
            raise ProtocolError(reason.TOPIC_NAME_INVALID, str(error)) from error
        if publisher.elsewhere and covered(publisher.elsewhere, route.topic):
            self._pass_over(topic, qos, packet_id, NO_LOCAL_DELIVERY)
            return
        if ingress is not None and qos and not ingress.begin(packet_id, qos):
            publisher.bytes_ += length
            return
        publisher.messages += 1
        publisher.bytes_ += length
        sends = ingress is not None and ingress.session.sends
        why = publisher.refusal(route, topic, qos, end - start, sends)
        if why:
            if ingress is not None and qos:
                ingress.refuse(packet_id, qos, why)
            return
        message = Message(topic, data[start:end], block, retain, publisher.subscriber)
        message.qos = qos
        if expiry_s >= 0:
            message.expires_ns = vpn.context.now_ns + expiry_s * SECOND_NS
        parent = read(block) if block and vpn.context.honours else None
        if parent is not None and parent.sampled:
            # Who publishes traces it: that is no draw of ours.
            trace(publisher, message, parent)
        else:
            sampler = publisher.sampler_for(route)
            sampler.left -= 1
            if sampler.left == 0:
                sampler.next()
                trace(publisher, message, parent)
        if block:
            vpn.context.work += len(block) >> BLOCK_SHIFT
        self._pass_on(publisher, route, message, packet_id)

    def _pass_over(self, topic: bytes, qos: int, packet_id: int, why: str) -> None:
        """Acknowledge a message and count it as discarded: who sent it would send it again."""
        publisher, ingress = self.publisher, self.ingress
        if publisher is None:
            return
        publisher.messages += 1
        publisher.refused += 1
        publisher.vpn.discards.add(why)
        publisher.report_lost(DISCARD, topic, qos, why)
        if ingress is not None and qos and ingress.begin(packet_id, qos):
            ingress.pass_over(packet_id, qos)

    def _topic_of_alias(self, alias: int, topic: bytes) -> bytes:
        """Return the topic of a PUBLISH, from its alias and (perhaps empty) topic (MQTT 5, 3.3.2.3.4)."""
        if alias == 0:
            if not topic:
                raise ProtocolError(
                    reason.PROTOCOL_ERROR, "PUBLISH without topic and alias (MQTT-3.3.2-1)"
                )
            return topic
        if alias > limits.TOPIC_ALIASES:
            raise ProtocolError(
                reason.TOPIC_ALIAS_INVALID, f"topic alias {alias} beyond the maximum (MQTT-3.3.2-9)"
            )
        if topic:
            before = self._alias_topics.get(alias, b"")
            more = len(topic) - len(before)
            if more < 0:
                self.give_back(-more)
            elif more and not self.take(more):
                raise ProtocolError(reason.QUOTA_EXCEEDED, "too many bytes of topics with an alias")
            self._alias_topics[alias] = topic
            return topic
        known = self._alias_topics.get(alias)
        if known is None:
            raise ProtocolError(
                reason.PROTOCOL_ERROR, f"topic alias {alias} was never given (MQTT-3.3.2-10)"
            )
        return known

    # -- login -----------------------------------------------------------------------------------

    @property
    def stranger(self) -> bool:
        """True before the login."""
        return self.admission is None

    @override
    def open_account(self) -> MemoryAccount | None:
        session = self.session
        return None if session is None else MemoryAccount(self.peer, 0, session.memory(), self)

    def log_identity(self) -> tuple[str, str]:
        """The client id, with the address, and the message VPN that the client is logged in to."""
        packet, admission = self.connect_packet, self.admission
        name = self.peer if packet is None else f"{packet.client_id} at {self.peer}"
        return name, "" if admission is None else admission.vpn.name

    def password_verified(self, good: bool) -> None:
        """Go on with the CONNECT that waits for this verdict."""
        packet = self.connect_packet
        if self.state == VERIFYING and packet is not None:
            ConnectHandler(self, packet).verified(good)

    def established(self, keep_alive_s: int) -> None:
        """The session is attached, and CONNACK is out."""
        self.state = READY
        self._cancel_timer()
        self.leave_strangers()
        self.hold_in_account()
        self._forget_opening()
        if keep_alive_s:
            # One and a half times the interval, MQTT 5, 3.1.2.10.
            self._keep_alive_ns = keep_alive_s * SECOND_NS * 3 // 2
            self._timer = self.context.timers.arm(
                self.context.now_ns + self._keep_alive_ns, self, KEEP_ALIVE
            )

    # -- end -------------------------------------------------------------------------------------

    def _disconnect(self, packet: Disconnect) -> None:
        session = self.session
        if session is not None:
            wanted = packet.properties.session_expiry_interval
            if wanted is not None:
                if session.expiry_s == 0 and wanted != 0:
                    raise ProtocolError(
                        reason.PROTOCOL_ERROR, "session expiry raised from 0 (MQTT-3.14.2-2)"
                    )
                admission = self.admission
                longest_s = (
                    0 if admission is None else admission.profile.max_mqtt_session_expiry_interval
                )
                session.expiry_s = min(wanted, longest_s) if longest_s else wanted
        # Only a normal disconnection deletes the will (MQTT 5, 3.1.2.5).
        code = packet.reason_code
        said = f"client disconnected, reason code 0x{code:02x}"
        self._end(code != reason.NORMAL_DISCONNECTION, said)

    def fail(self, code: int, text: str) -> None:
        """Send the reason, as the protocol level allows, and close."""
        if self.state == ENDED:
            return
        if self.state == READY:
            if self.level == 5:
                packet = Disconnect(code)
                if self.wants_problem_information:
                    packet.properties.reason_string = text
                self.outbox.control(self.fitting(packet))
        elif self.connect_packet is not None or code in ANSWERED_UNREAD:
            self.refuse(code, text)
            return
        self._end(True, text)

    def refuse(self, code: int, text: str) -> None:
        """Answer the CONNECT with a refusal and close (MQTT 5, 3.2.2.2; 3.1.1, 3.2.2.3)."""
        packet = Connack(False, code)
        if self.level == 5 and self.wants_problem_information:
            packet.properties.reason_string = text
        self.outbox.control(self.fitting(packet))
        self._end(False, text)

    def fitting(self, packet: Connack | Disconnect) -> bytes:
        """Return the frame of `packet`, without explanations where it would be too large.

        MQTT 5, 3.2.2.3.9 and 3.14.2.2.3.
        """
        frame = encode(packet, self.level)
        opening = self.connect_packet
        most = None if opening is None else opening.properties.maximum_packet_size
        if most is not None and len(frame) > most:
            packet.properties.reason_string = None
            packet.properties.response_information = None
            frame = encode(packet, self.level)
        return frame

    def crowded_out(self) -> None:
        """Close the connection: its client holds too much."""
        self.fail(reason.QUOTA_EXCEEDED, self.evicted(logged_in=self.state == READY))
        self.release_resources()

    def login_refused(self, code: int, text: str) -> None:
        """Answer CONNACK with this code, if the password is still to be verified."""
        packet = self.connect_packet
        if self.state == VERIFYING and packet is not None:
            ConnectHandler(self, packet).refuse(code, text)

    @property
    @override
    def platform(self) -> str:
        return _PROTOCOLS.get(self.level, "MQTT")

    @property
    @override
    def keepalive_s(self) -> int:
        """The interval that holds: what the client asked for, or what its profile allows (MQTT 5, 3.2.2.3.14)."""
        packet, admission = self.connect_packet, self.admission
        if packet is None:
            return 0
        query = packet.keep_alive_s
        most = 0 if admission is None else admission.profile.max_keepalive_timeout
        return most if most and not 0 < query <= most else query

    @property
    @override
    def bind_count(self) -> int:
        session = self.session
        return 0 if session is None or session.outbound is None else len(session.outbound.flows)

    @override
    def put_out(self, why: str, *, stopping: bool = False) -> None:
        code = reason.SERVER_SHUTTING_DOWN if stopping else reason.ADMINISTRATIVE_ACTION
        self.fail(code, why)

    @override
    def judge_again(self, rights: Admission, *, told: bool) -> bool:
        return self.session is not None and self.session.judge_again(rights, told=told)

    def taken_over(self) -> None:
        """Another connection took the session (MQTT 5, 3.1.4)."""
        session = self.session
        try:
            if self.level == 5:
                self.outbox.control(encode(Disconnect(reason.SESSION_TAKEN_OVER), 5))
            self.session = None
            self._end(False, "session taken over")
        finally:
            self.session = None
            if session is not None:
                session.leave()

    @override
    def ends(self, why: str) -> None:
        self._end(True, why)

    def _end(self, publish_will: bool, why: str) -> None:
        if self.state == ENDED:
            return
        self.state = ENDED
        self.closing = True
        publisher = self.publisher
        self.give_all_back(
            [
                ReleaseStep("timer", self._cancel_timer),
                ReleaseStep("ingress", self._end_ingress, again=True),
                ReleaseStep("publisher", self._retire, again=True),
                ReleaseStep("event", lambda: self._report_gone(publisher, why)),
                ReleaseStep("session", lambda: self._leave_session(publish_will), again=True),
                ReleaseStep("resources", self._release_rest),
            ]
        )

    def _end_ingress(self) -> None:
        ingress = self.ingress
        if ingress is not None:
            ingress.end()
        self.ingress = None

    def _retire(self) -> None:
        publisher = self.publisher
        if publisher is None:
            return
        vpn = publisher.vpn
        name = publisher.subscriber.client_name
        if vpn.publishers.get(name) is publisher:
            del vpn.publishers[name]
        # First: a second call must not change the counts below again.
        self.publisher = None
        if self.admission is not None:
            vpn.release(self.admission.username.name)
        vpn.absorb(publisher)

    def _leave_session(self, publish_will: bool) -> None:
        session = self.session
        if session is not None:
            session.detach(publish_will)
        self.session = None

    def _release_rest(self) -> None:
        self.give_back(sum([len(topic) for topic in self._alias_topics.values()]))
        self._alias_topics.clear()
        self.release_resources()
        self._forget_opening()

    def _forget_opening(self) -> None:
        """Forget will, password and user properties of CONNECT: they are not needed again."""
        opening = self.connect_packet
        if opening is not None:
            opening.will = None
            opening.password = None
            opening.properties.user_properties = []
        if self.admission is not None:
            self.admission.password = b""

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_timer(self, kind: int, now_ns: int) -> None:
        """End a connection that sent no CONNECT in time, or nothing for one and a half keep-alive intervals."""
        self._timer = None
        if self.state == ENDED:
            return
        if kind == CONNECT_TIMEOUT:
            self._end(False, "no CONNECT in time")
            return
        silent_ns = self.silent_at(self._keep_alive_ns, now_ns)
        if silent_ns > now_ns:
            self._timer = self.context.timers.arm(silent_ns, self, KEEP_ALIVE)
        else:
            self.fail(
                reason.KEEP_ALIVE_TIMEOUT, "nothing heard for one and a half keep-alive intervals"
            )

    # -- events ----------------------------------------------------------------------------------

    def report_connected(self, publisher: Publisher) -> None:
        """Raise the event of a client that is logged in."""
        self._report(table.CONNECT, publisher, f" connected: {self.platform}")

    def _report_gone(self, publisher: Publisher | None, why: str) -> None:
        if publisher is not None:
            self.report_gone(publisher, publisher.subscriber.outbox.messages, why)

    def report_refused(self, vpn: MessageVpn | None, why: str) -> None:
        """Count and report a login to `vpn` (None: unknown) that was refused for `why`; the client learns less."""
        self.router.logins_refused += 1
        packet = self.connect_packet
        if packet is not None:
            self.report_failed(vpn, packet.client_id, packet.username or "", why)

    @override
    def report_protocol_error(self, why: str) -> None:
        # A peer without a CONNECT counts as no client.
        publisher, packet = self.publisher, self.connect_packet
        if publisher is not None:
            self._report(table.PARSE_ERROR, publisher, f": {why}")
        elif packet is not None:
            vpn = None if self.admission is None else self.admission.vpn
            self.report_failed(vpn, packet.client_id, packet.username or "", why)

    def _report(self, kind: EventType, publisher: Publisher, text: str) -> None:
        self.report(kind, publisher.vpn.name, publisher.subscriber.client_name, text)


def deliver(
    publisher: Publisher, ingress: QosReceiver | None, message: Message, packet_id: int
) -> None:
    """Deliver a message of a client, which is in the spool behind that, or has no QoS."""
    if ingress is not None and message.qos:
        ingress.publish(message, packet_id)
    else:
        publisher.publish(message)


@final
class SelectedPublish(Selection):
    """A PUBLISH that waits until the selectors of its receivers have been evaluated."""

    __slots__ = ("_connection", "_packet_id", "_publisher")

    def __init__(
        self,
        connection: MqttConnection,
        publisher: Publisher,
        route: Route,
        message: Message,
        packet_id: int,
    ) -> None:
        super().__init__(connection, publisher.vpn, route, message)
        self._connection = connection
        self._publisher = publisher
        self._packet_id = packet_id

    @override
    def keep(self, size: int) -> None:
        self._connection.keep_packet(max(0, size))

    @override
    def deliver(self) -> None:
        connection = self._connection
        if connection.state != ENDED:
            deliver(self._publisher, connection.ingress, self.message, self._packet_id)
        elif self.message.qos == 0:
            # A client may end right behind it. What it was not acknowledged, it sends again.
            self._publisher.publish(self.message)
        else:
            self._publisher.refused += 1

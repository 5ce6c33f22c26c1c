"""One connection to an AMQP 1.0 broker that takes and gives packets of MQTT 5, for `pub` and `sub --protocol amqp`.

Messages are put into the other protocol's terms as the router does it (docs/amqp.md). QoS 0 is settled, QoS 1 is not.
Topic filters are written as in MQTT, and asked for as SMF has them. Queues and topics get the addresses of the broker,
which says in `open` what it is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self, final

from vpnrouter import limits
from vpnrouter.cli._broker_options import Broker, Protocol
from vpnrouter.cli._broker_socket import ANSWER_S, BrokerSocket
from vpnrouter.cli._mqtt_link import MqttLink
from vpnrouter.connectors.amqp.brokers import (
    QUEUE,
    broker_named,
    broker_that_says,
    kind_and_name,
)
from vpnrouter.core.conversion import (
    QUEUE_SCHEME,
    TOPIC_SCHEME,
    address_of_topic,
    from_mqtt,
    read_head,
    to_mqtt,
    topic_of_address,
)
from vpnrouter.core.mqtt.subscribe import SELECTOR
from vpnrouter.errors import OperationError, ProtocolError, TopicError
from vpnrouter.topics.grammar import MQTT, QUEUE_PREFIX, parse_filter, to_smf
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, EMPTY, SASL_HEADER
from vpnrouter.wire.amqp.heads import header
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.transfers import cut_transfer, handle_bytes
from vpnrouter.wire.amqp.types import Described, Symbol
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Ack, Connack, Packet, Pingreq, Publish, Suback, Subscribe
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.publish_block import message_block
from vpnrouter.wire.mqtt.reason import (
    IMPLEMENTATION_SPECIFIC_ERROR,
    PUBACK,
    PUBLISH,
    SUCCESS,
    UNSPECIFIED_ERROR,
)
from vpnrouter.wire.varint import varint

if TYPE_CHECKING:
    from vpnrouter.wire.mqtt.packets import Connect, SubscriptionRequest

_LEVEL: Final = 5
_WINDOW: Final = 0x7FFF_FFFF
_SENDER: Final = "sender"
_OUT: Final = 0
"""The handle of the link that sends; those that receive come behind it."""

_LONGEST_WAIT_S: Final = 3_600.0
"""Seconds that stand for no limit: a socket's timeout must be a number."""

GREETING_S: Final = 3.0
"""Seconds for the first answer: an AMQP broker greets at once, and one for MQTT waits for more of what it takes for a
packet.
"""

_CREDIT: Final = 1_000
_SETTLED: Final = 1
_UNSETTLED: Final = 0
_SELECTOR_FILTER: Final = Symbol("apache.org:selector-filter:string")
_NO_LOCAL_FILTER: Final = Symbol("apache.org:no-local-filter:list")


class _Receiver:
    """A link that receives for a request, by its number: its credit, and what came of a message in parts.

    `handle` is what frames to the broker call it; `code` is what the broker has said to it, -1 before.
    """

    def __init__(self, handle: int, number: int, qos: int) -> None:
        self.handle = handle
        self.number = number
        self.qos = qos
        self.count = 0
        self.granted = 0
        self.parts = b""
        self.first: Transfer | None = None
        self.code = -1


@final
class AmqpLink:
    """A connection that the broker has opened. It is used as MqttLink is, and raises OperationError as that does."""

    level = _LEVEL

    def __init__(self, broker: Broker, *, credit: int = 0) -> None:
        self._broker = broker
        self._selector = ""
        self._credit = credit
        self.connack = Connack(
            properties=Properties(maximum_qos=1, retain_available=0),
        )
        self._socket = BrokerSocket(broker)
        self._came = b""
        self._packets: list[Packet] = []
        self._waiting: list[Publish] = []
        self._room = 0
        self._sent = 0
        self._target: str | None = None
        self._answers = 0
        self._idle_s = 0.0
        self._most_frame = frames.MIN_MAX_FRAME
        self._names = broker_named("other")
        self._mechanisms: list[object] | None = None
        self._outcome = -1
        self._begun = False
        self._receivers: dict[str, _Receiver] = {}
        """By the names of their links, and by the handles that the broker chose for these (2.6.2)."""
        self._by_their_handle: dict[int, _Receiver] = {}
        self._their_out = -1
        self._deliveries: dict[int, int] = {}
        """Packet id → delivery, of messages that are not acknowledged; delivery → packet id in `_sent_ids`."""
        self._sent_ids: dict[int, int] = {}
        self._next_packet = 0
        self._refused = ""
        try:
            self._login()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # -- login -----------------------------------------------------------------------------------

    def _login(self) -> None:
        broker = self._broker
        self._socket.send(SASL_HEADER)
        self._wait(lambda: self._mechanisms is not None, "SASL", GREETING_S)
        name = "PLAIN" if broker.username else "ANONYMOUS"
        offered = {str(one) for one in self._mechanisms or ()}
        if name not in offered:
            if broker.username or "EXTERNAL" not in offered:
                raise OperationError(
                    f"{broker} offers {', '.join(sorted(offered))}, and not {name}"
                )
            name = "EXTERNAL"
        response = b""
        if name == "PLAIN":
            response = b"\0" + (broker.username or "").encode() + b"\0" + (broker.password or b"")
        self._say(SaslInit(Symbol(name), response, broker.host), kind=frames.SASL)
        self._wait(lambda: self._outcome >= 0, "the login")
        if self._outcome:
            hint = "" if broker.username else "; it may want --user and --password-file"
            raise OperationError(f"{broker} refused client {broker.client_id}: wrong login{hint}")
        self._socket.send(AMQP_HEADER)
        idle_ms = 2_000 * broker.keep_alive_s
        self._say(Open(broker.client_id, broker.host, limits.AMQP_FRAME_BYTES, 0, idle_ms))
        self._say(Begin(None, 0, _WINDOW, _WINDOW))
        self._wait(lambda: self._begun, "open and begin")

    def _wait(self, done: Any, what: str, patience_s: float = ANSWER_S) -> None:  # noqa: ANN401 - a function
        end_s = time.monotonic() + patience_s
        while not done():
            if time.monotonic() >= end_s:
                raise OperationError(
                    f"{self._broker} did not answer {what} within {patience_s:.0f} s; is it an AMQP broker? The URL of"
                    " one for MQTT begins with mqtt:// or mqtts://"
                )
            self._read(end_s)

    # -- as MqttLink -----------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Hand over encoded packets of MQTT 5."""
        start, end = 0, len(data)
        while size := frame_at(data, start, end, limits.MQTT_CLIENT_PACKET_BYTES):
            self.send_packet(decode(data, start, size, _LEVEL))
            start += size

    def send_packet(self, packet: Packet) -> None:
        """Send what a packet means."""
        if isinstance(packet, Publish):
            kind, name = self._destination(packet)
            if self._target is None:
                self._begin_to_send(kind, name)
            elif self._target not in ("", self._names.target(kind, name)):
                raise OperationError(
                    f"{self._broker} takes messages for one address: {self._target}"
                )
            self._waiting.append(packet)
            self._transmit()
        elif isinstance(packet, Subscribe):
            self._selector = dict(packet.properties.user_properties).get(SELECTOR, "")
            for number, request in enumerate(packet.requests):
                self._subscribe(number, request)
        elif isinstance(packet, Ack) and packet.packet_type == PUBACK:
            number = self._deliveries.pop(packet.packet_id)
            state = Accepted() if packet.reason_code == SUCCESS else Rejected(None)
            self._say(Disposition(True, number, None, True, state))
        elif isinstance(packet, Pingreq):
            self._say(Flow(0, _WINDOW, self._sent, _WINDOW, echo=True))

    def receive(self, until_s: float) -> list[Packet]:
        """Return what has come; wait for it until `until_s` (of time.monotonic). [] when nothing came."""
        while not self._packets:
            if not self._read(until_s):
                break
        found, self._packets = self._packets, []
        return found

    def settle(self, patience_s: float = ANSWER_S) -> list[Packet]:
        """Wait until the broker has read everything that was sent. Returns what else came."""
        end_s = time.monotonic() + patience_s
        while self._waiting and time.monotonic() < end_s:
            self._read(end_s)
        answers = self._answers
        self.send_packet(Pingreq())
        while self._answers == answers:
            self._read(end_s)
            if time.monotonic() >= end_s:
                raise OperationError(f"{self._broker} does not answer within {patience_s:.0f} s")
        found, self._packets = self._packets, []
        return found

    def end(self) -> None:
        """Close the connection, and wait until the broker does."""
        self._socket.end(frames.encode(Close()))

    # -- what leaves -----------------------------------------------------------------------------

    def _say(self, performative: tuple[Any, ...], payload: bytes = b"", kind: int = 0) -> None:
        self._socket.send(frames.encode(performative, 0, kind, payload))

    def _destination(self, packet: Publish) -> tuple[str, str]:
        """Return what a message goes to, QUEUE or TOPIC, and its name: both may be written as topics or addresses."""
        return kind_and_name(address_of_topic(topic_of_address(packet.topic.decode())))

    def _begin_to_send(self, kind: str, name: str) -> None:
        """Attach a link to send over: to any address, or to this one where the broker has no such links."""
        names = self._names
        self._target = "" if names.relays else names.target(kind, name)
        capabilities: list[object] = [Symbol(kind)] if self._target and names.capable else []
        target = Target(self._target or None, capabilities=capabilities or None)
        attach = Attach(_SENDER, _OUT, False, source=Source(self._broker.client_id), target=target)
        self._say(attach._replace(initial_delivery_count=0))

    def _transmit(self) -> None:
        """Send messages that wait, as far as the broker's credit goes."""
        while self._waiting and self._room > 0:
            packet = self._waiting.pop(0)
            number = self._sent
            self._sent += 1
            self._room -= 1
            settled = packet.qos == 0
            if not settled:
                self._sent_ids[number] = packet.packet_id
            expiry_s = packet.properties.message_expiry_interval
            ttl = -1 if expiry_s is None else min(expiry_s * 1_000, 0xFFFF_FFFF)
            kind, name = self._destination(packet)
            to = self._names.target(kind, name)
            block = message_block(packet.properties)
            content = from_mqtt(b"", packet.payload, block, to, to_queue=kind == QUEUE)
            head = header(not settled, 4, ttl, 0, True)
            outgoing = cut_transfer(
                0, handle_bytes(_OUT), number, settled, head, content, self._most_frame
            )
            while outgoing.size:
                self._socket.send(outgoing.next())

    def _subscribe(self, number: int, request: SubscriptionRequest) -> None:
        """Attach a link for each address that a filter means: `a/#` is `a` and `a/>`."""
        names: list[object] = []
        if request.filter.startswith((QUEUE_SCHEME, TOPIC_SCHEME)):
            addresses = [request.filter]
        elif request.filter.startswith(QUEUE_PREFIX):
            addresses = [address_of_topic(request.filter)]
        else:
            try:
                found = parse_filter(request.filter, MQTT)
            except TopicError as error:
                raise OperationError(f"{request.filter}: {error}") from None
            if found.share:
                names = [Symbol("shared"), Symbol("global")]
                found = parse_filter(request.filter.split("/", 2)[2], MQTT)
            addresses = [TOPIC_SCHEME + one for one in to_smf(found)]
        if not addresses:
            raise OperationError(f"{request.filter} has no form in the addresses of AMQP")
        for index, address in enumerate(addresses):
            handle = len(self._receivers) + 1
            share = request.filter.split("/", 2)[1] if names else ""
            name = f"{share}{'-' * index}" if share else f"receiver {handle}"
            self._receivers[name] = receiver = _Receiver(handle, number, request.qos)
            source = self._source(address, names, request)
            mode = _SETTLED if request.qos == 0 and not names else _UNSETTLED
            self._say(Attach(name, handle, True, mode, source=source, target=Target("here")))
            self._grant(receiver)

    def _source(
        self, address: str, capabilities: list[object], request: SubscriptionRequest
    ) -> Source:
        kind, name = kind_and_name(address)
        names = self._names
        theirs = names.origin(kind, name, "")
        if not theirs:
            raise OperationError(names.gives_none(kind))
        also = [Symbol(kind)] if names.capable and kind else []
        return Source(
            theirs, filter=self._filters(request), capabilities=[*capabilities, *also] or None
        )

    def _filters(self, request: SubscriptionRequest) -> dict[object, object] | None:
        filters: dict[object, object] = {}
        if self._selector:
            filters[Symbol(SELECTOR)] = Described(_SELECTOR_FILTER, self._selector)
        if request.no_local:
            filters[Symbol("no-local")] = Described(_NO_LOCAL_FILTER, [])
        return filters or None

    def _grant(self, receiver: _Receiver) -> None:
        most = self._credit or _CREDIT
        if self._credit:
            # Messages beyond the count should not be sent here: another consumer may take them.
            most = min(_CREDIT, self._credit - receiver.count)
        receiver.granted = receiver.count + max(0, most)
        self._say(
            Flow(0, _WINDOW, self._sent, _WINDOW, receiver.handle, receiver.count, max(0, most))
        )

    # -- what comes ------------------------------------------------------------------------------

    def _read(self, until_s: float) -> bool:
        """Handle what comes until `until_s`; False where that was nothing."""
        now_s = time.monotonic()
        wakes_s = until_s
        if self._idle_s:
            due_s = self._socket.sent_s + self._idle_s / 2
            if now_s >= due_s:
                self._socket.send(EMPTY)
            wakes_s = min(until_s, self._socket.sent_s + self._idle_s / 2)
        chunk = self._socket.read(max(0.0, min(wakes_s - now_s, _LONGEST_WAIT_S)))
        if chunk == b"":
            raise OperationError(f"{self._broker} closed the connection")
        if chunk is None:
            return time.monotonic() < until_s
        self._came += chunk
        try:
            self._frames()
        except ProtocolError as error:
            raise OperationError(f"{self._broker} breaks the protocol: {error}") from None
        return True

    def _frames(self) -> None:
        data = self._came
        start, end = 0, len(data)
        while end - start >= frames.HEADER_BYTES:
            if data[start : start + 4] == b"AMQP":
                if data[start : start + 8] not in (SASL_HEADER, AMQP_HEADER):
                    raise OperationError(f"{self._broker} speaks another protocol than AMQP 1.0")
                start += frames.HEADER_BYTES
                continue
            size = frames.frame_at(data, start, end, limits.MQTT_CLIENT_PACKET_BYTES)
            if not size:
                break
            frame = frames.decode(data, start, size)
            start += size
            if frame.performative is not None:
                self._take(frame.performative, frame.payload)
        self._came = data[start:]

    def _take(self, said: Any, payload: bytes) -> None:  # noqa: ANN401 - of any kind
        if isinstance(said, Transfer):
            self._arrived(said, payload)
        elif isinstance(said, Flow):
            self._answers += said.handle is None
            if said.handle == self._their_out and said.link_credit is not None:
                self._room = (said.delivery_count or 0) + said.link_credit - self._sent
                self._transmit()
        elif isinstance(said, Disposition):
            self._answered(said)
        elif isinstance(said, Attach):
            self._attached(said)
        elif isinstance(said, (Detach, End, Close)):
            self._ended(said)
        elif isinstance(said, Open):
            self._names = broker_that_says(said.properties)
            self._most_frame = min(said.max_frame_size, limits.AMQP_FRAME_BYTES)
            self._idle_s = (said.idle_time_out or 0) / 1_000
        elif isinstance(said, Begin):
            self._begun = True
        elif isinstance(said, SaslMechanisms):
            self._mechanisms = list(said.sasl_server_mechanisms)
        elif isinstance(said, SaslOutcome):
            self._outcome = said.code

    def _attached(self, said: Attach) -> None:
        receiver = self._receivers.get(said.name)
        if said.name == _SENDER and said.role:
            self._their_out = said.handle
        elif receiver is not None:
            self._by_their_handle[said.handle] = receiver
            if said.source is not None:
                self._granted(receiver, receiver.qos, None)

    def _ended(self, said: Detach | End | Close) -> None:
        why = _text(said.error)
        receiver = self._by_their_handle.get(said.handle) if isinstance(said, Detach) else None
        if isinstance(said, Detach) and receiver is not None and receiver.code < 0:
            self._granted(receiver, UNSPECIFIED_ERROR, said.error)
            return
        raise OperationError(f"{self._broker} ended the connection: {why}")

    def _granted(self, receiver: _Receiver, code: int, error: Error | None) -> None:
        """Note what became of a subscription; all of them are one SUBACK."""
        receiver.code = code
        if error is not None:
            self._refused = _text(error)
        if all(one.code >= 0 for one in self._receivers.values()):
            codes: dict[int, int] = {}
            for one in self._receivers.values():
                codes[one.number] = max(one.code, codes.get(one.number, 0))
            properties = Properties(reason_string=self._refused or None)
            self._packets.append(Suback(1, list(codes.values()), properties))

    def _answered(self, said: Disposition) -> None:
        last = said.first if said.last is None else said.last
        for number in range(said.first, last + 1):
            packet_id = self._sent_ids.pop(number, 0)
            if not packet_id:
                continue
            if isinstance(said.state, Accepted):
                self._packets.append(Ack(PUBACK, packet_id, SUCCESS))
                continue
            error = said.state.error if isinstance(said.state, Rejected) else None
            why = _text(error) if error else type(said.state).__name__.lower()
            properties = Properties(reason_string=why)
            self._packets.append(Ack(PUBACK, packet_id, IMPLEMENTATION_SPECIFIC_ERROR, properties))

    def _arrived(self, said: Transfer, payload: bytes) -> None:
        receiver = self._by_their_handle.get(said.handle)
        if receiver is None:
            raise OperationError(f"{self._broker} sent a message over a link that is not there")
        first = receiver.first or said
        receiver.parts += payload
        if said.more:
            receiver.first = first
            return
        data, receiver.parts, receiver.first = receiver.parts, b"", None
        receiver.count += 1
        if receiver.granted - receiver.count <= _CREDIT // 2:
            self._grant(receiver)
        head = read_head(data)
        body, block = to_mqtt(head.content)
        field = varint(len(block)) + block
        properties, _ = decode_properties(field, 0, len(field), PUBLISH)
        if head.ttl >= 0:
            properties.message_expiry_interval = -(-head.ttl // 1_000)
        topic = topic_of_address(head.to).encode()
        packet_id = 0
        if not first.settled:
            self._next_packet = self._next_packet % 65_535 + 1
            packet_id = self._next_packet
            self._deliveries[packet_id] = first.delivery_id or 0
        publish = Publish(
            topic, body, int(not first.settled), packet_id=packet_id, properties=properties
        )
        self._packets.append(publish)


def _text(error: Error | None) -> str:
    """Return what an error says."""
    if error is None:
        return "without a reason"
    return f"{error.condition} ({error.description})" if error.description else error.condition


BrokerLink = MqttLink | AmqpLink


def link_to(broker: Broker, connect: Connect, *, credit: int = 0) -> BrokerLink:
    """Connect to a broker by its protocol; `credit` is how many messages are wanted at most, 0 for no end."""
    if broker.protocol is Protocol.AMQP:
        return AmqpLink(broker, credit=credit)
    return MqttLink(broker, connect)

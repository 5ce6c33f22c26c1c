"""Sessions of MQTT 5: consumers and producers that write down what they saw, and the threads that keep them connected.

What is said on the connection is the session's: Producer and Consumer do no I/O.

A consumer of guaranteed messages that writes down what it got and what it knows to be settled.

An acknowledgement at QoS 1 has no answer. To know that the router has stored it, the consumer publishes a
barrier at QoS 1 behind it, on the same connection: the router answers the barrier when the commit that holds
it is synced, and what came before it on the connection is in that commit or an earlier one. The barrier's
topic must reach a durable endpoint. At QoS 2 PUBREL says that the router has stored the acknowledgement.
"""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from vpnrouter.testing.client_threads import ClientThread, ConnectionEnded, Conversation
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL, reason_text

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from vpnrouter.testing.history import History


LEVEL: Final = 5
MOST_PACKET_BYTES: Final = 4_194_304


class Session(Protocol):
    """What is said on a connection; it outlives all its connections."""

    name: str

    def connect(self) -> Connect:
        """The first packet of each connection."""

    def opened(self, answer: Connack) -> list[Packet]:
        """The router took the connection; returns what to say first."""

    def received(self, packet: Packet) -> list[Packet]:
        """Handle a packet. Returns what to answer at once."""

    def due(self) -> list[Packet]:
        """Called once in TICK_S. Returns what to send unprompted."""

    def closed(self) -> None:
        """The connection is gone, whether or not it was opened."""


@final
class MqttClient(ClientThread):
    """One thread for one session of MQTT 5."""

    def __init__(
        self,
        session: Session,
        port: Callable[[], int | None],
        history: History,
        draws: random.Random,
        cut_chance: float = 0.0,
    ) -> None:
        super().__init__(session, port, history, draws, cut_chance)
        self._talks = session

    def conversation(self, link: socket.socket) -> Conversation:
        """Return what is talked on a new connection."""
        return _Conversation(self._talks, link, self.lasts)


@final
class _Conversation(Conversation):
    """One connection from CONNECT to its end."""

    def __init__(
        self, session: Session, link: socket.socket, lasts: Callable[[socket.socket], bool]
    ) -> None:
        super().__init__(link, lasts)
        self._session = session

    def first(self) -> bytes:
        return encode(self._session.connect(), LEVEL)

    def packets(self) -> list[Packet]:
        found: list[Packet] = []
        start, end = 0, len(self.came)
        while length := frame_at(self.came, start, end, MOST_PACKET_BYTES):
            found.append(decode(self.came, start, length, LEVEL))
            start += length
        self.came = self.came[start:]
        return found

    def opens(self, packet: Packet) -> bool:
        if not isinstance(packet, Connack):
            raise ConnectionEnded(f"CONNECT was answered with {packet!r}")
        if packet.reason_code:
            raise ConnectionEnded(f"refused: {reason_text(packet.reason_code)}")
        self._say(self._session.opened(packet))
        return True

    def hears(self, packet: Packet) -> None:
        if isinstance(packet, Disconnect):
            raise ConnectionEnded(f"DISCONNECT {reason_text(packet.reason_code)}")
        self._say(self._session.received(packet))

    def due(self) -> None:
        self._say(self._session.due())

    def _say(self, packets: list[Packet]) -> None:
        self.leaves += b"".join([encode(packet, LEVEL) for packet in packets])


SESSION_EXPIRY_S: Final = 3600
MOST_PACKET_ID: Final = 65_535
FAILED: Final = 0x80
"""Reason codes from here on say that the message was not taken."""


def message_of(payload: bytes) -> str:
    """The id of the message that a producer wrote into a payload."""
    return payload.partition(b" ")[0].decode()


@final
@dataclass(slots=True)
class _Sent:
    message: str
    packet: Publish
    released: bool = False
    """QoS 2: the router has it, PUBREL is due."""


@final
class Producer:
    """One client that publishes `NAME-1`, `NAME-2`, … at one QoS. Does no I/O: see MqttClient.

    At QoS 0 nothing is answered, and nothing is sent again.

    `topics` says which endpoints a topic is to reach. At most `window` messages are in flight; up to `burst`
    new ones leave with each call of `due`. Its session is durable. `limit` is how many messages there are,
    0 for no end.
    """

    def __init__(
        self,
        name: str,
        history: History,
        draws: random.Random,
        topics: Mapping[str, tuple[str, ...]],
        *,
        qos: int = 1,
        window: int = 16,
        burst: int = 4,
        size: int = 64,
        limit: int = 0,
    ) -> None:
        self.name = name
        self.qos = qos
        self.count = 0
        self.answered = 0
        self.reasons: dict[str, int] = {}
        """Reason code of each answered message."""
        self.sessions_lost = 0
        self.stopping = False
        self._history = history
        self._draws = draws
        self._topics = dict(topics)
        self._window = window
        self._burst = burst
        self._size = size
        self._limit = limit
        self._open = False
        # The router took something: its session is stored since then.
        self._taken = False
        self._next_id = draws.randrange(1, MOST_PACKET_ID + 1)
        self._in_flight: dict[int, _Sent] = {}

    @property
    def done(self) -> bool:
        """Nothing more to send, and everything answered to the last step."""
        ended = self.stopping or (self._limit and self.count >= self._limit)
        return bool(ended) and not self._in_flight

    def connect(self) -> Connect:
        """The CONNECT packet of the client."""
        properties = Properties(session_expiry_interval=SESSION_EXPIRY_S)
        return Connect(self.name, clean_start=False, properties=properties)

    def opened(self, answer: Connack) -> list[Packet]:
        """Connected: everything without an answer again, in its order (MQTT 4.4, 4.6)."""
        self._open = True
        self._window = min(self._window, answer.properties.receive_maximum or MOST_PACKET_ID)
        if not answer.session_present and self._taken:
            self.sessions_lost += 1
            self._history.noted(f"{self.name}: the router forgot the session")
        again: list[Packet] = []
        for packet_id, sent in self._in_flight.items():
            if sent.released:
                again.append(Ack(PUBREL, packet_id))
                continue
            if self.qos == 1:
                self._history.resent(sent.message)
            else:
                self._history.repeated(sent.message)
            sent.packet.dup = True
            again.append(sent.packet)
        return again

    def closed(self) -> None:
        """Note that the connection is gone."""
        self._open = False

    def received(self, packet: Packet) -> list[Packet]:
        """What to answer to a packet."""
        if not isinstance(packet, Ack):
            return []
        sent = self._in_flight.get(packet.packet_id)
        if packet.packet_type == PUBREC:
            return self._recorded(packet, sent)
        if sent is None:
            return []
        if packet.packet_type == PUBACK and self.qos == 1:
            self._answer(sent, packet.reason_code)
            del self._in_flight[packet.packet_id]
        elif packet.packet_type == PUBCOMP and sent.released:
            del self._in_flight[packet.packet_id]
        return []

    def _recorded(self, packet: Ack, sent: _Sent | None) -> list[Packet]:
        if sent is None:
            return [Ack(PUBREL, packet.packet_id, 0x92)]
        if not sent.released:
            self._answer(sent, packet.reason_code)
            if packet.reason_code >= FAILED:
                del self._in_flight[packet.packet_id]
                return []
            sent.released = True
        return [Ack(PUBREL, packet.packet_id)]

    def _answer(self, sent: _Sent, reason: int) -> None:
        self.answered += 1
        self.reasons[sent.message] = reason
        if reason >= FAILED:
            self._history.rejected(sent.message, f"0x{reason:02x}")
        else:
            self._taken = True
            self._history.acknowledged(sent.message)

    def due(self) -> list[Packet]:
        """New messages, as far as the window and the limit allow."""
        made: list[Packet] = []
        room = min(self._burst, self._window - len(self._in_flight))
        if self._limit:
            room = min(room, self._limit - self.count)
        if self._open and not self.stopping:
            made.extend([self._publish() for _ in range(room)])
        return made

    def _publish(self) -> Publish:
        self.count += 1
        message = f"{self.name}-{self.count}"
        topic = self._draws.choice(list(self._topics))
        payload = f"{message} ".encode().ljust(self._size, b".")
        packet_id = self._free_id() if self.qos else 0
        packet = Publish(topic.encode(), payload, self.qos, packet_id=packet_id)
        self._history.published(
            message,
            producer=self.name,
            sequence=self.count,
            topic=topic,
            targets=self._topics[topic],
        )
        if self.qos:
            self._in_flight[packet_id] = _Sent(message, packet)
        return packet

    def _free_id(self) -> int:
        while self._next_id in self._in_flight:
            self._next_id = self._next_id % MOST_PACKET_ID + 1
        found = self._next_id
        self._next_id = found % MOST_PACKET_ID + 1
        return found


REDELIVERED: Final = ("JMSRedelivered", "true")
"""User property of what a queue may have delivered before, to whomever."""

BARRIER_EACH: Final = 16
"""Acknowledgements after which a barrier follows."""

BARRIER_IDS: Final = 1000
"""Packet ids of barriers are 2 to this; 1 is for SUBSCRIBE."""


@final
class Consumer:
    """One client with one subscription; `endpoint` is its name in the history. Does no I/O: see MqttClient.

    `durable`: the session outlives the connection, and with it the subscription; otherwise each connection
    subscribes anew, as consumers of `$queue/NAME` do. `barrier` is the topic of barriers, "" for none.
    Acknowledgements leave in order; how many with each call of `due` is drawn, so that some are always open.
    `paused` takes messages and acknowledges none.
    """

    def __init__(
        self,
        name: str,
        history: History,
        draws: random.Random,
        *,
        endpoint: str,
        topic_filter: str,
        qos: int = 1,
        durable: bool = True,
        barrier: str = "",
        receive_maximum: int = 32,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.ready = False
        """The subscription is confirmed on the connection that is open."""
        self.paused = False
        self.delivered: set[str] = set()
        self.deliveries = 0
        self.sessions_lost = 0
        self._history = history
        self._draws = draws
        self._filter = topic_filter
        self._qos = qos
        self._durable = durable
        self._barrier = barrier
        self._receive_maximum = receive_maximum
        self._open = False
        self._subscribed = False
        self._held: deque[tuple[Ack, str]] = deque()
        self._unsettled: list[str] = []
        self._barriers: dict[int, list[str]] = {}
        self._next_barrier = 2
        self._recorded: dict[int, str] = {}
        """QoS 2: packet ids received and not yet released, and their messages."""

    @property
    def idle(self) -> bool:
        """Everything that was received is acknowledged, and known to be settled where that can be known."""
        return not (self._held or self._unsettled or self._barriers or self._recorded)

    def connect(self) -> Connect:
        """The CONNECT packet of the client."""
        properties = Properties(
            session_expiry_interval=SESSION_EXPIRY_S if self._durable else None,
            receive_maximum=self._receive_maximum,
        )
        return Connect(self.name, clean_start=not self._durable, properties=properties)

    def opened(self, answer: Connack) -> list[Packet]:
        """Connected: subscribe where the router does not hold the subscription."""
        self._open = True
        if answer.session_present and self._subscribed:
            self.ready = True
            return []
        if not answer.session_present:
            self._recorded.clear()
            if self._durable and self._subscribed:
                self.sessions_lost += 1
                self._history.noted(f"{self.name}: the router forgot the session")
        return [Subscribe(1, [SubscriptionRequest(self._filter, self._qos)])]

    def closed(self) -> None:
        """The connection is gone, and with it all acknowledgements that were not known to be stored."""
        self._open = self.ready = False
        self._held.clear()
        self._unsettled.clear()
        self._barriers.clear()

    def received(self, packet: Packet) -> list[Packet]:
        """What to answer at once to a packet."""
        if isinstance(packet, Publish):
            self._deliver(packet)
        elif isinstance(packet, Suback):
            self._subscribed = self.ready = packet.reason_codes[0] < FAILED
            if not self.ready:
                self._history.noted(f"{self.name}: SUBACK 0x{packet.reason_codes[0]:02x}")
        elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
            message = self._recorded.pop(packet.packet_id, "")
            if message:
                self._history.settled(message, endpoint=self.endpoint)
            return [Ack(PUBCOMP, packet.packet_id, 0 if message else 0x92)]
        elif isinstance(packet, Ack) and packet.packet_type == PUBACK:
            known = self._barriers.pop(packet.packet_id, [])
            if packet.reason_code < FAILED:
                for message in known:
                    self._history.settled(message, endpoint=self.endpoint)
        return []

    def _deliver(self, packet: Publish) -> None:
        message = message_of(packet.payload)
        known = packet.qos == 2 and packet.packet_id in self._recorded
        if not known:
            # DUP tells of packets of this session (MQTT-3.3.1-1); of a queue, whoever got it before.
            redelivered = packet.dup or REDELIVERED in (packet.properties.user_properties or [])
            self._history.delivered(
                message, endpoint=self.endpoint, redelivered=redelivered, qos=packet.qos
            )
            self.delivered.add(message)
            self.deliveries += 1
        if packet.qos == 1:
            self._held.append((Ack(PUBACK, packet.packet_id), message))
        elif packet.qos == 2:
            self._recorded[packet.packet_id] = message
            self._held.append((Ack(PUBREC, packet.packet_id), message))

    def due(self) -> list[Packet]:
        """Some of the acknowledgements that are open, and a barrier when there were enough of them."""
        made: list[Packet] = []
        if not self._open or self.paused:
            return made
        for _ in range(self._draws.randint(0, len(self._held))):
            ack, message = self._held.popleft()
            made.append(ack)
            self._history.consumed(message, endpoint=self.endpoint)
            if ack.packet_type == PUBACK and self._barrier:
                self._unsettled.append(message)
        enough = len(self._unsettled) >= (BARRIER_EACH if self._held else 1)
        if enough and not self._barriers:
            made.append(self._make_barrier())
        return made

    def _make_barrier(self) -> Publish:
        packet_id = self._next_barrier
        self._next_barrier = max(2, (packet_id + 1) % BARRIER_IDS)
        self._barriers[packet_id], self._unsettled = self._unsettled, []
        return Publish(self._barrier.encode(), self.name.encode(), 1, packet_id=packet_id)

"""A producer of guaranteed messages as MQTT 5 wants it: what is not answered is sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from vpnrouter.testing.history import History
    from vpnrouter.wire.mqtt.packets import Packet

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
    """One client that publishes `NAME-1`, `NAME-2`, … at one QoS, 1 or 2. Does no I/O: see MqttClient.

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
        """How it introduces itself."""
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
        """The connection is gone."""
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
        packet = Publish(topic.encode(), payload, self.qos, packet_id=self._free_id())
        self._history.published(
            message,
            producer=self.name,
            sequence=self.count,
            topic=topic,
            targets=self._topics[topic],
        )
        self._in_flight[packet.packet_id] = _Sent(message, packet)
        return packet

    def _free_id(self) -> int:
        while self._next_id in self._in_flight:
            self._next_id = self._next_id % MOST_PACKET_ID + 1
        found = self._next_id
        self._next_id = found % MOST_PACKET_ID + 1
        return found

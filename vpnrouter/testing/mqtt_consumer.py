"""A consumer of guaranteed messages that writes down what it got and what it knows to be settled.

An acknowledgement at QoS 1 has no answer. To know that the router has stored it, the consumer publishes a
barrier at QoS 1 behind it, on the same connection: the router answers the barrier when the commit that holds
it is synced, and what came before it on the connection is in that commit or an earlier one. The barrier's
topic must reach a durable endpoint. At QoS 2 PUBREL says that the router has stored the acknowledgement.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from vpnrouter.testing.mqtt_producer import FAILED, SESSION_EXPIRY_S, message_of
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    import random

    from vpnrouter.testing.history import History
    from vpnrouter.wire.mqtt.packets import Packet

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
        """How it introduces itself."""
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

"""An MQTT session: what outlives a connection (MQTT 5, 4.1), and how messages reach its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.discards import MSG_TOO_BIG, NO_LOCAL_DELIVERY
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT4, FRAME_MQTT5, FRAME_OWN, Subscriber, Subscription
from vpnrouter.wire.mqtt.encode import encode_publish, encode_publish_field
from vpnrouter.wire.mqtt.publish_block import publish_block_with

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn

EXPIRE: Final = 1
"""Timer kind: the session's expiry interval has passed."""

WILL: Final = 2
"""Timer kind: the will's delay has passed."""

NEVER_S: Final = 0xFFFF_FFFF
"""Session expiry interval that means "never" (MQTT 5, 3.1.2.11.2)."""

SECOND_NS: Final = 1_000_000_000


@final
class Will:
    """A will as it will be published, with its delay in seconds."""

    __slots__ = ("delay_s", "message")

    def __init__(self, message: Message, delay_s: int) -> None:
        self.message = message
        self.delay_s = delay_s


@final
class MqttSession(Subscriber):
    """One session of one client in one message VPN.

    `connection` is None while the session waits for its client; then nothing Direct is kept for it.
    """

    __slots__ = (
        "_aliases",
        "_expiry_timer",
        "_new_alias",
        "_will_timer",
        "alias_maximum",
        "connection",
        "expiry_s",
        "level",
        "max_packet",
        "vpn",
        "will",
    )

    def __init__(self, vpn: MessageVpn, client_id: str, outbox: Outbox) -> None:
        super().__init__(client_id, outbox, FRAME_MQTT4)
        self.vpn = vpn
        self.level = 4
        self.connection: MqttConnection | None = None
        self.connected = False
        self.expiry_s = 0
        self.alias_maximum = 0
        self.max_packet = 0
        self.will: Will | None = None
        self._aliases: dict[bytes, int] = {}
        self._new_alias = False
        self._expiry_timer: Timer | None = None
        self._will_timer: Timer | None = None

    # -- life ------------------------------------------------------------------------------------

    def attach(
        self, connection: MqttConnection, level: int, alias_maximum: int, max_packet: int
    ) -> None:
        """A client took the session up. A waiting will is not published (MQTT 5, 3.1.3.2.2)."""
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if self._will_timer is not None:
            self._will_timer.cancel()
            self._will_timer = None
        self.connection = connection
        self.outbox = connection.outbox
        self.level = level
        self.alias_maximum = alias_maximum
        self.max_packet = max_packet
        self._aliases.clear()
        if alias_maximum or max_packet:
            self.frame = FRAME_OWN
        else:
            self.frame = FRAME_MQTT5 if level == 5 else FRAME_MQTT4
        self.connected = True
        self.vpn.forget_routes(self)

    def leave(self) -> None:
        """Another connection takes the session: a will without delay is due (MQTT 5, 3.1.3.2.2)."""
        self._unplug()
        if self.will is not None and self.will.delay_s == 0:
            self.publish_will()

    def _unplug(self) -> None:
        self.connection = None
        self.connected = False
        self.vpn.forget_routes(self)

    def detach(self, publish_will: bool) -> None:
        """The connection ended; publish or delay the will, keep or end the session."""
        self._unplug()
        plane = self.vpn.plane
        if not publish_will:
            self.will = None
        if self.will is not None:
            delay_s = min(self.will.delay_s, self.expiry_s)
            if delay_s == 0:
                self.publish_will()
            else:
                self._will_timer = plane.timers.arm(plane.now_ns + delay_s * SECOND_NS, self, WILL)
        if self.expiry_s == 0:
            self.end()
        elif self.expiry_s != NEVER_S:
            self._expiry_timer = plane.timers.arm(
                plane.now_ns + self.expiry_s * SECOND_NS, self, EXPIRE
            )

    def end(self) -> None:
        """The session is over: a waiting will is published now, everything else forgotten."""
        if self._will_timer is not None:
            self._will_timer.cancel()
            self._will_timer = None
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        self.publish_will()
        self.vpn.drop(self)
        if self.vpn.clients.get(self.client_name) is self:
            del self.vpn.clients[self.client_name]

    def publish_will(self) -> None:
        """Publish the will, once."""
        will = self.will
        self.will = None
        if will is not None:
            self.vpn.publish(will.message)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """A will delay or the session itself ran out."""
        if kind == WILL:
            self._will_timer = None
            self.publish_will()
        else:
            self._expiry_timer = None
            self.end()

    # -- delivery --------------------------------------------------------------------------------

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Encode `message` for this client: identifiers, retain as published, topic alias, no-local."""
        retain = False
        taken = False
        identifiers: list[int] = []
        for subscription in subscriptions:
            if subscription.no_local and message.source is self:
                continue
            taken = True
            if subscription.retain_as_published and message.retain:
                retain = True
            if subscription.identifier:
                identifiers.append(subscription.identifier)
        if not taken:
            self.vpn.discards.add(NO_LOCAL_DELIVERY)
        elif self.connected:
            self.send(message, retain, identifiers)

    def send(self, message: Message, retain: bool, identifiers: list[int]) -> None:
        """Queue one PUBLISH for this client, with exactly these flags and identifiers."""
        if self.level == 4:
            frame = encode_publish(message.topic, message.payload, 4, b"", 0, retain)
        else:
            frame = self._frame5(message, retain, identifiers, self.alias_maximum)
            if self._new_alias and self.max_packet and len(frame) > self.max_packet:
                # It may fit without the alias.
                self._new_alias = False
                del self._aliases[message.topic]
                frame = self._frame5(message, retain, identifiers, 0)
        if self.max_packet and len(frame) > self.max_packet:
            # MQTT 5, 3.1.2.11.4: the client must not get it; the delivery counts as done.
            self.vpn.discards.add(MSG_TOO_BIG)
            return
        taken = self.outbox.offer(frame, 1)
        if not taken and self._new_alias:
            # The frame that was to establish the alias never left: nobody knows it.
            del self._aliases[message.topic]
        self._new_alias = False
        if message.traced:
            self.vpn.trace_outcome(self, message, taken)

    def _frame5(
        self, message: Message, retain: bool, identifiers: list[int], alias_maximum: int
    ) -> bytes:
        expiry_s = -1
        if message.expires_ns:
            left_ns = message.expires_ns - self.vpn.plane.now_ns
            expiry_s = max(0, -(-left_ns // SECOND_NS))
        topic = message.topic
        alias = 0
        # In the place of a topic of three bytes an alias makes the packet longer.
        if alias_maximum and len(topic) > 3:
            alias = self._aliases.get(topic, 0)
            if alias:
                topic = b""
            elif len(self._aliases) < alias_maximum:
                alias = len(self._aliases) + 1
                self._aliases[topic] = alias
                self._new_alias = True
        field = publish_block_with(message.block, expiry_s, alias, identifiers)
        return encode_publish_field(topic, message.payload, field, 0, retain)

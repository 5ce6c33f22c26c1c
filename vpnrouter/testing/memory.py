"""A router in memory: connections are fed encoded packets, what leaves is decoded; no socket, no clock."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from vpnrouter.core.access import AclProfile
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.credentials import ClientCertRules, ClientUsername, Credentials
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.events import EVENT_NAMES
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.tracing import TraceSettings
    from vpnrouter.selectors import Selector

START_NS = 1_000 * SECOND_NS
WALL_NS = 1_700_000_000 * SECOND_NS
MOST = 1 << 30


class Row(NamedTuple):
    """One recorded event; `trace` is the whole trace id, `messages` how many it stands for."""

    event: str
    context: Context
    topic: bytes
    trace: int
    message_id: int
    messages: int
    origin_ts_ns: int


def rows_of(recorder: Recorder) -> list[Row]:
    """What a recorder holds, in order; empties it."""
    recorder.cut()
    found: list[Row] = []
    for block in recorder.take():
        topics = list(block.topics)
        for place in range(block.count):
            fields = struct.unpack_from("<qQQQqqqII", block.data, place * 64)
            context = block.contexts[fields[7]]
            trace = fields[1] << 64 | fields[2]
            number = fields[3]
            found.append(
                Row(
                    EVENT_NAMES[context.event],
                    context,
                    topics[fields[8]],
                    trace,
                    number if trace else 0,
                    1 if trace else number,
                    fields[6],
                )
            )
    return found


class Client:
    """The client's end of one connection."""

    def __init__(self, world: MemoryRouter, connection: MqttConnection, level: int) -> None:
        self.world = world
        self.connection = connection
        self.level = level
        self.connack = Connack()
        self._next_id = 0
        self._aliases: dict[int, bytes] = {}

    @property
    def closed(self) -> bool:
        """Whether the router closes this connection once what is queued has left."""
        return self.connection.closing

    def raw(self, data: bytes) -> None:
        """Feed bytes as they are."""
        self.connection.feed(data)

    def send(self, *packets: Packet) -> None:
        """Feed packets in one chunk."""
        self.raw(b"".join([encode(packet, self.level) for packet in packets]))

    def publish(self, topic: str, payload: bytes = b"x", **more: Any) -> None:
        """Feed one PUBLISH."""
        self.send(Publish(topic.encode(), payload, **more))

    def subscribe(self, text: str, identifier: int = 0, **options: Any) -> list[Packet]:
        """Subscribe successfully to one filter. Returns what was received besides the SUBACK (retained messages)."""
        first, *rest = self.request([SubscriptionRequest(text, **options)], identifier)
        assert isinstance(first, Suback), first
        assert first.reason_codes == [0], first
        return rest

    def request(self, requests: list[SubscriptionRequest], identifier: int = 0) -> list[Packet]:
        """Send one SUBSCRIBE. Returns everything received."""
        self._next_id += 1
        properties = Properties(subscription_identifiers=[identifier] if identifier else None)
        self.send(Subscribe(self._next_id, requests, properties))
        return self.received()

    def unsubscribe(self, text: str) -> int:
        """Unsubscribe; the reason code (0 where 3.1.1 gives none)."""
        self._next_id += 1
        self.send(Unsubscribe(self._next_id, [text]))
        (answer,) = self.received()
        assert isinstance(answer, Unsuback)
        return answer.reason_codes[0] if answer.reason_codes else 0

    def drain(self) -> bytes:
        """What the router would have sent by now."""
        self.world.router.context.jobs.finish()
        outbox = self.connection.outbox
        outbox.dirty = False
        ready = self.world.router.context.ready
        ready[:] = [other for other in ready if other is not outbox]
        parts: list[bytes] = []
        while outbox.chunks:
            parts.append(outbox.take(MOST))
        return b"".join(parts)

    def received(self) -> list[Packet]:
        """Take what the router has sent, as packets."""
        data = self.drain()
        packets: list[Packet] = []
        pos = 0
        while pos < len(data):
            size = frame_at(data, pos, len(data), MOST)
            assert size, "the router sends whole packets"
            packets.append(decode(data, pos, size, self.level))
            pos += size
        return packets

    def messages(self) -> list[Publish]:
        """Return what was received, which must be messages only, with topic aliases resolved."""
        return self.resolved(self.received())

    def resolved(self, packets: list[Packet]) -> list[Publish]:
        """Return messages with the topics of their aliases."""
        found: list[Publish] = []
        for packet in packets:
            assert isinstance(packet, Publish), packet
            alias = packet.properties.topic_alias
            if alias is not None:
                if packet.topic:
                    self._aliases[alias] = packet.topic
                packet.topic = self._aliases[alias]
                packet.properties.topic_alias = None
            found.append(packet)
        return found

    def payloads(self) -> list[bytes]:
        """Return the payloads of what was received, which must be messages only."""
        return [message.payload for message in self.messages()]

    def lose(self) -> None:
        """The transport breaks."""
        self.connection.lost("gone")

    def disconnect(self, code: int = 0, **properties: Any) -> None:
        """Say goodbye."""
        self.send(Disconnect(code, Properties(**properties)))

    def reason(self) -> int:
        """The router closed this connection with a DISCONNECT and nothing after it: its reason code."""
        assert self.closed
        *_, last = self.received()
        assert isinstance(last, Disconnect), last
        return last.reason_code


class MemoryRouter:
    """A router with its message VPNs and clients, and the time."""

    def __init__(
        self,
        *names: str,
        name: str = "here",
        sample: float = 0.0,
        seed: int = 7,
        terms: TraceSettings | None = None,
    ) -> None:
        self.router = Router(name, seed, Recorder(), sample, terms)
        self.now_ns = START_NS
        self.router.tick(self.now_ns, WALL_NS)
        # What earlier routers of this process left in the measure is no work of this one.
        MEASURE.work()
        for each in names or ("blue",):
            self.add_vpn(each)

    def add_vpn(
        self,
        name: str,
        usernames: tuple[ClientUsername, ...] = (),
        basic: bool = False,
        profile: ClientProfile | None = None,
        acl: AclProfile | None = None,
        bounds: VpnLimits | None = None,
        cache: int = 0,
        client_cert: ClientCertRules | None = None,
    ) -> MessageVpn:
        """Host one more message VPN, in place of one of the same name."""
        vpn = MessageVpn(
            name,
            self.router.context,
            Credentials(basic, usernames, client_cert=client_cert),
            {"default": profile or ClientProfile("default")},
            {"default": acl or AclProfile("default")},
            bounds,
        )
        if cache:
            vpn.cache = RouteCache(cache)
        self.router.add(vpn)
        return vpn

    def vpn(self, name: str = "blue") -> MessageVpn:
        """One of the message VPNs."""
        return self.router.vpns[name]

    def open(self, vpn: str = "blue", level: int = 5, peer: str = "192.0.2.1") -> Client:
        """A transport on which nothing was said yet."""
        return Client(self, MqttConnection(self.router, peer, vpn), level)

    def hello(
        self,
        client_id: str,
        vpn: str = "blue",
        level: int = 5,
        peer: str = "192.0.2.1",
        **connect: Any,
    ) -> Client:
        """A connection after its CONNECT; what the router answered is still in it."""
        client = self.open(vpn, level, peer)
        client.send(Connect(client_id, protocol_level=level, **connect))
        return client

    def connect(self, client_id: str, vpn: str = "blue", level: int = 5, **connect: Any) -> Client:
        """A client that was let in; its CONNACK is in `connack`."""
        client = self.hello(client_id, vpn, level, **connect)
        first, *rest = client.received()
        assert isinstance(first, Connack), first
        assert first.reason_code == 0, first
        assert rest == []
        client.connack = first
        return client

    def refused(self, client_id: str, vpn: str = "blue", level: int = 5, **connect: Any) -> Connack:
        """The answer to a client that is not let in."""
        client = self.hello(client_id, vpn, level, **connect)
        (answer,) = client.received()
        assert isinstance(answer, Connack)
        assert answer.reason_code != 0
        assert not answer.session_present
        assert client.closed
        return answer

    def rows(self) -> list[Row]:
        """What the recorder holds, in order; empties it."""
        return rows_of(self.router.context.recorder)

    def verify(self) -> None:
        """Verify the waiting passwords as the edge does, in plain text."""
        for login in self.router.verifications.take_all():
            login.settle(login.given == login.stored.encode())

    def balance(self) -> tuple[int, int]:
        """End all connections; the bytes that count for clients then and do not last, and those never given back."""
        held = unreturned = 0
        for vpn in self.router.vpns.values():
            for client in list(vpn.clients.values()):
                connection = client.client_connection()
                if connection is not None:
                    connection.lost("the test is over")
            self.router.context.jobs.finish()
            held += vpn.memory.own
            unreturned += vpn.memory.unreturned
        return held, unreturned

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += int(seconds * SECOND_NS)
        self.router.tick(self.now_ns, WALL_NS + self.now_ns - START_NS)


class FakeLink(Subscriber):
    """A link's client as the core sees it, to `peer`. `singles` are messages encoded for it, in order."""

    def __init__(self, vpn: MessageVpn, peer: str, room: int = 1 << 30) -> None:
        super().__init__(f"#bridge/{peer}", Outbox(vpn.context.ready, room), FRAME_MQTT5)
        self.vpn = vpn
        self.is_link = True
        self.vpn_id = peer
        self.singles: list[Message] = []

    @override
    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        assert subscriptions
        assert message.source is not self
        self.offered += 1
        if self.outbox.offer(message.frame5(), 1):
            self.singles.append(message)

    def subscribe(
        self,
        text: str,
        dto_priority: int = 1,
        deliver_always: bool = False,
        selector: Selector | None = None,
    ) -> Subscription:
        """Attract what an SMF filter matches; one with `!` is an exception."""
        subscription = Subscription(
            parse_filter(text, SMF, exceptions=True),
            self,
            deliver_always=deliver_always,
            dto_priority=dto_priority,
            selector=selector,
        )
        self.vpn.subscribe(subscription)
        return subscription

    def taken(self) -> list[bytes]:
        """Payloads of the messages encoded for it since the last call."""
        payloads = [message.payload for message in self.singles]
        self.singles.clear()
        return payloads

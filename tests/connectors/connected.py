"""A connector of a router in memory. The test is its MQTT provider: it sees packets, and answers with packets."""

from __future__ import annotations

from typing import Any

from vpnrouter.config.configured_connector import links_of
from vpnrouter.config.connector import Connector
from vpnrouter.connectors.connector_links import (
    ConnectorLinks,
    dead_letter_queue,
    own_queue,
    parking_queue,
)
from vpnrouter.connectors.link_state import LinkCounters
from vpnrouter.connectors.mqtt.client import MqttClient
from vpnrouter.connectors.provider import ConnectorCallbacks, Loss
from vpnrouter.connectors.provider_session import ProviderSession, restore_provider_sessions
from vpnrouter.connectors.settings import ProviderSettings
from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.subscriber import Subscription
from vpnrouter.testing.memory import MOST
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

NAME = "there"


class Connected(ConnectorCallbacks):
    """The connector `there` of the message VPN blue of `world`, with `links` as in a configuration.

    `told` are the texts of messages that were given up, `stays` of those that no dead message queue takes, `losses` how
    connections ended, `asked` the filters that the provider was asked for since its session began.
    """

    def __init__(self, world: Any, links: dict[str, Any], level: int = 5, **connector: Any) -> None:
        self.world = world
        self.level = level
        self.configured = Connector.model_validate(
            {"provider": {"url": "mqtt://127.0.0.1:1"}, "links": links, **connector}
        )
        self.counters: dict[str, LinkCounters] = {}
        self.told: list[str] = []
        self.stays: list[str] = []
        self.changes: list[tuple[str, str]] = []
        self.losses: list[Loss] = []
        self.asked: dict[str, int] = {}
        self.begin()

    def begin(self, session: ProviderSession | None = None) -> None:
        """Make the links and their queues."""
        world, vpn = self.world, self.world.vpn()
        self.session = session or ProviderSession(world.spool, vpn.name, f"#connector/{NAME}")
        self.account = MemoryAccount("#connector", 1 << 26, vpn.memory.of(f"#connector/{NAME}"))
        terms = links_of(self.configured)
        for each in terms:
            names = [own_queue(NAME, each.name)] if each.qos and not each.from_queue else []
            if each.inbound and each.failures.dead_msg_queues:
                names.append(dead_letter_queue(NAME, each.name))
            if each.failures.then == "park":
                names.append(parking_queue(NAME, each.name))
            for name in names:
                queue = vpn.endpoints.get((CONNECTOR_LINK, name))
                if queue is None:
                    queue = world.queue(name, kind=CONNECTOR_LINK)
                queue.local_name = f"#connector/{NAME}"
                if each.dead_letters:
                    queue.settings.redelivery_delay_enabled = True
                    queue.settings.redelivery_delay_initial_interval = each.retry_ms
                    queue.settings.redelivery_delay_multiplier = 100
                elif not each.inbound and name == own_queue(NAME, each.name):
                    vpn.subscribe(
                        Subscription(
                            each.filter, queue, no_local=each.no_local, selector=each.selector
                        )
                    )
        self.links = ConnectorLinks(self, vpn, NAME, terms, self.counters)

    # -- what the links and the connection tell --------------------------------------------------

    def link_changed(self, link: str) -> None:
        if hasattr(self, "links"):
            self.changes.append((link, self.links.all[link].status.state.value))

    def gave_up(self, link: str, text: str) -> None:
        self.told.append(f"{link}: {text}")

    def not_delivered(self, link: str, text: str) -> None:
        self.stays.append(f"{link}: {text}")

    def joined(self, provider: Any) -> None:
        self.links.connected(provider)

    def lost(self, provider: Any, loss: Loss) -> None:
        self.losses.append(loss)
        self.links.disconnected(loss)

    # -- the provider ----------------------------------------------------------------------------

    def dial(self, *, leaving: bool = False) -> MqttClient:
        """Connect, and say CONNECT."""
        timeout_s = self.configured.provider.answer_timeout
        most = self.configured.provider.receive_maximum
        settings = ProviderSettings(
            "mqtt://provider:1", "me", answer_timeout_s=timeout_s, receive_maximum=most
        )
        self.client = MqttClient(
            self,
            self.world.vpn(),
            "192.0.2.9",
            session=self.session,
            home=self.account,
            inward=self.links.inward,
            outward=self.links.outward,
            settings=settings,
            level=self.level,
            leaving=leaving,
        )
        self.client.begin()
        (packet,) = self.received(pings=False)
        assert isinstance(packet, Connect)
        self.connect_packet = packet
        return self.client

    def join(
        self,
        *,
        present: bool = False,
        grant: int = 2,
        pong: bool = True,
        answers: bool = True,
        **properties: Any,
    ) -> list[Packet]:
        """Connect, let the router in, and grant what it asks for, if it `answers`; returns what else it said."""
        if not present:
            self.asked.clear()
        self.dial()
        self.send(Connack(present, 0, Properties(**properties)))
        said = []
        for packet in self.got(pings=pong):
            if isinstance(packet, Subscribe) and not answers:
                continue
            if isinstance(packet, Subscribe):
                request = packet.requests[0]
                self.asked[request.filter] = min(grant, request.qos)
                self.send(Suback(packet.packet_id, [min(grant, request.qos)]))
            elif isinstance(packet, Unsubscribe):
                for text in packet.filters:
                    self.asked.pop(text, None)
            else:
                said.append(packet)
        return said + self.got()

    def send(self, *packets: Packet) -> None:
        """Let the provider send packets in one chunk."""
        level = self.level & 0x7F
        self.client.connection.feed(b"".join([encode(packet, level) for packet in packets]))

    def raw(self, data: bytes) -> None:
        """Let the provider send bytes."""
        self.client.connection.feed(data)

    def received(self, *, pings: bool = True) -> list[Packet]:
        """What the router has sent by now. With `pings`, PINGREQs are answered and left out."""
        context = self.world.router.context
        context.jobs.finish()
        outbox = self.client.connection.outbox
        outbox.dirty = False
        context.ready[:] = [other for other in context.ready if other is not outbox]
        data = b""
        while outbox.chunks:
            data += outbox.take(MOST)
        packets: list[Packet] = []
        pos = 0
        while pos < len(data):
            size = frame_at(data, pos, len(data), MOST)
            packet = decode(data, pos, size, self.level & 0x7F)
            pos += size
            if isinstance(packet, Pingreq) and pings:
                self.send(Pingresp())
            elif not isinstance(packet, Pingreq):
                packets.append(packet)
        return packets

    def got(self, *, pings: bool = True) -> list[Packet]:
        """The same, after all commits that are due."""
        found: list[Packet] = []
        for _ in range(100):
            self.world.settle()
            more = self.received(pings=pings)
            if not more and self.world.spool.unit.empty:
                return found
            found += more
        return found

    def published(self) -> list[Publish]:
        """Messages that came, and nothing else."""
        found = self.got()
        assert all(isinstance(each, Publish) for each in found), found
        return [each for each in found if isinstance(each, Publish)]

    def take(self, most: int = 1_000) -> list[bytes]:
        """Payloads that came, each acknowledged as its QoS wants, to the end."""
        payloads: list[bytes] = []
        while len(payloads) < most:
            found = self.got()
            if not found:
                break
            for packet in found:
                if isinstance(packet, Publish):
                    payloads.append(packet.payload)
                    if packet.qos:
                        kind = PUBACK if packet.qos == 1 else PUBREC
                        self.send(Ack(kind, packet.packet_id))
                elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                    self.send(Ack(PUBCOMP, packet.packet_id))
        return payloads

    def acks(self) -> list[tuple[int, int]]:
        """Type and packet identifier of what came, which must be acknowledgements."""
        found = self.got()
        assert all(isinstance(each, Ack) for each in found), found
        return [(each.packet_type, each.packet_id) for each in found if isinstance(each, Ack)]

    def cut(self) -> None:
        """The connection breaks."""
        self.client.connection.lost("connection lost")
        self.world.settle()

    def lose_router(self, world: Any) -> None:
        """Go on with `world`, the router after a crash."""
        self.world = world
        (session,) = restore_provider_sessions(world.spool, world.store, "blue")
        self.begin(session)

    # -- what the router has ---------------------------------------------------------------------

    def held(self, queue: str) -> list[bytes]:
        """Payloads in a queue."""
        endpoint = self.world.vpn().queue(queue)
        return [row.message.payload for row in endpoint.browse(0, 1_000)]

    def state(self, link: str) -> tuple[str, str]:
        """State and reason of a link."""
        status = self.links.all[link].status
        return status.state.value, status.reason

    def balanced(self) -> bool:
        """Whether each message of each link is accounted for, and none is in flight."""
        return all(
            link.in_flight == 0 and link.counters.messages == link.counters.outcomes
            for link in self.links.all.values()
        )

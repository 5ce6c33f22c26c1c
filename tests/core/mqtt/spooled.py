"""A router in memory with a message spool over a store that forgets; commits are made by hand."""

from __future__ import annotations

import json
from typing import Any

from vpnrouter.core.amqp.subscriptions import restore_subscriptions
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition, read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    QUEUE,
    TOPIC_ENDPOINT,
    EndpointSettings,
)
from vpnrouter.core.guaranteed.recover import recover, recover_retained
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.mqtt.restore import restore_sessions
from vpnrouter.core.subscriber import Subscription
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.testing import memory as kit
from vpnrouter.testing.memory import Client, MemoryRouter
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

FOREVER = Properties(session_expiry_interval=0xFFFF_FFFF)


class SpooledClient(Client):
    """A client of QoS 1 and 2. What comes is what has come when everything is synced."""

    world: SpooledWorld

    def got(self) -> list[Packet]:
        """What came, after all commits that are due."""
        self.world.settle()
        return self.received()

    def messages(self) -> list[Publish]:
        """Messages that came, after all commits that are due; nothing else may have come."""
        return self.resolved(self.got())

    def pub(
        self, topic: str, payload: bytes = b"x", qos: int = 1, pid: int = 1, **more: Any
    ) -> None:
        """Publish with a packet identifier."""
        self.publish(topic, payload, qos=qos, packet_id=pid, **more)

    def acks(self) -> list[tuple[int, int, int]]:
        """Type, packet identifier and reason code of what came, which must be acknowledgements."""
        found = []
        for packet in self.got():
            assert isinstance(packet, Ack), packet
            found.append((packet.packet_type, packet.packet_id, packet.reason_code))
        return found

    def refused(self, text: str, user: list[tuple[str, str]] | None = None) -> tuple[int, str]:
        """Code and reason with which a filter is refused."""
        self.send(Subscribe(9, [SubscriptionRequest(text, 1)], Properties(user_properties=user)))
        (answer,) = self.got()
        assert isinstance(answer, Suback)
        (code,) = answer.reason_codes
        return code, answer.properties.reason_string or ""

    def sub(
        self, text: str, qos: int = 1, user: list[tuple[str, str]] | None = None, **options: Any
    ) -> int:
        """Subscribe to one filter; the reason code. Whatever else came is in `rest`."""
        self._next_id += 1
        properties = Properties(user_properties=user)
        self.send(Subscribe(self._next_id, [SubscriptionRequest(text, qos, **options)], properties))
        packets = self.got()
        (answer,) = [packet for packet in packets if isinstance(packet, Suback)]
        self.rest = [packet for packet in packets if packet is not answer]
        (code,) = answer.reason_codes
        return code

    def ack(self, kind: int, pid: int, code: int = 0) -> None:
        """Send one acknowledgement."""
        self.send(Ack(kind, pid, code))

    def puback(self, *messages: Publish) -> None:
        """Acknowledge QoS 1 messages."""
        self.send(*[Ack(PUBACK, message.packet_id) for message in messages])

    def take(self) -> list[bytes]:
        """Payloads that came, acknowledged at whatever QoS they came with."""
        payloads = []
        while True:
            messages = self.messages()
            if not messages:
                return payloads
            for message in messages:
                payloads.append(message.payload)
                if message.qos == 1:
                    self.ack(PUBACK, message.packet_id)
                elif message.qos == 2:
                    self.ack(PUBREC, message.packet_id)
                    self.world.settle()
                    (release,) = self.received()
                    assert isinstance(release, Ack)
                    assert (release.packet_type, release.packet_id) == (PUBREL, message.packet_id)
                    self.ack(PUBCOMP, message.packet_id)


class SpooledWorld(MemoryRouter):
    """World with a spool. `settle` makes all commits that are due, as the edge does in its rounds.

    `largest` are the bytes of the largest of them.
    """

    def __init__(
        self,
        store: MemoryStore | None = None,
        later_ns: int = 0,
        vpn: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self._vpn = vpn or {}
        self.store = store or MemoryStore(bytes(16))
        self.commits = 0
        self.largest = 0
        self._later_ns = later_ns
        super().__init__(**more)

    def add_vpn(self, name: str, *args: Any, **more: Any) -> Any:
        vpn = super().add_vpn(name, *args, **{**self._vpn, **more})
        if self.router.context.spool is None:
            self.advance(self._later_ns / kit.SECOND_NS)
            self.start()
        return vpn

    def start(self) -> None:
        """Open the spool with what is in the store."""
        context = self.router.context
        definitions, following = read_definitions(self.store)
        spool = Spool(context, Ledger(self.store))
        context.spool = spool
        spool.start_numbers(following)
        self.spool = spool
        by_number: dict[int, Endpoint] = {}
        for vpn in self.router.vpns.values():
            for one in definitions:
                if one.kind in (QUEUE, TOPIC_ENDPOINT, CONNECTOR_LINK) and one.vpn == vpn.name:
                    endpoint = Endpoint(
                        spool, vpn, one.kind, one.name, one.number, EndpointSettings()
                    )
                    endpoint.bridges = one.bridges
                    vpn.endpoints[one.kind, one.name] = endpoint
                    by_number[one.number] = endpoint
            restored = restore_sessions(vpn, self.store)
            restored += restore_subscriptions(vpn, spool, definitions)
            for endpoint in restored:
                by_number[endpoint.number] = endpoint
        recover_retained(self.store, self.router.vpns)
        self.recovered = recover(spool, self.store, by_number)

    def restart(self, **vpn: Any) -> SpooledWorld:
        """The router after a crash: what was not committed is lost; `vpn` is what add_vpn is told."""
        return SpooledWorld(self.store, self.now_ns - kit.START_NS, vpn)

    def attract(self, name: str, *filters: str) -> Endpoint:
        """Let a queue that was there before a restart have its subscriptions, as the edge does."""
        endpoint = self.vpn().queue(name)
        assert endpoint is not None
        for text in filters:
            self.vpn().subscribe(Subscription(parse_filter(text, MQTT), endpoint))
        return endpoint

    def round(self) -> bool:
        """One round of the edge with its commit; False when there was nothing to commit."""
        batch = self.spool.end_round()
        if batch is None:
            return False
        self.store.commit(batch)
        self.commits += 1
        self.largest = max(self.largest, batch.size)
        self.spool.committed()
        return True

    def settle(self) -> None:
        """Rounds until nothing is left to do."""
        jobs = self.router.context.jobs
        for _ in range(1_000):
            jobs.finish()
            if not self.round() and not self.spool.busy and not len(jobs):
                return
        raise AssertionError("the spool does not come to rest")

    def queue(self, name: str, *filters: str, kind: int = QUEUE, **settings: Any) -> Endpoint:
        """A queue of VPN blue with these subscriptions."""
        given = EndpointSettings()
        for key, value in settings.items():
            setattr(given, key, value)
        vpn = self.vpn()
        number = self.spool.number()
        endpoint = Endpoint(self.spool, vpn, kind, name, number, given)
        definition = EndpointDefinition(number, vpn.name, kind, name, True)
        self.spool.ledger.put(keys.endpoint(number), definition.encode())
        vpn.endpoints[kind, name] = endpoint
        vpn.forget_all_routes()
        for text in filters:
            vpn.subscribe(Subscription(parse_filter(text, MQTT), endpoint))
        return endpoint

    def open(self, vpn: str = "blue", level: int = 5, peer: str = "192.0.2.1") -> SpooledClient:
        """A transport on which nothing was said yet."""
        return SpooledClient(self, kit.MqttConnection(self.router, peer, vpn), level)

    def join(self, client_id: str, level: int = 5, **connect: Any) -> SpooledClient:
        """A client that was let in; CONNACK is in `connack`, what came behind it in `rest`."""
        client = self.open("blue", level)
        client.send(Connect(client_id, protocol_level=level, **connect))
        first, *client.rest = client.got()
        assert isinstance(first, kit.Connack), first
        assert first.reason_code == 0, first
        client.connack = first
        return client

    def lasting(self, client_id: str, level: int = 5, **connect: Any) -> SpooledClient:
        """A client whose session lasts for ever."""
        return self.join(client_id, level, clean_start=False, properties=FOREVER, **connect)

    def session_row(self, client_id: str) -> dict[str, object] | None:
        """What the store says of a session."""
        value = self.store.get(keys.session("blue", client_id))
        return None if value is None else json.loads(value)

"""A mesh of real routers in one process, over loopback sockets, and what becomes of one message in it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import trio

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.server.run import Node, serve
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
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

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 20.0
"""Only a failing test waits that long."""

WAIT_S = 2.0
"""How long it is waited for what should come."""

LINGER_S = 0.08
"""How long it is listened for what should not come."""


class Client:
    """An MQTT 5 client over a real socket; `got` are topics of messages."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._have = b""
        self.got: list[str] = []
        self.answers: list[Any] = []

    async def send(self, packet: Any) -> None:
        """Send one packet."""
        await self._stream.send_all(encode(packet, 5))

    async def packet(self) -> Any:
        """The next packet; None when the router closed."""
        while True:
            length = frame_at(self._have, 0, len(self._have), 1 << 28)
            if length:
                packet = decode(self._have, 0, length, 5)
                self._have = self._have[length:]
                return packet
            try:
                data = await self._stream.receive_some()
            except trio.BrokenResourceError:
                return None
            if not data:
                return None
            self._have += data

    async def close(self) -> None:
        """End the connection."""
        await self._stream.aclose()

    async def listen(self) -> None:
        """Take messages in until cancelled."""
        while (packet := await self.packet()) is not None:
            if isinstance(packet, Publish):
                self.got.append(packet.topic.decode())
            else:
                self.answers.append(packet)


class Outcome:
    """Who got how many of the message, and what was discarded: (router, vpn, name) and (router, vpn, reason)."""

    def __init__(self) -> None:
        self.queues: Counter[tuple[str, str, str]] = Counter()
        self.clients: Counter[tuple[str, str, str, str]] = Counter()
        self.discards: Counter[tuple[str, str, str]] = Counter()
        self.refused: Counter[tuple[str, str, str, str]] = Counter()
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.answer = ""


class RealMesh:
    """Routers of `texts` (name → YAML with PORT-NAME where a link port belongs), served until `nursery` ends."""

    def __init__(self, folder: Path, texts: dict[str, str]) -> None:
        self._folder = folder
        self._texts = texts
        self.nodes: dict[str, Node] = {}

    def loaded(self, name: str, text: str) -> Loaded:
        """The configuration of one router, with the first lines that all have."""
        path = self._folder / f"{name}.yaml"
        head = f"router: {{name: {name}, data_dir: '{self._folder}/{name}'}}\n"
        path.write_text(head + text, encoding="utf-8")
        return load(str(path), overlay=False)

    async def start(self, nursery: trio.Nursery) -> list[Loaded]:
        """Serve all routers, then let them have their bridges; the configurations in force."""
        for name, text in self._texts.items():
            whole = self.loaded(name, self._filled(text, 1)).config
            bare = whole.model_copy(
                update={
                    "msg_vpns": {
                        key: vpn.model_copy(update={"bridges": {}})
                        for key, vpn in whole.msg_vpns.items()
                    }
                }
            )
            up = trio.Event()

            def ready(node: Node, name: str = name, up: trio.Event = up) -> None:
                self.nodes[name] = node
                up.set()

            nursery.start_soon(serve, bare, ready)
            with trio.fail_after(PATIENCE_S):
                await up.wait()
        mesh = []
        for name, text in self._texts.items():
            mesh.append(self.loaded(name, self._filled(text)))
            self.nodes[name].reload(mesh[-1].config)
        return mesh

    def _filled(self, text: str, port: int = 0) -> str:
        """With the ports on which the routers answer links, or another one where there are none yet."""
        for other in self._texts:
            text = text.replace(f"PORT-{other};", str(port or self._port(other, "link", 0)))
        return text

    def _port(self, name: str, protocol: str, number: int) -> int:
        found = [at for listed, at in self.nodes[name].addresses if listed == protocol]
        return int(found[number].rpartition(":")[2])

    async def client(
        self, router: str, number: int, name: str, username: str | None = None
    ) -> Client:
        """A client logged in at the MQTT listener `number` of a router."""
        client = Client(await trio.open_tcp_stream("127.0.0.1", self._port(router, "mqtt", number)))
        await client.send(Connect(name, username=username))
        answer = await client.packet()
        assert isinstance(answer, Connack)
        assert answer.reason_code == 0, answer
        return client

    async def settled(
        self, down: set[tuple[str, str, str]], unbound: set[tuple[str, str, str]]
    ) -> None:
        """Wait until all bridges but those of `down` are in sync and those not `unbound` have their flows."""
        with trio.fail_after(PATIENCE_S):
            while not all(  # noqa: ASYNC110 - a state tells nobody that it changed
                self._stands(node, runner, down, unbound)
                for node in self.nodes.values()
                for runner in node.bridges
            ):
                await trio.sleep(0.01)
        # Subscriptions that were granted a moment ago are answered.
        await trio.sleep(0.02)

    @staticmethod
    def _stands(node: Node, runner: Any, down: Any, unbound: Any) -> bool:
        place = (node.router.name, runner.vpn.name, runner.name)
        if place in down:
            return True
        half = runner.half
        if half is None or not half.in_sync or half is not runner.half:
            return False
        if not half.terms.queue or place in unbound:
            return True
        return runner.flow is not None and runner.flow.taker.flow_id != 0

    def counts(self) -> Outcome:
        """What the routers have counted up to now."""
        found = Outcome()
        for name, node in self.nodes.items():
            for vpn_name, vpn in node.router.vpns.items():
                for (kind, queue), endpoint in vpn.endpoints.items():
                    if kind != QUEUE:
                        continue
                    if endpoint.counters.spooled:
                        found.queues[name, vpn_name, queue] = endpoint.counters.spooled
                    for reason, count in endpoint.counters.refused.counts.items():
                        found.refused[name, vpn_name, queue, reason] = count
                for reason, count in vpn.totals().discards.items():
                    if reason in REASONS:
                        found.discards[name, vpn_name, reason] += count
                if vpn.rejected:
                    found.rejected[name, vpn_name] = vpn.rejected
        return found


async def publish_once(
    mesh: RealMesh,
    publisher: Client,
    subscribers: dict[tuple[str, str, str], Client],
    message: Publish,
    expected: Outcome,
) -> Outcome:
    """Publish one message and wait for what is expected, and a little for what is not; what came."""
    async with trio.open_nursery() as nursery:
        for client in (publisher, *subscribers.values()):
            nursery.start_soon(client.listen)
        await publisher.send(message)

        def now() -> Outcome:
            found = mesh.counts()
            for (router, vpn, name), client in subscribers.items():
                for topic in client.got:
                    found.clients[router, vpn, name, topic] += 1
            return found

        with trio.move_on_after(WAIT_S):
            while not (  # noqa: ASYNC110 - counters tell nobody
                now().queues >= expected.queues
                and now().clients >= expected.clients
                and now().discards >= expected.discards
            ):
                await trio.sleep(0.01)
        await trio.sleep(LINGER_S)
        found = now()
        acks = [one for one in publisher.answers if isinstance(one, Ack)]
        if acks:
            found.answer = f"{acks[0].reason_code:#04x}"
        nursery.cancel_scope.cancel()
    return found


async def subscribe(client: Client, filter_: str, qos: int) -> None:
    """Subscribe and wait for the answer, whatever it is."""
    await client.send(Subscribe(1, [SubscriptionRequest(filter_, qos)]))
    answer = await client.packet()
    assert isinstance(answer, Suback)


def message(topic: str, size: int, qos: int, pairs: list[tuple[str, str]]) -> Publish:
    """A message with user properties."""
    properties = Properties()
    properties.user_properties = pairs
    return Publish(
        topic.encode(), bytes(size), qos, packet_id=1 if qos else 0, properties=properties
    )

"""A whole router inside the test's own trio run, and MQTT clients over real streams."""

import gc
import importlib.util
import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

from vpnrouter.build_info import build_kind
from vpnrouter.config.load import load
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.connection import Connection
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.guaranteed.flow import Flow
from vpnrouter.core.guaranteed.unit_of_work import SYNCED, CompletionCallback
from vpnrouter.core.message import Message
from vpnrouter.core.router import Router
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.net import streams
from vpnrouter.server.net.listeners import LayeredAcceptor, ListenerLayers, bind
from vpnrouter.server.net.reactor import Reactor
from vpnrouter.server.net.streams import serve_streams
from vpnrouter.server.net.tls import ServerTls
from vpnrouter.server.run import Node, serve
from vpnrouter.server.spool.spool_service import open_spool
from vpnrouter.testing import memory
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)

# Compiled functions cannot be traced, and what cannot run there is not collected there.
collect_ignore = [] if build_kind() == "pure" else ["test_planted_faults.py"]

PATIENCE_S = 20.0
"""How long a test waits for what it expects; only a failing one waits that long."""


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """The router in memory."""
    return memory


@pytest.fixture
def world() -> memory.MemoryRouter:
    """A router with one message VPN, blue."""
    return memory.MemoryRouter()


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Files are the owner's alone, as `vpnrouter run` has it."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., RouterConfig]:
    """A loaded configuration from text, below a first line that names the router."""

    def run(text: str, name: str = "here") -> RouterConfig:
        path = tmp_path / f"{name}.yaml"
        head = f"router: {{name: {name}, data_dir: {tmp_path}/data-{name}}}"
        path.write_text(f"{head}\n{text}", encoding="utf-8")
        return load(str(path)).config

    return run


@pytest.fixture
def interpreter() -> Iterator[None]:
    """Puts back what a running router changes in its interpreter."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


Running = Callable[..., Any]


@pytest.fixture
def running(configured: Callable[..., RouterConfig], interpreter: None) -> Running:
    """Serves a router of a configuration, given as text, until an `async with` block ends."""

    @asynccontextmanager
    async def run(text: str, name: str = "here") -> AsyncIterator[Node]:
        config = configured(text, name)
        nodes: list[Node] = []
        up = trio.Event()

        def ready(node: Node) -> None:
            nodes.append(node)
            up.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, config, ready)
            with trio.fail_after(PATIENCE_S):
                await up.wait()
            yield nodes[0]
            nursery.cancel_scope.cancel()

    return run


@pytest.fixture
def until() -> Callable[..., Any]:
    """Let routers run until a condition, `until(true)`, holds; the test fails when it never does."""

    async def run(true: Callable[[], bool]) -> None:
        with trio.fail_after(PATIENCE_S):
            while not true():  # noqa: ASYNC110 - a state tells nobody that it changed
                await trio.sleep(0.005)

    return run


class Stored(CompletionCallback):
    """The core of a router of `config` with its spool on disk, and no sockets; `told` are outcomes."""

    def __init__(self, config: RouterConfig) -> None:
        self.router = build_router(config, 7, bytes(16))
        spooling = open_spool(self.router, config)
        assert spooling is not None
        self.spooling = spooling
        self.told: list[int] = []
        self.closed = False

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self.told.append(outcome)

    def publish(self, topic: str, payload: bytes = b"x", vpn: str = "blue") -> int:
        """Publish a guaranteed message and commit; what its publisher is told."""
        message = Message(topic.encode(), payload, b"")
        message.persistent = True
        message.qos = 1
        self.spooling.spool.publish(self.router.vpns[vpn], message, self, 0)
        return self.commit()

    def commit(self) -> int:
        """Commit until all that was asked for is synced; what was told first."""
        self.told.clear()
        committer = self.spooling.committer
        self.spooling.spool.when_purged(self, 0)
        committer.step()
        while SYNCED not in self.told:
            assert select.select([committer.fd], [], [], PATIENCE_S)[0]
            committer.finished()
            committer.step()
        return self.told[0]

    def payloads(self, name: str, vpn: str = "blue", kind: int = QUEUE) -> list[bytes]:
        """What an endpoint holds, oldest first."""
        endpoint = self.router.vpns[vpn].endpoints[kind, name]
        return [row.message.payload for row in endpoint.browse(0, 1_000)]

    def close(self) -> None:
        """Stop."""
        if not self.closed:
            self.closed = True
            self.spooling.close()


@pytest.fixture
def stored(configured: Callable[..., RouterConfig]) -> Iterator[Callable[..., Stored]]:
    """`stored(text)` opens the spool of a router; the one that was open before is closed first."""
    opened: list[Stored] = []

    def run(text: str, name: str = "here") -> Stored:
        for one in opened:
            one.close()
        opened.append(Stored(configured(text, name)))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


class Hand(Flow):
    """A consumer that keeps what it gets."""

    def room(self) -> int:
        return self.window - len(self.unacked)

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Keep it."""

    def unbound(self, reason: str) -> None:
        """Nothing is to be done."""


@pytest.fixture
def hand() -> type[Hand]:
    """A consumer of an endpoint: `hand(endpoint, NAME, WINDOW)`."""
    return Hand


class Client:
    """An MQTT client over any stream with `send_all` and `receive_some`."""

    def __init__(self, stream: Any, level: int = 5) -> None:
        self.stream = stream
        self.level = level
        self._have = b""
        self._ended = False

    async def send(self, packet: Packet) -> None:
        """Send one packet."""
        await self.stream.send_all(encode(packet, self.level))

    async def packet(self) -> Packet | None:
        """The next packet, None when the router closed."""
        with trio.fail_after(PATIENCE_S):
            while True:
                length = frame_at(self._have, 0, len(self._have), 1 << 28)
                if length:
                    packet = decode(self._have, 0, length, self.level)
                    self._have = self._have[length:]
                    return packet
                try:
                    data = await self.stream.receive_some()
                except trio.BrokenResourceError:
                    data = b""
                if not data:
                    return None
                self._have += data

    async def connect(self, client_id: str = "c", **fields: Any) -> Connack:
        """Log in and return the answer."""
        await self.send(Connect(client_id, protocol_level=self.level, **fields))
        answer = await self.packet()
        assert isinstance(answer, Connack)
        return answer

    async def subscribe(self, *filters: str) -> None:
        """Subscribe and wait for the answer."""
        await self.send(Subscribe(1, [SubscriptionRequest(text) for text in filters]))
        answer = await self.packet()
        assert isinstance(answer, Suback)
        assert max(answer.reason_codes) < 0x80

    async def publish(self, topic: str, payload: bytes = b"") -> None:
        """Publish one Direct message."""
        await self.send(Publish(topic.encode(), payload))

    async def payload(self) -> bytes:
        """The payload of the next message."""
        packet = await self.packet()
        assert isinstance(packet, Publish), packet
        return packet.payload


def port_of(node: Node, protocol: str, index: int = 0) -> int:
    """The port of one of the node's listeners of a protocol, by default the first."""
    ports = [int(address.rpartition(":")[2]) for at, address in node.addresses if at == protocol]
    return ports[index]


@pytest.fixture
def client_type() -> type[Client]:
    """The client, for a stream that the test opened."""
    return Client


@pytest.fixture
async def client_of() -> AsyncIterator[Callable[..., Any]]:
    """Opens clients on the plain listener of a node, not logged in."""
    streams: list[trio.SocketStream] = []

    async def open_client(node: Node, level: int = 5, listener: int = 0) -> Client:
        stream = await trio.open_tcp_stream("127.0.0.1", port_of(node, "mqtt", listener))
        streams.append(stream)
        return Client(stream, level)

    yield open_client
    for stream in streams:
        await stream.aclose()


@pytest.fixture
def port() -> Callable[[Node, str], int]:
    """The port of a node's listener of a protocol."""
    return port_of


class Heard(Connection):
    """A connection that answers with what it hears; `reason` is why it was lost."""

    def __init__(self, context: Any, peer: str) -> None:
        super().__init__(context, peer, 1 << 20)
        self.heard = b""
        self.reason = ""

    def consume(self, data: bytes, pos: int) -> int:
        """Send the bytes back."""
        self.heard += data[pos:]
        self.outbox.control(data[pos:])
        return len(data)

    def lost(self, reason: str) -> None:
        """Keep the reason."""
        self.reason = reason


class Door(LayeredAcceptor):
    """A listener of its own, with all connections that it made."""

    def __init__(self, tls: ServerTls | None) -> None:
        self.router = Router("here", 7, Recorder())
        self.made: list[Heard] = []
        self.sock = bind("127.0.0.1", 0)
        self.port = self.sock.getsockname()[1]
        super().__init__(ListenerLayers(f"test listener 127.0.0.1:{self.port}", tls))

    def accepted(self, peer: str) -> Heard:
        self.made.append(Heard(self.router.context, peer))
        return self.made[-1]

    @property
    def heard(self) -> list[Heard]:
        """The connections that got something from their peers."""
        return [one for one in self.made if one.heard]

    async def poll(self, most: int) -> None:
        """Serve in a nested epoll. There are no ticks: whoever is given time has it."""
        reactor = Reactor(self.router)
        reactor.listen(self.sock, self, most)
        try:
            while True:
                await trio.lowlevel.wait_readable(reactor.fileno())
                reactor.round()
        finally:
            reactor.close_all()


@pytest.fixture(params=["epoll", "tasks"])
def door(request: Any, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Accepts connections on a port of 127.0.0.1, over TLS if given, while an `async with` block lasts."""
    monkeypatch.setattr(streams, "LINGER_S", 30.0)

    @asynccontextmanager
    async def run(tls: ServerTls | None, most: int = 100) -> AsyncIterator[Door]:
        made = Door(tls)
        async with trio.open_nursery() as nursery:
            if request.param == "epoll":
                nursery.start_soon(made.poll, most)
            else:
                nursery.start_soon(serve_streams, made.router, made.sock, made, most, nursery)
            yield made
            nursery.cancel_scope.cancel()

    return run


@pytest.fixture
def edited(tmp_path: Path, interpreter: None) -> Callable[..., Any]:
    """Runs a router that was started from a file; see edited_router.py."""
    place = Path(__file__).parent / "edited_router.py"
    spec = importlib.util.spec_from_file_location("edited_router", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run: Callable[..., Any] = partial(module.edited_router, tmp_path)
    return run


@pytest.fixture(scope="session")
def bridge_sea() -> Any:
    """The module bridge_sea.py."""
    place = Path(__file__).parent / "bridge_sea.py"
    spec = importlib.util.spec_from_file_location("bridge_sea", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bridge_sea"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def voyage(bridge_sea: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs `async tell(sea)` by a seed, under a clock that jumps; `most_s` is the longest way."""

    def run(tell: Callable[[Any], Any], seed: int = 1, most_s: float = 0.05) -> None:
        bridge_sea.sail(monkeypatch, tell, seed, most_s)

    return run

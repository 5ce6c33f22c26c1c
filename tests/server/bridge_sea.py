"""Routers as islands under a clock that jumps, and bridges that reach them over slow, random cables.

Loaded by conftest.py; the fixture `voyage` runs a test in it.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.bridges.link import LinkFactory
from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.settings_models import TlsServerCert
from vpnrouter.core.access import AclProfile
from vpnrouter.core.connection import Connection
from vpnrouter.core.credentials import ClientUsername, Credentials, PeerCertificate
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import OperationError
from vpnrouter.server.bridges.runner import BridgeRunner
from vpnrouter.server.net import streams
from vpnrouter.server.net.dial import Dialler
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.server.net.streams import serve_stream
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Connect, Publish, Subscribe, SubscriptionRequest

LOGIN = {"basic": {"client_username": "bridge", "password": "word"}}


class Line:
    """Bytes on the way in one direction. Each piece takes up to `most_s`; none overtakes another."""

    def __init__(self, draw: random.Random, most_s: float) -> None:
        self._draw = draw
        self._most_s = most_s
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._last_s = 0.0
        self._changed = trio.Event()
        self.broken = False

    def put(self, data: bytes) -> None:
        """Send; b"" is the end."""
        self._last_s = max(self._last_s, trio.current_time() + self._draw.random() * self._most_s)
        self._pieces.append((self._last_s, data))
        self._changed.set()

    def cut(self) -> None:
        """What is on the way is lost, and both ends notice."""
        self.broken = True
        self._pieces.clear()
        self._changed.set()

    async def get(self) -> bytes:
        """The next bytes, cut somewhere."""
        while True:
            if self.broken:
                raise trio.BrokenResourceError
            until_s = self._pieces[0][0] if self._pieces else float("inf")
            if until_s <= trio.current_time():
                at_s, data = self._pieces.popleft()
                cut = self._draw.randrange(1, 2 * len(data) + 1) if data else 1
                if cut < len(data) or not data:
                    self._pieces.appendleft((at_s, data[cut:]))
                return data[:cut]
            self._changed = trio.Event()
            with trio.move_on_at(until_s):
                await self._changed.wait()


class Strand:
    """One end of a connection through the test's own sea (`ByteStream`)."""

    def __init__(self, way_in: Line, way_out: Line) -> None:
        self.way_in = way_in
        self.way_out = way_out
        self.closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self.way_in.get()

    async def send_all(self, data: bytes) -> None:
        if self.way_out.broken:
            raise trio.BrokenResourceError
        self.way_out.put(data)
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        if not self.closed:
            self.closed = True
            self.way_out.put(b"")
        await trio.lowlevel.checkpoint()


class Cable:
    """One connection from `dialer` to `acceptor`, names of routers; `link` is the acceptor's end."""

    def __init__(self, dialer: str, acceptor: str, draw: random.Random, most_s: float) -> None:
        self.dialer = dialer
        self.acceptor = acceptor
        self.link: Any = None
        self._lines = (Line(draw, most_s), Line(draw, most_s))
        self.near = Strand(*self._lines)
        self.far = Strand(*reversed(self._lines))

    @property
    def stands(self) -> bool:
        """Whether neither end has closed it."""
        broken = any(line.broken for line in self._lines)
        return not (broken or self.near.closed or self.far.closed)

    def cut(self) -> None:
        """Both ends lose it now, with what is on the way."""
        for line in self._lines:
            line.cut()


class Island:
    """A router with one message VPN that everybody may enter, and a bridge into it if one is written."""

    def __init__(self, sea: "Sea", name: str, vpn: str, **vpn_fields: Any) -> None:
        self.sea = sea
        self.name = name
        self.router = Router(name, len(sea.islands) + 1, Recorder())
        # Everybody may enter; whoever gives this name has to know its password.
        known = (ClientUsername("bridge", "word"),)
        fields: dict[str, Any] = {"basic": False, "usernames": known} | vpn_fields
        self.vpn = MessageVpn(
            vpn,
            self.router.context,
            Credentials(fields["basic"], fields["usernames"], b"secret"),
            {"default": ClientProfile("default", allow_bridge_connections_enabled=True)},
            {"default": AclProfile("default")},
        )
        self.router.add(self.vpn)
        self.book = LinkRegistry(self.router)
        self.dialler = Ferry(self)
        self.runner: Any = None
        self.got: list[tuple[str, int]] = []
        self._client = MqttConnection(self.router, "192.0.2.1", vpn)
        self._client.feed(encode(Connect("c"), 5))
        self._client.feed(encode(Subscribe(1, [SubscriptionRequest("#")]), 5))

    def set_clocks(self) -> None:
        """The context's times are those of trio."""
        context = self.router.context
        context.now_ns = context.wall_ns = int(trio.current_time() * 1_000_000_000)

    def bridge(
        self, written: dict[str, Any], *, name: str = "b", run: bool = True, **chosen: Any
    ) -> Any:
        """The task of a bridge of this configuration, kept in `runner`; runs it."""
        self.runner = BridgeRunner(
            self.book,
            self.dialler,
            self.vpn.name,
            name,
            Bridge.model_validate(
                {"remote_subscriptions": [">"], "remote_authentication": LOGIN} | written
            ),
            TlsServerCert(),
            self.sea.draw.random,
            clock=lambda: int(trio.current_time() * 1_000_000_000),
            **chosen,
        )
        if run:
            self.sea.nursery.start_soon(self.runner.run)
        return self.runner

    def change(self, *, reconnect: bool = False, **fields: Any) -> None:
        """Go on under a changed configuration."""
        written = self.runner.configured.bridge.model_copy(update=fields)
        self.runner.change(written, TlsServerCert(), reconnect=reconnect)

    def publish(self, number: int) -> None:
        """Publish a numbered message."""
        self.set_clocks()
        self._client.feed(encode(Publish(self.name.encode(), b"%d" % number), 5))
        flush_ready(self.router.context)

    def hear(self) -> None:
        """Take in what was delivered to the subscriber of everything: `got`."""
        outbox = self._client.outbox
        data = outbox.take(1 << 30)
        outbox.dirty = False
        pos = 0
        while length := frame_at(data, pos, len(data), 1 << 28):
            packet = decode(data, pos, length, 5)
            pos += length
            if isinstance(packet, Publish):
                self.got.append((packet.topic.decode(), int(packet.payload)))

    def numbers(self, publisher: str) -> list[int]:
        """The messages of a publisher in the order of their arrival."""
        self.hear()
        return [number for name, number in self.got if name == publisher]

    async def keep_time(self) -> None:
        """Fire the router's timers and answer logins, as the edge does."""
        while True:
            self.set_clocks()
            self.router.tick(self.router.context.now_ns, self.router.context.wall_ns)
            for login in self.router.verifications.take_all():
                login.settle(login.given == login.stored.encode())
            jobs = self.router.derivations[:]
            self.router.derivations.clear()
            for job in jobs:
                job.finish(job.work())
            flush_ready(self.router.context)
            self.hear()
            await trio.sleep(0.05)


class Ferry(Dialler):
    """How an island's bridges reach others: over cables, with random delays."""

    def __init__(self, island: Island) -> None:
        self._island = island

    def set_clocks(self) -> None:
        self._island.set_clocks()

    async def open(self, host: str, port: int, tls: Any, resolved: Any, asked: Any = ()) -> Any:
        sea = self._island.sea
        if tls is not None and tls.name:
            sea.names.append(tls.name)
        sea.dialed.append((trio.current_time(), self._island.name, host, port))
        await trio.sleep(sea.draw.random() * sea.most_s)
        resolved()
        await trio.sleep(sea.draw.random() * sea.most_s)
        return sea.reach(self._island, host, port)

    def ends(self, transport: Any, dialled: str) -> tuple[str, str]:
        return dialled, ""

    def serve(self, transport: Any, connection: Connection) -> None:
        nursery = self._island.sea.nursery
        nursery.start_soon(serve_stream, self._island.router.context, transport, connection)


class Sea:
    """Islands by host name, and the cables between them, under a clock that jumps.

    `names` are those that certificates had to be made out to, other than the host's. A host in `down` refuses
    connections, one in `silent` takes them and never says anything.
    """

    def __init__(self, nursery: trio.Nursery, draw: random.Random, most_s: float) -> None:
        self.nursery = nursery
        self.draw = draw
        self.most_s = most_s
        self.islands: dict[str, Island] = {}
        self.cables: list[Cable] = []
        self.dialed: list[tuple[float, str, str, int]] = []
        self.names: list[str] = []
        self.down: set[str] = set()
        self.silent: set[str] = set()

    def island(self, name: str, vpn: str, **vpn_fields: Any) -> Island:
        """A router at host `name`; links with TLS at 55443, without at 55555."""
        island = Island(self, name, vpn, **vpn_fields)
        self.islands[name] = island
        island.book.link_port, island.book.links_port = 55_555, 55_443
        self.nursery.start_soon(island.keep_time)
        return island

    def reach(self, island: Island, host: str, port: int) -> Strand:
        """A connection to a host; raises OperationError as Dialler.open does."""
        if host in self.down:
            raise OperationError(f"cannot connect to {host}:{port}: Connection refused")
        cable = Cable(island.name, host, self.draw, self.most_s)
        self.cables.append(cable)
        if host not in self.silent:
            there = self.islands[host]
            there.set_clocks()
            cable.link = LinkFactory(there.book, tls=port == 55_443).connection(
                f"{island.name}:4000"
            )
            if port == 55_443:
                always = (0, 1 << 62)
                cable.link.certificate = PeerCertificate(island.name, (), "", *always, 0, "")
            self.nursery.start_soon(serve_stream, there.router.context, cable.far, cable.link)
        return cable.near

    def standing(self) -> list[Cable]:
        """The connections that stand."""
        return [cable for cable in self.cables if cable.stands]

    async def until(self, true: Callable[[], bool], within_s: float = 120.0) -> None:
        """Let time pass until something is true."""
        end_s = trio.current_time() + within_s
        while not true():
            assert trio.current_time() < end_s, "it did not come true"
            await trio.sleep(0.02)


def sail(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[[Sea], Any], seed: int, most_s: float
) -> None:
    """Run `async tell(sea)` under a clock that jumps; all that is random follows from the seed."""

    class TrioTime:
        monotonic_ns = staticmethod(lambda: int(trio.current_time() * 1_000_000_000))
        time_ns = monotonic_ns

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await tell(Sea(nursery, random.Random(seed), most_s))
            nursery.cancel_scope.cancel()

    monkeypatch.setattr(streams, "time", TrioTime)
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    trio._core._run._r.seed(seed)
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

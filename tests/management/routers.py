"""Routers in memory: joined by their bridges, with clients, queues and events, and served by their API.

They are made of configurations as `run` makes them, without sockets and under a clock that is turned here. A state
is reached by what leads to it: a client connects, a message comes, a remote is not there.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import trio

from vpnrouter.config.load import load
from vpnrouter.config.locations import Locations
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.settings_models import Management
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.events.log import EventLog
from vpnrouter.explain.bridge import MemoryBridge
from vpnrouter.explain.mesh import START_NS, MemoryMesh
from vpnrouter.explain.router import MemoryRouter
from vpnrouter.management.access import Access
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.application import build_app
from vpnrouter.management.config.editor import ConfigEditor, PreparedChange
from vpnrouter.management.live_traces import fitting
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.server.net.http import serve_http
from vpnrouter.server.objects.running import RunningObjects
from vpnrouter.settings.kinds import CONNECTOR
from vpnrouter.testing.memory import Client
from vpnrouter.trace.writer import Writer
from vpnrouter.wire.mqtt.packets import Connack, Connect, Suback, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

BEGAN_NS = 1_795_316_400_000_000_000
"""When the routers began: 2026-11-22 03:00:00, UTC."""

LASTING = Properties(session_expiry_interval=9_999)

WITHIN = partial(trio.fail_after, 20)
"""How long a test waits for what it expects; only a failing one waits that long."""

_MADE: dict[str, Any] = {}

Users = dict[str, dict[str, Any]]


class LiveClient(Client):
    """A client of a router of a mesh."""

    def bind(self, filter_text: str) -> None:
        """Consume from a queue or topic endpoint, and acknowledge nothing."""
        first, *_ = self.request([SubscriptionRequest(filter_text, 1)])
        assert isinstance(first, Suback)
        assert first.reason_codes == [1], first


class Given(RunningObjects):
    """Running objects that a test has made; they have a `look`."""

    def __init__(self, *objects: Any) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing)
        self._objects = list(objects)

    @property
    def running(self) -> list[Any]:
        return self._objects

    def look(self, one: Any) -> Any:
        return one.look()

    def begin(self, config: Any) -> None:
        pass

    def change(self, before: Any, after: Any, found: Any) -> None:
        pass


class LiveRouter:
    """One of the routers: `context` is what its API sees, `clients` are those that `connect` made, by name."""

    def __init__(self, mesh: MemoryMesh, node: MemoryRouter) -> None:
        self.mesh = mesh
        self.node = node
        self.config = node.loaded.config
        self.router = node.router
        self.bridges = [bridge for bridge in mesh.bridges if bridge.node is node]
        self.clients: dict[str, LiveClient] = {}
        self.log = EventLog(node.name, self.wall_ns)
        self.router.context.events = self.log
        self.context = ApiContext(
            book=node.book,
            edge=ServerHooks(bridges=self.bridges, flush=mesh.settle),
            store=node.store,
            clock_ns=lambda: mesh.now_ns,
        )

    def have_connectors(self, *connectors: Any) -> Given:
        """Let its API show these connectors."""
        given = Given(*connectors)
        self.context.edge.objects = {**self.context.edge.objects, CONNECTOR: given}
        return given

    def wall_ns(self) -> int:
        """UTC since 1970, nanoseconds."""
        return BEGAN_NS + self.mesh.now_ns - START_NS

    def connect(
        self, msg_vpn: str, name: str, *filters: str, user: str = "ann", peer: str = "192.0.2.1"
    ) -> LiveClient:
        """A client connects, with password `pw` and a session that outlives the connection, and subscribes."""
        world: Any = self.node
        client = LiveClient(world, MqttConnection(self.router, peer, msg_vpn), 5)
        client.send(
            Connect(name, protocol_level=5, properties=LASTING, username=user, password=b"pw")
        )
        self.mesh.settle()
        (answer,) = client.received()
        assert isinstance(answer, Connack)
        assert answer.reason_code == 0, answer
        for text in filters:
            client.subscribe(text)
        self.clients[name] = client
        return client

    def publish(self, name: str, topic: str, *payloads: bytes) -> None:
        """A client publishes guaranteed messages."""
        client = self.clients[name]
        for number, payload in enumerate(payloads, 1):
            client.publish(topic, payload, qos=1, packet_id=number % 60_000 + 1)
            if not number % 200:
                self.mesh.settle()
        self.mesh.settle()
        client.drain()

    def ids(self, msg_vpn: str, queue: str) -> list[int]:
        """The messages of a queue."""
        return [row.msg_id for row in self.context.queues.msgs(msg_vpn, queue, 0, 9_999)]

    def payloads(self, msg_vpn: str, queue: str) -> list[bytes | None]:
        """What they hold."""
        queues = self.context.queues
        return [queues.payload(msg_vpn, queue, number) for number in self.ids(msg_vpn, queue)]

    def up(self, msg_vpn: str, bridge: str) -> bool:
        """Whether a bridge of this router is up."""
        return self.bridge(msg_vpn, bridge).up

    def bridge(self, msg_vpn: str, bridge: str) -> MemoryBridge:
        """A bridge of this router."""
        (found,) = [one for one in self.bridges if (one.vpn_name, one.name) == (msg_vpn, bridge)]
        return found

    def remove_bridge(self, msg_vpn: str, bridge: str) -> MemoryBridge:
        """A bridge of this router is no longer configured; returns it."""
        found = self.bridge(msg_vpn, bridge)
        self.bridges.remove(found)
        return found

    def remove_queue(self, msg_vpn: str, queue: str) -> None:
        """A queue is no longer there."""
        del self.router.vpns[msg_vpn].endpoints[QUEUE, queue]

    @contextmanager
    def traced(self, folder: Path) -> Iterator[Callable[[], None]]:
        """Trace into files in `folder`; yields what hands over to the writer what was recorded."""
        live, recorder = self.context.traces, self.router.context.recorder

        def offer(table: pa.Table) -> None:
            wishes = live.wishes()
            live.add(wishes, [fitting(table, wish, most) for wish, most in wishes])

        writer = Writer(folder / "traces", self.node.name, recorder, observer=offer)
        live.writer = writer

        def hand_over() -> None:
            recorder.cut()
            writer.run_once(self.mesh.now_ns)

        hand_over()
        yield hand_over
        writer.stop(self.mesh.now_ns)

    def edited(self) -> ConfigEditor:
        """Let the configuration be changed by the API, in its file's overlay; the core stays as it is."""

        def prepare(config: RouterConfig, _: Locations) -> PreparedChange:
            def commit() -> list[str]:
                self.config = config
                return []

            return PreparedChange(commit, lambda: None)

        loaded = self.node.loaded
        editor = ConfigEditor(loaded.positions.file, loaded, prepare, lambda: self.config, self.log)
        self.context.editor = editor
        return editor

    def application(self, users: Users | None = None) -> Any:
        """The API. Applications are made once for each name of a router: that takes longer than most tests."""
        access = Access.of(Management.model_validate({"users": users or {}}))
        if self.node.name not in _MADE:
            _MADE[self.node.name] = build_app(self.context, access)
        app = _MADE[self.node.name]
        app.state.context = self.context
        (gate,) = app.user_middleware
        gate.kwargs["access"] = access
        app.middleware_stack = None
        return app

    def api(
        self, users: Users | None = None, peer: str = "127.0.0.1", **more: Any
    ) -> httpx.AsyncClient:
        """A client of the API at the address `peer`."""
        transport = httpx.ASGITransport(
            self.application(users), client=(peer, 50_000), raise_app_exceptions=False
        )
        settings: Any = {"base_url": "http://localhost:8080", "trust_env": False} | more
        return httpx.AsyncClient(transport=transport, **settings)


def routers(folder: Path, **configurations: str) -> list[LiveRouter]:
    """The routers of these configurations, by their names; a minute old."""
    loaded = []
    for name, text in configurations.items():
        file = folder / f"{name}.yaml"
        file.write_text(f"router: {{name: {name}, data_dir: '{folder}/{name}'}}\n{text}")
        loaded.append(load(file, overlay=False))
    mesh = MemoryMesh(loaded, BEGAN_NS)
    made = [LiveRouter(mesh, node) for node in mesh.nodes.values()]
    mesh.wait(60_000)
    return made


FAR = """
listeners: [{protocol: link, bind: "127.0.0.1:55556"}]
msg_vpns:
  red:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

HERE = """
listeners: [{protocol: link, bind: "127.0.0.1:55555"}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_usernames: {ann: {}, d/e: {}}
    client_profiles: {z: {}}
    acl_profiles: {a/b: {}, z: {}}
    queues:
      orders: {subscriptions: [orders], permission: consume}
      dead: {}
      small: {max_spooled_msg_count: 3, subscriptions: [small]}
    topic_endpoints: {s: {}, t: {permission: consume}}
    replay_logs: {log: {}}
    bridges:
      to-b: &far
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: red, router: far, location: "127.0.0.1:55556"}]
      to-a:
        <<: *far
        remote_subscriptions: [a/>, {topic: b/*, deliver_always_enabled: true}]
  a/b:
    authentication: {basic: {enabled: false}}
    queues: {"x,y": {subscriptions: [seven]}}
    bridges:
      "x,y[z]":
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: gone, router: gone, location: "198.51.100.7:55555"}]
  empty:
    authentication: {basic: {enabled: false}}
"""


def here_and_far(folder: Path) -> LiveRouter:
    """A router of three message VPNs with three bridges, one of them down; queues, and four clients."""
    here, _ = routers(folder, here=HERE, far=FAR)
    here.connect("blue", "c2", "b/#", "a")
    here.connect("blue", "c1", "a", "c/+/d", user="d/e")
    here.connect("blue", "c/3,x")
    here.connect("a/b", "other", "a")
    here.publish("c1", "orders", *[b"%d" % number for number in range(1, 26)])
    here.publish("other", "seven", b"seven")
    return here


@contextmanager
def serving(app: Any, tls: Any = None) -> Iterator[str]:
    """Serve an application in a thread of its own; yields its URL."""
    began = threading.Event()
    stop: list[Callable[[], None]] = []
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    host, port = sock.getsockname()

    async def run() -> None:
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            stop.append(lambda: token.run_sync_soon(scope.cancel))
            began.set()
            barrier = app.state.context.router.context.barrier
            await serve_http(sock, tls, 100, app, barrier)

    thread = threading.Thread(target=trio.run, args=(run,))
    thread.start()
    assert began.wait(20)
    try:
        yield f"http://{host}:{port}"
    finally:
        stop[0]()
        thread.join(20)
        assert not thread.is_alive()

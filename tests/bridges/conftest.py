"""Routers without sockets, joined by wires that the tests pump by hand, under a clock they set."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.half_events import HalfCallbacks, HalfEvent
from vpnrouter.bridges.link import Link as LinkEnd
from vpnrouter.bridges.link import LinkFactory, dial
from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.bridges.own_half import OwnHalf
from vpnrouter.bridges.remote_settings import RemoteSettings
from vpnrouter.core.access import AclProfile
from vpnrouter.core.connection import Connection
from vpnrouter.core.credentials import ClientUsername, Credentials
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.tracing import TraceSettings
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.testing import memory
from vpnrouter.testing.memory import Row, rows_of
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.link.frames import SCRAM
from vpnrouter.wire.mqtt.packets import Connect, Publish, Subscribe, SubscriptionRequest

SECOND_NS = 1_000_000_000

BRIDGING = ClientProfile("bridging", allow_bridge_connections_enabled=True)


class Events(HalfCallbacks):
    """Whoever runs the bridge: keeps what its link tells."""

    def __init__(self) -> None:
        self.told: list[tuple[HalfEvent, str]] = []
        self.shy = False

    def on_half_event(self, half: OwnHalf, event: HalfEvent, reason: str) -> None:
        self.told.append((event, reason))
        if event == HalfEvent.WELCOMED and not self.shy:
            half.want(half.terms.filters, half.terms.selectors)

    @property
    def names(self) -> list[str]:
        """The events without their reasons."""
        return [event.value for event, _ in self.told]


def derive(router: Router) -> bool:
    """Compute what logins wait for, as the edge does; False when there was nothing."""
    jobs = router.derivations[:]
    router.derivations.clear()
    for job in jobs:
        job.finish(job.work())
    return bool(jobs)


class Wire:
    """Both ends of one connection. `cut` makes the bytes of both directions vanish."""

    def __init__(self, dialed: Connection, accepted: Connection) -> None:
        self.ends = (dialed, accepted)
        self.carried: tuple[list[bytes], list[bytes]] = ([], [])
        self.cut = False
        self.piece = 0
        self._over = [False, False]

    def pump(self) -> bool:
        """Carry what both ends have to say; False when neither had anything."""
        if self.cut:
            return False
        moved = False
        for index, sender in enumerate(self.ends):
            receiver = self.ends[1 - index]
            data = sender.outbox.take(1 << 30)
            sender.outbox.dirty = False
            if data:
                moved = True
                self.carried[index].append(data)
                for piece in self._pieces(data):
                    if not receiver.closing:
                        receiver.feed(piece)
            if sender.closing and not sender.outbox.size and not self._over[index]:
                self._over[index] = True
                moved = True
                sender.lost("closed")
                if not self._over[1 - index]:
                    self._over[1 - index] = True
                    receiver.lost("closed by peer")
        return moved

    def _pieces(self, data: bytes) -> list[bytes]:
        size = self.piece or len(data)
        return [data[at : at + size] for at in range(0, len(data), size)]


class Link:
    """Both ends of a link, the half that began it, and the wire between them."""

    def __init__(self, half: OwnHalf, accepted: LinkEnd, events: Events) -> None:
        dialed = half.link
        self.half = half
        self.dialed = dialed
        self.accepted = accepted
        self.events = events
        self.wire = Wire(dialed, accepted)

    @property
    def up(self) -> bool:
        """Whether both ends are logged in."""
        return self.dialed.client is not None and self.accepted.client is not None


class Client(memory.Client):
    """An MQTT client of one VPN; the world settles after what it sends."""

    world: Any

    def raw(self, data: bytes) -> None:
        """Feed bytes to the router and let the world settle."""
        super().raw(data)
        self.world.settle()

    def drain(self) -> bytes:
        """What the router would have sent by now."""
        outbox = self.connection.outbox
        outbox.dirty = False
        return outbox.take(1 << 30)

    def subscribe(self, *filters: str, no_local: bool = False, as_published: bool = False) -> None:
        """Subscribe to filters in MQTT's dialect."""
        requests = [
            SubscriptionRequest(text, 0, no_local=no_local, retain_as_published=as_published)
            for text in filters
        ]
        self.send(Subscribe(1, requests))

    def take(self) -> list[Publish]:
        """The messages that arrived since the last call."""
        return [packet for packet in self.received() if isinstance(packet, Publish)]

    def payloads(self) -> list[bytes]:
        """The payloads that arrived since the last call."""
        return [packet.payload for packet in self.take()]


def terms_of(bridge: str, out_of: str, filters: Sequence[str], **terms: Any) -> RemoteSettings:
    """The settings of a bridge for a remote. A password is proved unless a scheme says otherwise."""
    if terms.get("password"):
        terms.setdefault("scheme", SCRAM)
    asked = [(0, text) for text in filters]
    return RemoteSettings(bridge, out_of, filters=asked, **{"retry_delay_ns": 0} | terms)


class World:
    """Routers, their links and clients, and the time."""

    def __init__(self) -> None:
        self.now_ns = SECOND_NS
        self.routers: dict[str, Router] = {}
        self.books: dict[str, LinkRegistry] = {}
        self.links: list[Link] = []
        self.clients: list[Client] = []
        self.rounds = 0

    def router(self, name: str, sample: float = 0.0, terms: TraceSettings | None = None) -> Router:
        """The router of that name, made when first asked for."""
        router = self.routers.get(name)
        if router is None:
            router = Router(name, 1 + len(self.routers), Recorder(), sample, terms)
            self.routers[name] = router
            self.books[name] = LinkRegistry(router)
            router.tick(self.now_ns, self.now_ns)
        return router

    def bridge(
        self,
        into: MessageVpn,
        over: LinkEnd,
        out_of: str,
        filters: Sequence[str] = (">",),
        bridge: str = "back",
        **terms: Any,
    ) -> tuple[OwnHalf, Events]:
        """A bridge into `into` that uses a connection which is there already."""
        events = Events()
        asked = terms_of(bridge, out_of, filters, **terms)
        half = OwnHalf(over, asked, events, self.record(into, bridge))
        self.settle()
        return half, events

    def book(self, router: str) -> LinkRegistry:
        """What the router of that name knows of its links."""
        self.router(router)
        return self.books[router]

    def record(self, vpn: MessageVpn, bridge: str) -> Bridge:
        """A fresh operational record."""
        return Bridge(BridgeFacts(vpn.context.router_name, vpn.name, bridge), self.now_ns)

    def vpn(
        self,
        name: str,
        router: str = "remote",
        *,
        usernames: Sequence[ClientUsername] = (),
        basic: bool = False,
        profile: ClientProfile | None = None,
        acl: AclProfile | None = None,
        bounds: VpnLimits | None = None,
    ) -> MessageVpn:
        """A message VPN whose clients are welcome and may be bridges."""
        owner = self.router(router)
        vpn = MessageVpn(
            name,
            owner.context,
            Credentials(basic, usernames, b"secret"),
            {"default": profile or BRIDGING, "plain": ClientProfile("plain")},
            {"default": acl or AclProfile("default")},
            bounds,
        )
        owner.add(vpn)
        return vpn

    def link(
        self,
        into: MessageVpn,
        remote: str,
        out_of: str,
        filters: Sequence[str] = (">",),
        *,
        bridge: str = "b",
        peer: str = "192.0.2.7",
        listener_tls: bool = False,
        settle: bool = True,
        piece: int = 0,
        terms: dict[str, Any] | None = None,
    ) -> Link:
        """Dial from `into` to VPN `out_of` of router `remote` and let the world settle."""
        chosen = dict(terms or {})
        events = Events()
        tls = chosen.pop("tls", False)
        half = dial(
            self.books[into.context.router_name],
            into,
            "198.51.100.1:55555",
            terms_of(bridge, out_of, filters, **chosen),
            events,
            self.record(into, bridge),
            tls=tls,
        )
        accepted = LinkFactory(self.books[remote], tls=listener_tls).connection(peer)
        link = Link(half, accepted, events)
        link.wire.piece = piece
        self.links.append(link)
        if settle:
            self.settle()
        return link

    def client(self, vpn: MessageVpn, name: str, router: str = "", level: int = 5) -> Client:
        """An MQTT client of `vpn`, logged in."""
        owner = self.routers[router or vpn.context.router_name]
        client = Client(self, MqttConnection(owner, "192.0.2.1", vpn.name), level)
        self.clients.append(client)
        client.send(Connect(name, protocol_level=level))
        return client

    def settle(self) -> None:
        """Pump all wires until nothing moves; fails when that does not end."""
        for _ in range(10_000):
            self.rounds += 1
            for router in self.routers.values():
                router.context.ready.clear()
                router.context.jobs.finish()
            # Every wire gets its turn in every round: no short cut that would hide an endless one.
            derived = [derive(router) for router in self.routers.values()]
            if not [link for link in self.links if link.wire.pump()] and not any(derived):
                return
        pytest.fail("messages circulate without end")

    def wait(self, seconds: float, step_s: float = 0.1) -> None:
        """Let time pass in small steps, firing timers and pumping wires."""
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        while self.now_ns < end_ns:
            self.now_ns = min(end_ns, self.now_ns + int(step_s * SECOND_NS))
            for router in self.routers.values():
                router.tick(self.now_ns, self.now_ns)
            self.settle()

    def traces(self, router: str) -> list[Row]:
        """What the router's recorder holds, in order; empties it."""
        return rows_of(self.routers[router].context.recorder)


@pytest.fixture
def world() -> World:
    """An empty world."""
    return World()


@pytest.fixture(scope="session")
def make_world() -> type[World]:
    """Makes worlds, for tests that need many."""
    return World


@pytest.fixture(scope="session")
def link_pair() -> Any:
    """The module link_pair.py."""
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    place = Path(__file__).parent / "link_pair.py"
    spec = importlib.util.spec_from_file_location("link_pair", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pair(world: World, link_pair: Any) -> Any:
    """Makes a connection that carries a bridge in each direction (Pair of link_pair.py)."""

    def make(**chosen: Any) -> Any:
        return link_pair.Pair(world, **chosen)

    return make

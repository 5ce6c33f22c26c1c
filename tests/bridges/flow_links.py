"""Links of conftest.py between routers that keep guaranteed messages; commits happen when the test settles.

`edge/blue` has the queue, `core/yellow` the bridge. Loaded by path: tests are no package.
"""

from __future__ import annotations

from typing import Any

from vpnrouter.bridges.flow_receiver import FlowReceiver
from vpnrouter.bridges.parking_lot import ParkingLot
from vpnrouter.bridges.received_positions import decode_positions
from vpnrouter.bridges.remote_settings import FlowSettings, RemoteSettings
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS, PARKING, QUEUE, EndpointSettings
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.message import Message
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode, link_frame_at

LOT_MOST = 1000
FRAME_MOST = 1 << 24


class Safe(CompletionCallback):
    """Publishers: what was acknowledged to them."""

    def __init__(self) -> None:
        self.outcomes: list[int] = []

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self.outcomes.append(outcome)


class Sea:
    """A world whose routers have spools; `terms` of queues are changed by name."""

    def __init__(self, world: Any, *spooled: str) -> None:
        self.world = world
        self.spools: dict[str, Spool] = {}
        self.safe = Safe()
        # Whose each was, and what kinds of keys it put.
        self.commits: list[tuple[str, set[bytes]]] = []
        self.stores: dict[str, MemoryStore] = {}
        for name in spooled or ("edge", "core"):
            context = world.router(name).context
            self.stores[name] = MemoryStore(name.encode().ljust(16, b"."))
            self.spools[name] = Spool(context, Ledger(self.stores[name]))
            context.spool = self.spools[name]
        self._numbers = 0

    def queue(self, vpn: MessageVpn, name: str, topics: str = "", kind: int = QUEUE) -> Endpoint:
        """A queue of a message VPN, with a subscription."""
        self._numbers += 1
        spool = vpn.context.spool
        assert spool is not None
        terms = EndpointSettings()
        terms.reject_behavior = ALWAYS
        end = Endpoint(spool, vpn, kind, name, self._numbers, terms)
        vpn.endpoints[kind, name] = end
        vpn.forget_all_routes()
        if topics:
            vpn.subscribe(Subscription(parse_filter(topics, SMF), end))
        return end

    def taker(self, vpn: MessageVpn, bridge: str = "b", **terms: Any) -> FlowReceiver:
        """What a bridge into `vpn` keeps over its links."""
        spool = vpn.context.spool
        assert spool is not None
        key = keys.bridge(vpn.name, bridge)
        accepted = decode_positions(self.stores[vpn.context.router_name].get(key) or b"")
        taker = FlowReceiver(vpn, spool, key, accepted, FlowSettings(**terms))
        if taker.terms.on_reject == frames.ON_REJECT_PARK:
            end = self.queue(vpn, bridge, kind=PARKING)
            end.settings.max_spooled_msg_count = LOT_MOST
            taker.lot = ParkingLot(end, bridge, LOT_MOST, taker.lanes, taker.terms.lanes)
        taker.flush()
        return taker

    def link(self, into: MessageVpn, remote: str, out_of: str, queue: str, **more: Any) -> Any:
        """A link whose bridge takes from a queue; its taker is `link.taker`."""
        flow = more.pop("flow", {})
        taker = more.pop("taker", None) or self.taker(into, **flow)
        terms = {"queue": queue, "flow": taker.terms} | more.pop("terms", {})
        more.setdefault("filters", ("d/>",))
        link = self.world.link(into, remote, out_of, terms=terms, **more)
        link.taker = taker
        link.half.carry(taker)
        self.settle()
        return link

    def publish(self, vpn: MessageVpn, topic: str, payload: bytes = b"", **more: Any) -> None:
        """One persistent message, published here."""
        message = Message(topic.encode(), payload)
        message.persistent = True
        for name, value in more.items():
            setattr(message, name, value)
        spool = vpn.context.spool
        assert spool is not None
        spool.publish(vpn, message, self.safe, 0)

    def sync(self) -> bool:
        """Every router ends a round, and what it wrote is synced; False when nothing was to be done."""
        worked = False
        for name, spool in self.spools.items():
            batch = spool.end_round()
            if batch is not None:
                worked = True
                self.commits.append((name, {key[:1] for key, _ in batch.puts}))
                self.stores[name].commit(batch)
                spool.committed()
        return worked

    def settle(self) -> None:
        """Frames and commits until nothing moves."""
        for _ in range(1000):
            worked = self.sync()
            # Every wire gets its turn in every round.
            moved = [link for link in self.world.links if link.wire.pump()]
            if not worked and not moved and not any(s.busy for s in self.spools.values()):
                return
        raise AssertionError("it does not end")

    def wait(self, seconds: float) -> None:
        """Let time pass, firing timers."""
        step_ns = 100_000_000
        for _ in range(round(seconds * 10)):
            self.world.now_ns += step_ns
            for router in self.world.routers.values():
                router.tick(self.world.now_ns, self.world.now_ns)
            self.settle()


def cut(link: Any) -> None:
    """Both ends lose the connection, and all that was on it."""
    link.wire.cut = True
    for end in (link.dialed, link.accepted):
        end.outbox.take(1 << 30)
        end.lost("cut")


def contents(endpoint: Endpoint) -> list[bytes]:
    """Payloads of all that an endpoint holds, in order."""
    ids = [number for waiting in endpoint.waiting for number in waiting.after(0, 1 << 20)]
    ids += [number for flow in endpoint.flows for number in flow.unacked]
    return [endpoint.spool.message(number).payload for number in sorted(ids)]


def frames_in(data: bytes, *kinds: type) -> list[Any]:
    """The frames of these kinds, all of which are whole."""
    found: list[Any] = []
    pos = 0
    while length := link_frame_at(data, pos, len(data), FRAME_MOST):
        frame = decode(data, pos, length)
        if isinstance(frame, kinds):
            found.append(frame)
        pos += length
    return found


def said(link: Any, direction: int, *kinds: type) -> list[Any]:
    """The frames of these kinds that the dialler (0) or the acceptor (1) sent."""
    return frames_in(b"".join(link.wire.carried[direction]), *kinds)


def balance(link: Any) -> Any:
    """The counters of the bridge that came over a link, which are in balance; both ends'."""
    for end in (link.dialed, link.accepted):
        end.tally()
    half = link.half
    assert half.record.counters.rx_imbalance(half.in_flight) == 0
    for book in (link.dialed.book, link.accepted.book):
        for record in book.records.values():
            assert record.counters.tx_imbalance(record.tx_in_flight) == 0
    return half.record.counters


class Two:
    """edge/blue with queue `out`, core/yellow with queue `in`, and a link between them with a flow."""

    def __init__(self, world: Any, **more: Any) -> None:
        self.world = world
        self.sea = Sea(world)
        self.yellow = world.vpn("yellow", "core")
        self.blue = world.vpn("blue", "edge")
        self.out = self.sea.queue(self.blue, "out", "t/>")
        self.into = self.sea.queue(self.yellow, "in", "t/>")
        self.count = 0
        self.link = self.sea.link(self.yellow, "edge", "blue", "out", **more)
        self.half = self.link.half
        self.taker = self.link.taker
        self.events = self.link.events

    def publish(self, topic: str = "t/a", **more: Any) -> None:
        """One message, whose payload is its number."""
        self.count += 1
        self.sea.publish(self.blue, topic, b"%d" % self.count, **more)

    def crossed(self) -> list[int]:
        """The numbers in queue `in`, once everything has settled; counters are in balance."""
        self.sea.settle()
        balance(self.link)
        return [int(payload) for payload in contents(self.into)]

    def open(self, is_open: bool) -> None:
        """Let queue `in` take messages, or not."""
        self.into.settings.ingress_enabled = is_open

    def told(self, *names: str) -> list[tuple[str, str]]:
        """Events of these names with their reasons."""
        return [(e.value, why) for e, why in self.events.told if e.value in names]

    def again(self) -> None:
        """The connection is lost, and another one comes."""
        cut(self.link)
        terms = {"flow": self.taker.terms}
        self.link = self.sea.link(self.yellow, "edge", "blue", "out", taker=self.taker, terms=terms)
        self.half, self.events = self.link.half, self.link.events

    def take(self, **changes: Any) -> None:
        """The bridge goes on under changed terms."""
        old = self.half.terms
        flow = changes.pop("flow", {})
        if flow:
            changes["flow"] = FlowSettings(**flow)
        same = {name: getattr(old, name) for name in ("queue", "window", "flow", "mapping")}
        named = RemoteSettings(
            "b", old.remote_vpn, filters=old.filters, retry_delay_ns=0, **(same | changes)
        )
        self.half.take(named)
        self.half.carry(self.taker)
        self.sea.settle()

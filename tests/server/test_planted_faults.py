"""Exceptions planted at hundreds of places of the core, in turn, under load, close only the connection that is fed.

Two routers run in this process, with a bridge between them, and MQTT clients of QoS 0, 1 and 2, consumers of queues,
a durable session, a client that comes and goes, and requests to the API. The places are drawn from all functions
that the load passes, with a seed that is printed; VPNROUTER_PLANTED_SEED repeats it. Without it the seed is SEED, so
that a run says something of the change that it is made for; with VPNROUTER_LONG it is drawn, and finds other places. A
trace function raises there once: before the function has done anything, or when it has done everything. The compiled
build cannot be traced, and its run does not collect this: there test_barrier.py plants at the seams.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import pytest
import trio

import vpnrouter
from vpnrouter.bridges import machine as machine_module
from vpnrouter.build_info import build_kind
from vpnrouter.core import fault_barrier as barrier_module
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.events.log import Event
from vpnrouter.server.run import Node
from vpnrouter.testing.history import History, check
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer
from vpnrouter.testing.planting import ENTRY, RETURN, Place, Planter
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
)

PACKAGE = Path(vpnrouter.__file__).parent
CORE = ("core", "bridges", "spool", "topics", "wire", "selectors")
PLACES = int(os.environ.get("VPNROUTER_PLANTED", "200"))
SEED = 8
EACH = int(os.environ.get("VPNROUTER_PLANTED_EACH", "20"))
"""Places after which everything comes to rest and is looked at as a whole."""

PATIENCE_S = 30.0

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
logging: {level: error}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    queues:
      orders: {subscriptions: ["orders/>"], permission: delete}
      cross: {subscriptions: ["cross/>"], permission: delete}
"""

CORE_ROUTER = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: red}
logging: {level: error}
msg_vpns:
  red:
    authentication: {basic: {enabled: false}}
    queues:
      landed: {subscriptions: ["cross/>"], permission: delete}
    bridges:
      from-edge:
        remote_authentication: {basic: {client_username: core}}
        remote_connection: {retry_delay: 0}
        remote_msg_vpns:
          - {name: blue, location: "127.0.0.1:PORT", queue_binding: cross}
        remote_subscriptions: [{topic: "direct/>", deliver_always_enabled: true}]
"""


class Passed:
    """All functions of the core that are called while it looks."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self._seen: set[CodeType] = set()

    def __enter__(self) -> Self:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, what: str, _: object) -> None:
        code = frame.f_code
        if code in self._seen:
            return
        self._seen.add(code)
        path = Path(code.co_filename)
        if (
            path.is_relative_to(PACKAGE)
            and path.relative_to(PACKAGE).parts[0] in CORE
            and path.name != "fault_barrier.py"
            and not code.co_flags & CO_GENERATOR
            and code.co_name != "<genexpr>"
        ):
            self.codes.add(code)

    def drawn(self, draws: random.Random) -> Iterator[Place]:
        """The places, in an order that the seed gives."""
        named = sorted(
            self.codes, key=lambda code: (code.co_filename, code.co_firstlineno, code.co_qualname)
        )
        places = [(code, phase) for code in named for phase in (ENTRY, RETURN)]
        draws.shuffle(places)
        return iter(places)


class Counted:
    """A session that counts its connections that ended."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.name = inner.name
        self.closings = 0
        self.is_open = False

    def connect(self) -> Connect:
        made: Connect = self.inner.connect()
        return made

    def opened(self, answer: Connack) -> list[Packet]:
        self.is_open = True
        made: list[Packet] = self.inner.opened(answer)
        return made

    def received(self, packet: Packet) -> list[Packet]:
        made: list[Packet] = self.inner.received(packet)
        return made

    def due(self) -> list[Packet]:
        made: list[Packet] = self.inner.due()
        return made

    def closed(self) -> None:
        self.is_open = False
        self.closings += 1
        self.inner.closed()


class Direct:
    """Publishes at QoS 0 and subscribes to it; `heard` counts."""

    def __init__(self, name: str, publishes: bool, *filters: str) -> None:
        self.name = name
        self.heard = 0
        self.stopping = False
        self._publishes = publishes
        self._filters = filters

    def connect(self) -> Connect:
        return Connect(self.name)

    def opened(self, answer: Connack) -> list[Packet]:
        requests = [SubscriptionRequest(each) for each in self._filters]
        return [Subscribe(1, requests)] if requests else []

    def received(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish):
            self.heard += 1
        return []

    def due(self) -> list[Packet]:
        if not self._publishes or self.stopping:
            return []
        return [Publish(f"direct/{number}".encode(), b"x" * 40) for number in range(3)]

    def closed(self) -> None:
        """Need nothing."""


class Load:
    """Clients of both routers, each in a thread of its own; what they saw is in `history`."""

    def __init__(self, edge: int, core: int, seed: int, stack: ExitStack) -> None:
        self.history = History()
        draws = random.Random(seed)
        history = self.history
        both = {"orders/a": ("orders", "session"), "orders/b/c": ("orders", "session")}
        self.producers = [
            Producer("one", history, draws, both, qos=1, window=8, burst=1),
            Producer("two", history, draws, both, qos=2, window=8, burst=1),
            Producer("over", history, draws, {"cross/a": ("landed",)}, qos=1, window=8, burst=1),
        ]
        self.stop(stopped=True)
        self.consumers = [
            Consumer(
                "eater",
                history,
                draws,
                endpoint="orders",
                topic_filter="$queue/orders",
                qos=1,
                durable=False,
            ),
            Consumer("keeper", history, draws, endpoint="session", topic_filter="orders/#", qos=2),
        ]
        self.far = Consumer(
            "lander",
            history,
            draws,
            endpoint="landed",
            topic_filter="$queue/landed",
            qos=1,
            durable=False,
        )
        self.direct = Direct("talker", True, "direct/1")
        self.witness = Direct("witness", False, "direct/#")
        self.sessions = [
            Counted(each) for each in (*self.producers, *self.consumers, self.direct, self.witness)
        ]
        far = [Counted(self.far), Counted(Direct("far witness", False, "direct/#"))]
        self.clients = []
        for session, port in [(each, edge) for each in self.sessions] + [
            (each, core) for each in far
        ]:
            client = MqttClient(session, partial(int, port), history, draws)
            self.clients.append(stack.enter_context(client))
        self.sessions += far
        # Comes and goes all the time.
        self.comer = Direct("comer", True, "direct/+", "orders/#")
        stack.enter_context(
            MqttClient(self.comer, lambda: edge, history, random.Random(seed), cut_chance=0.2)
        )

    @property
    def busy(self) -> list[str]:
        """Clients that have something that is not answered, received or acknowledged."""
        consumers = [*self.consumers, self.far]
        return [each.name for each in self.producers if not each.done] + [
            each.name for each in consumers if not (each.idle and each.ready)
        ]

    @property
    def settled(self) -> bool:
        """Everything sent is answered, received and acknowledged."""
        return not self.busy

    def stop(self, stopped: bool) -> None:
        """Publish no more guaranteed messages, or go on."""
        for each in self.producers:
            each.stopping = stopped


def endpoints_of(node: Node) -> list[Endpoint]:
    """All endpoints of a router."""
    return [each for vpn in node.router.vpns.values() for each in vpn.endpoints.values()]


def out_of_balance(node: Node) -> list[str]:
    """What a router's account says that cannot be (promise BALANCE); empty normally."""
    found = []
    for vpn in node.router.vpns.values():
        held = sum(each.spooled_bytes for each in vpn.endpoints.values())
        if vpn.spooled_bytes != held:
            found.append(f"{vpn.name}: {vpn.spooled_bytes} bytes counted, {held} there")
    for each in endpoints_of(node):
        wrong = each.counters.imbalance(each.spooled_count)
        if wrong:
            found.append(f"{each.name}: {wrong} messages out of balance")
    spool = node.router.context.spool
    assert spool is not None
    if spool.usage != sum(vpn.spooled_bytes for vpn in node.router.vpns.values()):
        found.append(f"usage {spool.usage}")
    for runner in node.bridges:
        counters = runner.record.counters
        half = runner.half
        if half is not None:
            half.link.tally()
        flight = 0 if half is None else half.in_flight
        if counters.rx_imbalance(flight):
            found.append(f"bridge: {counters.rx_imbalance(flight)} out of balance")
    return found


def left_behind(node: Node) -> list[str]:
    """What is there though everything was taken; empty normally."""
    found = [
        f"{each.name}: {each.spooled_count} stuck"
        for each in endpoints_of(node)
        if each.spooled_count
    ]
    found += [f"{each.name}: {each.pending} pending" for each in endpoints_of(node) if each.pending]
    spool = node.router.context.spool
    assert spool is not None
    if spool.usage:
        found.append(f"{spool.usage} bytes stuck")
    return found


def empty(node: Node) -> bool:
    """Whether nothing is left behind."""
    return not left_behind(node)


class Faults:
    """Events of contained faults of both routers."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = nodes
        self.events: list[Event] = []
        for node in nodes:
            assert node.router.context.events is not None
            node.router.context.events.listeners.append(self)

    def __call__(self, event: Event) -> None:
        """Keep one."""
        if event.kind.name in {"SYSTEM_SYSTEM_FAULT", "SYSTEM_MANAGEMENT_FAULT"}:
            self.events.append(event)

    @property
    def count(self) -> int:
        """What the counters say."""
        return sum(sum(node.router.context.barrier.counts.values()) for node in self.nodes)


async def until(true: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Let the routers run until something is true; False when it does not come."""
    with trio.move_on_after(patience_s):
        while not true():  # noqa: ASYNC110 - a counter tells nobody
            await trio.sleep(0.002)
        return True
    return False


async def ask(port: int, asking: trio.Event) -> None:
    """Ask the API for queues and bridges, for ever."""
    while not asking.is_set():
        for path in ("msgVpns/blue/queues", "msgVpns/blue/clients", "msgVpns/blue/bridges"):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            head = f"GET /SEMP/v2/monitor/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            async with stream:
                # What is planted may end this connection, too.
                with trio.fail_after(PATIENCE_S), suppress(trio.BrokenResourceError):
                    await stream.send_all(head.encode())
                    while await stream.receive_some():
                        pass
            await trio.sleep(0.05)


async def test_planted_faults(
    running: Any, port: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each fault closes at most the connection that was fed; counts balance, and no acknowledged message is lost."""
    assert build_kind() == "pure", "compiled functions cannot be traced"
    drawn = random.SystemRandom().randrange(1 << 31) if os.environ.get("VPNROUTER_LONG") else SEED
    seed = int(os.environ.get("VPNROUTER_PLANTED_SEED", drawn))
    with capsys.disabled():
        print(f"\nVPNROUTER_PLANTED_SEED={seed}")
    draws = random.Random(seed)
    # Each is told, though it comes again within seconds.
    monkeypatch.setattr(barrier_module, "EVENT_INTERVAL_NS", 0)
    monkeypatch.setattr(barrier_module, "RETRY_NS", 20_000_000)
    # A bridge with many faults in a row rests longer than this test waits.
    monkeypatch.setattr(machine_module, "FORGIVEN_NS", 0)
    wrong: list[str] = []
    async with running(EDGE, "edge") as edge:
        text = CORE_ROUTER.replace("PORT", str(port(edge, "link")))
        async with running(text, "core") as core, trio.open_nursery() as nursery:
            (runner,) = core.bridges
            assert await until(lambda: runner.record.is_up)
            runner._draw = lambda: 0.0
            faults = Faults(edge, core)
            asking = trio.Event()
            nursery.start_soon(ask, port(edge, "http"), asking)
            with ExitStack() as stack:
                load = Load(port(edge, "mqtt"), port(core, "mqtt"), seed, stack)
                assert await until(lambda: all(each.is_open for each in load.sessions))
                consumers = [*load.consumers, load.far]
                assert await until(lambda: all(each.ready for each in consumers))
                load.stop(stopped=False)
                with Passed() as passed:
                    await trio.sleep(2.0)
                await plant_all(passed.drawn(draws), load, faults, (edge, core), wrong)
            asking.set()
            nursery.cancel_scope.cancel()
    assert not wrong, f"VPNROUTER_PLANTED_SEED={seed}\n" + "\n".join(wrong)


async def settle(load: Load, nodes: tuple[Node, ...], names: list[str], wrong: list[str]) -> None:
    """Let everything come to rest: nothing is left behind, nothing was lost; then go on."""
    load.stop(stopped=True)
    found = []
    if not await until(lambda: load.settled):
        found.append(f"{', '.join(load.busy)} do not come to rest")
    for node in nodes:
        await until(partial(empty, node))
        found += left_behind(node)
        found += out_of_balance(node)
    found += [str(each) for each in check(load.history)]
    if found:
        wrong += [*found, *(f"  after {name}" for name in names)]
    load.stop(stopped=False)


async def plant_all(
    places: Iterator[Place],
    load: Load,
    faults: Faults,
    nodes: tuple[Node, ...],
    wrong: list[str],
) -> None:
    """Plant PLACES exceptions that were raised."""
    planter = Planter()
    done = 0
    names: list[str] = []
    for place in places:
        if done == PLACES or wrong:
            break
        file = Path(place[0].co_filename).relative_to(PACKAGE)
        name = f"{file}:{place[0].co_qualname} ({place[1]})"
        if not await plant_one(planter, place, load, faults, nodes, wrong, name):
            continue
        done += 1
        if os.environ.get("VPNROUTER_PLANTED_TELL"):
            print(done, name, file=sys.stderr)
        names.append(name)
        if len(names) == EACH:
            await settle(load, nodes, names, wrong)
            names.clear()
    await settle(load, nodes, names, wrong)
    if done < PLACES and not wrong:
        wrong.append(f"only {done} places were passed")


async def plant_one(
    planter: Planter,
    place: Place,
    load: Load,
    faults: Faults,
    nodes: tuple[Node, ...],
    wrong: list[str],
    name: str,
) -> bool:
    """Plant one exception; False where nothing passes there now. `wrong` gets what is not as it should be."""
    assert await until(lambda: all(each.is_open for each in load.sessions))
    before = {each.name: each.closings for each in load.sessions}
    count, told = faults.count, len(faults.events)
    planter.plant(place)
    await until(lambda: planter.fired, 0.4)
    planter.stop()
    if not planter.fired:
        return False
    if not await until(lambda: faults.count > count, 5.0):
        wrong.append(f"{name}: not counted")
    for node in nodes:
        wrong += [f"{name}: {each}" for each in out_of_balance(node)]
    if not await until(lambda: all(each.is_open for each in load.sessions), 10.0):
        closed = [each.name for each in load.sessions if not each.is_open]
        wrong.append(f"{name}: {closed} cannot connect")
    witness, direct = load.witness.heard, load.direct.heard
    if not await until(lambda: load.witness.heard > witness and load.direct.heard > direct, 5.0):
        wrong.append(f"{name}: Direct messages stand still")
    named = " ".join(event.name for event in faults.events[told:])
    for each in load.sessions:
        if each.closings > before[each.name] and f"{each.name} at" not in named:
            wrong.append(f"{name}: {each.name} was closed, told was {named!r}")
    if len(faults.events) == told:
        wrong.append(f"{name}: not told")
    return True

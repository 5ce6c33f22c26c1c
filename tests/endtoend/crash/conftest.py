"""Routers that die and come again on the same folder, with producers and consumers that go on all the time.

Environment:
    VPNROUTER_LONG        500 kills instead of the few of a short run.
    VPNROUTER_CRASH_SEED  draws of an earlier run, which a failing test shows. Moments are not repeated by it.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from vpnrouter.server.crash_points import environment_for
from vpnrouter.testing.history import History, HistoryEventKind, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer
from vpnrouter.testing.network import FaultyLink, FaultyNetwork
from vpnrouter.testing.prefork import Prefork

PATIENCE_S: Final = 20.0
QUIET_S: Final = 0.3
"""How long nothing may come after everything has come."""


class Place:
    """One router by name: it dies, and comes again with the same configuration and data folder.

    `link`, where there is one, leads to its listener `through`, whatever port that has at the moment. `document` is its
    configuration without its name.
    """

    def __init__(self, process: Any, folder: Path, name: str, document: dict[str, Any]) -> None:
        self.name = name
        self._prefork: Prefork | None = None
        self._more: dict[str, str] = {}
        self.link: FaultyLink | None = None
        self.through = "link"
        self.kills = 0
        self.router: Any = None
        self._process = process
        self._path = folder / f"{name}.yaml"
        self.document = document
        whole = {"router": {"name": name, "data_dir": str(folder / name)}, **document}
        self._path.write_text(yaml.safe_dump(whole), encoding="utf-8")
        self._port: int | None = None
        self._amqp_port: int | None = None
        self._serves_amqp = any(one["protocol"] == "amqp" for one in document["listeners"])

    def port(self) -> int | None:
        """Where MQTT clients find it at the moment."""
        return self._port

    def amqp_port(self) -> int | None:
        """Where AMQP clients find it at the moment."""
        return self._amqp_port

    def start(self, fault: dict[str, str] | None = None) -> None:
        """Begin a life, and wait until it serves or, with a fault planted, is over again."""
        more = {**self._more, **(fault or {})}
        router = self.router = self._process(self._path, False, more=more, prefork=self._prefork)
        until(
            lambda: bool(router.out) or router.process.poll() is not None, f"{self.name} is ready"
        )
        if not router.out:
            assert fault, "".join(router.err)
            return
        if self.link is not None:
            self.link.target = ("127.0.0.1", router.port(self.through))
        self._port = router.port("mqtt")
        self._amqp_port = router.port("amqp") if self._serves_amqp else None

    def take_from(self, prefork: Prefork, more: dict[str, str]) -> None:
        """Take processes from elsewhere, with more in their environment."""
        self._prefork, self._more = prefork, more

    def kill(self) -> None:
        """SIGKILL, now."""
        self._port = self._amqp_port = None
        self.router.kill()
        self._over()

    def dies(self, point: str) -> None:
        """Wait until the fault planted in this life has ended it."""
        try:
            until(
                lambda: self.router.process.poll() is not None, f"{self.name} passes point {point}"
            )
        finally:
            self.kill()

    def _over(self) -> None:
        self.kills += 1
        assert self.router.process.returncode == -signal.SIGKILL, "".join(self.router.err)
        assert not self.router.told("Traceback"), "".join(self.router.err)

    def end(self) -> None:
        """End it whatever it does."""
        self._port = None
        if self.router is not None:
            self.router.kill()


def until(true: Callable[[], bool], what: str | Callable[[], str]) -> None:
    """Wait until something is true; the test fails when it never is."""
    if not within(true):
        pytest.fail(f"not within {PATIENCE_S:.0f} s: {what if isinstance(what, str) else what()}")


def within(true: Callable[[], bool]) -> bool:
    """Whether something becomes true in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Traffic:
    """Clients of several places and the one history that all of them write. Use it as a context."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draws = random.Random(seed)
        self.history = History()
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.clients: list[MqttClient] = []
        self._stack = ExitStack()

    def produce(
        self, place: Place, name: str, topics: dict[str, tuple[str, ...]], **options: Any
    ) -> Producer:
        """A producer at a place, at work."""
        cut_chance = options.pop("cut_chance", 0.0)
        made = Producer(name, self.history, self._own_draws(), topics, **options)
        self.producers.append(made)
        self._begin(made, place, cut_chance)
        return made

    def consume(self, place: Place, name: str, **options: Any) -> Consumer:
        """A consumer at a place, once it is subscribed; with wait=False at once."""
        cut_chance = options.pop("cut_chance", 0.0)
        wait = options.pop("wait", True)
        made = Consumer(name, self.history, self._own_draws(), **options)
        self.consumers.append(made)
        self._begin(made, place, cut_chance)
        if wait:
            until(lambda: made.ready, lambda: f"{name} subscribes: {self.told()}")
        return made

    def read(self, place: Place, cut_chance: float = 0.0) -> None:
        """Consumers of queue orders and, at QoS 2, of a durable session called twice; both have barriers."""
        self.take_from(place, "orders", "reader", cut_chance)
        self.subscribe(place, "twice", 2, cut_chance)

    def take_from(self, place: Place, queue: str, name: str, cut_chance: float = 0.0) -> None:
        """A consumer of a queue, with barriers."""
        self.consume(
            place,
            name,
            endpoint=queue,
            topic_filter=f"$queue/{queue}",
            durable=False,
            barrier=f"barrier/{name}",
            cut_chance=cut_chance,
        )

    def subscribe(self, place: Place, name: str, qos: int, cut_chance: float = 0.0) -> None:
        """A consumer whose durable session has orders/#."""
        self.consume(
            place,
            name,
            endpoint=name,
            topic_filter="orders/#",
            qos=qos,
            barrier=f"barrier/{name}",
            cut_chance=cut_chance,
        )

    def _own_draws(self) -> random.Random:
        # Each thread has draws of its own: what one client does not disturb another one's.
        return random.Random(self.draws.getrandbits(32))

    def _begin(self, session: Producer | Consumer, place: Place, cut_chance: float) -> None:
        client = MqttClient(session, place.port, self.history, self._own_draws(), cut_chance)
        self.clients.append(self._stack.enter_context(client))

    def told(self) -> list[str]:
        """What clients were told that is more than a lost connection."""
        return [line for client in self.clients for line in client.told]

    def answered(self) -> int:
        """How many publishes were answered so far."""
        return sum(each.answered for each in self.producers)

    def live(self, place: Place, fault: str = "", count: int = 1) -> None:
        """One life of a place that ends with a kill: at a point, or after a moment that is drawn."""
        self.history.noted(
            f"{place.name} starts" + (f", to die at {fault}:{count}" if fault else "")
        )
        if fault:
            place.start(environment_for(fault, count))
            place.dies(fault)
        else:
            before = self.answered()
            place.start()
            # A few die while clients come back, most of them at work.
            if self.draws.random() < 0.8:
                until(lambda: self.answered() > before, lambda: f"an answer: {self.told()}")
            time.sleep(self.draws.uniform(0.0, 0.4))
            place.kill()
        self.history.noted(f"{place.name} is killed")

    def stop_producers(self) -> None:
        """Nothing new; everything is answered."""
        for producer in self.producers:
            producer.stopping = True
        until(
            lambda: all(each.done for each in self.producers),
            lambda: f"everything is answered: {self.told()}",
        )

    def drain(self) -> None:
        """Wait until consumers have everything that was acknowledged, or wait long enough for it."""
        due: dict[str, set[str]] = {each.endpoint: set() for each in self.consumers}
        known = {
            each.message
            for each in self.history.events
            if each.kind is HistoryEventKind.ACKNOWLEDGED
        }
        for event in self.history.events:
            if event.kind is HistoryEventKind.PUBLISHED and event.message in known:
                for endpoint in event.targets:
                    due.setdefault(endpoint, set()).add(event.message)
        # What never comes, and whose settlement is never known, is told by `judge`.
        within(lambda: all(due[each.endpoint] <= each.delivered for each in self.consumers))
        within(lambda: all(each.idle for each in self.consumers))
        self.quiet()

    def quiet(self) -> None:
        """Let pass the time in which something could come that must not."""
        until(lambda: all(each.ready for each in self.consumers), "consumers are connected")
        time.sleep(QUIET_S)

    def judge(self, **options: Any) -> None:
        """Fail with everything that is wrong with the history."""
        found = check(self.history, **options)
        assert not found, f"seed {self.seed}: {describe(found, self.history)}"
        busy = [each.name for each in self.consumers if not each.idle]
        assert not busy, f"seed {self.seed}: acknowledgements of {busy} are not settled"
        lost = {each.name: each.sessions_lost for each in (*self.producers, *self.consumers)}
        assert not any(lost.values()), f"seed {self.seed}: sessions lost: {lost}"

    def stop(self) -> None:
        """End all clients."""
        self._stack.close()


@pytest.fixture
def place(router_process: Any, tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """`place(name, document)`: a router that may die; all of them end with the test."""
    made: list[Place] = []

    def make(name: str, document: dict[str, Any]) -> Place:
        made.append(Place(router_process, tmp_path, name, document))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def traffic() -> Iterator[Traffic]:
    """Clients and their history; they end with the test."""
    written = os.environ.get("VPNROUTER_CRASH_SEED")
    seed = int(written) if written else random.SystemRandom().getrandbits(32)
    print(f"VPNROUTER_CRASH_SEED={seed}")
    made = Traffic(seed)
    yield made
    made.stop()


OPEN: Final = {"authentication": {"basic": {"enabled": False}}}
"""A message VPN that lets everybody in."""

QUEUES: Final = {
    "orders": {"subscriptions": ["orders/>"]},
    "barrier": {"subscriptions": ["barrier/>"]},
}
"""Queue orders, and the one that the barriers of consumers reach."""


def listeners(msg_vpn: str) -> list[dict[str, str]]:
    """Listeners of all kinds on ports of their own."""
    bind = "127.0.0.1:0"
    return [
        {"protocol": "http", "bind": bind},
        {"protocol": "mqtt", "bind": bind, "msg_vpn": msg_vpn},
        {"protocol": "link", "bind": bind},
    ]


@pytest.fixture
def alone_document() -> dict[str, Any]:
    """The configuration of a router with message VPN blue and queues orders and barrier."""
    return {"listeners": listeners("blue"), "msg_vpns": {"blue": {**OPEN, "queues": QUEUES}}}


@pytest.fixture
def alone(place: Callable[..., Place], alone_document: dict[str, Any]) -> Place:
    """A router of this configuration; not started."""
    return place("edge", alone_document)


@pytest.fixture
def bridged(place: Callable[..., Place], network: FaultyNetwork) -> tuple[Place, Place]:
    """Routers edge and core, not started.

    Queue to-core of VPN blue of edge is what bridge from-blue of VPN yellow of core takes from. `link` of
    edge is what the bridge dials.
    """
    link = network.link()
    blue: dict[str, Any] = {
        **OPEN,
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
        "queues": {"to-core": {"subscriptions": ["orders/>"]}},
    }
    remote = {
        "name": "blue",
        "router": "edge",
        "location": link.address,
        "queue_binding": "to-core",
    }
    bridge = {
        "guaranteed_retry_interval": 50,
        "remote_connection": {"retry_delay": 0, "heartbeat_interval": 300},
        "remote_authentication": {"basic": {"client_username": "core"}},
        "remote_msg_vpns": [remote],
        "remote_subscriptions": ["weather/>"],
    }
    yellow: dict[str, Any] = {**OPEN, "queues": QUEUES, "bridges": {"from-blue": bridge}}
    near = place("edge", {"listeners": listeners("blue"), "msg_vpns": {"blue": blue}})
    near.link = link
    far = place("core", {"listeners": listeners("yellow"), "msg_vpns": {"yellow": yellow}})
    return near, far

"""Brokers of several protocols and routers that lead back to where a message has been: one delivery at each place."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest
import yaml

from vpnrouter.testing.modules import load_module

OPEN: Final = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
TOPIC: Final = "news"
"""A name that means the same in MQTT and AMQP, and to each broker."""


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


class Place(NamedTuple):
    """A broker, or a router: where clients of MQTT and of AMQP find it."""

    mqtt: int
    amqp: int
    router: Any = None

    def url(self, protocol: str) -> str:
        """The address for a connector."""
        return f"{protocol}://127.0.0.1:{self.amqp if protocol == 'amqp' else self.mqtt}"


def link(protocol: str, way: str) -> dict[str, Any]:
    """A link of a connector, in or out."""
    address = f"topic://{TOPIC}" if protocol == "amqp" else TOPIC
    if way == "in":
        return {"source": {"address": address}, "target": {"topic": TOPIC}}
    return {"source": {"topic": TOPIC}, "target": {"address": address}}


def connector(url: str, ways: tuple[str, ...] = ("in", "out"), **provider: Any) -> dict[str, Any]:
    """A connector to a broker."""
    protocol = url.partition(":")[0]
    more = {"mqtt_version": "5"} if protocol == "mqtt" else {}
    return {
        "provider": {"url": url, "connect": {"retry_delay": 0}, **more, **provider},
        "links": {way: link(protocol, way) for way in ways},
    }


def text_of(connectors: dict[str, Any], mqtt: int = 0, amqp: int = 0) -> str:
    """A router without its name."""
    listeners = [
        {"protocol": "mqtt", "bind": f"127.0.0.1:{mqtt}", "msg_vpn": "blue"},
        {"protocol": "amqp", "bind": f"127.0.0.1:{amqp}", "msg_vpn": "blue"},
        {"protocol": "http", "bind": "127.0.0.1:0"},
    ]
    blue = {**OPEN, "connectors": connectors}
    return yaml.safe_dump({"listeners": listeners, "msg_vpns": {"blue": blue}})


class Stand:
    """Starts brokers and routers, and looks what arrives at each."""

    def __init__(self, stack: contextlib.ExitStack, kit: dict[str, Any], tmp_path: Path) -> None:
        self._stack = stack
        self._kit = kit
        self._path = tmp_path
        self.places: list[Place] = []

    def broker(self, name: str) -> Place:
        """Run a broker; the test is skipped where it is not installed."""
        if name == "ourselves":
            return self.router(f"broker-{len(self.places)}", {})
        providers, port = self._kit["providers"], self._kit["free_port"]()
        if why := providers.missing(name):
            pytest.skip(why)
        path = self._path / f"{name}-{len(self.places)}"
        path.mkdir()
        self._stack.enter_context(providers.providing(name, port, path))
        place = Place(port, port)
        self.places.append(place)
        return place

    def router(self, name: str, connectors: dict[str, Any], mqtt: int = 0, amqp: int = 0) -> Place:
        """Run a router with connectors."""
        running = self._kit["start"](text_of(connectors, mqtt, amqp), name)
        place = Place(running.port("mqtt"), running.port("amqp"), running)
        self.places.append(place)
        return place

    def judge(self) -> None:
        """A message from each place is delivered once at each."""
        patiently, paho, providers = (self._kit[key] for key in ("patiently", "paho", "providers"))
        for place in self.places:
            if place.router is not None:
                patiently(lambda place=place: _all_up(place.router), "links are up")
        readers = [paho(place.mqtt, f"reader-{index}") for index, place in enumerate(self.places)]
        for reader in readers:
            reader.subscribe(TOPIC, 1)
        sent = [
            b"from-%d qos %d" % (number, qos) for number in range(len(readers)) for qos in (0, 1, 2)
        ]
        for payload in sent:
            number, qos = int(payload[5:6]), int(payload[-1:])
            readers[number].client.publish(TOPIC, payload, qos=qos).wait_for_publish(20)
        providers.settled(lambda: [reader.arrived.qsize() for reader in readers], 2.0)
        found = [
            Counter(payload for _, payload in list(reader.arrived.queue)) for reader in readers
        ]
        assert found == [Counter(sent)] * len(readers)


def _all_up(router: Any) -> bool:
    rows = router.api().connectors("blue")
    return all(each["state"] == "up" for row in rows for each in row["links"])


@pytest.fixture
def stand(
    start: Any, paho: Any, providers: Any, patiently: Any, free_port: Any, tmp_path: Path
) -> Iterator[Stand]:
    """Brokers and routers."""
    kit = {
        "start": start,
        "paho": paho,
        "providers": providers,
        "patiently": patiently,
        "free_port": free_port,
    }
    with contextlib.ExitStack() as stack:
        yield Stand(stack, kit, tmp_path)


PEERS: Final = [pytest.mark.peers, pytest.mark.slow]
BROKERS: Final = {
    ("mosquitto", "mqtt"): [pytest.mark.peers],
    ("artemis", "amqp"): PEERS,
    ("ourselves", "mqtt"): [],
    ("ourselves", "amqp"): [],
}
"""Brokers and how a connector speaks with them, and what the tests of each need."""

PAIRS: Final = [
    pytest.param(
        one, two, marks=[*BROKERS[one], *BROKERS[two]], id=f"{'-'.join(one)} {'-'.join(two)}"
    )
    for index, one in enumerate(BROKERS)
    for two in list(BROKERS)[index:]
]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_two_brokers(stand: Stand, one: tuple[str, str], two: tuple[str, str]) -> None:
    """A router with a connector to each of two brokers."""
    brokers = [stand.broker(one[0]), stand.broker(two[0])]
    connectors = {
        f"c{index}": connector(place.url(protocol))
        for index, (place, protocol) in enumerate(zip(brokers, (one[1], two[1]), strict=True))
    }
    stand.router("r1", connectors)
    stand.judge()


TWO_WAYS: Final = [
    pytest.param(name, one, two, marks=marks, id=f"{name}-{one}-{two}")
    for (name, marks) in (("mosquitto", [pytest.mark.peers]), ("artemis", PEERS), ("ourselves", []))
    for one in ("mqtt", "amqp")
    for two in ("mqtt", "amqp")
    if name != "mosquitto" or (one, two) == ("mqtt", "mqtt")
]


CARRIED: Final = [
    cell for cell in TWO_WAYS if cell.values[0] != "artemis" or cell.values[1] == cell.values[2]
]
"""Artemis does not hand the path of a message on from one protocol to the other, of which `check` warns."""


@pytest.mark.parametrize(("name", "one", "two"), CARRIED)
def test_two_connectors_to_one_broker(stand: Stand, name: str, one: str, two: str) -> None:
    """What one connector brings in, the other one takes out."""
    broker = stand.broker(name)
    stand.router(
        "r1",
        {
            "one": connector(broker.url(one), ("in",), name="there"),
            "two": connector(broker.url(two), ("out",), name="there"),
        },
    )
    stand.judge()


@pytest.mark.parametrize(("name", "one", "two"), TWO_WAYS)
def test_two_routers(stand: Stand, name: str, one: str, two: str) -> None:
    """Two routers, each with a connector to one broker."""
    broker = stand.broker(name)
    for router, protocol in (("r1", one), ("r2", two)):
        stand.router(router, {"there": connector(broker.url(protocol), name="there")})
    stand.judge()


@pytest.mark.parametrize("one", ["mqtt", "amqp"])
@pytest.mark.parametrize("two", ["mqtt", "amqp"])
def test_both_ends(stand: Stand, free_port: Any, one: str, two: str) -> None:
    """Two routers, each with a connector to the other one for the same topics."""
    ports = [Place(free_port(), free_port()) for _ in range(2)]
    names = ["r1-blue-there", "r2-blue-there"]
    for index, protocol in enumerate((one, two)):
        here, there = ports[index], ports[1 - index]
        far = connector(there.url(protocol), client_names=[names[1 - index]], name=f"end-{index}")
        # At one end, either would do.
        if index:
            del far["provider"]["client_names"]
        stand.router(f"r{index + 1}", {"there": far}, here.mqtt, here.amqp)
    stand.judge()

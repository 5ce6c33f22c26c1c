"""Connectors over AMQP 1.0 to real brokers: what a message VPN sends to one, another takes from it, while it breaks."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from vpnrouter.cli import app
from vpnrouter.testing.modules import load_module

OPEN: Final = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
QUEUE: Final = "bench"
"""Name of the queue at the provider, as the one that RabbitMQ is given has."""

BATCH: Final = 20
PEERS: Final = [pytest.mark.slow, pytest.mark.peers]


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


class Broker:
    """A provider with a queue; `stops`: it can be stopped, and comes again with what it had."""

    def __init__(self, port: int, broker: Any) -> None:
        self.port = port
        self.stops = broker is not None
        self._broker = broker

    def restart(self) -> None:
        """Stop it, and begin again."""
        self._broker.stop()
        self._broker.start()


@pytest.fixture
def provide(
    providers: Any, start: Any, free_port: Callable[[], int], tmp_path: Path
) -> Iterator[Callable[[str], Broker]]:
    """`provide(name)` runs a provider; the test is skipped where it is not installed."""
    with contextlib.ExitStack() as stack:

        def begin(name: str, scheme: str) -> Broker:
            port = free_port()
            if name == "ourselves":
                document = {
                    "listeners": [
                        {"protocol": scheme, "bind": f"127.0.0.1:{port}", "msg_vpn": "red"}
                    ],
                    "msg_vpns": {"red": {**OPEN, "queues": {QUEUE: {}}}},
                }
                start(yaml.safe_dump(document), "there", wait=True)
                return Broker(port, None)
            if why := providers.missing(name):
                pytest.skip(why)
            kind = "rabbitmq-amqp" if name == "rabbitmq" else name
            return Broker(port, stack.enter_context(providers.providing(kind, port, tmp_path)))

        yield begin


def document(url: str, out: dict[str, Any], back: dict[str, Any]) -> str:
    """A router that sends from message VPN blue, and takes in green what the provider gives."""
    provider = {"url": url, "connect": {"retry_delay": 0}, "keepalive": 5}
    blue = {
        **OPEN,
        "queues": {"work": {"subscriptions": ["out/>"]}},
        "connectors": {"there": {"provider": provider, "links": {"out": out}}},
    }
    green = {
        **OPEN,
        "queues": {"near": {}},
        "connectors": {"there": {"provider": provider, "links": {"back": back}}},
    }
    listeners = [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "green"},
        {"protocol": "http", "bind": "127.0.0.1:0"},
    ]
    return yaml.safe_dump({"listeners": listeners, "msg_vpns": {"blue": blue, "green": green}})


CELLS: Final = [
    pytest.param("ourselves", "queue://", "at-most-once", False),
    pytest.param("ourselves", "queue://", "duplicates-ok", False),
    pytest.param("ourselves over amqpws", "queue://", "duplicates-ok", False),
    pytest.param("ourselves", "queue://", "duplicates-ok, transacted", False),
    pytest.param("ourselves", "queue://", "once-and-only-once", True),
    pytest.param("ourselves", "queue://", "once-and-only-once, transacted", True),
    pytest.param("artemis", "queue://", "duplicates-ok, transacted", False, marks=PEERS),
    pytest.param("artemis", "queue://", "once-and-only-once, transacted", True, marks=PEERS),
    pytest.param("artemis", "queue://", "at-most-once", False, marks=PEERS),
    pytest.param("artemis", "queue://", "duplicates-ok", False, marks=PEERS),
    pytest.param("artemis", "queue://", "once-and-only-once", True, marks=PEERS),
    pytest.param("artemis over amqpws", "queue://", "once-and-only-once", True, marks=PEERS),
    pytest.param("artemis", "topic://", "duplicates-ok", False, marks=PEERS),
    pytest.param("artemis", "topic://", "once-and-only-once", True, marks=PEERS),
    pytest.param("rabbitmq", "queue://", "at-most-once", False, marks=PEERS),
    pytest.param("rabbitmq", "queue://", "duplicates-ok", False, marks=PEERS),
]
"""Provider and scheme, kind of address, quality of service (in transactions), and whether nothing is doubled."""


@pytest.mark.parametrize(("name", "kind", "quality", "exact"), CELLS)
def test_there_and_back(
    start: Any,
    paho: Any,
    provide: Any,
    providers: Any,
    network: Any,
    patiently: Any,
    name: str,
    kind: str,
    quality: str,
    exact: bool,
) -> None:
    """What was published, at whatever QoS, is at the other side, as often as the quality promises."""
    name, _, scheme = name.partition(" over ")
    scheme = scheme or "amqp"
    quality, _, transacted = quality.partition(", ")
    broker = provide(name, scheme)
    link = network.link()
    link.target = ("127.0.0.1", broker.port)
    terms = {"quality_of_service": quality}
    address = f"{kind}{QUEUE}"
    subscription = {"subscription": "all"} if kind == "topic://" else {}
    out = {"source": {"queue": "work"}, "target": {"address": address}, **terms}
    if transacted:
        out |= {"transacted": True, "batch": {"max_size": 7, "max_time": 50}}
    back = {"source": {"address": address, **subscription}, "target": {"queue": "near"}, **terms}
    text = document(f"{scheme}://{link.address}", out, back)
    here = start(text, "here")

    def settled() -> bool:
        rows = [here.api().connectors(vpn)[0] for vpn in ("blue", "green")]
        states = [each["state"] for row in rows for each in row["links"]]
        return states == ["up", "up"] and not any(row["waitingMsgCount"] for row in rows)

    patiently(settled, "both are up")
    sent: dict[bytes, int] = {}
    for broken in ("nothing", "cut", "orphan", "kill here", "restart there", "nothing"):
        if broken == "restart there" and not broker.stops:
            continue
        if broken == "orphan" and name == "ourselves":
            # A provider gives messages to a connection that nobody reads until it finds out: here within two minutes.
            continue
        publisher = paho(here.port("mqtt"), f"p{len(sent)}")
        for number in range(BATCH):
            payload = b"%d" % len(sent)
            sent[payload] = number % 3
            publisher.client.publish(f"out/{number}", payload, qos=number % 3).wait_for_publish(20)
        publisher.stop()
        if broken == "kill here":
            here.kill()
            here = start(text, "here")
        elif broken == "restart there":
            broker.restart()
        elif broken != "nothing":
            getattr(link, broken)()
            link.heal()
        patiently(settled, f"all is up after: {broken}")
    queue = lambda: here.queue("green", "near")["msgCount"]  # noqa: E731
    providers.settled(queue)
    patiently(settled, "nothing waits")
    reader = paho(here.port("mqtt", 1), "reader")
    reader.subscribe("$queue/near", 1)
    providers.settled(reader.arrived.qsize)
    arrived = Counter(reader.arrived.get()[1] for _ in range(reader.arrived.qsize()))
    assert set(arrived) <= set(sent)
    if quality != "at-most-once":
        # What was published at QoS 0 is not kept by whoever dies.
        lost = [each for each, qos in sent.items() if qos and not arrived[each]]
        assert not lost
    if exact or quality == "at-most-once":
        assert not [each for each, count in arrived.items() if count > 1]
    for vpn in ("blue", "green"):
        for row in here.api().connectors(vpn)[0]["links"]:
            assert providers.balances(row)


SELECTED: Final = [
    pytest.param("ourselves", "queue://", True),
    pytest.param("artemis", "queue://", True, marks=PEERS),
    pytest.param("artemis", "topic://", True, marks=PEERS),
    pytest.param("rabbitmq", "queue://", False, marks=PEERS),
]
"""Provider, kind of address, and whether the provider knows selectors."""


@pytest.mark.parametrize(("name", "kind", "knows"), SELECTED)
def test_a_selector(
    start: Any, paho: Any, provide: Any, patiently: Any, name: str, kind: str, knows: bool
) -> None:
    """The provider selects, or the link says that it cannot."""
    broker = provide(name, "amqp")
    address = f"{kind}{QUEUE}"
    subscription = {"subscription": "high"} if kind == "topic://" else {}
    out = {"source": {"queue": "work"}, "target": {"address": address}}
    source = {"address": address, "selector": "severity in ('4', '5', '6')", **subscription}
    back = {"source": source, "target": {"queue": "near"}}
    here = start(document(f"amqp://127.0.0.1:{broker.port}", out, back), "here")

    def link() -> dict[str, Any]:
        return dict(here.api().connectors("green")[0]["links"][0])

    if not knows:
        patiently(lambda: link()["state"] == "refused", "the link is refused")
        assert link()["stateReason"] == "rabbitmq3 knows no selectors"
        return
    patiently(lambda: link()["state"] == "up", "the link is up")
    publisher = paho(here.port("mqtt"), "p")
    for severity in "142536":
        told = Properties(PacketTypes.PUBLISH)
        told.UserProperty = ("severity", severity)
        said = publisher.client.publish("out/1", severity, qos=1, properties=told)
        said.wait_for_publish(20)
    reader = paho(here.port("mqtt", 1), "reader")
    reader.subscribe("$queue/near", 1)
    assert [reader.next()[1] for _ in range(3)] == [b"4", b"5", b"6"]


def test_a_durable_subscription_goes_with_its_connector(
    start: Any, free_port: Callable[[], int], patiently: Any, tmp_path: Path
) -> None:
    """The provider keeps messages for it while the router is down, and nothing when the connector is removed."""
    port = free_port()
    far = {
        "listeners": [
            {"protocol": "amqp", "bind": f"127.0.0.1:{port}", "msg_vpn": "red"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {"red": OPEN},
    }
    there = start(yaml.safe_dump(far), "there")
    source = {"address": "topic://t", "subscription": "s"}
    link = {"source": source, "target": {"queue": "near"}}
    provider = {"url": f"amqp://127.0.0.1:{port}", "connect": {"retry_delay": 0}}
    blue: dict[str, Any] = {
        **OPEN,
        "queues": {"near": {}},
        "connectors": {"there": {"provider": provider, "links": {"l": link}}},
    }
    near = {
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {"blue": blue},
    }

    def kept() -> list[str]:
        return [row["queueName"] for row in there.api().queues("red")]

    here = start(yaml.safe_dump(near), "here")
    patiently(lambda: len(kept()) == 1, "the subscription is there")
    here.kill()
    here = start(yaml.safe_dump(near), "here")
    patiently(lambda: here.api().connectors("blue")[0]["state"] == "up", "it is up again")
    assert len(kept()) == 1
    del blue["connectors"]
    path = tmp_path / "here.yaml"
    head = path.read_text(encoding="utf-8").splitlines()[0]
    path.write_text(f"{head}\n{yaml.safe_dump(near)}", encoding="utf-8")
    here.process.send_signal(1)
    patiently(lambda: not kept(), "the subscription has gone")


@pytest.mark.parametrize(
    "name",
    [
        "ourselves",
        pytest.param("artemis", marks=PEERS),
        pytest.param("rabbitmq", marks=PEERS),
    ],
)
@pytest.mark.parametrize("written", [f"queue://{QUEUE}", f"$queue/{QUEUE}"])
def test_commands_name_queues_of_each_broker(
    provide: Any, capsys: pytest.CaptureFixture[str], name: str, written: str
) -> None:
    """What `vpnrouter pub` puts into a queue there, `vpnrouter sub` takes out of it."""
    place = ["--protocol", "amqp", "--port", str(provide(name, "amqp").port), "--qos", "1"]
    for text in ("one", "two"):
        assert app.run(["pub", written, text, *place]) == 0
    capsys.readouterr()
    taken = ["--count", "2", "--timeout", "30", "--format", "text"]
    assert app.run(["sub", written, *taken, *place]) == 0
    assert capsys.readouterr().out.splitlines() == ["one", "two"]

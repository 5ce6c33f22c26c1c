"""What crosses a connector and how often: provider × version × quality × published QoS × direction, while it breaks."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.testing.modules import load_module

pytestmark = [pytest.mark.slow, pytest.mark.peers]

QUALITIES: Final = {"at-most-once": 0, "duplicates-ok": 1, "once-and-only-once": 2}

KNOWS: Final[dict[str, dict[str, tuple[int, bool]]]] = {
    "mosquitto": {"5": (2, True), "3.1.1": (2, True)},
    "ourselves": {"5": (2, False), "3.1.1": (2, False)},
    "nats": {"3.1.1": (1, False)},
    "rabbitmq": {"3.1.1": (1, False)},
}
"""The most QoS of each provider, by the versions that it speaks; and whether a QoS 1 message that it sends again is
known over its own restart, because it keeps its identifier."""

CELLS: Final = [
    (provider, version, quality)
    for provider, versions in KNOWS.items()
    for version, (most, _) in versions.items()
    for quality, qos in QUALITIES.items()
    if qos <= most
]

BREAKS: Final = ("nothing", "cut", "orphan", "kill here", "restart there", "hang there", "cut")
"""What happens beneath the messages, one after the other."""

BATCH: Final = 12


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


@pytest.fixture
def provide(providers: Any, sites: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """`provide(name)` runs a provider where the connector finds it; the test is skipped where it is not installed."""
    with contextlib.ExitStack() as stack:

        def begin(name: str) -> Any:
            if why := providers.missing(name):
                pytest.skip(why)
            if name == "ourselves":
                sites.provide()
                return None
            return stack.enter_context(providers.providing(name, sites.port, tmp_path))

        yield begin


class Traffic:
    """Messages that are published at both sides, and what has arrived at the other one."""

    def __init__(self, sites: Any, paho: Any, level: int) -> None:
        self._sites, self._paho, self._level = sites, paho, level
        self.sent: dict[str, dict[bytes, int]] = {"in": {}, "out": {}}
        self.acknowledged: set[bytes] = set()
        self._number = 0
        self._far: Any = None
        self.got: Counter[bytes] = Counter()
        # What is retained by topic, and how often a new subscription of ours may have brought it.
        self._retained: dict[str, bytes] = {}
        self._replayed: Counter[bytes] = Counter()

    def batch(self, way: str, *, most_qos: int) -> None:
        """Publish some at each QoS, retained ones among them."""
        port = self._sites.port if way == "in" else self._sites.here.port("mqtt")
        client = self._paho(port, f"p{self._number}", level=self._level if way == "in" else 5)
        for number in range(BATCH):
            qos = min(number % 3, most_qos if way == "in" else 2)
            self._number += 1
            payload = b"%s-%d" % (way.encode(), self._number)
            self.sent[way][payload] = qos
            topic = f"{way}/{number % 4}"
            retain = number % 4 == 3
            if retain and way == "out":
                self._retained[topic] = payload
            info = client.client.publish(topic, payload, qos=qos, retain=retain)
            info.wait_for_publish(20)
            if qos:
                self.acknowledged.add(payload)
        client.stop()

    def listen(self, *, most_qos: int) -> None:
        """Consume at the provider, over one session that lasts."""
        if self._far is not None:
            self._far.stop()
            self._replayed.update(self._retained.values())
        clean = {"clean_session": False} if self._level == 4 else {}
        client = self._paho(self._sites.port, "far", level=self._level, **clean)
        client.subscribe("out/#", most_qos)
        self._far = client

    def collect(self) -> None:
        """Note what has arrived at the provider."""
        while self._far is not None and not self._far.arrived.empty():
            self.got[self._far.arrived.get()[1]] += 1

    def judge(self, way: str, quality: str, arrived: Counter[bytes], *, exact: bool) -> None:
        """Compare what arrived with what the quality promises."""
        sent = self.sent[way]
        strange = set(arrived) - set(sent)
        assert not strange
        if quality != "at-most-once":
            lost = sorted(
                payload for payload in sent if payload in self.acknowledged and not arrived[payload]
            )
            assert not lost, f"lost {way}: {lost}"
        if quality == "at-most-once" or exact:
            more = self._replayed if way == "out" else Counter[bytes]()
            doubled = {
                payload: count for payload, count in arrived.items() if count > 1 + more[payload]
            }
            assert not doubled, f"doubled {way}: {doubled}"


@pytest.mark.parametrize(("provider", "version", "quality"), CELLS)
def test_each_cell(
    sites: Any,
    paho: Any,
    provide: Any,
    providers: Any,
    network: Any,
    provider: str,
    version: str,
    quality: str,
) -> None:
    """Nothing is lost that the quality keeps, and nothing is doubled that it does not allow; neither way waits."""
    broker = provide(provider)
    most_qos, keeps = KNOWS[provider][version]
    link = network.link()
    link.target = ("127.0.0.1", sites.port)
    links = {
        "in": {"source": {"address": "in/#"}, "quality_of_service": quality},
        "out": {"source": {"topic": "out/>"}, "quality_of_service": quality},
    }
    queues = {"near": {"subscriptions": ["in/>"]}}
    options = {"url": f"mqtt://{link.address}", "mqtt_version": version}
    sites.connect(links, queues=queues, **options)
    traffic = Traffic(sites, paho, 5 if version == "5" else 4)
    traffic.listen(most_qos=most_qos)
    restarts = broker is not None
    for broken in BREAKS:
        if broken.endswith("there") and not restarts:
            continue
        traffic.batch("in", most_qos=most_qos)
        traffic.batch("out", most_qos=most_qos)
        if broken == "kill here":
            sites.here.kill()
            sites.connect(links, queues=queues, **options)
        elif broken == "restart there":
            # What the provider sends while it stops reaches the consumer there first.
            providers.settled(lambda: (traffic.collect(), sum(traffic.got.values()))[1])
            broker.stop()
            broker.start()
            time.sleep(0.5)
            traffic.listen(most_qos=most_qos)
        elif broken == "hang there":
            broker.freeze()
            time.sleep(2)
            broker.thaw()
        elif broken != "nothing":
            getattr(link, broken)()
            link.heal()
        sites.state("up")
    traffic.batch("in", most_qos=most_qos)
    traffic.batch("out", most_qos=most_qos)
    sites.state("up", waitingMsgCount=0)
    providers.settled(lambda: (traffic.collect(), sum(traffic.got.values()))[1], 2.0)
    traffic.judge("out", quality, traffic.got, exact=quality == "once-and-only-once")
    reader = paho(sites.here.port("mqtt"), "reader")
    reader.subscribe("$queue/near", 1)
    providers.settled(reader.arrived.qsize, 2.0)
    arrived = Counter(reader.arrived.get()[1] for _ in range(reader.arrived.qsize()))
    exact = quality == "once-and-only-once" and (keeps or not restarts)
    traffic.judge("in", quality, arrived, exact=exact)
    for row in sites.row()["links"]:
        assert providers.balances(row)

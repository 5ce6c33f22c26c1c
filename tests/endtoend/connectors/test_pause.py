"""Connectors and links that are paused: nothing crosses, they stay connected, and go on in order, over a restart."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest
import yaml

from vpnrouter.errors import OperationError
from vpnrouter.testing.modules import load_module

OPEN: Final = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
QUEUE: Final = "bench"
PEERS: Final = [pytest.mark.slow, pytest.mark.peers]
QUALITIES: Final = ("at-most-once", "duplicates-ok", "once-and-only-once")


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """The module http_servers.py."""
    return load_module("connector_http_servers", Path(__file__).with_name("http_servers.py"))


class Cell(NamedTuple):
    """What is paused: the connector `out` of message VPN blue, or `back` of green, or their links.

    `discards`: what comes meanwhile is not kept.
    """

    provider: str
    protocol: str
    quality: str
    paused: str
    discards: bool = False


def _cells() -> Iterator[Any]:
    for protocol in ("mqtt 5", "mqtt 3.1.1"):
        for quality in QUALITIES:
            yield Cell("ourselves", protocol, quality, "out/out")
            lost = quality == "at-most-once"
            yield Cell("ourselves", protocol, quality, "back/back", lost)
    for quality in QUALITIES[:2]:
        yield Cell("ourselves", "amqp", quality, "out")
        yield Cell("ourselves", "amqp", quality, "back")
    for which in ("out", "back"):
        yield pytest.param(Cell("mosquitto", "mqtt 3.1.1", QUALITIES[2], which), marks=PEERS)
        yield pytest.param(Cell("artemis", "amqp", QUALITIES[1], which), marks=PEERS)
        yield pytest.param(Cell("artemis", "amqp", QUALITIES[2], which), marks=PEERS)


@pytest.fixture
def provide(
    providers: Any, start: Any, free_port: Callable[[], int], tmp_path: Path
) -> Iterator[Callable[[Cell], int]]:
    """`provide(cell)` runs a provider, and returns its port."""
    with contextlib.ExitStack() as stack:

        def begin(cell: Cell) -> int:
            port = free_port()
            if cell.provider == "ourselves":
                scheme = cell.protocol.partition(" ")[0]
                listener = {"protocol": scheme, "bind": f"127.0.0.1:{port}", "msg_vpn": "red"}
                red = {**OPEN, "queues": {QUEUE: {}}}
                document = {"listeners": [listener], "msg_vpns": {"red": red}}
                start(yaml.safe_dump(document), "there")
            elif why := providers.missing(cell.provider):
                pytest.skip(why)
            else:
                stack.enter_context(providers.providing(cell.provider, port, tmp_path))
            return port

        yield begin


def text_of(cell: Cell, port: int) -> str:
    """A router that sends from message VPN blue, and takes in green what the provider gives."""
    scheme, _, version = cell.protocol.partition(" ")
    provider: dict[str, Any] = {
        "url": f"{scheme}://127.0.0.1:{port}",
        "connect": {"retry_delay": 0},
        "keepalive": 5,
    }
    if version:
        provider["mqtt_version"] = version
        there, here = "t/{1}", "t/#"
    else:
        there = here = f"queue://{QUEUE}"
    out = {"source": {"queue": "work"}, "target": {"address": there}}
    back = {"source": {"address": here}, "target": {"queue": "near"}}
    quality = {"quality_of_service": cell.quality}
    vpns = {
        "blue": {
            **OPEN,
            "queues": {"work": {"subscriptions": ["out/>"]}},
            "connectors": {"out": {"provider": provider, "links": {"out": out | quality}}},
        },
        "green": {
            **OPEN,
            "queues": {"near": {}},
            "connectors": {"back": {"provider": provider, "links": {"back": back | quality}}},
        },
    }
    listeners = [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "green"},
        {"protocol": "http", "bind": "127.0.0.1:0"},
    ]
    return yaml.safe_dump({"listeners": listeners, "msg_vpns": vpns})


VPNS: Final = {"out": "blue", "back": "green"}


class Publisher:
    """Publishes numbers, one after the other, each when the one before is acknowledged."""

    def __init__(self, sent: list[bytes], client: Any) -> None:
        self._sent = sent
        self._client = client

    def some(self, count: int = 20) -> None:
        """Publish so many."""
        for _ in range(count):
            payload = b"%d" % len(self._sent)
            self._client.client.publish("out/a", payload, qos=1).wait_for_publish(20)
            self._sent.append(payload)

    @contextlib.contextmanager
    def all_the_while(self) -> Iterator[None]:
        """Publish until what is done meanwhile is done."""
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                self.some(1)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60)


def act(router: Any, action: str, which: str, vpn: str = "") -> None:
    """Do something to the connector, or to a link of it: CONNECTOR[/LINK]."""
    connector, _, link = which.partition("/")
    place: list[Any] = ["msgVpns", vpn or VPNS[connector], "connectors", connector]
    router.api().act(action, *place, *(("links", link) if link else ()))


def link_of(router: Any, name: str) -> dict[str, Any]:
    """The connector's link, with the state of the connector."""
    (row,) = router.api().connectors(VPNS[name])
    (link,) = row["links"]
    return {**link, "connectorState": row["state"], "uptime": row["uptime"]}


@pytest.mark.parametrize("cell", _cells(), ids=lambda cell: " ".join(map(str, cell[:4])))
def test_nothing_crosses_and_all_goes_on(
    start: Any, paho: Any, provide: Any, providers: Any, patiently: Any, cell: Cell
) -> None:
    """Paused in the middle of messages, over a restart: then all are there, in order, once."""
    text = text_of(cell, provide(cell))
    here = start(text, "here")
    name = cell.paused.partition("/")[0]
    whole = cell.paused == name

    def opened(state: str) -> Callable[[], bool]:
        return lambda: all(
            link_of(here, one)["state"] == (state if one == name else "up") for one in VPNS
        )

    patiently(opened("up"), "both are up")
    sent: list[bytes] = []
    publisher = Publisher(sent, paho(here.port("mqtt"), "publisher"))
    publisher.some()
    with publisher.all_the_while():
        patiently(lambda: here.queue("green", "near")["msgCount"] > 0, "messages cross")
        act(here, "pause", cell.paused)
    act(here, "pause", cell.paused)
    crossed = providers.settled(lambda: here.queue("green", "near")["msgCount"])
    before = link_of(here, name)
    publisher.some()
    assert providers.settled(lambda: here.queue("green", "near")["msgCount"]) == crossed
    link = link_of(here, name)
    assert link["state"] == "paused"
    assert link["connectorState"] == ("paused" if whole else "up")
    assert link["uptime"] >= before["uptime"]
    assert name == "back" or link["msgCount"] == before["msgCount"]
    if cell.discards:
        # What is counted is there afterwards.
        here.stop()
    else:
        here.kill()
    here = start(text, "here")
    publisher = Publisher(sent, paho(here.port("mqtt"), "publisher"))
    patiently(opened("paused"), "it is paused again")
    state = "paused" if whole else "up"
    patiently(lambda: link_of(here, name)["connectorState"] == state, "and connected")
    publisher.some()
    assert providers.settled(lambda: here.queue("green", "near")["msgCount"]) == crossed
    with publisher.all_the_while():
        act(here, "resume", cell.paused)
        patiently(lambda: here.queue("green", "near")["msgCount"] > crossed, "messages cross")
    patiently(opened("up"), "both are up")
    arrived = providers.settled(lambda: here.queue("green", "near")["msgCount"])
    reader = paho(here.port("mqtt", 1), "reader")
    reader.subscribe("$queue/near", 1)
    got = [reader.next()[1] for _ in range(arrived)]
    link = link_of(here, name)
    if cell.discards:
        assert link["discards"] == {"paused": len(sent) - len(got)}
        assert got == [each for each in sent if each in got]
    else:
        assert got == sent
    for one in VPNS:
        assert providers.balances(link_of(here, one))
    events = [row["event"] for row in here.api().events(1_000)]
    assert events.count("VPN_CONNECTOR_RESUMED") == 1
    assert "VPN_CONNECTOR_DOWN" not in events


# -- one router and a provider of its own --------------------------------------------------------


def its(sites: Any, name: str) -> dict[str, Any]:
    """The link of this name."""
    (row,) = [each for each in sites.row()["links"] if each["linkName"] == name]
    return dict(row)


def do(sites: Any, action: str, link: str = "") -> None:
    """Do something to the connector `there`, or to a link of it."""
    act(sites.here, action, f"there/{link}" if link else "there", "blue")


@pytest.mark.parametrize("quality", QUALITIES[:2])
def test_requests(
    sites: Any, paho: Any, servers: Any, providers: Any, patiently: Any, quality: str
) -> None:
    """No request begins while a link to an HTTP server is paused; then all do, in order, each once."""
    link = {
        "source": {"queue": "work"},
        "request": {"order": "link"},
        "quality_of_service": quality,
    }
    queues = {"work": {"subscriptions": ["out/>"]}}
    with servers.serving(servers.HookServer()) as server:
        url = f"http://127.0.0.1:{server.port}"
        sites.connect({"out": link}, queues=queues, url=url)
        sent: list[bytes] = []
        publisher = Publisher(sent, paho(sites.here.port("mqtt"), "publisher"))
        with publisher.all_the_while():
            patiently(lambda: len(server.bodies()) > 10, "requests come")
            do(sites, "pause", "out")
        begun = providers.settled(lambda: len(server.bodies()))
        publisher.some()
        assert providers.settled(lambda: len(server.bodies())) == begun
        assert its(sites, "out")["state"] == "paused"
        sites.here.kill()
        sites.connect({"out": link}, queues=queues, url=url)
        sites.until_link("out", state="paused")
        publisher = Publisher(sent, paho(sites.here.port("mqtt"), "publisher"))
        publisher.some()
        assert providers.settled(lambda: len(server.bodies())) == begun
        do(sites, "resume", "out")
        patiently(lambda: len(server.bodies()) >= len(sent), "all requests come")
        sites.until_link("out", state="up", waitingMsgCount=0)
        assert server.bodies() == sent
        assert providers.balances(its(sites, "out"))


def test_direct_messages_are_not_taken(sites: Any, paho: Any, providers: Any) -> None:
    """What is published for a link at most once while that is paused is gone, as for whoever is away."""
    sites.provide()
    links = {"out": {"source": {"topic": "out/>"}, "quality_of_service": "at-most-once"}}
    here = sites.connect(links)
    far, near = paho(sites.port, "far"), paho(here.port("mqtt"), "near")
    far.subscribe("out/#")
    for number, action in enumerate(("pause", "resume", "pause", "resume")):
        do(sites, action, "out" if number < 2 else "")
        near.publish("out/a", b"%d" % number)
        sites.until_link("out", state="paused" if action == "pause" else "up")
    assert [far.next(), far.next()] == [("out/a", b"1"), ("out/a", b"3")]
    assert far.arrived.empty()
    row = its(sites, "out")
    assert (row["msgCount"], row["deliveredMsgCount"]) == (2, 2)
    assert providers.balances(row)


def test_other_links_go_on(sites: Any, paho: Any, providers: Any) -> None:
    """A paused link over MQTT holds no other one up, though they share a connection and what may be unanswered."""
    sites.provide()
    links = {"a": {"source": {"address": "a/#"}}, "b": {"source": {"address": "b/#"}}}
    here = sites.connect(links)
    far, near = paho(sites.port, "far"), paho(here.port("mqtt"), "near")
    near.subscribe("#", 1)
    do(sites, "pause", "a")
    for number in range(2_000):
        far.client.publish("a/x", b"%d" % number, qos=1)
    far.client.publish("b/x", b"b", qos=1).wait_for_publish(60)
    assert near.next() == ("b/x", b"b")
    sites.until_link("a", state="paused", waitingMsgCount=2_000)
    do(sites, "resume", "a")
    assert [int(near.next()[1]) for _ in range(2_000)] == list(range(2_000))
    sites.until_link("a", state="up", waitingMsgCount=0)
    assert all(providers.balances(row) for row in sites.row()["links"])


def test_a_queue_that_fills(sites: Any, paho: Any, providers: Any, patiently: Any) -> None:
    """What a paused link has no room for waits at the provider, with the reason; all of it comes in order, once."""
    sites.provide()
    once = {"quality_of_service": "once-and-only-once"}
    links = {"in": {"source": {"address": "in/#"}, **once}}
    small = {"mqtt": {"session_queue": {"max_msg_spool_usage": 1}}}
    sites.connect(links, vpn=small)
    far, near = paho(sites.port, "far"), paho(sites.here.port("mqtt"), "near")
    near.subscribe("in/#", 1)
    do(sites, "pause", "in")
    sent = [b"%d:" % number + bytes(100_000) for number in range(150)]
    for payload in sent:
        far.client.publish("in/a", payload, qos=1).wait_for_publish(60)
    sites.until_link("in", state="paused")
    patiently(lambda: "no more room" in its(sites, "in")["stateReason"], "it says why")
    assert near.arrived.empty()
    do(sites, "resume", "in")
    assert [near.next()[1] for _ in sent] == sent
    sites.until_link("in", state="up", inFlightMsgCount=0, stateReason="")
    assert near.arrived.empty()
    assert providers.balances(its(sites, "in"))


def test_what_else_is_done_meanwhile(sites: Any, paho: Any, providers: Any) -> None:
    """Reconnected it is paused; disabled is told instead of that; what is removed is not there to be resumed."""
    sites.provide()
    links = {
        "in": {"source": {"address": "in/#"}, "quality_of_service": "once-and-only-once"},
        "out": {"source": {"topic": "out/>"}},
        "other": {"source": {"address": "other/#"}},
    }
    here = sites.connect(links)
    # A message that comes again when the connector connects anew is to be no second one.
    far, near = paho(sites.port, "far"), paho(here.port("mqtt"), "near")
    far.subscribe("out/#", 1)
    near.subscribe("in/#", 1)
    do(sites, "pause")
    sites.state("paused", paused=True)
    for name in links:
        sites.until_link(name, state="paused", paused=True)
    near.client.publish("out/a", b"1", qos=1).wait_for_publish(20)
    far.client.publish("in/a", b"1", qos=2).wait_for_publish(20)
    sites.until_link("in", waitingMsgCount=1)
    for link in ("", "in"):
        do(sites, "reconnect", link)
        sites.state("paused", waitingMsgCount=2)
    do(sites, "disable")
    sites.state("disabled", paused=True)
    sites.until_link("in", state="paused")
    do(sites, "enable")
    sites.state("paused", waitingMsgCount=2)
    do(sites, "disable", "in")
    sites.until_link("in", state="disabled")
    do(sites, "enable", "in")
    sites.until_link("in", state="paused", waitingMsgCount=1)
    # A link is paused by itself, or by its connector: it goes on when neither is.
    do(sites, "pause", "out")
    do(sites, "resume")
    sites.state("up")
    assert near.next() == ("in/a", b"1")
    sites.until_link("out", state="paused", waitingMsgCount=1)
    assert far.arrived.empty()
    do(sites, "resume", "out")
    assert far.next() == ("out/a", b"1")
    do(sites, "pause", "other")
    here.api().delete_config("/msgVpns/blue/connectors/there/links/other")
    sites.until_links("in", "out")
    with pytest.raises(OperationError, match="link other in connector there in msgVpn blue"):
        do(sites, "resume", "other")
    do(sites, "pause")
    sites.state("paused")
    here.api().delete_config("/msgVpns/blue/connectors/there")
    with pytest.raises(OperationError, match="connector there in msgVpn blue"):
        do(sites, "resume")
    events = [each["text"] for each in here.api().events(1_000) if "_PAUSED" in each["event"]]
    assert [text.partition("there ")[2] for text in events] == [
        "is paused",
        "link out is paused",
        "link other is paused",
        "is paused",
    ]

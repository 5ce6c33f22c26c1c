"""Connectors whose provider is an HTTP server: what arrives there, and what becomes of messages when it misbehaves."""

import email.utils
import itertools
import json
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest
import trustme
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from vpnrouter import limits
from vpnrouter.testing.modules import load_module

DEAD: Final = "#DEAD_MSG_QUEUE"
QUEUES: Final = {"work": {"subscriptions": ["w/>"]}, DEAD: {}}
SOON: Final = {"retry": {"initial_interval": 50, "max_interval": 200}}
WORK: Final = {"source": {"queue": "work"}, "request": SOON}
TOKEN: Final = "tok-3n-of-the-hook"
LONG: Final = TOKEN + "." * 2_000
"""As long as tokens of clouds are."""


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """The module http_servers.py."""
    return load_module("connector_http_servers", Path(__file__).with_name("http_servers.py"))


@pytest.fixture
def hook(servers: Any) -> Iterator[Callable[..., Any]]:
    """`hook(answer)`: the server of the standard library; `hook(behave=…)`: one that sends bytes."""
    with ExitStack() as stack:

        def begin(answer: Any = None, port: int = 0, behave: Any = None, tls: Any = None) -> Any:
            made = (
                servers.HookServer(port, answer, tls)
                if behave is None
                else servers.RawServer(behave, port)
            )
            return stack.enter_context(servers.serving(made))

        yield begin


def properties(**values: Any) -> Properties:
    """Properties of a message."""
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(made, name, value)
    return made


def key(name: str) -> Properties:
    """The property that is the key of a message."""
    return properties(UserProperty=[("JMSXGroupID", name)])


def connect(sites: Any, port: int, links: Any = None, queues: Any = None, **provider: Any) -> Any:
    """Start a router with a connector to the server at a port."""
    provider.setdefault("url", f"http://127.0.0.1:{port}")
    return sites.connect(links or {"out": WORK}, queues=queues or QUEUES, **provider)


def publish(client: Any, topic: str, payload: bytes, **more: Any) -> None:
    """Publish a guaranteed message, and wait until it is acknowledged."""
    client.client.publish(topic, payload, qos=1, **more).wait_for_publish(60)


def balanced(sites: Any) -> bool:
    """Whether each message of each link is accounted for."""
    for row in sites.row()["links"]:
        known = sum(
            row[f"{name}MsgCount"]
            for name in (
                "delivered",
                "duplicate",
                "returned",
                "deadLetter",
                "discarded",
                "inFlight",
            )
        )
        if row["msgCount"] != known:
            return False
    return True


# -- what arrives --------------------------------------------------------------------------------


def test_request(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """A message becomes a request: its path, its type, its headers, its payload; nothing can begin another header."""
    server = hook()
    links = {
        "out": {
            "source": {"queue": "work"},
            "target": {"address": "/hooks/{1}?of={1}&x=1"},
            "request": {
                "method": "PUT",
                "headers": {
                    "X-Line": "line {property:line} of {topic}",
                    "X-None": "{property:nothing}",
                    "X-Id": "{message_id}",
                    "X-For": "{correlation_data}",
                    "X-Same": "the same {{always}}",
                },
            },
        }
    }
    here = connect(sites, server.port, links, url=f"http://127.0.0.1:{server.port}/base/")
    row = sites.state("up")
    assert row["protocol"] == "HTTP/1.1"
    assert row["provider"] == f"http://127.0.0.1:{server.port}/base"
    client = paho(here.port("mqtt"))
    said = properties(
        ContentType="text/csv",
        CorrelationData=b"c-1",
        UserProperty=[("line", "7\r\nX-Evil: 1 \u00e9 50%"), ("line", "8")],
    )
    publish(client, "w/a b/\u00e9?#"[:7], b"1;2", properties=said)
    publish(client, "w/..", b"never")
    publish(client, "w/plain", bytes(200_000))
    patiently(lambda: len(server.requests) == 2, "two requests")
    first, second = server.requests
    assert first.method == "PUT"
    assert first.path == "/base/hooks/w/a%20b/%C3%A9?of=w%2Fa%20b%2F%C3%A9&x=1"
    assert first.body == b"1;2"
    assert first.headers["content-type"] == "text/csv"
    assert first.headers["x-line"] == "line 7%0D%0AX-Evil: 1 %C3%A9 50%25 of w/a b/%C3%A9"
    assert first.headers["x-same"] == "the same {always}"
    assert first.headers["x-for"] == "c-1"
    assert first.headers["message-topic"] == "w/a b/%C3%A9"
    assert first.headers["idempotency-key"] == f'"{first.headers["x-id"]}"'
    assert first.headers["host"] == f"127.0.0.1:{server.port}"
    assert {"x-none", "x-evil", "authorization"}.isdisjoint(first.headers)
    assert (second.body, second.headers["content-type"]) == (
        bytes(200_000),
        "application/octet-stream",
    )
    assert second.headers["idempotency-key"] != first.headers["idempotency-key"]
    # A topic that would lead out of the path that the configuration names.
    patiently(lambda: len(here.api().msgs("blue", DEAD, 10)) == 1, "the dead letter")
    patiently(lambda: balanced(sites), "all messages accounted for")


def test_topics_and_direct(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """Links take topics, Direct and guaranteed; the topic is the path without an address."""
    server = hook()
    links = {
        "direct": {"source": {"topic": "d/>"}, "quality_of_service": "at-most-once"},
        "kept": {"source": {"topic": "k/*/x"}, "target": {"address": "k-{1}"}},
        "once": {"source": {"queue": "work"}, "quality_of_service": "at-most-once"},
    }
    client = paho(connect(sites, server.port, links).port("mqtt"))
    for number in range(50):
        client.publish(f"d/{number}", b"d")
    publish(client, "k/7/x", b"k")
    publish(client, "w/1", b"w")
    patiently(lambda: len(server.requests) == 52, "52 requests")
    paths = Counter(request.path for request in server.requests)
    assert paths == Counter([*(f"/d/{number}" for number in range(50)), "/k-7", "/w/1"])
    direct = next(request for request in server.requests if request.path == "/d/1")
    assert "idempotency-key" not in direct.headers
    patiently(lambda: balanced(sites), "all messages accounted for")
    assert sum(row["deliveredMsgCount"] for row in sites.row()["links"]) == 52


def test_parallel(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """As many requests are under way as there may be connections, and connections are used again."""
    gate = threading.Barrier(8)

    def answer(_: Any) -> Any:
        gate.wait(60)
        return 204, {}, b""

    server = hook(answer)
    here = connect(sites, server.port, max_connections=8)
    client = paho(here.port("mqtt"))
    for number in range(40):
        client.client.publish("w/x", b"%d" % number, qos=1)
    # The gate opens for eight at a time alone.
    patiently(lambda: len(server.requests) == 40, "40 requests")
    assert server.connections == 8
    assert sorted(int(body) for body in server.bodies()) == list(range(40))


def test_reply(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """What the server answers goes to the Response Topic, with Correlation Data and type; not what is too large."""

    def answer(request: Any) -> Any:
        if request.body == b"large":
            return 200, {}, bytes(limits.HTTP_REPLY_BYTES + 1)
        return 200, {"Content-Type": "text/x"}, b"re: " + request.body

    server = hook(answer)
    links = {
        "out": {"source": {"queue": "work"}, "request": {"reply": True}},
        "direct": {
            "source": {"topic": "d/>"},
            "quality_of_service": "at-most-once",
            "request": {"reply": True},
        },
        # What is replied is published like anything else, but is not sent to where it comes from.
        "back": {"source": {"topic": "re/>"}},
    }
    here = connect(sites, server.port, links)
    client = paho(here.port("mqtt"))
    came: list[Any] = []
    client.client.on_message = lambda _c, _u, message: came.append(message)
    client.subscribe("re/#", 1)
    for topic, body, qos in (
        ("w/1", b"large", 1),
        ("w/1", b"one", 1),
        ("d/1", b"two", 0),
        ("w/2", b"bad topic", 1),
    ):
        to = "re/+" if body == b"bad topic" else "re/me"
        asks = properties(CorrelationData=body)
        if to == "re/me":
            asks.ResponseTopic = to
        client.client.publish(topic, body, qos=qos, properties=asks).wait_for_publish(60)
    patiently(lambda: len(came) >= 2, "two replies")
    patiently(lambda: len(server.requests) == 4, "all requests")
    found = {
        message.payload: (
            message.properties.CorrelationData,
            message.properties.ContentType,
            message.qos,
        )
        for message in came
    }
    assert found == {b"re: one": (b"one", "text/x", 1), b"re: two": (b"two", "text/x", 0)}
    patiently(lambda: balanced(sites), "all messages accounted for")


# -- what misbehaves -----------------------------------------------------------------------------

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Kind(NamedTuple):
    """What the server does about one message: bytes, whether it closes then, and how it sends them. `often`: so many
    times, then it takes the message; 0 for ever. `why` is what the dead letter says, "" where it is taken at last.
    """

    data: bytes
    why: str = ""
    closes: bool = False
    often: int = 0
    pause_s: float = 0.0
    times: int = 1
    least_s: float = 0.0


SILENT: Final = "the provider has not answered it for 1 s"
HALF: Final = "before the answer was complete"
LATER: Final = b"HTTP/1.1 503 Later\r\nRetry-After: %b\r\nContent-Length: 0\r\n\r\n"

KINDS: Final[dict[str, Kind]] = {
    "closes before it answers": Kind(b"", closes=True, often=4),
    "500": Kind(b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nno!", often=6),
    "status beyond 599": Kind(b"HTTP/1.1 777 No\r\nContent-Length: 0\r\n\r\n", often=4),
    "408, which closes": Kind(
        b"HTTP/1.1 408 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", closes=True, often=4
    ),
    "425": Kind(b"HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n", often=4),
    "429, for a second": Kind(
        b"HTTP/1.1 429 Slower\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", often=1, least_s=1.0
    ),
    "503, until a date": Kind(b"DATE", often=1, least_s=1.0),
    "503, with garbage for a date": Kind(LATER % b"soon", often=4),
    "404": Kind(b"HTTP/1.1 404 Not here\r\nContent-Length: 0\r\n\r\n", "answered 404 Not here"),
    "400, chunked": Kind(
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "400 Bad"
    ),
    "redirect": Kind(
        b"HTTP/1.1 301 Moved\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n",
        "301 Moved, to http://other/; redirects are not followed",
    ),
    "304": Kind(b"HTTP/1.1 304 Same\r\n\r\n", "304 Same"),
    "half a head": Kind(OK[:25], HALF, closes=True),
    "half a body": Kind(OK[:-5] + b"9\r\n\r\nhalf", HALF, closes=True),
    "garbage": Kind(b"\x00\x01\x02 no HTTP at all\r\n\r\n", "no status line of HTTP/1.1"),
    "another protocol": Kind(b"220 mail.example.org ESMTP\r\n", "no answer of HTTP/1.1"),
    "switches protocols": Kind(b"HTTP/1.1 101 Sure\r\n\r\n", "101"),
    "hangs": Kind(b"", SILENT),
    "hangs in the middle": Kind(OK[:25], SILENT),
    "trickles": Kind(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 1_000, SILENT, pause_s=0.02),
    "informs for ever": Kind(b"HTTP/1.1 100 Continue\r\n\r\n", "answers 1xx", times=1_000),
    "head without an end": Kind(b"HTTP/1.1 200 OK\r\nX: " + bytes([120]) * 100_000, "a head of"),
    "fields without an end": Kind(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 300 + b"\r\n", "fields"),
    "chunks": Kind(
        b"HTTP/1.1 201 x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", often=9
    ),
    "closes each time": Kind(
        b"HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", closes=True, often=9
    ),
    "closes without a word": Kind(OK, closes=True, often=9),
    "body until it closes": Kind(b"HTTP/1.1 200 OK\r\n\r\nall", closes=True, often=9),
    "old": Kind(b"HTTP/1.0 200 OK\r\n\r\nall", closes=True, often=9),
    "more than was asked for": Kind(OK + OK, often=9),
    "a body of a gigabyte": Kind(
        OK[:-5] + b"1000000000\r\n\r\n" + bytes(1 << 16), times=400, often=9
    ),
}
TAKEN_AT_ONCE: Final = 9
"""`often` of what is an answer that takes the message."""


@pytest.mark.parametrize("name", KINDS)
def test_misbehaves(
    sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any, name: str
) -> None:
    """Whatever a server does about one message, the others arrive once, and it is taken at last or a dead letter."""
    kind = KINDS[name]
    bad: list[float] = []

    def behave(request: Any) -> Any:
        if request.body != b"bad":
            return servers.FINE
        bad.append(request.at_s)
        data = kind.data
        if data == b"DATE":
            data = LATER % email.utils.formatdate(time.time() + 2, usegmt=True).encode()
        if kind.often and kind.often != TAKEN_AT_ONCE and len(bad) > kind.often:
            return servers.FINE
        return servers.Said(data, kind.closes, kind.pause_s, kind.times)

    server = hook(behave=behave)
    # An answer that comes late on a busy machine would be asked for again.
    patience_s = 1 if kind.why == SILENT else 60
    here = connect(sites, server.port, max_connections=4, answer_timeout=patience_s)
    client = paho(here.port("mqtt"))
    for number in range(10):
        client.client.publish("w/x", b"a%d" % number, qos=1)
    client.client.publish("w/x", b"bad", qos=1)
    for number in range(10):
        client.client.publish("w/x", b"b%d" % number, qos=1)
    others = {b"%b%d" % (word, number) for word in (b"a", b"b") for number in range(10)}
    patiently(lambda: set(server.bodies()) >= others, "the others arrive")
    here.holds("blue", "work", 0)
    here.holds("blue", DEAD, 1 if kind.why else 0)
    counted = Counter(body for body in server.bodies() if body != b"bad")
    assert counted == Counter(others)
    if kind.why:
        assert len(bad) == 3
        (told,) = [
            row["text"]
            for row in here.api().events(1_000)
            if row["event"] == "VPN_CONNECTOR_MESSAGE_REFUSED"
        ]
        assert kind.why in told
    else:
        assert len(bad) == (1 if kind.often == TAKEN_AT_ONCE else kind.often + 1)
        if kind.least_s:
            assert bad[-1] - bad[0] >= kind.least_s
    row = sites.row()
    assert (row["state"], row["links"][0]["state"]) == ("up", "up")
    assert row["links"][0]["deliveredMsgCount"] == (20 if kind.why else 21)
    patiently(lambda: balanced(sites), "all messages accounted for")


def test_idle_connections_are_closed(
    sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any
) -> None:
    """A server that closes after each answer without a word never makes the connector go down, or a message wait."""
    server = hook(behave=lambda _: servers.Said(OK, closes=True))
    here = connect(sites, server.port)
    client = paho(here.port("mqtt"))
    for number in range(30):
        publish(client, "w/x", b"%d" % number)
        patiently(lambda: len(server.requests) > number, f"request {number}")  # noqa: B023
    here.holds("blue", "work", 0)
    assert server.bodies() == [b"%d" % number for number in range(30)]
    assert not here.told("VPN_CONNECTOR_DOWN")
    assert sites.row()["links"][0]["refusedMsgCount"] == 0


def test_troubled_server_is_left_alone(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """A server that answers everything with 500 gets few requests; when it works again, all arrive."""
    works = threading.Event()
    server = hook(lambda _: (204 if works.is_set() else 500, {}, b""))
    links = {
        "out": {**WORK, "request": {"retry": {"initial_interval": 500, "max_interval": 4_000}}}
    }
    here = connect(sites, server.port, links)
    client = paho(here.port("mqtt"))
    for number in range(200):
        client.client.publish("w/x", b"%d" % number, qos=1)
    sites.until_link("out", state="held")
    here.says("the provider answered 500")
    begun = time.monotonic()
    patiently(lambda: time.monotonic() - begun > 3, "three seconds")
    # Those of the beginning, and one at a time with pauses of 0.5, 1, 2 s and so on.
    assert len(server.requests) <= 16 + 8 + 4
    works.set()
    here.holds("blue", "work", 0)
    sites.until_link("out", state="up")
    taken = {int(request.body) for request in server.requests}
    assert taken == set(range(200))
    patiently(lambda: balanced(sites), "all messages accounted for")


def test_order_by_key(sites: Any, paho: Any, servers: Any, hook: Any) -> None:
    """Messages with one key arrive in order, whatever fails; those of other keys do not wait for them."""
    draws = itertools.count(1)
    done: dict[str, list[int]] = {}
    lock = threading.Lock()

    def behave(request: Any) -> Any:
        name, _, number = request.body.decode().partition(" ")
        with lock:
            draw = next(draws)
            if draw % 5 == 0:
                return servers.Said(b"HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n")
            if draw % 7 == 0:
                return servers.Said(b"", closes=True)
            done.setdefault(name, []).append(int(number))
        return servers.FINE

    server = hook(behave=behave)
    here = connect(sites, server.port)
    client = paho(here.port("mqtt"), inflight=1_000)
    for number in range(200):
        name = f"k{number % 7}"
        client.client.publish("w/x", f"{name} {number}".encode(), qos=1, properties=key(name))
    here.holds("blue", "work", 0)
    assert done == {name: sorted(set(numbers)) for name, numbers in done.items()}
    assert sorted(number for numbers in done.values() for number in numbers) == list(range(200))


@pytest.mark.parametrize("order", ["link", "key", "none"])
def test_order(sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any, order: str) -> None:
    """`order: link` has each message wait for the one before, `none` not even those with one key."""
    held = threading.Event()

    def behave(request: Any) -> Any:
        if request.body == b"0":
            held.wait(60)
        return servers.FINE

    server = hook(behave=behave)
    here = connect(sites, server.port, {"out": {**WORK, "request": {**SOON, "order": order}}})
    client = paho(here.port("mqtt"))
    named = {0: "a", 1: "a", 2: "b"}
    for number, name in named.items():
        publish(client, "w/x", b"%d" % number, properties=key(name))
    passes = {"link": {b"0"}, "key": {b"0", b"2"}, "none": {b"0", b"1", b"2"}}[order]
    patiently(lambda: set(server.bodies()) == passes, f"{passes} alone")
    # What would pass has by now: a message behind comes back by another way.
    client.subscribe("behind")
    client.publish("behind", b"x")
    client.next()
    assert set(server.bodies()) == passes
    held.set()
    here.holds("blue", "work", 0)
    assert sorted(server.bodies()) == [b"0", b"1", b"2"]


def test_one_link_in_trouble(
    sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any
) -> None:
    """A link whose path hangs does not hold up another one, though both share connections."""
    held = threading.Event()

    def behave(request: Any) -> Any:
        if request.path.startswith("/slow"):
            held.wait(60)
        return servers.FINE

    server = hook(behave=behave)
    links = {
        "slow": {**WORK, "target": {"address": "slow"}},
        "quick": {"source": {"queue": "other"}, "target": {"address": "quick"}},
    }
    queues = {**QUEUES, "other": {"subscriptions": ["o/>"]}}
    here = connect(sites, server.port, links, queues=queues, max_connections=4)
    client = paho(here.port("mqtt"))
    for number in range(50):
        client.client.publish("w/x", b"%d" % number, qos=1)
    patiently(lambda: len(server.requests) >= 3, "the slow link is busy")
    for number in range(50):
        publish(client, "o/x", b"q%d" % number)
    here.holds("blue", "other", 0)
    assert sum(body.startswith(b"q") for body in server.bodies()) == 50
    held.set()
    here.holds("blue", "work", 0)
    assert Counter(server.bodies()) == Counter(
        [b"%d" % number for number in range(50)] + [b"q%d" % number for number in range(50)]
    )


def test_server_goes_and_comes(
    sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any
) -> None:
    """While no connection can be made, the connector waits; what is kept meanwhile arrives when there is one again."""
    first = hook(behave=lambda _: servers.FINE, port=sites.port)
    here = connect(sites, sites.port)
    client = paho(here.port("mqtt"))
    publish(client, "w/x", b"1")
    patiently(lambda: first.bodies() == [b"1"], "the first one")
    first.stop()
    publish(client, "w/x", b"2")
    here.says("VPN_CONNECTOR_DOWN")
    assert "cannot connect" in sites.row()["failure"] or sites.row()["state"] != "waiting"
    publish(client, "w/x", b"3")
    second = hook(behave=lambda _: servers.FINE, port=sites.port)
    here.holds("blue", "work", 0)
    assert sorted(second.bodies()) == [b"2", b"3"]
    sites.state("up")
    patiently(lambda: balanced(sites), "all messages accounted for")


def test_failover(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """Where the first address cannot be reached, the next one is tried."""
    server = hook()
    others = [f"http://127.0.0.1:{server.port}"]
    here = connect(sites, sites.port, failover_urls=others)
    publish(paho(here.port("mqtt")), "w/x", b"1")
    patiently(lambda: server.bodies() == [b"1"], "it arrives")
    assert sites.row()["provider"] == others[0]


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_router_ends(
    sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any, how: str
) -> None:
    """What was acknowledged arrives, whatever ends in between; a message that comes again has its Idempotency-Key."""
    held = threading.Event()
    held.set()

    def behave(_: Any) -> Any:
        held.wait(60)
        return servers.FINE

    server = hook(behave=behave)
    here = connect(sites, server.port)
    client = paho(here.port("mqtt"), inflight=1_000)
    held.clear()
    for number in range(100):
        publish(client, "w/x", b"%d" % number)
    patiently(lambda: len(server.requests) >= 16, "16 under way")
    if how == "kill":
        here.kill()
    else:
        here.stop(signal.SIGTERM)
    held.set()
    here = connect(sites, server.port)
    here.holds("blue", "work", 0)
    keys: dict[bytes, set[str]] = {}
    for request in server.requests:
        keys.setdefault(request.body, set()).add(request.headers["idempotency-key"])
    assert set(keys) == {b"%d" % number for number in range(100)}
    assert all(len(found) == 1 for found in keys.values())
    patiently(lambda: balanced(sites), "all messages accounted for")


def test_max_redelivery_count(sites: Any, paho: Any, hook: Any, patiently: Any) -> None:
    """A message that is answered by failures more often than its queue allows is given up, others are not."""
    server = hook(lambda request: (500 if request.body == b"bad" else 204, {}, b""))
    queues = {**QUEUES, "work": {"subscriptions": ["w/>"], "max_redelivery_count": 2}}
    here = connect(sites, server.port, queues=queues)
    client = paho(here.port("mqtt"))
    publish(client, "w/x", b"bad")
    publish(client, "w/x", b"good")
    here.holds("blue", "work", 0)
    patiently(lambda: len(here.api().msgs("blue", DEAD, 10)) == 1, "the dead letter")
    assert Counter(server.bodies()) == {b"bad": 3, b"good": 1}


def test_queue_is_shut_down(sites: Any, paho: Any, servers: Any, hook: Any, patiently: Any) -> None:
    """A queue that lets the link go has its messages again, and the late answer hurts nobody."""
    held = threading.Event()

    def behave(_: Any) -> Any:
        held.wait(60)
        return servers.FINE

    server = hook(behave=behave)
    here = connect(sites, server.port)
    publish(paho(here.port("mqtt")), "w/x", b"1")
    patiently(lambda: len(server.requests) == 1, "it is under way")
    sites.change(
        {"out": WORK},
        queues={**QUEUES, "work": {"egress_enabled": False}},
        url=f"http://127.0.0.1:{server.port}",
    )
    sites.until_link("out", state="refused")
    held.set()
    patiently(lambda: balanced(sites), "all messages accounted for")
    here.holds("blue", "work", 1)
    sites.change({"out": WORK}, queues=QUEUES, url=f"http://127.0.0.1:{server.port}")
    patiently(lambda: here.queue("blue", "work")["egressEnabled"], "the queue is there again")
    here.api().put("/vpnrouter/v1/msgVpns/blue/connectors/there/reconnect", {})
    here.holds("blue", "work", 0)
    assert server.bodies() == [b"1", b"1"]


# -- who it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("login", ["token", "password", "certificate"])
def test_login(
    sites: Any, paho: Any, hook: Any, patiently: Any, tool: Any, tmp_path: Path, login: str
) -> None:
    """The server is told who calls, over TLS; what is secret is shown nowhere, not even where the server repeats it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("hook.example.org").configure_cert(context)
    authority.configure_trust(context)
    if login == "certificate":
        context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("me", common_name="me")
    (tmp_path / "me.crt").write_bytes(mine.cert_chain_pems[0].bytes())
    (tmp_path / "me.key").write_bytes(mine.private_key_pem.bytes())
    (tmp_path / "token").write_text(f"{LONG}\n")
    ways: dict[str, Any] = {
        "token": {"token": {"file": str(tmp_path / "token")}},
        "password": {"username": "me", "password": TOKEN},
        "certificate": {
            "client_cert": {
                "certificate": str(tmp_path / "me.crt"),
                "key": str(tmp_path / "me.key"),
            }
        },
    }
    wanted = {
        "token": f"Bearer {LONG}",
        "password": "Basic bWU6dG9rLTNuLW9mLXRoZS1ob29r",
        "certificate": "",
    }[login]

    def answer(request: Any) -> Any:
        said = request.headers.get("authorization", "")
        if request.body == b"bad":
            repeated = {"token": LONG, "password": TOKEN, "certificate": ""}[login]
            return 302, {"Location": f"/?{said}&{repeated}"}, said.encode()
        return (204 if said == wanted else 401), {}, b""

    server = hook(answer, tls=context)
    here = sites.connect(
        {"out": WORK},
        queues=QUEUES,
        vpn={"bridging": {"tls_server_cert": {"ca": str(tmp_path / "ca.pem")}}},
        url=f"https://127.0.0.1:{server.port}",
        tls={"server_name": "hook.example.org"},
        **ways[login],
    )
    client = paho(here.port("mqtt"))
    publish(client, "w/x", b"good")
    publish(client, "w/x", b"bad")
    here.holds("blue", "work", 0)
    patiently(lambda: len(here.api().msgs("blue", DEAD, 10)) == 1, "the dead letter")
    assert Counter(server.bodies()) == {b"good": 1, b"bad": 3}
    (dead,) = here.api().msgs("blue", DEAD, 10)
    url = f"http://127.0.0.1:{here.port('http')}"
    shown = tool("show", "connectors", "--json", "--url", url).stdout
    told = "\n".join([*here.err, shown, json.dumps([dead, here.api().events(1_000)])])
    assert "302" in told
    assert TOKEN not in told
    assert "bWU6" not in told


def test_wrong_certificate(sites: Any, hook: Any, tmp_path: Path) -> None:
    """A server whose certificate nobody vouches for gets nothing, and the failure says why."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = hook(tls=context)
    sites.connect(
        {"out": WORK},
        wait=False,
        queues=QUEUES,
        vpn={"bridging": {"tls_server_cert": {"ca": str(tmp_path / "ca.pem")}}},
        url=f"https://127.0.0.1:{server.port}",
    )
    sites.until_failure("certificate verify failed")
    assert not server.requests


def test_explain(tool: Any, tmp_path: Path) -> None:
    """`explain` says by which request a message leaves, and that one without a path does not."""
    file = tmp_path / "edge.yaml"
    file.write_text(
        """
router: {name: edge}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues: {work: {subscriptions: ["w/>"]}}
    connectors:
      hook:
        provider: {url: "https://hook.example.org/base", token: secret-of-the-hook}
        links: {out: {source: {queue: work}, target: {address: "to/{1}"}, request: {method: PUT}}}
"""
    )

    def said(topic: str) -> str:
        words = (
            "explain",
            str(file),
            "--at",
            "edge/blue",
            "--topic",
            topic,
            "--mode",
            "persistent",
        )
        return str(tool(*words, code=None).stdout)

    assert "takes it to https://hook.example.org:443/base by PUT /base/to/w/1" in said("w/1")
    assert "link out does not take it: it can have no topic at the provider" in said("w/..")
    assert "secret-of-the-hook" not in said("w/1")


def test_an_idle_connector(sites: Any, hook: Any, paho: Any, patiently: Any) -> None:
    """It closes its connections when nothing is to be sent, and each message makes new ones."""
    server = hook()
    idle = {"idle_timeout": 1, "retry_delay": 0}
    here = connect(sites, server.port, wait=False, connect=idle)
    publisher = paho(here.port("mqtt"), "p")
    for count in range(2):
        sites.state("idle")
        publish(publisher, "w/1", b"%d" % count)
        patiently(lambda count=count: len(server.bodies()) > count, "the server has it")
    assert server.bodies() == [b"0", b"1"]

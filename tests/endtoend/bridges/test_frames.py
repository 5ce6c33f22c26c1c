"""Strangers and broken peers on the link port: they are closed, and nobody else notices."""

import os
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.wire.link import encode, frames

EDGE = """
router: {name: edge, data_dir: data-edge}
listeners:
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

CORE = """
router: {name: core, data_dir: data-core}
listeners:
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        topic_syntax: mqtt
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, router: edge, location: "127.0.0.1:EDGE"}]
        remote_subscriptions: ["out/#"]
      from-fake:
        topic_syntax: mqtt
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: fake, location: "127.0.0.1:FAKE"}]
        remote_subscriptions: ["out/#"]
"""


class FakeRouter:
    """Takes links, says WELCOME, and then what it is told to."""

    def __init__(self) -> None:
        self.says = b""
        self.closed = threading.Semaphore(0)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                taken, _ = self._server.accept()
            except OSError:
                return
            with taken:
                taken.settimeout(5)
                try:
                    taken.recv(65536)
                    says = self.says
                    taken.sendall(WELCOME + says)
                    if says:
                        while taken.recv(65536):
                            pass
                        self.closed.release()
                except OSError:
                    self.closed.release()

    def stop(self) -> None:
        """Take no more."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(10)


WELCOME = encode.welcome(
    frames.Welcome("fake", "fake", "#bridge/core/yellow/from-fake", heartbeat_ms=5000)
)


@pytest.fixture(scope="module")
def routers(router_process: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Edge, core, and a router that is none; started once for all tests here."""
    folder: Path = tmp_path_factory.mktemp("frames")
    (folder / "edge.yaml").write_text(EDGE, encoding="utf-8")
    edge = router_process(folder / "edge.yaml")
    fake = FakeRouter()
    text = CORE.replace("EDGE", str(edge.port("link"))).replace("FAKE", str(fake.port))
    (folder / "core.yaml").write_text(text, encoding="utf-8")
    core = router_process(folder / "core.yaml")
    core.bridge("from-blue", inboundState="ready-in-sync")
    yield edge, core, fake
    core.kill()
    edge.kill()
    fake.stop()


@pytest.fixture
def goes_on(routers: Any, paho: Any) -> Iterator[None]:
    """Behind the test: the bridge between the real routers never went down, and it carries."""
    edge, core, _ = routers
    failures = core.bridge("from-blue")["failureCount"]
    yield
    far = paho(core.port("mqtt"), "far")
    far.subscribe("out/#")
    paho(edge.port("mqtt"), "near").publish("out/x", b"still here")
    assert far.next() == ("out/x", b"still here")
    row = core.bridge("from-blue")
    assert (row["failureCount"], row["rxImbalance"]) == (failures, 0)
    for router in (edge, core):
        assert router.process.poll() is None
        assert not router.told("Traceback"), router.err


def hello(major: int = 1) -> bytes:
    """A HELLO that would be let in."""
    data = encode.hello(
        frames.Hello(
            router="stranger",
            bridge="b",
            local_vpn="v",
            remote_vpn="blue",
            client_username="x",
        )
    )
    mark = data.index(b"VPNR") + 4
    return data[:mark] + bytes((major,)) + data[mark + 1 :]


def tls_hello() -> bytes:
    """What a TLS client says first."""
    context = ssl.create_default_context()
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    begun = context.wrap_bio(inward, outward, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        begun.do_handshake()
    return outward.read()


def noise() -> bytes:
    """Random bytes."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed).randbytes(4096)


def answer(port: int, data: bytes, *, end: bool) -> bytes:
    """What the link port says to `data` before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        stranger.sendall(data)
        if end:
            stranger.shutdown(socket.SHUT_WR)
        heard = b""
        try:
            while piece := stranger.recv(65536):
                heard += piece
        except ConnectionResetError:
            pass
        return heard


SILENCE = b""

STRANGERS: dict[str, tuple[Callable[[], bytes], bool, bytes]] = {
    "noise": (lambda: b"\x16" + noise(), False, SILENCE),
    "http": (lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", False, SILENCE),
    "tls": (tls_hello, False, SILENCE),
    "mqtt": (lambda: bytes.fromhex("100c00044d515454050200000000"), False, SILENCE),
    "no link": (lambda: b"\x10\x10" + b"x" * 16, False, SILENCE),
    "another major version": (lambda: hello(2), False, b"\x00\x84\x00 LINK-12: major version 2"),
    "a hello that is cut": (lambda: hello()[:-5], True, SILENCE),
    "an oversized length": (lambda: b"\x10\xff\xff\xff\x7f", False, b"\x00\x95\x004frame of"),
    "a length without end": (
        lambda: b"\x10\xff\xff\xff\xff\xff",
        False,
        b"\x00\x81\x00%frame length",
    ),
    "a message before hello": (
        lambda: encode.direct(encode.direct_body(b"a", b"", b"x")),
        False,
        SILENCE,
    ),
    "garbage behind hello": (lambda: hello() + b"\x7f" * 64, False, b"LINK-"),
    "nothing at all": (lambda: b"", True, SILENCE),
}
"""What is sent, whether the stranger then closes its side, and what it hears."""


@pytest.mark.usefixtures("goes_on")
@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_closed(routers: Any, name: str) -> None:
    """Whatever comes to the link port, the stranger is closed, told why if it spoke the protocol."""
    made, ends, expected = STRANGERS[name]
    heard = answer(routers[0].port("link"), made(), end=ends)
    if expected:
        assert expected in heard
    else:
        assert heard == SILENCE


@pytest.mark.usefixtures("goes_on")
def test_many_strangers_at_once(routers: Any) -> None:
    """A hundred connections of random bytes at a time are all closed."""
    port = routers[0].port("link")
    data = [os.urandom(200) for _ in range(100)]
    ended: list[bytes] = []
    threads = [
        threading.Thread(target=lambda each=each: ended.append(answer(port, each, end=True)))
        for each in data
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(ended) == len(data)


GARBAGE = {
    "noise": b"\x7f" + bytes(range(256)),
    "another hello": hello(),
    "a frame for the other side": bytes.fromhex("2008") + bytes(8),
    "a message with a broken body": bytes.fromhex("3003ffff61"),
    "an oversized message": b"\x30\xff\xff\xff\x7f",
    "a heartbeat of another kind": bytes.fromhex("1409020000000000000000"),
    "plain http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.usefixtures("goes_on")
@pytest.mark.parametrize("name", GARBAGE)
def test_a_remote_that_speaks_garbage(routers: Any, patiently: Any, name: str) -> None:
    """A remote that says WELCOME and then nonsense loses the link, and the reason is told in a line."""
    _, core, fake = routers
    core.err.clear()
    fake.says = GARBAGE[name]
    assert fake.closed.acquire(timeout=60)
    fake.says = b""
    # The end of the connection before may be told first.
    patiently(
        lambda: any(
            "LINK-" in line or ": frame of" in line
            for line in core.told("VPN yellow bridge from-fake from", ": ")
        ),
        "the reason of the end of the link",
    )

"""Strangers by the thousand: what they cost, and that everybody else still gets in."""

import contextlib
import random
import re
import resource
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from vpnrouter.config.secrets import hash_password
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connack, Connect, Will

FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 1024; exec "$@"', "sh")
"""Runs a command that may have 1,024 files open, and never more."""

OPEN = "{authentication: {basic: {enabled: false}}}"

LOGIN_S = 10.0
"""Seconds that a login may take."""


@pytest.fixture
def sockets() -> Iterator[Callable[..., socket.socket]]:
    """`sockets(port, source)`: a connection, closed when the test ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    made: list[socket.socket] = []

    def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", port), LOGIN_S, (source, 0))
        made.append(sock)
        return sock

    yield connect
    for sock in made:
        sock.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connack(sock: socket.socket) -> int:
    """The reason code that an MQTT 5 client is answered with."""
    data = b""
    while len(data) < 2 or len(data) < 2 + data[1]:
        more = sock.recv(4096)
        assert more, "closed without an answer"
        data += more
    answer = decode(data, 0, 2 + data[1], 5)
    assert isinstance(answer, Connack)
    return answer.reason_code


def log_in(sock: socket.socket, client_id: str = "honest", **connect: Any) -> int:
    """Say CONNECT; the reason code of the answer."""
    sock.sendall(encode(Connect(client_id, **connect), 5))
    return connack(sock)


def test_silent_connections_beyond_the_descriptors(start: Any, sockets: Any) -> None:
    """1,100 silent connections where 1,024 files may be open: API and all listeners answer, to anybody."""
    router = start(
        "listeners:\n"
        "- {protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: blue}\n"
        "- {protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: red}\n"
        "- {protocol: ws, bind: '127.0.0.1:0', msg_vpn: red}\n"
        "- {protocol: link, bind: '127.0.0.1:0'}\n"
        "- {protocol: http, bind: '127.0.0.1:0'}\n"
        f"msg_vpns: {{blue: {OPEN}, red: {OPEN}}}\n",
        before=FEW_DESCRIPTORS,
    )
    blue, red = router.port("mqtt"), router.port("mqtt", 1)
    for port in (blue, router.port("ws"), router.port("link")):
        for _ in range(1_100):
            with contextlib.suppress(ConnectionError):
                sockets(port)
    began = time.monotonic()
    assert log_in(sockets(red)) == 0
    assert log_in(sockets(blue), "a\x1bb") == 0
    url = f"http://127.0.0.1:{router.port('http')}"
    assert httpx.get(f"{url}/SEMP/v2/monitor/msgVpns", timeout=LOGIN_S).status_code == 200
    assert time.monotonic() - began < LOGIN_S
    metrics = httpx.get(f"{url}/metrics", timeout=LOGIN_S).text
    assert re.search(r'vpnrouter_strangers_refused_total{.*reason="made-room".*} [1-9]', metrics)
    router.says("turned away")
    assert router.stop() == 0


def test_a_flood_of_wrong_passwords(start: Any, sockets: Any) -> None:
    """While 400 wrong logins wait for their hash, a right one from the same address gets in at once."""
    stored = hash_password("right", bytes(16))
    router = start(
        "listeners: [{protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: blue}]\n"
        f"msg_vpns: {{blue: {{client_usernames: {{u: {{password: '{stored}'}}}}}}}}\n"
    )
    port = router.port("mqtt")
    for number in range(400):
        packet = Connect(f"c{number}", username=f"x{number}", password=b"no")
        sockets(port).sendall(encode(packet, 5))
    began = time.monotonic()
    assert log_in(sockets(port), username="u", password=b"right") == 0
    assert time.monotonic() - began < LOGIN_S / 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_ten_thousand_hostile_connections(start: Any, sockets: Any, tmp_path: Path) -> None:
    """10,000 of them, silent, with half a CONNECT, wrong passwords or half a handshake, cost 64 MiB at most."""
    seed = random.SystemRandom().getrandbits(32)
    print("seed", seed)
    chance = random.Random(seed)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "s.pem"
    )
    stored = hash_password("right", bytes(16))
    router = start(
        "listeners:\n"
        "- {protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: blue}\n"
        "- {protocol: mqtts, bind: '127.0.0.1:0', msg_vpn: blue, tls: "
        f"{{certificate: '{tmp_path}/s.pem', key: '{tmp_path}/s.pem'}}}}\n"
        "- {protocol: ws, bind: '127.0.0.1:0', msg_vpn: blue}\n"
        "- {protocol: link, bind: '127.0.0.1:0'}\n"
        f"msg_vpns: {{blue: {{client_usernames: {{u: {{password: '{stored}'}}}}}}}}\n"
    )
    hello = client_hello()
    will = Will(b"t" * 60_000, bytes(60_000))
    wrong = encode(Connect("c", username="x", password=b"no", will=will), 5)
    before = router.resident()
    most = before
    for number in range(10_000):
        source = f"127.{chance.randrange(1, 200)}.0.{chance.randrange(1, 250)}"
        kind = number % 5
        port = router.port(("mqtt", "mqtt", "mqtt", "mqtts", "ws")[kind])
        with contextlib.suppress(OSError):
            sock = sockets(port, source)
            sock.settimeout(0.2)
            if kind == 1:
                sock.sendall(b"\x10\xff\xff\x1a" + bytes(chance.randrange(430_000)))
            elif kind == 2:
                sock.sendall(wrong.replace(b"\x00\x01x", b"\x00\x01" + bytes([97 + number % 26])))
            elif kind == 3:
                sock.sendall(hello[: chance.randrange(2, len(hello) + 1)])
            elif kind == 4:
                sock.sendall(b"GET /mqtt HTTP/1.1\r\nHost: x\r\nX: " + bytes([120]) * 10_000)
        if number % 100 == 0:
            most = max(most, router.resident())
    most = max(most, router.resident())
    print(f"{(most - before) / 1_048_576:.1f} MiB more", file=sys.stderr)
    assert log_in(sockets(router.port("mqtt"), "127.250.0.1"), username="u", password=b"right") == 0
    assert most - before <= 64 * 1_048_576


def client_hello() -> bytes:
    """The first bytes of a TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()

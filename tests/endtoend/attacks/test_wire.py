"""What comes over the wire and is no decent request: the router goes on, and its memory stays bounded."""

import base64
import contextlib
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from vpnrouter import limits

LOGIN = "Authorization: Basic cm9vdDpwdw=="
"""Of `root`."""

VIEWER = base64.b64encode(b"viewer:pw").decode()

PATIENCE_S = 20.0
SOON_S = 5.0
GROWTH = 100_000_000
"""Bytes that the router may have more after an attack."""


@pytest.fixture
def bounded(attacked: Any, paho: Any) -> Iterator[None]:
    """Memory and descriptors stay bounded, messages go on, and the API answers."""
    client = paho(attacked.process.port("mqtt"), "bystander")
    client.subscribe("bystander")
    before, open_before = attacked.process.resident(), attacked.descriptors()
    faults = len(attacked.process.told("MANAGEMENT_FAULT")) + len(
        attacked.process.told(": management:")
    )
    yield
    began = time.monotonic()
    client.publish("bystander", b"alive")
    assert client.next() == ("bystander", b"alive")
    with attacked.client() as other:
        assert other.get("/health/live").status_code == 200
    assert time.monotonic() - began < SOON_S
    assert attacked.process.resident() - before < GROWTH
    deadline = time.monotonic() + PATIENCE_S
    while len(now := attacked.descriptors()) > len(open_before) + 5:
        assert time.monotonic() < deadline, sorted(set(now) - set(open_before))
        time.sleep(0.02)
    found = attacked.process.told("MANAGEMENT_FAULT") + attacked.process.told(": management:")
    assert found[faults:] == []


def connected(attacked: Any, source: str = "127.0.0.2", protocol: str = "http") -> socket.socket:
    """A connection of an attacker, who has another address than everybody else."""
    address = ("127.0.0.1", attacked.process.port(protocol))
    return socket.create_connection(address, PATIENCE_S, (source, 0))


def rest_of(sock: socket.socket) -> bytes:
    """What comes until the connection ends."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := sock.recv(1 << 16):
            found += data
    return found


def said(attacked: Any, *lines: str, body: bytes = b"", ends: bool = True) -> bytes:
    """What is answered to a request of these lines, until the router or the attacker ends it."""
    with connected(attacked) as sock:
        with contextlib.suppress(OSError):
            sock.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            if ends:
                sock.shutdown(socket.SHUT_WR)
        return rest_of(sock)


def codes(answers: bytes) -> list[int]:
    """The response codes of the answers on one connection."""
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


@pytest.mark.usefixtures("bounded")
def test_who_says_little_keeps_nobody_out(attacked: Any) -> None:
    """A thousand connections with nothing, half a header or half a handshake, and one that asks."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    with contextlib.ExitStack() as held:
        for number in range(limits.MANAGEMENT_CONNECTIONS + 250):
            for protocol, half in (("http", b"GET /metrics HTTP/1.1\r\nHost:"), ("https", hello)):
                sock = held.enter_context(connected(attacked, protocol=protocol))
                with contextlib.suppress(ConnectionError):
                    sock.sendall(half if number % 2 else b"")
        time.sleep(1.2)
        trust = ssl.create_default_context()
        attacked.authority.configure_trust(trust)
        https = f"https://localhost:{attacked.process.port('https')}"
        for url, verify in ((attacked.url, True), (https, trust)):
            began = time.monotonic()
            answer = httpx.get(f"{url}/health/live", verify=verify, timeout=30, trust_env=False)
            assert answer.status_code == 200
            assert time.monotonic() - began < SOON_S


@pytest.mark.usefixtures("bounded")
def test_bodies_that_nobody_asked_for(attacked: Any) -> None:
    """Huge, endless, or never sent: who may not ask gets its answer at once, and nothing is kept."""
    path = "PUT /vpnrouter/v1/config/replace HTTP/1.1"
    host, kind = "Host: localhost", "Content-Type: application/json"
    began = time.monotonic()
    for length in ("Content-Length: 100000000000", "Transfer-Encoding: chunked"):
        answer = said(attacked, path, host, kind, length, ends=False)
        assert codes(answer) == [401]
        assert b"connection: close" in answer.lower()
        chunk = b"10000\r\n" + bytes(65_536) + b"\r\n"
        answer = said(attacked, path, host, kind, LOGIN, length, body=chunk * 400)
        assert codes(answer) in ([400], [])
    too_long = json.dumps({"document": {"a": "x" * 9_000_000}}).encode()
    answer = said(
        attacked, path, host, kind, LOGIN, f"Content-Length: {len(too_long)}", body=too_long
    )
    assert codes(answer) in ([400], [])
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.usefixtures("bounded")
def test_a_refused_change_leaves_the_connection_usable(attacked: Any) -> None:
    """The body that comes after the answer is taken, so the next request has its answer as well."""
    head = (
        b"PUT /vpnrouter/v1/spool/backup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    )
    with connected(attacked) as sock:
        for _ in range(50):
            sock.sendall(head)
            time.sleep(0.001)
            sock.sendall(b"{}")
            found = b""
            while not found.endswith(b'"UNAUTHORIZED"}}}'):
                more = sock.recv(1 << 16)
                assert more, found
                found += more
            assert codes(found) == [401]
            assert b"connection: close" not in found.lower()


@pytest.mark.usefixtures("bounded")
def test_headers_beyond_measure(attacked: Any) -> None:
    """They are refused before they are kept."""
    get, host = "GET /metrics HTTP/1.1", "Host: localhost"
    for lines in (
        [get, host, "X: " + "x" * 1_000_000],
        [get, host, *(f"X-{number}: x" for number in range(100_000))],
        ["GET /" + "x" * 1_000_000 + " HTTP/1.1", host],
        [get, host, "Authorization: Basic " + "A" * 15_000],
        [get, host, "Authorization: " + "Basic " * 2_000],
    ):
        assert set(codes(said(attacked, *lines))) <= {400, 401, 431}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 6", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 6"],
        ["Content-Length: 6", "Content-Length: 0"],
        ["Content-Length: 6, 0"],
        ["Content-Length: +6"],
        ["Content-Length: 0x6"],
        ["Content-Length: -1"],
        ["Content-Length: 9999999999999999999999"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
        [" Transfer-Encoding: chunked"],
        ["Content-Length: 6\nX: y"],
        ["X: \x00"],
        ["Host: localhost", "Host: evil.example"],
    ],
    ids=repr,
)
def test_no_request_hides_in_another(attacked: Any, lines: list[str]) -> None:
    """What two readers could understand differently is one request at most, and mostly none."""
    hidden = f"0\r\n\r\nGET /SEMP/v2/monitor/msgVpns HTTP/1.1\r\nHost: a\r\n{LOGIN}\r\n\r\n"
    put = ("PUT /vpnrouter/v1/spool/backup HTTP/1.1", "Host: localhost", *lines)
    answer = said(attacked, *put, body=hidden.encode())
    assert b"msgVpnName" not in answer
    assert codes(answer) in ([400], [401], [501], [], [401, 400], [401, 405])


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/health/none", "/metrics"])
@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 6", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 6"],
    ],
)
def test_two_lengths_are_refused_everywhere(attacked: Any, path: str, lines: list[str]) -> None:
    """Where nobody has to log in as well, such a request is answered 400 and the last of its connection."""
    hidden = f"0\r\n\r\nGET /health/live HTTP/1.1\r\nHost: a\r\n{LOGIN}\r\n\r\n"
    post = (f"POST {path} HTTP/1.1", "Host: localhost", *lines)
    assert codes(said(attacked, *post, body=hidden.encode())) == [400]


@pytest.mark.usefixtures("bounded")
def test_bodies_that_do_not_come_keep_nobody_out(attacked: Any) -> None:
    """A user who may only look begins more requests with a body than there are connections, and ends none."""
    head = (
        "PUT /vpnrouter/v1/config/examine HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
        f"Content-Type: application/json\r\nAuthorization: Basic {VIEWER}\r\n\r\n{{"
    ).encode()
    with contextlib.ExitStack() as held:
        for _ in range(limits.MANAGEMENT_CONNECTIONS + 50):
            with contextlib.suppress(ConnectionError):
                held.enter_context(connected(attacked)).sendall(head)
        time.sleep(1.2)
        for user in ("root", "viewer"):
            with attacked.client(user) as client:
                began = time.monotonic()
                assert client.get("/SEMP/v2/monitor/msgVpns").status_code == 200
                assert time.monotonic() - began < PATIENCE_S, user
        with attacked.client("root") as client:
            row = {"maxSubscriptionCount": 4_999}
            assert client.patch("/SEMP/v2/config/msgVpns/blue", json=row).status_code == 200


@pytest.mark.usefixtures("bounded")
def test_who_hangs_up_is_no_fault(attacked: Any) -> None:
    """A client that hangs up in the middle of a body causes no line on stderr."""
    before = len(attacked.process.err)
    for _ in range(20):
        with connected(attacked) as sock:
            sock.sendall(
                "PUT /vpnrouter/v1/config/examine HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                f"Content-Type: application/json\r\n{LOGIN}\r\n\r\n{{".encode()
            )
    with attacked.client("root") as client:
        assert client.get("/SEMP/v2/monitor/msgVpns").status_code == 200
    told = "".join(attacked.process.err[before:])
    assert "Traceback" not in told
    assert "ClientDisconnect" not in told


@pytest.mark.usefixtures("bounded")
def test_pipelined_requests(attacked: Any) -> None:
    """They are answered one after the other, each by its own login, and those without end by no more memory."""
    get = "GET /SEMP/v2/monitor/msgVpns?count=1 HTTP/1.1\r\nHost: localhost\r\n"
    three = f"{get}{LOGIN}\r\n\r\n{get}\r\n{get}{LOGIN}\r\n\r\n".encode()
    with connected(attacked, "127.0.0.1") as sock:
        sock.sendall(three)
        sock.shutdown(socket.SHUT_WR)
        assert codes(rest_of(sock)) == [200, 401, 200]
    with connected(attacked) as sock:
        sock.settimeout(0.5)
        with contextlib.suppress(OSError):
            for _ in range(200):
                sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000)


@pytest.mark.usefixtures("bounded")
def test_answers_that_nobody_reads(attacked: Any) -> None:
    """Who asks for the largest page again and again and reads nothing costs one page and no more."""
    request = f"GET /SEMP/v2/openapi.json HTTP/1.1\r\nHost: localhost\r\n{LOGIN}\r\n\r\n".encode()
    with contextlib.ExitStack() as held:
        for _ in range(10):
            sock = held.enter_context(connected(attacked, "127.0.0.1"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            sock.sendall(request * 20)
        with attacked.client("root") as client:
            began = time.monotonic()
            assert client.get("/SEMP/v2/monitor/msgVpns").status_code == 200
            assert time.monotonic() - began < SOON_S


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"


@pytest.mark.usefixtures("bounded")
def test_http_2_is_not_spoken(attacked: Any) -> None:
    """By prior knowledge, by Upgrade or by ALPN: so there is nothing to be reset rapidly."""
    with connected(attacked) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(PREFACE + b"\0\0\x01\x01\x05\0\0\0\x01\x82" * 1_000)
        answer = rest_of(sock)
    assert not answer.startswith(b"\0"), answer
    assert set(codes(answer)) <= {400, 401, 505}
    upgrade = ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk")
    answer = said(attacked, "GET /metrics HTTP/1.1", "Host: localhost", *upgrade, body=PREFACE)
    assert 101 not in codes(answer)
    trust = ssl.create_default_context()
    attacked.authority.configure_trust(trust)
    trust.set_alpn_protocols(["h2", "http/1.1"])
    with (
        connected(attacked, protocol="https") as sock,
        trust.wrap_socket(sock, server_hostname="localhost") as secured,
    ):
        assert secured.selected_alpn_protocol() is None


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("path", ["/metrics", "/health/live"])
def test_other_protocols_are_not_spoken(attacked: Any, path: str) -> None:
    """Neither WebSocket nor a tunnel."""
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    for login in ("X: y", LOGIN):
        for lines in ([f"GET {path} HTTP/1.1", key, *upgrade], [f"GET {path} HTTP/1.1", *upgrade]):
            answer = said(attacked, *lines, "Host: localhost", login, body=b"\x81\x00" * 100)
            assert set(codes(answer)) <= {200, 400, 401, 404}, answer
        answer = said(attacked, "CONNECT 127.0.0.1:1 HTTP/1.1", "Host: localhost", login)
        assert set(codes(answer)) <= {400, 401, 404, 405}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "path",
    [
        "/health/..%2fmetrics",
        "/health/../metrics",
        "/health//../metrics",
        "/health/%2e%2e/metrics",
        "/health/live/../../metrics",
        "/health;/metrics",
        "/health/;/../metrics",
        "/health/live%00/../../metrics",
        "//health/../metrics",
        "/%6detrics",
        "//metrics",
        "/metrics/",
        "/metrics;a=b",
        "/metrics%00",
        "/metrics%0d%0aX:y",
        "/METRICS",
        "/%c0%ae%c0%ae/metrics",
        "/\xff",
        "/health/live\xff",
        "http://localhost/metrics",
        "http://localhost/health/../metrics",
        "*",
        "metrics",
        "/metrics#/health/live",
        "/metrics?/health/live",
        "/SEMP/v2/monitor/msgVpns/..%2f..%2fconfig%2fmsgVpns",
    ],
)
def test_paths_that_lead_elsewhere(attacked: Any, path: str) -> None:
    """No spelling of a path gets past the login, and none becomes another path behind it."""
    get = (f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close")
    answer = said(attacked, *get, ends=False)
    assert set(codes(answer)) <= {400, 401, 404}
    assert b"vpnrouter_" not in answer
    assert b"msgVpnName" not in answer
    behind = said(attacked, *get, LOGIN, ends=False)
    assert set(codes(behind)) <= {400, 404}
    assert b"vpnrouter_" not in behind

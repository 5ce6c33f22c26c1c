"""A running router loads nothing more: what it may need later is there when it begins to serve."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

import vpnrouter
from vpnrouter.wire.link import encode as link_encode
from vpnrouter.wire.link import frames
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connect, Publish, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

pytestmark = pytest.mark.slow

PROGRAM = """
import glob, json, sys, threading, time
from functools import partial
from pathlib import Path
import trio
from vpnrouter.config.load import load
from vpnrouter.server.run import StartFiles, serve

asked = []
# Where pandas is installed, pyarrow loads it in the background for seconds; the router does without it.
sys.modules["pandas"] = None

class NothingLeft:
    def find_spec(self, name, path=None, target=None):
        asked.append(name)
        raise ImportError(f"no descriptor is left to load {name}")

def shut():
    # What writes traces is started when the router is up.
    while not any(Path(each).read_text() for each in glob.glob("/proc/self/task/*/children")):
        time.sleep(0.01)
    time.sleep(0.2)
    sys.meta_path.insert(0, NothingLeft())
    print("shut", flush=True)

def ready(node):
    print(node.ready_line(), flush=True)
    threading.Thread(target=shut, daemon=True).start()

loaded = load(sys.argv[1])
try:
    trio.run(partial(serve, alone=True), loaded.config, ready, StartFiles(sys.argv[1], loaded))
finally:
    print(json.dumps(asked), flush=True)
"""

CONFIG = """
router: {name: here, data_dir: PLACE/data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: wss, bind: "127.0.0.1:0", msg_vpn: blue, tls: TLS}
  - protocol: mqtts
    bind: "127.0.0.1:0"
    msg_vpn: green
    tls: {certificate: PLACE/s.pem, key: PLACE/s.pem, client_ca: PLACE/ca.pem}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: https, bind: "127.0.0.1:0", tls: TLS}
trace: {enabled: true, directory: PLACE/traces, sample: 1.0, rotation: {max_seconds: 1}}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true, compression_enabled: true}}
    client_usernames: {own: {password: secret}}
    queues: {q: {subscriptions: ["s/>"], permission: delete}}
  green:
    authentication: {client_cert: {enabled: true}}
    client_usernames: {alice: {password: wonderland}}
  red:
    authentication: {basic: {enabled: false}}
"""


class Router:
    """The router in a process of its own, with its ports."""

    def __init__(self, place: Path) -> None:
        config = CONFIG.replace("TLS", "{certificate: PLACE/s.pem, key: PLACE/s.pem}")
        self.file = place / "here.yaml"
        self.file.write_text(config.replace("PLACE", str(place)), encoding="utf-8")
        self.errors = place / "stderr.txt"
        environment = {**os.environ, "PYTHONPATH": str(Path(vpnrouter.__file__).parent.parent)}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.file)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
        out = self.process.stdout
        assert out is not None
        self.ports = {
            protocol: int(address.rpartition(":")[2])
            for protocol, _, address in (word.partition("=") for word in out.readline().split()[2:])
        }
        assert out.readline() == "shut\n", self.errors.read_text()

    def open(self, protocol: str) -> socket.socket:
        """A connection to the listener of a protocol."""
        return socket.create_connection(("127.0.0.1", self.ports[protocol]), timeout=20)

    def said(self, protocol: str, *data: bytes, least: int = 1) -> bytes:
        """What comes back for bytes on a connection of its own."""
        with self.open(protocol) as sock:
            return exchanged(sock, *data, least=least)

    def http(self, method: str, path: str, body: Any = None, *fields: str) -> tuple[int, bytes]:
        """Status and body of an API request."""
        url = f"http://localhost:{self.ports['http']}{path}"
        headers = dict(field.split(": ") for field in fields)
        answer = httpx.request(method, url, json=body, headers=headers, timeout=20, trust_env=False)
        return answer.status_code, answer.content

    def asked(self) -> list[str]:
        """Stops the router; the modules that it wanted to load after it had begun to serve."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.errors.read_text()
        return list(json.loads(out.splitlines()[-1]))


def exchanged(sock: socket.socket, *data: bytes, least: int = 1) -> bytes:
    """Send each piece and read something after it."""
    answer = b""
    for piece in data:
        sock.sendall(piece)
        before = len(answer)
        while len(answer) - before < least:
            chunk = sock.recv(1 << 16)
            if not chunk:
                break
            answer += chunk
    return answer


@pytest.fixture
def router(tmp_path: Path) -> Iterator[Router]:
    """A router that can load nothing more."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "s.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    client = authority.issue_cert("alice@example.org", common_name="alice")
    client.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "alice.pem"))
    made = Router(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.communicate()


def mqtt(router: Router) -> None:
    """Odd names, a selector, guaranteed and retained messages, what is refused."""
    odd = encode(Connect("a\x1bb\u202e", protocol_level=5), 5)
    router.said("mqtt", odd, least=0)
    wanted = Properties(user_properties=[("selector", "a LIKE 'b%' AND c > 1.5E3")])
    requests = [SubscriptionRequest("$queue/q", 1)]
    answers = router.said(
        "mqtt",
        encode(Connect("c\u202e"), 5),
        encode(Subscribe(1, requests, wanted), 5),
        encode(Publish(b"s/a", b"x", qos=1, packet_id=1), 5),
        encode(Publish(b"s/\xc3\xa4", b"x", qos=2, packet_id=2, retain=True), 5),
    )
    assert answers[0] == 0x20
    with router.open("mqtt") as sock:
        exchanged(sock, encode(Connect("c"), 5))
        sock.sendall(b"\xff\xff\xff\xff\xff")
        while sock.recv(1 << 16):
            pass


def websockets(router: Router) -> None:
    """Upgrades that are granted and refused, plain and over TLS, with names in all scripts."""
    key = base64.b64encode(bytes(16)).decode()
    for host in ("localhost", "xn--bcher-kva.example", "xn--99999999", "\xff"):
        head = (
            f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: mqtt\r\n"
            "Origin: http://elsewhere.example\r\n\r\n"
        ).encode("latin-1")
        router.said("ws", head, least=0)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with (
            router.open("wss") as plain,
            context.wrap_socket(plain, server_hostname="b\u00fccher.example") as sock,
        ):
            exchanged(sock, head, least=0)
    router.said("wss", b"GET / HTTP/1.1\r\n\r\n")


def certificates(router: Router, place: Path) -> None:
    """A client that shows a certificate, and one whose hand shake fails."""
    context = ssl.create_default_context(cafile=str(place / "ca.pem"))
    context.load_cert_chain(place / "alice.pem")
    with (
        router.open("mqtts") as plain,
        context.wrap_socket(plain, server_hostname="localhost") as sock,
    ):
        assert exchanged(sock, encode(Connect("c"), 5))[0] == 0x20
    router.said("mqtts", b"\x16\x03\x01\x00\x05hello")


def links(router: Router) -> None:
    """A stranger with control characters in its names, and a bridge of the router to itself, compressed."""
    hello = frames.Hello("far", "b\x1b\x07", "v", "blue", features=frames.ZSTD)
    router.said("link", link_encode.hello(hello))
    bridge = {
        "bridgeName": "own",
        "bridgeVirtualRouter": "auto",
        "enabled": True,
        "remoteAuthenticationBasicClientUsername": "own",
        "remoteAuthenticationBasicPassword": "secret",
    }
    base = "/SEMP/v2/config/msgVpns/red/bridges"
    status, said = router.http("POST", base, bridge)
    assert status == 200, said
    remote = {
        "remoteMsgVpnName": "blue",
        "remoteMsgVpnLocation": f"127.0.0.1:{router.ports['link']}",
        "compressedDataEnabled": True,
        "enabled": True,
    }
    status, said = router.http("POST", f"{base}/own,auto/remoteMsgVpns", remote)
    assert status == 200, said
    topic = {"remoteSubscriptionTopic": "z/>", "deliverAlwaysEnabled": True}
    status, said = router.http("POST", f"{base}/own,auto/remoteSubscriptions", topic)
    assert status == 200, said
    while b'"inboundState":"ready-in-sync"' not in router.http(
        "GET", "/SEMP/v2/monitor/msgVpns/red/bridges"
    )[1].replace(b" ", b""):
        assert router.process.poll() is None
    with router.open("mqtt") as sock:
        exchanged(sock, encode(Connect("z"), 5))
        for _ in range(50):
            sock.sendall(encode(Publish(b"z/a", b"x" * 2_000), 5))


def management(router: Router) -> None:
    """Every kind of request: lists, metrics, events, the description, changes good and bad."""
    paths = (
        "/SEMP/v2/monitor/msgVpns?select=msgVpnName&where=enabled==true",
        "/SEMP/v2/monitor/msgVpns/blue/clients",
        "/SEMP/v2/monitor/msgVpns/blue/queues/q",
        "/SEMP/v2/config/msgVpns/blue",
        "/SEMP/v2/config/about",
        "/SEMP/v2/openapi.json",
        "/vpnrouter/v1/events",
        "/health/ready",
        "/metrics",
        "/nothing",
    )
    for path in paths:
        for more in ("Accept-Encoding: gzip", "Accept: application/openmetrics-text"):
            status, said = router.http("GET", path, None, more)
            assert status < 500, said
    for method, path, body in (
        ("PATCH", "/SEMP/v2/config/msgVpns/blue", {"maxConnectionCount": 17}),
        ("PATCH", "/SEMP/v2/config/msgVpns/blue", {"maxConnectionCount": "many"}),
        ("POST", "/SEMP/v2/config/msgVpns/blue/aclProfiles", {"aclProfileName": "a"}),
        (
            "POST",
            "/SEMP/v2/config/msgVpns/blue/aclProfiles/a/clientConnectExceptions",
            {"clientConnectExceptionAddress": "2001:db8::/32"},
        ),
        ("POST", "/SEMP/v2/config/msgVpns/blue/queues", {"queueName": "r"}),
        ("DELETE", "/SEMP/v2/config/msgVpns/blue/queues/r", None),
    ):
        status, said = router.http(method, path, body)
        assert status < 500, said


def traces(router: Router) -> None:
    """Traces as they happen, with conditions."""
    with router.open("http") as sock, contextlib.suppress(TimeoutError):
        path = "/vpnrouter/v1/traces?msgVpnName=blue&topic=s/>&event=ingress"
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        sock.settimeout(3)
        mqtt(router)
        while sock.recv(1 << 16):
            pass


def test_nothing_is_loaded_while_it_serves(router: Router, tmp_path: Path) -> None:
    """Clients, links, bridges, API, traces, a reload: no module is asked for that is not there."""
    mqtt(router)
    websockets(router)
    certificates(router, tmp_path)
    links(router)
    management(router)
    traces(router)
    router.process.send_signal(signal.SIGHUP)
    bad = router.file.read_text(encoding="utf-8").replace("sample: 1.0", "sample: [1]")
    while b"SYSTEM_CONFIG_RELOAD" not in router.http("GET", "/vpnrouter/v1/events")[1]:
        assert router.process.poll() is None
    router.file.write_text(bad, encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    mqtt(router)
    # Libraries that pyarrow asks for time and again, and does without.
    others = ("pandas", "dateutil")
    assert [name for name in router.asked() if not name.startswith(others)] == []

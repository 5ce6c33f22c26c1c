"""`vpnrouter run` as a process: ready line, signals, refusals, and clients of other makers."""

import os
import pty
import signal
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme

import vpnrouter

BLUE = "msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}\n"
PLAIN = 'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]\n' + BLUE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_clean_stop(start: Any, paho: Any, number: int) -> None:
    """A signal ends the router with exit code 0, no traceback, and 0x8B to the client."""
    router = start(PLAIN)
    client = paho(router.port("mqtt"), "c")
    assert router.stop(number) == 0
    assert client.disconnected.get(timeout=10) == 0x8B
    assert len(router.out) == 1
    assert "Traceback" not in "".join(router.err)


def test_sighup_is_answered(start: Any, paho: Any) -> None:
    """SIGHUP is answered with a line on stderr; clients stay."""
    router = start(PLAIN)
    client = paho(router.port("mqtt"), "c")
    router.process.send_signal(signal.SIGHUP)
    router.says("SIGHUP")
    client.subscribe("#")
    client.publish("a", b"x")
    assert client.next() == ("a", b"x")


def test_an_address_in_use_is_one_line(start: Any) -> None:
    """A router that cannot bind says which address in one line and exits with 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        router = start(PLAIN.replace("127.0.0.1:0", f"127.0.0.1:{number}"), wait=False)
        assert router.wait() == 1
    assert router.out == []
    (line,) = router.err
    assert f"cannot listen on 127.0.0.1:{number}: Address already in use" in line


def test_a_host_that_cannot_be_looked_up(start: Any) -> None:
    """A listener's host that no look-up takes is one line too."""
    host = "a" * 80
    router = start(PLAIN.replace("127.0.0.1", host), wait=False)
    assert router.wait() == 1
    (line,) = router.err
    assert f"cannot listen on {host}:0: " in line


def test_a_bad_key_is_one_line(start: Any, tmp_path: Path) -> None:
    """A certificate that cannot be used is named in one line, exit code 1."""
    (tmp_path / "bad.pem").write_text("not a key")
    (tmp_path / "bad.pem").chmod(0o600)
    tls = f"tls: {{certificate: {tmp_path}/bad.pem, key: {tmp_path}/bad.pem}}"
    router = start(
        f'listeners: [{{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue, {tls}}}]\n' + BLUE,
        wait=False,
    )
    assert router.wait() == 1
    (line,) = router.err
    assert "bad.pem" in line


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority, with a certificate for localhost in server.pem."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    return authority


def every_way(tmp_path: Path) -> str:
    """A configuration with one listener for each client protocol."""
    tls = f"tls: {{certificate: {tmp_path}/server.pem, key: {tmp_path}/server.pem}}"
    rows = [
        f'  - {{protocol: {protocol}, bind: "127.0.0.1:0", msg_vpn: blue{", " + tls if tls_on else ""}}}'
        for protocol, tls_on in (("mqtt", False), ("mqtts", True), ("ws", False), ("wss", True))
    ]
    return "listeners:\n" + "\n".join(rows) + "\n" + BLUE


def test_paho_over_every_way(start: Any, paho: Any, authority: trustme.CA, tmp_path: Path) -> None:
    """Clients of paho, 3.1.1 and 5, over TCP, TLS and WebSocket are clients of one VPN and hear each other."""
    router = start(every_way(tmp_path))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    clients = []
    for protocol in ("mqtt", "mqtts", "ws", "wss"):
        for level in (4, 5):
            options: dict[str, Any] = {"level": level}
            if protocol.startswith("ws"):
                options["transport"] = "websockets"
            if protocol.endswith("s") and protocol != "ws":
                options["tls"] = context
            client = paho(router.port(protocol), f"{protocol}-{level}", **options)
            assert client.code == 0
            client.subscribe("to/#")
            clients.append(client)
    payload = bytes(range(256)) * 400
    for number, client in enumerate(clients):
        client.publish(f"to/{number}", payload)
        for receiver in clients:
            assert receiver.next() == (f"to/{number}", payload)
    assert router.stop() == 0
    for client in clients[1::2]:
        assert client.disconnected.get(timeout=10) == 0x8B
    assert "Traceback" not in "".join(router.err)


@pytest.mark.peers
@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquitto_s_clients(start: Any, mosquitto: Any, version: str) -> None:
    """What mosquitto_pub publishes mosquitto_sub gets, properties and all."""
    subscriber_program, publisher_program = mosquitto("mosquitto_sub"), mosquitto("mosquitto_pub")
    router = start(PLAIN)
    where = ["-h", "127.0.0.1", "-p", str(router.port("mqtt")), "-V", version]
    # A terminal, so that the program writes line by line.
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, encoding="utf-8") as terminal,
        subprocess.Popen(
            [subscriber_program, *where, "-t", "a/+", "-v", "-C", "2", "-W", "15", "-d"],
            stdout=theirs,
        ) as subscriber,
    ):
        os.close(theirs)
        line = ""
        while "SUBACK" not in line:
            line = terminal.readline()
        for topic in ("a/1", "b/1", "a/2"):
            subprocess.run(
                [publisher_program, *where, "-t", topic, "-m", f"hello {topic}"], check=True
            )
        heard: list[str] = []
        while len(heard) < 2:
            line = terminal.readline().strip()
            if line.startswith(("a/", "b/")):
                heard.append(line)
        assert subscriber.wait(15) == 0
    assert heard == ["a/1 hello a/1", "a/2 hello a/2"]


def test_vpns_are_apart(start: Any, paho: Any) -> None:
    """One topic in two VPNs of one router, over two listeners or user@vpn: nothing crosses."""
    text = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: mqtt, bind: "127.0.0.1:0"}
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}}
  green: {client_usernames: {app: {password: secret}}}
"""
    router = start(text)
    blue = paho(router.port("mqtt"), "c")
    green = paho(router.port("mqtt", 1), "c", login=("app@green", "secret"))
    assert (blue.code, green.code) == (0, 0)
    for client, payload in ((blue, b"blue"), (green, b"green")):
        client.subscribe("#")
        client.publish("a/b", payload)
    assert blue.next() == ("a/b", b"blue")
    assert green.next() == ("a/b", b"green")
    blue.publish("end", b"")
    green.publish("end", b"")
    assert blue.next() == ("end", b"")
    assert green.next() == ("end", b"")
    assert blue.arrived.empty()
    assert green.arrived.empty()


def test_the_build_under_test_runs(start: Any) -> None:
    """The processes run the package that these tests import."""
    router = start(PLAIN, "edge")
    command = Path(f"/proc/{router.process.pid}/environ").read_bytes().split(b"\0")
    wanted = f"PYTHONPATH={Path(vpnrouter.__file__).parents[1]}"
    assert wanted.encode() in command

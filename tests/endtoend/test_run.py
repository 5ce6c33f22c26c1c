"""`vpnrouter run` as a process: ready line, signals, refusals, spools that it cannot have, clients of other makers."""

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


def refused(start: Any, text: str) -> str:
    """What a start says that is to be refused: one line, exit code 1, no ready line."""
    router = start(text, wait=False)
    assert router.wait() == 1
    assert router.out == []
    (line,) = router.err
    assert line.startswith("vpnrouter: ")
    return str(line)


def test_listeners_that_cannot_be(start: Any, tmp_path: Path) -> None:
    """An address in use, a host that no look-up takes, a certificate that cannot be used: each is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused(start, PLAIN.replace("127.0.0.1:0", there))
    assert f"cannot listen on {there}: Address already in use" in said
    host = "a" * 80
    assert f"cannot listen on {host}:0: " in refused(start, PLAIN.replace("127.0.0.1", host))
    (tmp_path / "bad.pem").write_text("not a key")
    (tmp_path / "bad.pem").chmod(0o600)
    tls = f"tls: {{certificate: {tmp_path}/bad.pem, key: {tmp_path}/bad.pem}}"
    listener = f'{{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue, {tls}}}'
    assert "bad.pem" in refused(start, f"listeners: [{listener}]\n{BLUE}")


@pytest.fixture
def spool(start: Any, tmp_path: Path) -> Path:
    """The spool of router edge, which has run and was stopped."""
    assert start(PLAIN).stop() == 0
    return tmp_path / "data-edge" / "spool"


def test_a_spool_of_another_router(start: Any) -> None:
    """Two routers cannot have one spool; the first one goes on."""
    first = start(PLAIN)
    assert "another process, or another part of this one, has it open" in refused(start, PLAIN)
    assert first.stop() == 0


def test_a_damaged_spool(start: Any, spool: Path) -> None:
    """A spool that cannot be read in full is refused, and stays as it is."""
    (manifest,) = spool.glob("MANIFEST-*")
    manifest.write_bytes(b"nonsense" * 100)
    assert "its files are damaged" in refused(start, PLAIN)
    assert manifest.read_bytes() == b"nonsense" * 100


def test_a_file_in_the_place_of_the_spool(start: Any, tmp_path: Path) -> None:
    """What is no directory is no spool."""
    place = tmp_path / "data-edge" / "spool"
    place.parent.mkdir()
    place.write_text("something else", encoding="utf-8")
    place.parent.chmod(0o700)
    place.chmod(0o600)
    assert str(place.name) in refused(start, PLAIN)
    assert place.read_text(encoding="utf-8") == "something else"


def test_restore_that_was_cut_off(start: Any, spool: Path) -> None:
    """The spool is put aside and nothing in its place: an empty one would lose what was acknowledged."""
    old = spool.with_name("spool.old")
    spool.rename(old)
    assert "a restore was cut off; rename spool.old to spool" in refused(start, PLAIN)
    assert not spool.exists()
    old.rename(spool)
    assert start(PLAIN).stop() == 0


def test_restore_that_was_cut_off_later(start: Any, spool: Path) -> None:
    """With the spool in its place, what was put aside is of no concern."""
    spool.with_name("spool.old").mkdir()
    assert start(PLAIN).stop() == 0


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
@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
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


LIMITED = """listeners: [{protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: blue}]
msg_vpns:
  blue:
    acl_profiles:
      narrow:
        client_connect: {default_action: allow}
        publish_topic: {default_action: allow}
        subscribe_topic: {default_action: allow, exceptions: [secret]}
    client_usernames:
      old: {password: pw, acl_profile: narrow}
      open: {password: pw, password_required: false}
"""


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_mqtt_3_1(start: Any, paho: Any, qos: int) -> None:
    """A client of MQTT 3.1 with a long id publishes and gets messages at each QoS, as one of 5 does."""
    port = start(LIMITED).port("mqtt")
    new = paho(port, "new", level=5, login=("old", "pw"))
    new.subscribe("to/new", qos)
    old = paho(port, "an-id-of-more-than-23-characters", level=3, login=("old", "pw"))
    assert new.code == old.code == 0
    old.subscribe("to/old", qos)
    old.client.publish("to/new", b"1", qos)
    assert new.next() == ("to/new", b"1")
    new.client.publish("to/old", b"2", qos)
    assert old.next() == ("to/old", b"2")


def test_sessions_and_refusals_of_mqtt_3_1(start: Any, paho: Any) -> None:
    """A session is kept for a client of MQTT 3.1; a wrong password is code 4, a denied filter granted in vain."""
    port = start(LIMITED).port("mqtt")
    old = paho(port, "old", level=3, login=("old", "pw"), clean_session=False)
    old.subscribe("kept", 1)
    old.subscribe("secret", 1)
    old.stop()
    new = paho(port, "new", login=("open", "pw"))
    for topic in ("secret", "kept"):
        new.client.publish(topic, topic.encode(), 1).wait_for_publish(20)
    again = paho(port, "old", level=3, login=("old", "pw"), clean_session=False)
    assert again.next() == ("kept", b"kept")
    assert again.arrived.empty()
    assert paho(port, "x", level=3, login=("old", "no")).code == 0x86


def test_a_login_without_password(start: Any, paho: Any) -> None:
    """Only a client username that says so comes in by its name alone, and not with a wrong password."""
    port = start(LIMITED).port("mqtt")
    for level in (3, 4, 5):
        assert paho(port, f"a{level}", level=level, login=("open", None)).code == 0
        assert paho(port, f"b{level}", level=level, login=("old", None)).code == 0x86
        assert paho(port, f"c{level}", level=level, login=("open", "no")).code == 0x86
        assert paho(port, f"d{level}", level=level, login=("open", "pw")).code == 0

"""`vpnrouter sub`, against a router of its own process, in the company of `pub`."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import vpnrouter
from vpnrouter.cli import app
from vpnrouter.cli._mqtt_link import stamped
from vpnrouter.cli.sub import Format, Subscriber, dump, printed
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL


def published(ann: list[str], *arguments: str) -> None:
    """Publish, and be told that all went well."""
    assert app.run(["pub", *arguments, *ann]) == 0


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[str], list[str]], None]]:
    """`meanwhile(ann, arguments)` publishes as soon as a subscription stands."""
    from vpnrouter.cli.sub import Subscriber

    ready = threading.Event()
    threads: list[threading.Thread] = []
    subscribe = Subscriber.subscribe

    def subscribed(self: Subscriber) -> list[str]:
        lines = subscribe(self)
        ready.set()
        return lines

    monkeypatch.setattr(Subscriber, "subscribe", subscribed)

    def start(ann: list[str], arguments: list[str]) -> None:
        def run() -> None:
            assert ready.wait(20)
            # A process of its own: what it prints does not mix with what is looked at.
            program = "from vpnrouter.cli.app import main; main()"
            command = [sys.executable, "-c", program, "pub", *arguments, *ann]
            env = os.environ | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])}
            subprocess.run(command, env=env, capture_output=True, check=False)

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(20)


def test_messages_and_latency(ann: list[str], meanwhile: Any, capfd: Any) -> None:
    """Each message is an object on a line, with what the publisher gave it; --count ends it."""
    publish = ["s/1", "n={seq}", "--template", "--stamp", "--count", "3", "-D", "a=b", "-q", "1"]
    meanwhile(ann, publish)
    assert app.run(["sub", "s/+", "q/+", "-q", "1", "-f", "json", "--count", "3", *ann]) == 0
    out, err = capfd.readouterr()
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [row["payload"].partition(" ")[2] for row in rows] == ["n=1", "n=2", "n=3"]
    assert rows[0]["topic"] == "s/1"
    assert rows[0]["userProperties"] == [["a", "b"]]
    assert 0 <= rows[0]["latencyMs"] < 20_000
    assert "subscribed to s/+ (QoS 1)" in err


@pytest.mark.parametrize("qos", ["1", "2"])
def test_a_queue_is_consumed(ann: list[str], qos: str, capfd: Any) -> None:
    """What is printed is gone from the queue, what is not wanted stays for the next one."""
    published(ann, f"orders/{qos}", "{seq}", "--template", "--count", "3", "-q", "1")
    consume = ["sub", "$queue/orders", "-q", qos, "-f", "text", "--timeout", "10"]
    capfd.readouterr()
    assert app.run([*consume, "--count", "2", *ann]) == 0
    assert capfd.readouterr().out == "1\n2\n"
    assert app.run([*consume, "--count", "1", *ann]) == 0
    assert capfd.readouterr().out == "3\n"


def test_too_few_within_the_time(ann: list[str], capfd: Any) -> None:
    """Fewer than --count within --timeout is exit code 1; without --count the end is no failure."""
    wait = ["sub", "never/+", "--timeout", "0.05"]
    assert app.run([*wait, "--count", "2", *ann]) == 1
    assert "0 of 2 messages came within 0.05 s" in capfd.readouterr().err
    assert app.run([*wait, *ann]) == 0


def test_retained_messages_if_wanted(ann: list[str], capfd: Any) -> None:
    """A new subscription gets them, unless it says never."""
    published(ann, "kept/1", "old", "--retain")
    capfd.readouterr()
    assert app.run(["sub", "kept/+", "--count", "1", "--timeout", "10", *ann]) == 0
    assert capfd.readouterr().out == "kept/1 old\n"
    assert app.run(["sub", "kept/+", "--retained", "never", "--timeout", "0.1", *ann]) == 0
    assert capfd.readouterr().out == ""


def test_raw_bytes_and_dumps(ann: list[str], tmp_path: Path, capfdbinary: Any) -> None:
    """--format raw writes a payload byte for byte, hex writes a dump."""
    (tmp_path / "f").write_bytes(b"\x00\x1b[31mA\xff")
    published(ann, "bytes/1", "--file", str(tmp_path / "f"), "-r")
    capfdbinary.readouterr()
    assert app.run(["sub", "bytes/1", "-f", "raw", "--count", "1", *ann]) == 0
    assert capfdbinary.readouterr().out == b"\x00\x1b[31mA\xff"
    assert app.run(["sub", "bytes/1", "-f", "hex", "--count", "1", *ann]) == 0
    assert b"00000000  00 1b 5b 33 31 6d 41 ff " in capfdbinary.readouterr().out


def test_rates(ann: list[str], meanwhile: Any, capfd: Any) -> None:
    """--stats says how many came, instead of printing them."""
    meanwhile(ann, ["rates", "x", "--count", "500"])
    assert app.run(["sub", "rates", "--stats", "--count", "500", "--timeout", "20", *ann]) == 0
    assert "received 500 messages, 500 bytes" in capfd.readouterr().out


def test_interrupted_is_a_good_end(
    ann: list[str], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """^C ends it with 0, and without a traceback."""
    from vpnrouter.cli.sub import Subscriber

    def interrupted(self: Subscriber, until_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Subscriber, "receive", interrupted)
    assert app.run(["sub", "t", *ann]) == 0
    assert capfd.readouterr().out == ""


def test_a_refused_subscription(ann: list[str], capfd: Any) -> None:
    """A queue that is not there, or not open to the client, is refused by name; exit code 1."""
    assert app.run(["sub", "$queue/nope", "-q", "1", *ann]) == 1
    said = capfd.readouterr().err
    assert said.startswith("vpnrouter: refused $queue/nope: 0x")
    assert "403 Permission Denied" in said


def test_a_lesser_qos_is_told(scripted: Any, capfd: Any) -> None:
    """What was granted is told where it is less than what was asked for."""

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack())
        one.heard()
        one.say(Suback(1, [0]))
        one.heard()

    assert (
        app.run(["sub", "t", "-q", "2", "--timeout", "0.05", "--port", str(scripted(script))]) == 0
    )
    assert "subscribed to t (QoS 0, 2 was asked for)" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        ([""], "1 to 65,535 bytes"),
        (["t", "--mqtt", "3.1.1", "--reject"], "3.1.1 has no rejection"),
        (["t", "--session-expiry", "9"], "a session needs a name"),
        (["t", "--url", "http://h"], "mqtt://[USER@]HOST"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: Any) -> None:
    """Exit code 2, before anything is connected."""
    assert app.run(["sub", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[int]:
    """A mosquitto broker; yields its port."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    if not Path(program).exists():
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "m.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    with subprocess.Popen([program, "-c", str(tmp_path / "m.conf")], stderr=-3) as process:
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield port
        finally:
            process.terminate()


@pytest.mark.peers
@pytest.mark.parametrize("mqtt", ["5", "3.1.1"])
def test_with_a_mosquitto_broker(mosquitto: int, mqtt: str, capfd: Any) -> None:
    """Both speak to a broker of others, at every QoS, and take from it what mosquitto_pub sent."""
    at = ["--port", str(mosquitto), "--mqtt", mqtt]
    for qos in ("0", "1", "2"):
        assert app.run(["pub", f"m/{qos}", f"ours {qos}", "-r", "-q", qos, *at]) == 0
    subprocess.run(
        ["mosquitto_pub", "-p", str(mosquitto), "-t", "m/3", "-m", "theirs", "-r", "-q", "2"],
        check=True,
    )
    capfd.readouterr()
    assert app.run(["sub", "m/+", "-q", "2", "--count", "4", "--timeout", "20", *at]) == 0
    found = sorted(capfd.readouterr().out.splitlines())
    assert found == ["m/0 ours 0", "m/1 ours 1", "m/2 ours 2", "m/3 theirs"]


@pytest.mark.peers
def test_mosquitto_sub_takes_what_pub_sends(ann: list[str], broker: int) -> None:
    """mosquitto_sub at our router gets what pub kept there, with its property."""
    program = shutil.which("mosquitto_sub")
    if program is None:
        pytest.skip("mosquitto_sub is not installed: apt-get install mosquitto-clients")
    published(ann, "peer/1", "hello", "-r", "-D", "a=b", "-q", "1")
    login = ["-p", str(broker), "-u", "ann", "-P", "right", "-V", "5"]
    done = subprocess.run(
        [program, *login, "-t", "peer/+", "-C", "1", "-W", "20", "-F", "%t %p %P"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "peer/1 hello a:b\n"


class Link:
    """A link that gives what stands in `coming`, and notes what is sent."""

    level = 5

    def __init__(self, *coming: list[Packet]) -> None:
        self.coming = list(coming)
        self.sent: list[Packet] = []
        self.ended = False

    def send_packet(self, packet: Packet) -> None:
        self.sent.append(packet)

    def send(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            size = frame_at(data, start, len(data), len(data))
            self.sent.append(decode(data, start, size, 5))
            start += size

    def receive(self, until_s: float) -> list[Packet]:
        return self.coming.pop(0)

    def end(self) -> None:
        self.ended = True


def made(link: Any, **given: Any) -> tuple[Subscriber, list[bytes]]:
    """A subscriber, and the payloads that it writes."""
    written: list[bytes] = []

    def write(packets: Sequence[Publish], now_ns: int) -> None:
        # Nothing is acknowledged before it is written.
        assert not [packet for packet in link.sent if isinstance(packet, Ack)]
        written.extend(packet.payload for packet in packets)

    return Subscriber(link, [SubscriptionRequest("t", 2)], write, **given), written


def message(payload: bytes, qos: int = 0, packet_id: int = 0) -> Publish:
    """A message on topic t."""
    return Publish(b"t", payload, qos, packet_id=packet_id)


def test_granted() -> None:
    """SUBACK's codes become lines; what was retained may come before it."""
    link = Link([message(b"early")], [Suback(1, [2])])
    subscriber, written = made(link)
    assert subscriber.subscribe() == ["subscribed to t (QoS 2)"]
    assert isinstance(link.sent[0], Subscribe)
    assert written == [b"early"]


@pytest.mark.parametrize(("accept", "code"), [(True, 0), (False, 0x83)])
def test_written_then_answered(accept: bool, code: int) -> None:
    """QoS 1 is answered by PUBACK, QoS 2 by PUBREC; a rejection has its code."""
    link = Link([message(b"0"), message(b"1", 1, 4), message(b"2", 2, 5)])
    subscriber, written = made(link, accept=accept)
    subscriber.receive(0.0)
    assert written == [b"0", b"1", b"2"]
    assert link.sent == [Ack(PUBACK, 4, code), Ack(PUBREC, 5, code)]
    assert (subscriber.total, subscriber.bytes) == (3, 3)


def test_exactly_once() -> None:
    """A repeated PUBLISH of QoS 2 is answered and not written again, until it is released."""
    link = Link([message(b"x", 2, 5), message(b"x", 2, 5)], [Ack(PUBREL, 5), Ack(PUBREL, 6)])
    subscriber, written = made(link)
    subscriber.receive(0.0)
    assert written == [b"x"]
    subscriber.finish()
    assert link.sent[2:] == [Ack(PUBCOMP, 5), Ack(PUBCOMP, 6, 0x92)]
    assert link.ended


def test_latency() -> None:
    """Messages that say when they were published have one."""
    subscriber, _ = made(Link([message(stamped(b"x", 1)), message(b"x")]))
    subscriber.receive(0.0)
    assert len(subscriber.latencies_ns) == 1
    assert subscriber.latencies_ns[0] > 1_000_000_000


NOW_NS = 1_700_000_000_123_000_000


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Format.TOPIC, b"a/\xc3\xa9 one\\ntwo\tt\\x1b[31m\\xff\n"),
        (Format.TEXT, b"one\ntwo\tt\\x1b[31m\\xff\n"),
        (Format.RAW, b"one\ntwo\tt\x1b[31m\xff"),
    ],
)
def test_nothing_steers_a_terminal(form: Format, expected: bytes) -> None:
    """Control characters and what is no text are escapes, but for the raw form."""
    packet = Publish("a/é".encode(), b"one\ntwo\tt\x1b[31m\xff")
    assert printed(packet, form, NOW_NS) == expected


def test_as_json() -> None:
    """Everything about the message, its properties by the names of MQTT."""
    properties = Properties(
        content_type="text/plain",
        correlation_data=b"\x00",
        user_properties=[("a", "1"), ("a", "2")],
    )
    packet = Publish(b"t", stamped(b"x", NOW_NS - 5_000_000), 1, True, properties=properties)
    row = json.loads(printed(packet, Format.JSON, NOW_NS))
    assert row["time"] == "2023-11-14T22:13:20.123Z"
    assert (row["topic"], row["qos"], row["retain"], row["dup"]) == ("t", 1, True, False)
    assert row["contentType"] == "text/plain"
    assert row["correlationData"] == "AA=="
    assert row["userProperties"] == [["a", "1"], ["a", "2"]]
    assert row["latencyMs"] == 5.0
    assert "payloadBase64" in json.loads(printed(Publish(b"t", b"\xff"), Format.JSON, NOW_NS))


def test_a_dump() -> None:
    """Offset, bytes and characters; sixteen a line."""
    lines = dump(bytes(range(60, 78))).splitlines()
    assert lines[0].endswith("  <=>?@ABCDEFGHIJK")
    assert lines[1].split() == ["00000010", "4c", "4d", "LM"]
    assert printed(Publish(b"t", b""), Format.HEX, 0) == b"t\n"

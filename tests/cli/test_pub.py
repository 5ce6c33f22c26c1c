"""`vpnrouter pub`, against a router of its own process and against brokers of a script."""

import io
import json
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.cli._mqtt_link import stamp_of
from vpnrouter.cli.pub import Lines, Messages, Publisher, Random, Same
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Ack, Connack, Disconnect, Packet, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC


def outcome(captured: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `--json` printed."""
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    return found


@pytest.mark.parametrize("mqtt", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_published(ann: list[str], mqtt: str, qos: str, capsys: Any) -> None:
    """At each QoS of each version all are sent, and acknowledged where somebody answers."""
    said = ["pub", "nobody/x", "hi", "--qos", qos, "--count", "1200", "--json", "--mqtt", mqtt]
    assert app.run([*said, *ann]) == 0
    found = outcome(capsys)
    assert found["sentMsgCount"] == 1200
    assert found["acknowledged"] == ({} if qos == "0" else {"0x00 Success": 1200})
    assert found["unansweredMsgCount"] == 0


def test_a_full_queue(ann: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What did not fit is counted and told with its reason; exit code 1."""
    publish = ["pub", "small/x", "--size", "400000", "--qos", "1", "--count", "5"]
    assert app.run([*publish, *ann]) == 1
    out, err = capsys.readouterr()
    assert "acknowledged 2: 0x00 Success" in out
    assert "refused 3: 0x97 Quota exceeded (503 Spool Over Quota)" in out
    assert "message 3 refused: 0x97 Quota exceeded" in err


@pytest.mark.parametrize("mqtt", ["5", "3.1.1"])
def test_a_topic_that_is_not_allowed(ann: list[str], mqtt: str, capsys: Any) -> None:
    """The ACL's refusal has its reason in MQTT 5; in 3.1.1 the connection is lost, which is said."""
    assert app.run(["pub", "secret/x", "hi", "--qos", "1", "--mqtt", mqtt, *ann]) == 1
    out, err = capsys.readouterr()
    if mqtt == "5":
        assert "refused 1: 0x87 Not authorized (403 Publish ACL Denied)" in out
    else:
        assert "not answered 1" in out
        assert "--mqtt 5 may bring the reason" in err


def test_a_wrong_password(broker: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1; what was refused, and no password in the line."""
    (tmp_path / "p").write_text("wrong-one\n", encoding="utf-8")
    options = ["--port", str(broker), "--user", "ann", "--password-file", str(tmp_path / "p")]
    assert app.run(["pub", "a", "b", *options]) == 1
    said = capsys.readouterr().err
    assert "refused client vpnrouter-pub-" in said
    assert "0x86" in said or "0x87" in said
    assert "wrong-one" not in said


def test_lines_of_stdin(ann: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Each line is a message, the last one without a line feed too."""
    inside, outside = os.pipe()
    os.write(outside, b"one\ntwo\r\nthree")
    os.close(outside)
    with io.open(inside) as stdin:  # noqa: UP020
        monkeypatch.setattr(sys, "stdin", stdin)
        assert app.run(["pub", "nobody", "--lines", "--qos", "1", "--json", *ann]) == 0
    assert outcome(capsys)["sentMsgCount"] == 3


def test_a_file_with_properties(ann: list[str], tmp_path: Path, capsys: Any) -> None:
    """A file's bytes are the payload; properties of MQTT 5 go with it."""
    (tmp_path / "f").write_bytes(b"\x00\xff")
    properties = ["-D", "a=b=c", "--content-type", "x/y", "--response-topic", "r", "--expiry", "9"]
    publish = ["pub", "t", "--file", str(tmp_path / "f"), "--correlation", "c", "--json"]
    assert app.run([*publish, *properties, *ann]) == 0
    assert outcome(capsys)["sentMsgCount"] == 1


def test_at_a_rate(ann: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Six messages at 40 a second take an eighth of a second, not much longer."""
    assert app.run(["pub", "t", "x", "--count", "6", "--rate", "40", "--json", *ann]) == 0
    assert 0.125 <= outcome(capsys)["seconds"] < 5


def test_a_broker_that_says_why(scripted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A DISCONNECT's reason is told; what was sent and not answered is exit code 1."""

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack())
        one.heard()
        one.say(Disconnect(0x89, Properties(reason_string="come back later")))

    assert app.run(["pub", "t", "x", "-q", "1", "--port", str(scripted(script))]) == 1
    out, err = capsys.readouterr()
    assert "not answered 1" in out
    assert "ended the connection: 0x89 Server busy (come back later)" in err


@pytest.mark.parametrize(
    ("properties", "options", "said"),
    [
        (Properties(maximum_qos=0), ["-q", "1"], "up to QoS 0"),
        (Properties(retain_available=0), ["-r"], "no retained messages"),
        (Properties(maximum_packet_size=20), ["--size", "30"], "the broker takes 20"),
    ],
)
def test_what_the_broker_does_not_offer(
    scripted: Any, properties: Properties, options: list[str], said: str, capsys: Any
) -> None:
    """It is not sent; the line says what the broker takes."""

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack(properties=properties))
        if one.heard()[:1] == b"\xc0":
            one.link.sendall(b"\xd0\x00")
            one.heard()

    message = [] if "--size" in options else ["x"]
    assert app.run(["pub", "t", *message, *options, "--port", str(scripted(script))]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t"], "give one of"),
        (["t", "x", "--lines"], "give one of"),
        (["a/+", "x"], "no wildcards"),
        (["", "x"], "1 to 65,535 bytes"),
        (["t", "x", "-D", "ab"], "NAME=VALUE"),
        (["t", "x", "--mqtt", "3.1.1", "-D", "a=b"], "3.1.1 has no properties"),
        (["t", "--file", "/no/such"], "cannot read /no/such"),
        (["t", "x", "--qos", "3"], "--qos"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, before anything is connected."""
    assert app.run(["pub", *arguments]) == 2
    assert said in capsys.readouterr().err


Answer = Callable[[Packet], list[Packet]]


class Link:
    """A link whose broker answers each packet by `answer`; `most` is how many were ever unanswered."""

    level = 5

    def __init__(self, answer: Answer, **properties: Any) -> None:
        self.connack = Connack(properties=Properties(**properties))
        self.sent: list[Packet] = []
        self._answer = answer
        self._waiting: list[Packet] = []
        self.most = 0

    def send(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            size = frame_at(data, start, len(data), len(data))
            packet = decode(data, start, size, 5)
            start += size
            self.sent.append(packet)
            self._waiting += self._answer(packet)
        self.most = max(self.most, len(self._waiting))

    def receive(self, until_s: float) -> list[Packet]:
        found, self._waiting = self._waiting, []
        return found

    def settle(self) -> list[Packet]:
        return []


def run(answer: Answer, count: int, qos: int, **properties: Any) -> tuple[Publisher, Link]:
    """Publish `count` messages."""
    link = Link(answer, **properties)
    messages = Messages("t", Same(b"x"), count=count)
    one: Any = link
    publisher = Publisher(one, messages, qos=qos, patience_s=0.01)
    publisher.run()
    return publisher, link


def acknowledge(packet: Packet) -> list[Packet]:
    """What a good broker says."""
    if isinstance(packet, Publish):
        return [Ack(PUBACK if packet.qos == 1 else PUBREC, packet.packet_id)] if packet.qos else []
    return [Ack(PUBCOMP, packet.packet_id)] if isinstance(packet, Ack) else []


def test_the_window_is_kept() -> None:
    """Never more in flight than the broker's Receive Maximum."""
    publisher, link = run(acknowledge, 100, 1, receive_maximum=7)
    assert publisher.outcome.good
    assert link.most == 7


@pytest.mark.parametrize("qos", [1, 2])
def test_refusals_are_counted(qos: int) -> None:
    """Each reason with its count; only the first are told one by one."""

    def answer(packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish):
            code = 0x97 if packet.packet_id % 2 else 0x10
            found = Ack(PUBACK if qos == 1 else PUBREC, packet.packet_id, code)
            found.properties.reason_string = "503 X" if code == 0x97 else None
            return [found]
        return acknowledge(packet)

    publisher, _ = run(answer, 40, qos)
    outcome = publisher.outcome
    assert outcome.refused == {"0x97 Quota exceeded (503 X)": 20}
    assert outcome.acknowledged == {"0x10 No matching subscribers": 20}
    assert len(outcome.refusals) == 10
    assert not outcome.good


def test_nobody_answers() -> None:
    """After the patience it ends, and says how many were not answered."""
    publisher, _ = run(lambda _: [], 5, 1)
    assert publisher.outcome.unanswered == 5
    assert "5 messages were not answered" in publisher.outcome.failure
    publisher, _ = run(lambda _: [], 5, 1, receive_maximum=2)
    assert publisher.outcome.unanswered == 2


def test_lost_underway() -> None:
    """What was acknowledged before stays counted."""

    def answer(packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish) and packet.packet_id == 2:
            raise OperationError("lost")
        return acknowledge(packet)

    publisher, _ = run(answer, 2, 1)
    assert publisher.outcome.failure == "lost"
    assert publisher.outcome.unanswered == 2
    assert publisher.outcome.as_json()["failure"] == "lost"


def test_answers_of_a_fool() -> None:
    """Answers to what was never asked are let be."""
    publisher, _ = run(lambda packet: [Ack(PUBACK, 999), *acknowledge(packet)], 3, 1)
    assert publisher.outcome.good


def test_the_template() -> None:
    """Three words are filled in, and nothing else in braces."""
    payload = Same(b'{"n": {seq}, "at": "{time}", "ns": {time_ns}, "{other}": {}}')
    messages = Messages("t/{seq}", payload, count=0, template=True)
    messages.take(0)
    topic, filled = messages.take(0) or (b"", b"")
    assert topic == b"t/2"
    form = rb'\{"n": 2, "at": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "ns": \d{19}, "\{other\}": \{\}\}'
    assert re.fullmatch(form, filled)


def test_random_payloads_of_a_size() -> None:
    """Each another one, all of the size, with a stamp too."""
    messages = Messages("t", Random(64, random.Random(7)), count=0)
    _, first = messages.take(0) or (b"", b"")
    _, second = messages.take(0) or (b"", b"")
    assert (len(first), len(second)) == (64, 64)
    assert first != second
    stamped = Messages("t", Random(64, random.Random(7)), stamp=True).take(0) or (b"", b"")
    assert len(stamped[1]) == 64
    assert stamp_of(stamped[1])


def test_lines_as_they_come() -> None:
    """A line is a message when it is whole; None meanwhile; the rest counts at the end."""
    inside, outside = os.pipe()
    lines = Lines(inside, 100)
    os.write(outside, b"one\r\ntw")
    assert lines.take(0) == b"one"
    assert lines.take(0) is None
    os.write(outside, b"o\n\nrest")
    os.close(outside)
    assert [lines.take(1), lines.take(1)] == [b"two", b""]
    found = lines.take(1)
    assert (lines.take(1) if found is None else found) == b"rest"
    with pytest.raises(EOFError):
        lines.take(1)
    os.close(inside)


def test_a_line_without_an_end() -> None:
    """It is not read into memory without end."""
    inside, outside = os.pipe()
    os.write(outside, b"x" * 101)
    with pytest.raises(OperationError, match="longer than 100 bytes"):
        Lines(inside, 100).take(0)
    os.close(inside)
    os.close(outside)

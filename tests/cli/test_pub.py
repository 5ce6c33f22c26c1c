"""`vpnrouter pub`, against a router of its own process and against brokers of a script."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.wire.mqtt.packets import Connack, Disconnect
from vpnrouter.wire.mqtt.properties import Properties


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
        (["t", "x", "--url", "mqtt://u:secret@h"], "no place on a command line"),
        (["t", "x", "--qos", "3"], "--qos"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, before anything is connected."""
    assert app.run(["pub", *arguments]) == 2
    assert said in capsys.readouterr().err

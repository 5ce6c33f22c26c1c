"""Messages as they are printed."""

import json

import pytest

from vpnrouter.cli._mqtt_link import stamped
from vpnrouter.cli.sub import Format, dump, printed
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

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

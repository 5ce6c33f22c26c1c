"""CONNECT beyond the golden packets: the level of one that was refused."""

from typing import Any

import pytest

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.decode import checked_reason, protocol_level
from vpnrouter.wire.mqtt.reason import DISCONNECT


def test_level_of_a_connect_is_readable_without_decoding(golden: Any) -> None:
    """Accepted or refused, a CONNECT long enough tells its level; nothing else raises."""
    if golden.frame[0] >> 4 != 1:
        return
    level = protocol_level(golden.frame, 0, len(golden.frame))
    if golden.packet is not None:
        assert level == golden.packet.protocol_level
    elif golden.name.startswith(("v4-", "v5-")):
        assert level == golden.level


@pytest.mark.parametrize(
    ("frame", "level"),
    [
        (b"", 0),
        (b"\x10", 0),
        (b"\x10\xff\xff\xff\xff\xff", 0),
        (b"\x10\x02\x00\x04", 0),
        (b"\x10\x06\x00\x04MQTT", 0),
        (b"\x10\x07\x00\x04MQTT\x05", 5),
        (b"\x10\x09\x00\x06MQIsdp\x03", 3),
    ],
)
def test_level_is_zero_when_there_is_none(frame: bytes, level: int) -> None:
    """A frame cut before the level byte has level 0."""
    assert protocol_level(frame, 0, len(frame)) == level


def test_level_is_read_where_the_frame_stands() -> None:
    """Start and length bound what is read."""
    assert protocol_level(b"\xff\x10\x07\x00\x04MQTT\x05", 1, 9) == 5
    assert protocol_level(b"\xff\x10\x07\x00\x04MQTT\x05", 1, 8) == 0


def test_reason_code_must_belong_to_its_packet() -> None:
    """A code of another packet is a protocol error that names both."""
    assert checked_reason(DISCONNECT, 0x8E) == 0x8E
    with pytest.raises(ProtocolError, match=r"^MQTT-3\.14\.2-1: reason code 0x86 .* DISCONNECT$"):
        checked_reason(DISCONNECT, 0x86)

"""Finding frames in a byte stream, whatever way it is cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt.fields import VARINT_MAX, frame_at, read_varint, varint
from vpnrouter.wire.mqtt.reason import MALFORMED_PACKET, PACKET_TOO_LARGE

EDGES = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2_097_151, "ffff7f"),
    (2_097_152, "80808001"),
    (268_435_455, "ffffff7f"),
]


def frames_of(stream: bytes, chunk: int) -> list[bytes]:
    """The frames found when `stream` arrives in pieces of `chunk` bytes."""
    found = []
    buffer = b""
    for start in range(0, len(stream), chunk):
        buffer += stream[start : start + chunk]
        while size := frame_at(buffer, 0, len(buffer), MQTT_PACKET_BYTES):
            found.append(buffer[:size])
            buffer = buffer[size:]
    assert not buffer
    return found


@pytest.mark.parametrize(("value", "encoded"), EDGES)
def test_varint_edges_of_the_standard(value: int, encoded: str) -> None:
    """Table 1-1 of the standard: the first and last value of each length."""
    raw = bytes.fromhex(encoded)
    assert varint(value) == raw
    assert read_varint(b"\xff" + raw, 1, 1 + len(raw)) == (value, 1 + len(raw))


@given(st.integers(0, VARINT_MAX))
def test_varint_round_trip(value: int) -> None:
    """Any variable byte integer reads back as it was written."""
    raw = varint(value)
    assert read_varint(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize("value", [-1, VARINT_MAX + 1])
def test_varint_out_of_range_is_a_value_error(value: int) -> None:
    """What four bytes can not say is refused before it is sent."""
    with pytest.raises(ValueError, match="variable byte integer"):
        varint(value)


def test_varint_ends_with_its_packet() -> None:
    """A variable byte integer does not read beyond the end it is given."""
    with pytest.raises(ProtocolError) as caught:
        read_varint(b"\x80\x01", 0, 1)
    assert caught.value.reason_code == MALFORMED_PACKET


def test_stream_gives_the_same_frames_however_it_is_cut(all_accepted: Any) -> None:
    """All golden packets in one stream are found whole, byte by byte and in odd pieces."""
    frames = [case.frame for case in all_accepted]
    stream = b"".join(frames)
    assert frames_of(stream, len(stream)) == frames
    assert frames_of(stream, 1) == frames
    assert frames_of(stream, 7) == frames


def test_frame_is_found_at_a_position() -> None:
    """Position and end bound what is looked at, not the buffer."""
    buffer = b"\xff\xff\xc0\x00\xd0\x00"
    assert frame_at(buffer, 2, 4, 100) == 2
    assert frame_at(buffer, 2, 3, 100) == 0
    assert frame_at(buffer, 4, 4, 100) == 0


def test_too_large_is_said_before_the_body_arrives() -> None:
    """The length field alone is enough to refuse a packet beyond the bound."""
    head = b"\x30" + varint(1_000)
    assert frame_at(head, 0, len(head), 1_003) == 0
    with pytest.raises(ProtocolError) as caught:
        frame_at(head, 0, len(head), 1_002)
    assert caught.value.reason_code == PACKET_TOO_LARGE


def test_largest_frame_of_the_standard_is_awaited() -> None:
    """A packet of 268,435,460 bytes, the largest there is, passes the largest bound."""
    head = b"\x30" + varint(VARINT_MAX)
    assert frame_at(head, 0, len(head), MQTT_PACKET_BYTES) == 0
    with pytest.raises(ProtocolError):
        frame_at(head, 0, len(head), MQTT_PACKET_BYTES - 1)


@pytest.mark.parametrize("field", ["80808080", "ffffffff", "8000", "808000", "ff00"])
def test_bad_length_field_is_refused_at_once(field: str) -> None:
    """A fifth byte to come, or a wasted one, is malformed without waiting for more."""
    head = b"\x30" + bytes.fromhex(field)
    with pytest.raises(ProtocolError) as caught:
        frame_at(head, 0, len(head), MQTT_PACKET_BYTES)
    assert caught.value.reason_code == MALFORMED_PACKET

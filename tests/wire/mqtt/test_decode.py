"""Bytes to packets."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt import fields
from vpnrouter.wire.mqtt.decode import checked_reason, decode, protocol_level
from vpnrouter.wire.mqtt.fields import VARINT_MAX, frame_at, read_varint, varint
from vpnrouter.wire.mqtt.properties import RULES
from vpnrouter.wire.mqtt.reason import DISCONNECT, MALFORMED_PACKET, PACKET_TOO_LARGE, TYPE_NAMES


def test_accepted_frame_decodes_to_its_packet(accepted: Any) -> None:
    """Every golden packet decodes to exactly the fields written beside it."""
    packet = decode(accepted.frame, 0, len(accepted.frame), accepted.level)
    assert packet == accepted.packet
    assert type(packet) is type(accepted.packet)


def test_refused_frame_names_reason_and_clause(refused: Any) -> None:
    """Every golden breach is refused with its reason code; its clause begins the message."""
    with pytest.raises(ProtocolError) as caught:
        decode(refused.frame, 0, len(refused.frame), refused.level)
    assert caught.value.reason_code == refused.reason
    assert str(caught.value).startswith(refused.clause + ":")


def test_frame_decodes_where_it_stands(accepted: Any) -> None:
    """A frame decodes alike in the middle of other bytes."""
    surrounded = b"\xff\x30" + accepted.frame + b"\x00\xff"
    assert decode(surrounded, 2, len(accepted.frame), accepted.level) == accepted.packet


def test_truncated_frame_is_incomplete_or_refused(golden: Any) -> None:
    """The beginning of a golden packet is "more needed" to framing, ProtocolError to decode."""
    frame = golden.frame
    for size in range(len(frame)):
        beginning = frame[:size]
        if not golden.name.startswith("remaining-length"):
            assert frame_at(beginning, 0, size, MQTT_PACKET_BYTES) == 0
        with pytest.raises(ProtocolError):
            decode(beginning, 0, size, golden.level)


def test_shortened_body_is_refused_or_another_packet(golden: Any) -> None:
    """With the length field lowered to fit, a cut body is refused or read, never anything else."""
    frame = golden.frame
    if len(frame) < 3 or frame[1] > 0x7F:
        return
    for size in range(len(frame) - 2):
        shortened = bytes((frame[0], size)) + frame[2 : 2 + size]
        with contextlib.suppress(ProtocolError):
            packet = decode(shortened, 0, len(shortened), golden.level)
            assert packet.packet_type == frame[0] >> 4


def test_frame_longer_than_its_length_field_is_refused(accepted: Any) -> None:
    """Bytes behind the end that the length field gives are no part of the packet."""
    with pytest.raises(ProtocolError, match=r"^MQTT 2\.1\.4:"):
        decode(accepted.frame + b"\x00", 0, len(accepted.frame) + 1, accepted.level)


def test_frame_beyond_its_buffer_is_refused() -> None:
    """A length that reaches beyond the buffer is refused, not read."""
    with pytest.raises(ProtocolError, match=r"^MQTT 2\.1\.1:"):
        decode(b"\xc0\x00", 0, 3, 4)


def test_golden_data_covers_every_packet_at_both_levels(all_accepted: Any) -> None:
    """Each packet type occurs at each level that has it."""
    seen = {(case.packet.packet_type, case.level) for case in all_accepted}
    wanted = {(kind, level) for kind in range(1, len(TYPE_NAMES)) for level in (4, 5)}
    assert seen == (wanted - {(15, 4)}) | {(1, 3)}


def test_golden_data_covers_every_property_in_every_packet(all_accepted: Any) -> None:
    """Each property of the table occurs in each packet that may carry it."""
    seen = set()
    for case in all_accepted:
        packet = case.packet
        if hasattr(packet, "properties"):
            seen |= {(name, packet.packet_type) for name in packet.properties.present()}
        will = getattr(packet, "will", None)
        if will is not None:
            seen |= {(name, 0) for name in will.properties.present()}
    wanted = {
        (rule.name, kind)
        for rule in RULES
        for kind in range(len(TYPE_NAMES))
        if (rule.packets >> kind) & 1
    }
    assert wanted - seen == set()


def test_level_of_a_connect_is_readable_without_decoding(golden: Any) -> None:
    """ReceivedPositions or refused, a CONNECT long enough tells its level; nothing else raises."""
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


READERS: list[tuple[Callable[[bytes, int, int], object], int]] = [
    (fields.read_u8, 1),
    (fields.read_u16, 2),
    (fields.read_u32, 4),
    (fields.read_packet_id, 2),
]


@pytest.mark.parametrize(("reader", "size"), READERS)
def test_integer_needs_all_its_bytes(reader: Callable[..., object], size: int) -> None:
    """One byte too few before the end of the packet is malformed, though the buffer goes on."""
    buffer = bytes(range(1, 9))
    assert reader(buffer, 2, 2 + size) == int.from_bytes(buffer[2 : 2 + size], "big")
    with pytest.raises(ProtocolError) as caught:
        reader(buffer, 2, 1 + size)
    assert caught.value.reason_code == 0x81


def test_packet_id_zero_is_a_protocol_error() -> None:
    """MQTT-2.2.1-3: no packet identifier is zero."""
    with pytest.raises(ProtocolError, match=r"^MQTT-2\.2\.1-3:") as caught:
        fields.read_packet_id(b"\x00\x00", 0, 2)
    assert caught.value.reason_code == 0x82


def test_field_ends_with_its_packet() -> None:
    """A length that reaches beyond the packet is malformed, though the buffer goes on."""
    assert fields.read_binary(b"\x00\x02abc", 0, 4) == (b"ab", 4)
    assert fields.read_string(b"-\x00\x02abc", 1, 5) == ("ab", 5)
    for end in (1, 3):
        with pytest.raises(ProtocolError):
            fields.read_binary(b"\x00\x02abc", 0, end)


@given(st.binary(max_size=8))
def test_utf8_accepts_what_the_codec_does_less_nul(piece: bytes) -> None:
    """A string is well-formed UTF-8 without U+0000, nothing else and nothing less."""
    try:
        text = piece.decode("utf-8")
        legal = "\x00" not in text
    except UnicodeDecodeError:
        legal = False
    if legal:
        assert fields.utf8(piece).encode() == piece
    else:
        with pytest.raises(ProtocolError, match=r"^MQTT-1\.5\.4-[12]:"):
            fields.utf8(piece)


@pytest.mark.parametrize("text", ["", "\ufeff", "\uffff", "\U0010ffff", "\x01", "\x7f\x9f"])
def test_utf8_keeps_what_only_should_not_be_sent(text: str) -> None:
    """Control and non-characters are discouraged, not forbidden (1.5.4); a BOM is kept (-3)."""
    assert fields.utf8(text.encode()) == text


@pytest.mark.parametrize("topic", [b"+", b"a/#", b"a+b", b"#"])
def test_topic_name_with_wildcard_is_invalid(topic: bytes) -> None:
    """MQTT-3.3.2-2: wildcards anywhere in a topic name are refused with 0x90."""
    with pytest.raises(ProtocolError, match=r"^MQTT-3\.3\.2-2:") as caught:
        fields.check_topic_name(topic)
    assert caught.value.reason_code == 0x90


@pytest.mark.parametrize("topic", [b"", b"/", b"a b", b"$SYS/x", "é/✈".encode()])
def test_other_topic_names_pass(topic: bytes) -> None:
    """Empty levels, spaces, dollars and any letters are topic names; so is the empty one here."""
    fields.check_topic_name(topic)


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF_FFFF), st.binary(max_size=30))
def test_writers_are_read_back(small: int, large: int, piece: bytes) -> None:
    """What is written reads back."""
    assert fields.read_u16(fields.u16(small), 0, 2) == small
    assert fields.read_u32(fields.u32(large), 0, 4) == large
    assert fields.read_binary(fields.binary(piece), 0, len(piece) + 2) == (piece, len(piece) + 2)


def test_writers_refuse_what_does_not_fit() -> None:
    """Too large, negative, too long, or forbidden in a string: ValueError."""
    for write, value in [(fields.u16, 65_536), (fields.u16, -1), (fields.u32, 1 << 32)]:
        with pytest.raises(ValueError, match="fit"):
            write(value)
    with pytest.raises(ValueError, match="65535"):
        fields.binary(b"x" * 65_536)
    with pytest.raises(ValueError, match="65535"):
        fields.string("é" * 32_768)
    with pytest.raises(ValueError, match="0000"):
        fields.string("a\x00")
    with pytest.raises(ValueError, match="surrogates"):
        fields.string("\udc00")
    assert len(fields.binary(b"x" * 65_535)) == 65_537

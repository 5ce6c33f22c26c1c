"""Integers, strings and binary data at their edges."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt import fields

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

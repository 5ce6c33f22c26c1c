import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.varint import VARINT_MAX, frame_at, read_varint, varint

EDGES = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2_097_151, "ffff7f"),
    (2_097_152, "80808001"),
    (VARINT_MAX, "ffffff7f"),
]


@pytest.mark.parametrize(("number", "encoded"), EDGES)
def test_edges_of_each_length(number: int, encoded: str) -> None:
    """The table of MQTT 5, 1.5.5: smallest and largest number of each length, both ways."""
    assert varint(number).hex() == encoded
    raw = bytes.fromhex(encoded)
    assert read_varint(raw, 0, len(raw)) == (number, len(raw))


@pytest.mark.parametrize("number", [-1, VARINT_MAX + 1])
def test_out_of_range_is_the_callers_fault(number: int) -> None:
    """A number that four bytes cannot say is a ValueError."""
    with pytest.raises(ValueError, match="does not fit"):
        varint(number)


@settings(max_examples=200, deadline=None)
@given(number=st.integers(0, VARINT_MAX), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_round_trip_in_the_middle_of_a_buffer(number: int, before: bytes, after: bytes) -> None:
    """What is written is read again, and nothing around it is touched."""
    raw = varint(number)
    buf = before + raw + after
    assert read_varint(buf, len(before), len(buf)) == (number, len(before) + len(raw))


@pytest.mark.parametrize("raw", ["", "80", "ffff", "ffffff", "ffffffff", "ffffffff01", "8000"])
def test_unreadable_numbers(raw: str) -> None:
    """A number that ends early, has a fifth byte or is padded is malformed."""
    data = bytes.fromhex(raw)
    with pytest.raises(ProtocolError) as caught:
        read_varint(data, 0, len(data))
    assert caught.value.reason_code == 0x81


@settings(max_examples=100, deadline=None)
@given(body=st.integers(0, 20_000), seen=st.integers(0, 20_010), before=st.binary(max_size=2))
def test_a_frame_is_told_when_its_last_byte_is_there(body: int, seen: int, before: bytes) -> None:
    """The length is 0 until the whole frame is in the buffer, then its size in bytes."""
    frame = b"\x30" + varint(body) + bytes(body)
    buf = before + frame[:seen]
    got = frame_at(buf, len(before), len(buf), 1_000_000, 0x95, 0x81)
    assert got == (len(frame) if seen >= len(frame) else 0)


def test_a_long_frame_is_refused_before_its_body_came() -> None:
    """One byte above the limit is the caller's code for it, exactly at the limit is not."""
    head = b"\x30" + varint(98)
    assert frame_at(head, 0, len(head), 100, 0x95, 0x81) == 0
    with pytest.raises(ProtocolError) as caught:
        frame_at(head, 0, len(head), 99, 0x95, 0x81)
    assert caught.value.reason_code == 0x95


@pytest.mark.parametrize("raw", ["30ffffffff", "308000"])
def test_a_bad_frame_length(raw: str) -> None:
    """A fifth length byte, and padding, give the caller's code for malformed."""
    data = bytes.fromhex(raw)
    with pytest.raises(ProtocolError) as caught:
        frame_at(data, 0, len(data), 1_000_000, 0x95, 0x42)
    assert caught.value.reason_code == 0x42

"""Bursts of messages and the counter at the other end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.burst import STAMP_BYTES, PublishCounter, burst
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode, encode_ack, encode_publish
from vpnrouter.wire.mqtt.packets import Pingresp, Publish
from vpnrouter.wire.mqtt.properties import Properties


@pytest.mark.parametrize("level", [4, 5])
def test_burst_is_its_messages_in_order(level: int) -> None:
    """A burst of equal and unequal payloads is the frames of its messages."""
    payloads = [b"a", b"b", b"", b"x" * 300, b"y" * 300, b"c"]
    frames = [encode_publish(b"t/1", payload, level) for payload in payloads]
    assert burst(b"t/1", payloads, level) == b"".join(frames)
    assert burst(b"t/1", [], level) == b""


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, list[bytes]]:
    """A level, and frames that favour runs of one size."""
    level = draw(st.sampled_from([4, 5]))
    frames: list[bytes] = []
    for _ in range(draw(st.integers(0, 8))):
        topic = draw(st.sampled_from([b"", b"a", b"flights/UA/EWR"]))
        size = draw(st.sampled_from([0, 1, 15, 16, 17, 105, 106, 126, 127, 300]))
        qos = draw(st.sampled_from([0, 0, 0, 1, 2]))
        block = draw(st.sampled_from([b"", b"\x01\x01", b"\x26\x00\x01a\x00\x01b" * 20]))
        count = draw(st.sampled_from([1, 2, 7, 8, 9, 10, 33, 170]))
        if draw(st.integers(0, 9)) == 0:
            frames.append(draw(st.sampled_from([encode(Pingresp(), 4), encode_ack(4, 1, 4)])))
        frames += [
            encode_publish(topic, bytes((n % 251,)) * size, level, block, qos, packet_id=n + 1)
            for n in range(count)
        ]
    return level, frames


@given(streams(), st.lists(st.integers(1, 5_000), max_size=12))
def test_counter_agrees_with_decoding(drawn: tuple[int, list[bytes]], cuts: list[int]) -> None:
    """However the stream is cut, counts, stamps and the last payload are those of the packets."""
    level, frames = drawn
    stream = b"".join(frames)
    packets = [decode_publish_or_other(frame, level) for frame in frames]
    wanted = [packet.payload for packet in packets if packet is not None and packet.qos < 2]
    plain = PublishCounter(level)
    stamped = PublishCounter(level, stamps=True)
    fed = 0
    pos = 0
    for cut in [*cuts, len(stream) + 1]:
        piece = stream[pos : pos + cut]
        pos += cut
        count = plain.feed(piece)
        assert stamped.feed(piece) == count
        fed += count
    for counter in (plain, stamped):
        assert (counter.total, fed) == (len(wanted), len(wanted))
        assert counter.others == len(frames) - len(wanted)
        assert counter.last_payload == (wanted[-1] if wanted else b"")
    assert stamped.stamp_list == [payload[:STAMP_BYTES] for payload in wanted]
    assert plain.stamp_list == []


def decode_publish_or_other(frame: bytes, level: int) -> Any:
    """The PUBLISH in a frame; None for another packet. An empty topic stands for an alias."""
    if frame[0] >> 4 != 3:
        return None
    body = 2 if frame[1] < 0x80 else 3
    if frame[body : body + 2] == b"\x00\x00":
        named = bytearray(frame[body:])
        named[1:2] = b"\x01t"
        frame = frame[:1] + length_field(len(named)) + bytes(named)
    return decode(frame, 0, len(frame), level)


def length_field(size: int) -> bytes:
    """A remaining length of one or two bytes."""
    return bytes((size,)) if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7))


def test_counter_fed_byte_by_byte() -> None:
    """One byte at a time gives the same counts, each frame counted with its last byte."""
    stream = burst(b"t", [b"12345678", b"1234", b"12345678"], 4)
    counter = PublishCounter(4)
    counts = [counter.feed(stream[at : at + 1]) for at in range(len(stream))]
    assert counter.total == 3
    assert [at for at, count in enumerate(counts) if count] == [12, 21, 34]


def test_large_frame_in_many_pieces_is_joined_once() -> None:
    """A frame of megabytes is kept in pieces until it is whole, not joined at each."""
    payload = bytes(2_000_000)
    stream = encode_publish(b"t", payload, 4)
    counter = PublishCounter(4)
    fed = [counter.feed(stream[at : at + 1_000]) for at in range(0, len(stream), 1_000)]
    assert sum(fed) == 1
    assert counter.last_payload == payload


def test_properties_do_not_count_as_payload() -> None:
    """At level 5 the stamp begins behind the properties, at QoS 1 behind the identifier too."""
    packet = Publish(b"t", b"stamp", 1, packet_id=5, properties=Properties(content_type="x" * 200))
    counter = PublishCounter(5, stamps=True)
    assert counter.feed(encode(packet, 5)) == 1
    assert counter.stamp_list == [b"stamp"]


@pytest.mark.parametrize("frame", ["3000", "300100", "30020005", "32020000", "3003000005"])
def test_counter_survives_frames_that_are_no_publish(frame: str) -> None:
    """A frame of the right kind with nonsense inside is counted, with an empty payload."""
    counter = PublishCounter(5, stamps=True)
    assert counter.feed(bytes.fromhex(frame)) == 1
    assert counter.last_payload == b""
    assert counter.stamp_list == [b""]


def test_counter_refuses_what_framing_refuses() -> None:
    """Too large a frame or a bad length field ends the count."""
    with pytest.raises(ProtocolError) as caught:
        PublishCounter(4, max_packet=100).feed(encode_publish(b"t", bytes(100), 4))
    assert caught.value.reason_code == 0x95
    with pytest.raises(ProtocolError):
        PublishCounter(4).feed(b"\x30\xff\xff\xff\xff\xff")

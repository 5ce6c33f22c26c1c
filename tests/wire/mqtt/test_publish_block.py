"""PUBLISH packets that come many at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.burst import STAMP_BYTES, PublishCounter, burst
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode, encode_ack, encode_publish
from vpnrouter.wire.mqtt.packets import Pingresp, Publish
from vpnrouter.wire.mqtt.properties import Properties, decode_properties, encode_block
from vpnrouter.wire.mqtt.publish_block import (
    message_block,
    payload_format_holds,
    publish_block_with,
    split_publish_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

EXPIRY = bytes.fromhex("020000003c")


ALIAS = bytes.fromhex("230007")


IDENTIFIER = bytes.fromhex("0b8001")


USER_B = bytes.fromhex("26000162000131")


USER_A = bytes.fromhex("26000161000132")


FORMAT = bytes.fromhex("0101")


def read_field(field: bytes) -> Properties:
    """The properties of a length-prefixed field, which must be legal in a PUBLISH."""
    props, end = decode_properties(field, 0, len(field), PUBLISH)
    assert end == len(field)
    return props


def test_empty_block() -> None:
    """No properties: an empty block, no alias, no expiry."""
    assert split_publish_properties(b"xx", 1, 1) == (b"", 0, -1)


def test_what_belongs_to_the_connection_is_taken_out() -> None:
    """Alias and identifiers go, wherever they stand; the rest keeps its bytes and order."""
    raw = IDENTIFIER + USER_B + ALIAS + EXPIRY + IDENTIFIER + USER_A + IDENTIFIER
    assert split_publish_properties(b"--" + raw + b"--", 2, 2 + len(raw)) == (
        USER_B + EXPIRY + USER_A,
        7,
        60,
    )


def test_block_of_nothing_but_connection_matters_is_empty() -> None:
    """An alias alone leaves no block."""
    assert split_publish_properties(ALIAS, 0, 3) == (b"", 7, -1)


def test_clients_may_not_send_subscription_identifiers() -> None:
    """MQTT-3.3.4-6, when the caller says that a client sent it."""
    with pytest.raises(ProtocolError, match=r"^MQTT-3\.3\.4-6:") as caught:
        split_publish_properties(IDENTIFIER, 0, 3, from_client=True)
    assert caught.value.reason_code == 0x82
    assert split_publish_properties(IDENTIFIER, 0, 3) == (b"", 0, -1)


PIECES = [
    EXPIRY,
    ALIAS,
    IDENTIFIER,
    USER_A,
    USER_B,
    FORMAT,
    bytes.fromhex("03000174"),
    bytes.fromhex("08000172"),
    bytes.fromhex("090002ff00"),
]


@given(st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
def test_split_judges_as_decoding_does(raw: bytes) -> None:
    """Any bytes are refused by both with one reason, or accepted by both with equal results."""
    field = bytes((len(raw),)) + raw
    try:
        props, _ = decode_properties(field, 0, len(field), PUBLISH)
    except ProtocolError as error:
        with pytest.raises(ProtocolError) as caught:
            split_publish_properties(raw, 0, len(raw))
        assert caught.value.reason_code == error.reason_code  # noqa: PT017
        return
    block, alias, expiry = split_publish_properties(raw, 0, len(raw))
    assert alias == (props.topic_alias or 0)
    assert expiry == (
        -1 if props.message_expiry_interval is None else props.message_expiry_interval
    )
    props.topic_alias = None
    props.subscription_identifiers = []
    assert read_field(publish_block_with(block)) == props


def test_untouched_block_gets_its_length_alone() -> None:
    """Without changes the block goes out as it came in."""
    assert publish_block_with(b"") == b"\x00"
    assert publish_block_with(USER_B + EXPIRY) == bytes((12,)) + USER_B + EXPIRY
    assert publish_block_with(USER_A * 20) == b"\x8c\x01" + USER_A * 20


def test_expiry_is_replaced_in_its_place() -> None:
    """MQTT-3.3.2-6: the received value less the time waited, everything else unaltered."""
    field = publish_block_with(USER_B + EXPIRY + USER_A, message_expiry_s=5)
    assert field == bytes((19,)) + USER_B + bytes.fromhex("0200000005") + USER_A


def test_expiry_is_found_behind_every_kind_of_property() -> None:
    """Strings, binary data, pairs and numbers before it are stepped over, whatever they hold."""
    before = encode_block(
        Properties(payload_format_indicator=1, content_type="\x02", correlation_data=b"\x02" * 9)
    )
    field = publish_block_with(before + USER_B + EXPIRY, message_expiry_s=0)
    assert field[1:] == before + USER_B + bytes.fromhex("0200000000")


def test_expiry_is_added_where_there_was_none() -> None:
    """A lifetime the router gives a message reaches the subscriber."""
    assert read_field(publish_block_with(USER_A, message_expiry_s=9)) == Properties(
        message_expiry_interval=9, user_properties=[("a", "2")]
    )


def test_alias_and_identifiers_are_added_behind() -> None:
    """What belongs to the new connection follows the message's own properties."""
    field = publish_block_with(USER_A, topic_alias=7, subscription_identifiers=[128, 1])
    assert field[1:] == USER_A + ALIAS + IDENTIFIER + b"\x0b\x01"


def test_will_properties_become_a_message_block() -> None:
    """The delay stays behind; what a PUBLISH carries goes along."""
    props = Properties(
        will_delay_interval=5,
        content_type="t",
        topic_alias=3,
        subscription_identifiers=[1],
        user_properties=[("a", "2")],
    )
    assert message_block(props) == bytes.fromhex("03000174") + USER_A
    assert message_block(Properties()) == b""


@pytest.mark.parametrize(
    ("block", "payload", "holds"),
    [
        (b"", b"\xff", True),
        (b"\x01\x00", b"\xff", True),
        (FORMAT, b"text", True),
        (FORMAT, "é✈".encode(), True),
        (FORMAT, b"\xff", False),
        (USER_A + FORMAT, b"\xed\xa0\x80", False),
    ],
)
def test_payload_format_is_judged_when_claimed(block: bytes, payload: bytes, holds: bool) -> None:
    """Only a payload said to be UTF-8 text is looked at."""
    assert payload_format_holds(block, payload) is holds


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

"""vpnrouter.wire.varint: walking over frames."""

import pytest

from vpnrouter.wire.link.encode import direct, direct_body, direct_x
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.varint import frame_end, messages_from, topic_in


@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_383, 16_384, 2_097_200])
def test_frame_end(size: int) -> None:
    """The end of a frame over every width of its length, and of one that is cut short."""
    frame = encode_publish(b"t", bytes(size), 4)
    assert frame_end(frame + b"\xd0\x00", 0) == len(frame)
    assert frame_end(frame[:-1], 0) == len(frame) - 1
    assert frame_end(b"\xd0\x00" + frame, 2) == 2 + len(frame)


def test_messages_from() -> None:
    """PUBLISH, DIRECT and DIRECT_X are messages, other frames are not; half a message counts."""
    body = direct_body(b"t", b"", b"x")
    data = direct(body) + b"\xd0\x00" + direct_x(b"\x01\x00", body) + encode_publish(b"t", b"", 4)
    assert messages_from(data, 0) == 3
    assert messages_from(data, len(direct(body))) == 2
    assert messages_from(data[:-1], 0) == 3
    assert messages_from(b"", 0) == 0
    assert messages_from(b"\x30\xff\xff\xff\xff\xff", 0) == 1


@pytest.mark.parametrize("size", [0, 100, 200, 70_000])
def test_topic_in(size: int) -> None:
    """The topic of each form of a Direct frame, whatever the width of its lengths; none where it has an alias."""
    body = direct_body(b"some/topic", b"", bytes(size))
    for level in (4, 5):
        assert (
            topic_in(encode_publish(b"some/topic", bytes(size), level), link=False) == b"some/topic"
        )
    assert topic_in(direct(body), link=True) == b"some/topic"
    assert topic_in(direct_x(b"\x01\x00", body), link=True) == b"some/topic"
    assert topic_in(direct_x(b"\x01" * 300, body), link=True) == b"some/topic"
    # A retained PUBLISH looks like DIRECT_X.
    retained = b"\x31" + encode_publish(b"some/topic", bytes(size), 4)[1:]
    assert topic_in(retained, link=False) == b"some/topic"
    assert topic_in(encode_publish(b"", bytes(size), 4), link=False) == b""


def test_topic_in_anything() -> None:
    """What is cut short has no topic, or what is left of it."""
    frame = direct_x(b"\x01\x00", direct_body(b"topic", b"", b"x"))
    for end in range(len(frame)):
        assert b"topic".startswith(topic_in(frame[:end], link=True))

import pytest

from bench.dialects import MQTT, NATS, Dialect
from bench.layout import PAYLOAD_BYTES, column_count, column_start, payload

BODY = payload(7, 9, 300, 70_000, 1 << 40)


def test_a_payload_has_its_length_and_its_fields() -> None:
    """Every payload is 64 bytes: cycle, destination, publisher, number, stamp, filler."""
    assert len(BODY) == PAYLOAD_BYTES == 64
    assert BODY[0] == 7
    assert BODY[1] == 9
    assert int.from_bytes(BODY[2:4], "big") == 300
    assert int.from_bytes(BODY[4:8], "big") == 70_000
    assert int.from_bytes(BODY[8:16], "big") == 1 << 40


@pytest.mark.parametrize("size", [1, 2, 7, 79])
def test_column_arithmetic_equals_counting(size: int) -> None:
    """Where a column begins in a chunk and how often it has passed is what counting bytes gives."""
    columns = [place % size for place in range(400)]
    for column in range(size):
        for before in range(170):
            assert column_count(column, before, size) == columns[:before].count(column)
            start = column_start(column, before, size)
            assert columns[before:][start] == column
            assert column not in columns[before : before + start]


@pytest.mark.parametrize("dialect", [MQTT, NATS])
def test_frames_of_a_dialect_have_one_size(dialect: Dialect) -> None:
    """Whatever topic, subscription and content: all frames of a direction are equally long."""
    topics = [dialect.topic(number) for number in (0, 9, 10, 999, 1000, 9999)]
    assert len({len(dialect.publish(topic, BODY)) for topic in topics}) == 1
    delivered = {
        len(dialect.delivered(topic, BODY, identifier))
        for topic in topics
        for identifier in range(10)
    }
    assert len(delivered) == 1


def test_frames_are_what_the_protocols_say() -> None:
    """The exact bytes of both dialects."""
    assert MQTT.publish("bench/t0001", BODY) == b"\x30\x4d\x00\x0bbench/t0001" + BODY
    assert MQTT.delivered("bench/t0001", BODY) == MQTT.publish("bench/t0001", BODY)
    assert NATS.publish("bench.t0001", BODY) == b"PUB bench.t0001 64\r\n" + BODY + b"\r\n"
    assert NATS.delivered("bench.t0001", BODY, 3) == b"MSG bench.t0001 3 64\r\n" + BODY + b"\r\n"


@pytest.mark.parametrize("dialect", [MQTT, NATS])
def test_split_takes_whole_messages_only(dialect: Dialect) -> None:
    """Split gives the whole messages of any beginning of a stream, and where it stopped."""
    frame = dialect.delivered(dialect.topic(5), BODY)
    stream = frame * 3
    for cut in range(len(stream) + 1):
        messages, used = dialect.split(stream[:cut])
        assert messages == [(dialect.topic(5), BODY)] * (cut // len(frame))
        assert used == cut // len(frame) * len(frame)


def test_split_passes_over_nats_control_lines() -> None:
    """PING between messages is no message."""
    frame = NATS.delivered(NATS.topic(5), BODY)
    stream = b"PING\r\n" + frame + b"PING\r\n" + frame
    assert NATS.split(stream) == ([(NATS.topic(5), BODY)] * 2, len(stream))

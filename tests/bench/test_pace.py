import random
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest

from bench.dialects import MQTT, NATS, Dialect
from bench.latency import prepare
from bench.layout import EVERYBODY, payload
from bench.pace import Pace

BOTH = pytest.mark.parametrize("dialect", [MQTT, NATS])


@pytest.fixture
def pairs() -> Iterator[list[socket.socket]]:
    """Publisher's socket, its other end, subscriber's socket, its other end."""
    first, second = socket.socketpair(), socket.socketpair()
    socks = [*first, *second]
    for sock in socks:
        sock.setblocking(False)
    yield socks
    for sock in socks:
        sock.close()


@pytest.fixture
def pace(dialect: Dialect, pairs: list[socket.socket]) -> Iterator[Pace]:
    """One publisher and one subscriber without a broker between them."""
    pace = prepare(dialect, [pairs[0]], [pairs[2]], [0])
    yield pace
    pace.close()


def frame(dialect: Dialect, number: int, stamp_ns: int, publisher: int = 0) -> bytes:
    """A delivered frame."""
    return dialect.delivered(dialect.topic(0), payload(0, EVERYBODY, publisher, number, stamp_ns))


@BOTH
@pytest.mark.parametrize("largest", [1, 60, 400])
def test_ages_come_from_the_stamps_however_the_stream_is_cut(
    dialect: Dialect, pace: Pace, largest: int
) -> None:
    """Each whole frame gives its age; one that is not complete gives none."""
    receiver = pace.receivers[0]
    stream = b"".join(frame(dialect, number, 1000 - number) for number in range(20))
    draw = random.Random(1)
    place = 0
    while place < len(stream) - 1:
        size = min(draw.randint(1, largest), len(stream) - 1 - place)
        receiver.absorb(stream[place : place + size], 1000)
        place += size
    assert receiver.ages == list(range(19))
    receiver.absorb(stream[-1:], 1000)
    assert receiver.ages == list(range(20))
    assert receiver.gaps == 0


@BOTH
def test_a_missing_number_and_a_foreign_publisher_are_gaps(dialect: Dialect, pace: Pace) -> None:
    """Loss, disorder and misdirection show in the count of gaps."""
    receiver = pace.receivers[0]
    receiver.absorb(frame(dialect, 0, 0) + frame(dialect, 2, 0), 1)
    assert receiver.gaps == 1
    receiver.absorb(frame(dialect, 3, 0, publisher=4), 1)
    assert receiver.gaps == 2


@pytest.mark.parametrize("dialect", [NATS])
def test_a_ping_is_answered(dialect: Dialect, pace: Pace, pairs: list[socket.socket]) -> None:
    """A control line before, between or after frames is answered and gives no age."""
    ping = b"PING\r\n"
    pace.receivers[0].absorb(ping + frame(dialect, 0, 0) + ping + frame(dialect, 1, 0) + ping, 1)
    assert len(pace.receivers[0].ages) == 2
    assert pairs[3].recv(100) == b"PONG\r\n" * 3


@BOTH
def test_paced_frames_carry_number_and_stamp(
    dialect: Dialect, pace: Pace, pairs: list[socket.socket]
) -> None:
    """At 10,000 a second for 20 ms, 200 frames leave, numbered, each stamped with when it was due."""
    pace.run(10_000.0, 0.02)
    sent = pairs[1].recv(1 << 20)
    size = len(pace.publishers[0].frame)
    assert len(sent) == 200 * size
    bodies = [sent[place : place + size] for place in range(0, len(sent), size)]
    at = pace.publishers[0].payload_at
    assert [int.from_bytes(body[at + 4 : at + 8], "big") for body in bodies] == list(range(200))
    stamps = [int.from_bytes(body[at + 8 : at + 16], "big") for body in bodies]
    assert {after - before for before, after in pairwise(stamps)} == {100_000}
    assert len(pace.lags) == 200
    assert min(pace.lags) >= 0

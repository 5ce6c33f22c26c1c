import random
import socket
from collections.abc import Iterator

import pytest

from bench.dialects import MQTT, NATS, Dialect
from bench.layout import CYCLE, CYCLE_AT, DESTINATION_AT, EVERYBODY, payload
from bench.receiver import Receiver

BOTH = pytest.mark.parametrize("dialect", [MQTT, NATS])


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connected sockets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def frame(dialect: Dialect, cycle: int, destination: int = EVERYBODY) -> bytes:
    """A delivered frame."""
    return dialect.delivered(dialect.topic(0), payload(cycle % CYCLE, destination, 0, 0, 0))


def in_order(dialect: Dialect, sock: socket.socket) -> Receiver:
    """A receiver that expects one publisher's stream on one topic."""
    body_at = frame(dialect, 0).index(payload(0, EVERYBODY, 0, 0, 0))
    cycle = b"".join(frame(dialect, number) for number in range(CYCLE))
    return Receiver(
        sock,
        len(frame(dialect, 0)),
        head=dialect.head,
        cycle_at=body_at + CYCLE_AT,
        destination_at=-1,
        destination=EVERYBODY,
        expected=cycle * 3,
        intruder=dialect.intruder,
        answer=dialect.answer,
    )


def feed(receiver: Receiver, stream: bytes, seed: int, largest: int = 3000) -> int:
    """Feeds a stream in pieces of random length; returns the frames it says it got."""
    draw = random.Random(seed)
    gained = place = 0
    while place < len(stream):
        piece = stream[place : place + draw.randint(1, largest)]
        gained += receiver.absorb(bytearray(piece), len(piece))
        place += len(piece)
    return gained


@BOTH
@pytest.mark.parametrize("largest", [1, 100, 9000])
def test_frames_are_counted_however_the_stream_is_cut(
    dialect: Dialect, largest: int, pair: tuple[socket.socket, socket.socket]
) -> None:
    """A whole stream gives its exact count and no complaint, byte by byte or in large pieces."""
    receiver = in_order(dialect, pair[0])
    stream = b"".join(frame(dialect, number) for number in range(600))
    assert feed(receiver, stream, 1, largest) == receiver.received == 600
    assert (receiver.gaps, receiver.strangers) == (0, 0)


@BOTH
def test_a_frame_begun_is_not_a_frame_received(
    dialect: Dialect, pair: tuple[socket.socket, socket.socket]
) -> None:
    """All but the last byte of a frame counts for nothing."""
    receiver = in_order(dialect, pair[0])
    piece = frame(dialect, 0)[:-1]
    assert receiver.absorb(bytearray(piece), len(piece)) == 0


@BOTH
@pytest.mark.parametrize("gone", [1, 2, 64, 250])
def test_a_lost_run_of_messages_is_seen(
    dialect: Dialect, gone: int, pair: tuple[socket.socket, socket.socket]
) -> None:
    """A hole in the stream is one gap, and what follows in order is none."""
    receiver = in_order(dialect, pair[0])
    numbers = [*range(300), *range(300 + gone, 900)]
    assert feed(receiver, b"".join(frame(dialect, number) for number in numbers), 2) == len(numbers)
    assert (receiver.gaps, receiver.strangers) == (1, 0)


@BOTH
def test_a_changed_byte_is_seen_in_a_sampled_chunk(
    dialect: Dialect, pair: tuple[socket.socket, socket.socket]
) -> None:
    """One chunk in sixteen is compared whole: damage outside the columns shows there."""
    receiver = in_order(dialect, pair[0])
    damaged = bytearray(frame(dialect, 0))
    damaged[-4] ^= 0x55
    for number in range(64):
        piece = bytearray(damaged)
        piece[receiver.cycle_at] = number
        receiver.absorb(piece, len(piece))
    assert receiver.gaps == 0
    assert receiver.strangers == 4


@BOTH
def test_a_message_for_somebody_else_is_seen(
    dialect: Dialect, pair: tuple[socket.socket, socket.socket]
) -> None:
    """With many topics, every frame must name this subscriber."""
    size = len(frame(dialect, 0))
    place = frame(dialect, 0).index(payload(0, EVERYBODY, 0, 0, 0)) + DESTINATION_AT
    receiver = Receiver(
        pair[0],
        size,
        head=dialect.head,
        cycle_at=-1,
        destination_at=place,
        destination=5,
        expected=b"",
        intruder=dialect.intruder,
        answer=dialect.answer,
    )
    right, wrong = frame(dialect, 0, 5), frame(dialect, 0, 6)
    assert feed(receiver, right * 500, 3) == 500
    assert receiver.strangers == 0
    assert feed(receiver, right * 20 + wrong * 3 + right * 20, 4) == 43
    assert receiver.strangers == 3


@pytest.mark.parametrize("largest", [1, 5, 400])
def test_a_ping_between_frames_is_answered_and_not_counted(
    largest: int, pair: tuple[socket.socket, socket.socket]
) -> None:
    """nats-server asks for a sign of life now and then: count and order are not disturbed."""
    receiver = in_order(NATS, pair[0])
    frames = [frame(NATS, number) for number in range(400)]
    for place in (399, 200, 200, 0):
        frames.insert(place, b"PING\r\n")
    assert feed(receiver, b"".join(frames), 5, largest) == 400
    assert (receiver.gaps, receiver.strangers) == (0, 0)
    assert pair[1].recv(100) == b"PONG\r\n" * 4


@BOTH
def test_anything_else_between_frames_ends_the_run(
    dialect: Dialect, pair: tuple[socket.socket, socket.socket]
) -> None:
    """An error line or a stray packet is not taken for messages."""
    receiver = in_order(dialect, pair[0])
    stream = frame(dialect, 0) + b"-ERR 'Slow Consumer'\r\n" + frame(dialect, 1)
    with pytest.raises(ValueError, match="not a frame"):
        receiver.absorb(bytearray(stream), len(stream))


def test_the_end_of_a_connection_is_seen(pair: tuple[socket.socket, socket.socket]) -> None:
    """A closed connection is told, not counted."""
    receiver = in_order(MQTT, pair[0])
    pair[1].close()
    assert receiver.take(bytearray(100)) == 0
    assert receiver.closed

"""vpnrouter.core.connection: bytes in pieces, pauses, and what the edge hears."""

import random

import pytest

from vpnrouter.core.connection import Connection
from vpnrouter.core.context import RouterContext
from vpnrouter.core.outbox import Channel
from vpnrouter.trace.recorder import Recorder


class Framed(Connection):
    """Frames of a length byte and that many bytes; a frame "p" pauses, "q" ends."""

    def __init__(self) -> None:
        super().__init__(RouterContext("here", 1, Recorder(), 0.0), "192.0.2.1", 100)
        self.frames: list[bytes] = []
        self.calls = 0

    def _needed(self) -> int:
        return 1 + self._parts[0][0]

    def consume(self, data: bytes, pos: int) -> int:
        self.calls += 1
        while pos < len(data) and pos + 1 + data[pos] <= len(data) and not self.paused:
            frame = data[pos + 1 : pos + 1 + data[pos]]
            pos += 1 + len(frame)
            self.frames.append(frame)
            if frame == b"p":
                self.paused = True
            if frame == b"q":
                return -1
        return pos


class Woken(Channel):
    """Counts how often it was woken."""

    def __init__(self) -> None:
        self.wakes = 0

    def wake(self) -> None:
        """Count."""
        self.wakes += 1


def test_pieces_are_joined_once() -> None:
    """A long frame in many pieces is looked at when it begins and when it is whole."""
    connection = Framed()
    for byte in b"\x02ab\x64" + b"x" * 100 + b"\x01c":
        connection.feed(bytes((byte,)))
    assert connection.frames == [b"ab", b"x" * 100, b"c"]
    assert connection.calls == 6


def test_a_pause_keeps_what_comes() -> None:
    """What arrives during a pause is handled after it, in order, and the channel is woken."""
    connection = Framed()
    channel = Woken()
    connection.outbox.channel = channel
    connection.feed(b"\x01a\x01p\x01b")
    connection.feed(b"\x01c\x02d")
    connection.feed(b"e")
    assert connection.frames == [b"a", b"p"]
    connection.resume()
    assert connection.frames == [b"a", b"p", b"b", b"c", b"de"]
    assert channel.wakes == 1


def test_the_rest_after_the_end_is_dropped() -> None:
    """A closed connection keeps nothing."""
    connection = Framed()
    connection.feed(b"\x01q\x01a")
    assert connection.frames == [b"q"]
    assert connection._parts == []


def test_hearing_is_dated() -> None:
    """`heard_ns` is the time of the last bytes, whole frame or not."""
    connection = Framed()
    connection.context.now_ns = 77
    connection.feed(b"\x05a")
    assert connection.heard_ns == 77


@pytest.mark.parametrize("seed", range(20))
def test_large_pieces(seed: int) -> None:
    """However large the pieces are and wherever they are cut, every frame is handled once and in order."""
    print(f"seed {seed}")
    generator = random.Random(seed)
    frames = [generator.randbytes(generator.randrange(2, 120)) for _ in range(2_000)]
    for place in generator.sample(range(2_000), 20):
        frames[place] = b"p"
    stream = b"".join(bytes((len(frame),)) + frame for frame in frames)
    connection = Framed()
    at = 0
    while at < len(stream):
        size = generator.choice((1, 100, 5_000, 40_000))
        connection.feed(stream[at : at + size])
        at += size
        if connection.paused and generator.random() < 0.5:
            connection.resume()
    while connection.paused:
        connection.resume()
    assert connection.frames == frames

"""Receives at full speed: counts frames of one size by bytes and checks them by columns, or parses every frame.
Compiled; runs plain as well.
"""

import socket
import ssl
from typing import Final, final

from mypy_extensions import i64
from typing_extensions import override

from bench.layout import CYCLE, column_count, column_start

BUFFER_BYTES: Final = 1 << 18
"""Bytes taken per receive call: few enough to stay in a second-level cache until they are checked.
"""
SAMPLE: Final = 16
"""One chunk in so many is compared byte for byte with what was sent."""
_PATTERN: Final = bytes(place % CYCLE for place in range(CYCLE + BUFFER_BYTES // 16))


class Taker:
    """What takes the messages of one subscriber, counts and checks them."""

    __slots__ = ("audited", "closed", "gaps", "keep", "received", "sock", "strangers")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = 0
        self.gaps = 0
        self.strangers = 0
        self.closed = False
        self.keep = False
        self.audited: list[bytes] = []

    def take(self, buffer: bytearray) -> int:
        """One receive call, with TLS one for each record that is there; returns how many frames that completed."""
        try:
            count = self.sock.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return 0
        if count == 0:
            self.closed = True
            return 0
        if isinstance(self.sock, ssl.SSLSocket):
            view = memoryview(buffer)
            try:
                while count < BUFFER_BYTES:
                    more = self.sock.recv_into(view[count:])
                    if more == 0:
                        break
                    count += more
            except ssl.SSLWantReadError:
                pass
        return self.absorb(buffer, count)

    def absorb(self, buffer: bytearray, count: int) -> int:
        """Counts and checks the first `count` bytes of `buffer`, the next of the stream."""
        raise NotImplementedError


@final
class Receiver(Taker):
    """Counts frames of one size by their bytes, and checks every one of them by columns.

    The first byte of each frame must be the protocol's; either the cycle column must run on without
    a gap (one publisher, one topic) or the destination column must name this receiver. One chunk in
    `SAMPLE` is also compared whole with `expected` where the stream is known in advance. `auditor`,
    where set, keeps every chunk for a full parse.
    """

    __slots__ = (
        "answer",
        "chunks",
        "cycle_at",
        "cycle_shift",
        "destination",
        "destination_at",
        "expected",
        "head",
        "intruder",
        "size",
        "skip",
        "total",
    )

    def __init__(
        self,
        sock: socket.socket,
        size: int,
        head: int,
        cycle_at: int,
        destination_at: int,
        destination: int,
        expected: bytes,
        intruder: bytes,
        answer: bytes,
    ) -> None:
        """`cycle_at` or `destination_at` is -1 where that column says nothing. `expected` holds a
        cycle of delivered frames, repeated so that any chunk fits behind any offset within the
        first cycle; or nothing. `intruder` is the control line which the broker may put between
        frames, `answer` what it wants back.
        """
        super().__init__(sock)
        self.size = size
        self.head = head
        self.cycle_at = cycle_at
        self.cycle_shift = 0
        self.destination_at = destination_at
        self.destination = destination
        self.expected = expected
        self.intruder = intruder
        self.answer = answer
        self.total = 0
        self.chunks = 0
        self.skip = 0

    @override
    def absorb(self, buffer: bytearray, count: int) -> int:
        if self.skip:
            count = self._drop(buffer, 0, count)
        before = self.total
        size = self.size
        heads = buffer[column_start(0, before, size) : count : size]
        if heads.count(self.head) != len(heads):
            count = self._odd(buffer, count)
        self.chunks += 1
        if self.cycle_at >= 0:
            self._check_cycle(buffer, count)
        elif self.destination_at >= 0:
            ours = buffer[column_start(self.destination_at, before, size) : count : size]
            if ours.count(self.destination) != len(ours):
                self.strangers += len(ours) - ours.count(self.destination)
        if self.keep:
            self.audited.append(bytes(buffer[:count]))
        self.total = before + count
        whole = self.total // size
        gained = whole - self.received
        self.received = whole
        return gained

    def _check_cycle(self, buffer: bytearray, count: int) -> None:
        before = self.total
        size = self.size
        cycles = buffer[column_start(self.cycle_at, before, size) : count : size]
        start = (column_count(self.cycle_at, before, size) + self.cycle_shift) % CYCLE
        if cycles != _PATTERN[start : start + len(cycles)]:
            for value in bytes(cycles):
                if value != start:
                    self.gaps += 1
                    self.cycle_shift += value - start
                    start = value
                start = (start + 1) % CYCLE
        elif self.chunks % SAMPLE == 0 and len(self.expected):
            offset = (before + self.cycle_shift * size) % (CYCLE * size)
            if buffer[:count] != self.expected[offset : offset + count]:
                self.strangers += 1

    def _odd(self, buffer: bytearray, count: int) -> int:
        """Takes control lines out of the chunk; anything else between frames ends the run."""
        place = column_start(0, self.total, self.size)
        while place < count:
            if buffer[place] == self.head:
                place += self.size
                continue
            line = self.intruder
            seen = bytes(buffer[place : min(count, place + len(line))])
            if not line or not line.startswith(seen):
                raise ValueError(
                    f"not a frame where one must begin: {bytes(buffer[place : place + 32])!r}"
                )
            self.skip = len(line)
            self.sock.send(self.answer)
            count = self._drop(buffer, place, count)
        return count

    def _drop(self, buffer: bytearray, place: int, count: int) -> int:
        """Removes `skip` bytes at `place`, as many of them as are there; returns what is left."""
        gone = min(self.skip, count - place)
        self.skip -= gone
        rest = buffer[place + gone : count]
        buffer[place : place + len(rest)] = rest
        return count - gone


def unframed(data: bytes) -> tuple[bytes, int]:
    """What the whole WebSocket frames in `data` carry, and how many bytes they are. Raises ValueError for a frame
    that is not binary, or masked.
    """
    parts: list[bytes] = []
    at: i64 = 0
    end: i64 = len(data)
    while at + 2 <= end:
        if data[at] != 0x82 or data[at + 1] > 127:
            raise ValueError(f"not a binary frame of a server: {data[at : at + 8]!r}")
        size: i64 = data[at + 1]
        body: i64 = at + 2
        if size > 125:
            body += 2 if size == 126 else 8
            if body > end:
                break
            size = 0
            for place in range(at + 2, body):
                size = size << 8 | data[place]
        if body + size > end:
            break
        parts.append(data[body : body + size])
        at = body + size
    return b"".join(parts), at


@final
class Parser(Taker):
    """Parses every frame: it must be meant for this subscriber, and follow the one before of the same publisher.

    `after[publisher][number]` is the number of the message that the subscriber gets next of that publisher;
    `following[publisher]` is the one that it waits for, -1 before the first. `text` says that frames are NATS's,
    not MQTT's; `extra` is how many bytes of properties stand between topic and payload (MQTT 5); `framed` says that
    packets come in WebSocket frames.
    """

    __slots__ = (
        "after",
        "answer",
        "destination",
        "extra",
        "following",
        "framed",
        "incomplete",
        "intruder",
        "rest",
        "text",
    )

    def __init__(
        self,
        sock: socket.socket,
        destination: int,
        after: list[list[int]],
        intruder: bytes,
        answer: bytes,
        *,
        text: bool,
        extra: int,
        framed: bool,
    ) -> None:
        super().__init__(sock)
        self.destination = destination
        self.after = after
        self.following = [-1] * len(after)
        self.intruder = intruder
        self.answer = answer
        self.text = text
        self.extra = extra
        self.framed = framed
        self.rest = b""
        self.incomplete = b""

    @override
    def absorb(self, buffer: bytearray, count: int) -> int:
        if self.framed:
            stream = self.incomplete + buffer[:count]
            packets, used = unframed(stream)
            self.incomplete = stream[used:]
            data = self.rest + packets
        else:
            data = self.rest + buffer[:count]
        before = self.received
        used = self._lines(data) if self.text else self._packets(data)
        self.rest = data[used:]
        return self.received - before

    def _packets(self, data: bytes) -> int:
        at: i64 = 0
        end: i64 = len(data)
        while at + 5 <= end:
            if data[at] != 0x30:
                raise ValueError(f"not a PUBLISH: {data[at : at + 32]!r}")
            length: i64 = data[at + 1]
            body: i64 = at + 2
            if length > 127:
                length = (length & 127) | (data[at + 2] & 127) << 7
                body = at + 3
                if data[at + 2] > 127:
                    length |= (data[at + 3] & 127) << 14
                    body = at + 4
                    if data[at + 3] > 127:
                        raise ValueError("a longer frame than any that was sent")
            if body + length > end:
                break
            self._check(data, body + 2 + (data[body] << 8 | data[body + 1]) + self.extra)
            at = body + length
        return at

    def _lines(self, data: bytes) -> int:
        at: i64 = 0
        end: i64 = len(data)
        while True:
            stop: i64 = data.find(b"\r\n", at, at + 512)
            if stop < 0:
                return at
            if data[at] != 0x4D:
                if data[at : stop + 2] != self.intruder:
                    raise ValueError(f"not a message: {data[at : stop + 2]!r}")
                self.sock.send(self.answer)
                at = stop + 2
                continue
            size: i64 = 0
            unit: i64 = 1
            place: i64 = stop - 1
            while data[place] != 0x20:
                size += (data[place] - 48) * unit
                unit *= 10
                place -= 1
            if stop + size + 4 > end:
                return at
            self._check(data, stop + 2)
            at = stop + size + 4

    def _check(self, data: bytes, at: i64) -> None:
        """Check the message whose payload begins at `at`, and count it."""
        self.received += 1
        if data[at + 1] != self.destination:
            self.strangers += 1
        publisher: i64 = data[at + 2] << 8 | data[at + 3]
        number: i64 = data[at + 4] << 24 | data[at + 5] << 16 | data[at + 6] << 8 | data[at + 7]
        if self.following[publisher] != number and self.following[publisher] >= 0:
            self.gaps += 1
        self.following[publisher] = self.after[publisher][number]

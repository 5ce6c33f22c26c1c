"""Receives at full speed: counts frames by bytes, checks each by columns. Compiled; runs plain as well."""

import socket
from typing import Final, final

from bench.layout import CYCLE, column_count, column_start

BUFFER_BYTES: Final = 1 << 18
"""Bytes taken per receive call: few enough to stay in a second-level cache until they are checked.
"""
SAMPLE: Final = 16
"""One chunk in so many is compared byte for byte with what was sent."""
_PATTERN: Final = bytes(place % CYCLE for place in range(CYCLE + BUFFER_BYTES // 16))


@final
class Receiver:
    """Counts frames of one size by their bytes, and checks every one of them by columns.

    The first byte of each frame must be the protocol's; either the cycle column must run on without
    a gap (one publisher, one topic) or the destination column must name this receiver. One chunk in
    `SAMPLE` is also compared whole with `expected` where the stream is known in advance. `auditor`,
    where set, keeps every chunk for a full parse.
    """

    __slots__ = (
        "answer",
        "audited",
        "chunks",
        "closed",
        "cycle_at",
        "cycle_shift",
        "destination",
        "destination_at",
        "expected",
        "gaps",
        "head",
        "intruder",
        "keep",
        "received",
        "size",
        "skip",
        "sock",
        "strangers",
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
        self.sock = sock
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
        self.received = 0
        self.chunks = 0
        self.skip = 0
        self.gaps = 0
        self.strangers = 0
        self.closed = False
        self.keep = False
        self.audited: list[bytes] = []

    def take(self, buffer: bytearray) -> int:
        """One receive call; returns how many frames it completed."""
        try:
            count = self.sock.recv_into(buffer)
        except BlockingIOError:
            return 0
        if count == 0:
            self.closed = True
            return 0
        return self.absorb(buffer, count)

    def absorb(self, buffer: bytearray, count: int) -> int:
        """Counts and checks the first `count` bytes of `buffer`, the next of the stream."""
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

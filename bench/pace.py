"""Publishes at a pace and measures one-way latency, one clock on both ends. Compiled; runs plain as well.

A message's age counts from the moment at which it was due, so a send that is late makes it older.
"""

import select
import socket
import time
from typing import Final, final

from bench.layout import NUMBER_AT, PUBLISHER_AT, STAMP_AT

CHUNK_BYTES: Final = 65_536
"""Bytes taken per receive call."""


@final
class PacedPublisher:
    """One encoded frame whose number and stamp are patched before every send."""

    __slots__ = ("frame", "number", "payload_at", "refused", "sock")

    def __init__(self, sock: socket.socket, frame: bytes, payload_at: int) -> None:
        """`payload_at` is where the payload begins in the frame."""
        self.sock = sock
        self.frame = bytearray(frame)
        self.payload_at = payload_at
        self.number = 0
        self.refused = 0

    def send(self, due_ns: int) -> None:
        """Stamps with when it was due, and sends. A kernel without room for one frame is counted in `refused`, and
        nothing is sent.
        """
        place = self.payload_at
        self.frame[place + NUMBER_AT : place + NUMBER_AT + 4] = self.number.to_bytes(4, "big")
        self.frame[place + STAMP_AT : place + STAMP_AT + 8] = due_ns.to_bytes(8, "big")
        try:
            count = self.sock.send(self.frame)
        except BlockingIOError:
            self.refused += 1
            return
        if count != len(self.frame):
            raise ConnectionError("the kernel took part of a frame at a paced rate")
        self.number += 1


@final
class PacedReceiver:
    """Takes whole frames out of the stream and keeps the age of each.

    A frame must begin with `prefix` (everything before the payload) and have the publisher's next
    number.
    """

    __slots__ = (
        "ages",
        "answer",
        "closed",
        "gaps",
        "intruder",
        "next_number",
        "prefix",
        "publisher",
        "rest",
        "size",
        "sock",
    )

    def __init__(
        self,
        sock: socket.socket,
        prefix: bytes,
        size: int,
        publisher: int,
        intruder: bytes,
        answer: bytes,
    ) -> None:
        self.sock = sock
        self.prefix = prefix
        self.size = size
        self.publisher = publisher
        self.intruder = intruder
        self.answer = answer
        self.rest = b""
        self.ages: list[int] = []
        self.next_number = 0
        self.gaps = 0
        self.closed = False

    def take(self) -> None:
        """One receive call; ages of the frames it completes are measured from its return."""
        try:
            chunk = self.sock.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        now = time.perf_counter_ns()
        if not chunk:
            self.closed = True
            return
        self.absorb(chunk, now)

    def absorb(self, chunk: bytes, now_ns: int) -> None:
        """Parses the next bytes of the stream; `now_ns` is when they were received."""
        data = self.rest + chunk if self.rest else chunk
        place = 0
        while len(data) - place >= self.size:
            if not data.startswith(self.prefix, place):
                place += self._intrusion(data, place)
                continue
            body = place + len(self.prefix)
            number = int.from_bytes(data[body + NUMBER_AT : body + NUMBER_AT + 4], "big")
            publisher = int.from_bytes(data[body + PUBLISHER_AT : body + PUBLISHER_AT + 2], "big")
            if number != self.next_number or publisher != self.publisher:
                self.gaps += 1
            self.next_number = number + 1
            self.ages.append(
                now_ns - int.from_bytes(data[body + STAMP_AT : body + STAMP_AT + 8], "big")
            )
            place += self.size
        if self.intruder and data.startswith(self.intruder, place):
            place += self._intrusion(data, place)
        self.rest = data[place:]

    def _intrusion(self, data: bytes, place: int) -> int:
        line = self.intruder
        if not line or not data.startswith(line, place):
            raise ValueError(f"not a frame where one must begin: {data[place : place + 32]!r}")
        self.sock.send(self.answer)
        return len(line)


@final
class Pace:
    """One message every interval, publishers in turn; in between, it polls without sleeping."""

    __slots__ = ("by_fd", "epoll", "lags", "publishers", "receivers", "turn")

    def __init__(self, publishers: list[PacedPublisher], receivers: list[PacedReceiver]) -> None:
        self.publishers = publishers
        self.receivers = receivers
        self.lags: list[int] = []
        self.turn = 0
        self.epoll = select.epoll()
        self.by_fd: dict[int, PacedReceiver] = {}
        for receiver in receivers:
            self.by_fd[receiver.sock.fileno()] = receiver
            self.epoll.register(receiver.sock.fileno(), select.EPOLLIN)

    def close(self) -> None:
        """Closes the epoll object, not the sockets."""
        self.epoll.close()

    def forget(self) -> None:
        """Drops the ages and lags kept so far (end of the warm-up)."""
        self.lags = []
        for receiver in self.receivers:
            receiver.ages = []

    def run(self, rate: float, seconds: float) -> None:
        """Publishes `rate` messages a second for `seconds`. `lags` gets how late each send was, in
        ns.
        """
        interval = 1e9 / rate
        begin = time.perf_counter_ns()
        messages = int(rate * seconds)
        count = len(self.publishers)
        done = 0
        while done < messages:
            due_ns = begin + int(done * interval)
            late = time.perf_counter_ns() - due_ns
            if late >= 0:
                self.lags.append(late)
                self.publishers[self.turn].send(due_ns)
                self.turn = (self.turn + 1) % count
                done += 1
            self._receive(0.0)

    def drain(self, expected: int, quiet_seconds: float) -> None:
        """Receives until `expected` ages are kept or nothing has arrived for `quiet_seconds`."""
        last = time.perf_counter_ns()
        kept = self.kept()
        while kept < expected:
            self._receive(0.02)
            now = time.perf_counter_ns()
            if self.kept() > kept:
                kept = self.kept()
                last = now
            elif now - last > quiet_seconds * 1e9:
                return

    def kept(self) -> int:
        """How many ages are kept."""
        total = 0
        for receiver in self.receivers:
            total += len(receiver.ages)
        return total

    def _receive(self, timeout: float) -> None:
        for fd, _mask in self.epoll.poll(timeout):
            receiver = self.by_fd[fd]
            receiver.take()
            if receiver.closed:
                raise ConnectionError("the broker closed a subscriber's connection")

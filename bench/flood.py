"""Drives publishers and receivers at full speed under a window. Compiled; runs plain as well.

A publisher is never further ahead of the slowest receiver than the window allows, so a broker with
bounded buffers need not drop. Only bytes that have arrived count as delivered.
"""

import select
import time
from collections.abc import Sequence
from typing import Final, final

from bench.publisher import Publisher
from bench.receiver import BUFFER_BYTES, Taker
from bench.window import Window

LITTLE_BYTES: Final = 131_072
"""A round that received less is followed by a rest, in which chunks grow and nobody has to be woken."""
REST_SECONDS: Final = 0.0001
"""Length of a rest asked for; the kernel makes it some 150 µs. At 5 M msg/s 60 KB arrive meanwhile.
"""
STALL_NS: Final = 2_000_000_000
"""So long without any arrival while the window is shut means that the missing messages are lost."""


@final
class Flood:
    """The loop: receive what is there, publish what the window allows, rest when little came.

    `frame_bytes` is the mean size of what arrives.
    """

    __slots__ = (
        "buffer",
        "by_fd",
        "epoll",
        "first",
        "little",
        "publishers",
        "receivers",
        "stalls",
        "window",
    )

    def __init__(
        self,
        publishers: list[Publisher],
        receivers: Sequence[Taker],
        window: Window,
        frame_bytes: int,
    ) -> None:
        self.little = LITTLE_BYTES // frame_bytes
        self.publishers = publishers
        self.receivers = receivers
        self.window = window
        self.buffer = bytearray(BUFFER_BYTES)
        self.epoll = select.epoll()
        self.by_fd: dict[int, Taker] = {}
        self.first = 0
        self.stalls = 0
        for receiver in receivers:
            self.by_fd[receiver.sock.fileno()] = receiver
            self.epoll.register(receiver.sock.fileno(), select.EPOLLIN)
        for publisher in publishers:
            self.epoll.register(
                publisher.sock.fileno(), select.EPOLLOUT | select.EPOLLIN | select.EPOLLET
            )

    def close(self) -> None:
        """Closes the epoll object, not the sockets."""
        self.epoll.close()

    def delivered(self) -> int:
        """Frames that all receivers have received so far."""
        total = 0
        for receiver in self.receivers:
            total += receiver.received
        return total

    def published(self) -> int:
        """Messages of which at least one byte was handed to the kernel."""
        total = 0
        for publisher in self.publishers:
            total += publisher.published()
        return total

    def _slowest(self) -> int:
        if not self.window.share:
            return self.delivered()
        slowest = self.receivers[0].received
        for receiver in self.receivers:
            slowest = min(slowest, receiver.received)
        return slowest

    def run(self, seconds: float) -> tuple[int, int]:
        """Publishes for `seconds`; returns (frames delivered, nanoseconds) of the interval."""
        begin = time.perf_counter_ns()
        end = begin + int(seconds * 1e9)
        last_arrival = begin
        at_begin = self.delivered()
        now = begin
        while now < end:
            arrived = self._receive(0.0)
            now = time.perf_counter_ns()
            room = self.window.room(self.published(), self._slowest())
            if room >= self.window.quantum:
                self._publish(room)
            if arrived <= self.little:
                time.sleep(REST_SECONDS)
            if arrived > 0:
                last_arrival = now
            elif now - last_arrival > STALL_NS:
                self.stalls += 1
                self.window.write_off(self.published(), self._slowest())
                last_arrival = now
        return self.delivered() - at_begin, now - begin

    def drain(self, expected: int, quiet_seconds: float) -> None:
        """Completes frames sent in part, then receives until `expected` frames have arrived in all,
        or nothing has for `quiet_seconds`.
        """
        for publisher in self.publishers:
            # Receiving goes on meanwhile: a broker that waits for its readers must not wait for us.
            end = time.perf_counter_ns() + int(quiet_seconds * 1e9)
            while publisher.missing():
                publisher.push(publisher.missing())
                self._receive(0.0)
                if time.perf_counter_ns() > end:
                    raise ConnectionError("the broker does not take the rest of a frame")
        last_arrival = time.perf_counter_ns()
        while self.delivered() < expected:
            arrived = self._receive(0.05)
            now = time.perf_counter_ns()
            if arrived > 0:
                last_arrival = now
            elif now - last_arrival > quiet_seconds * 1e9:
                return

    def _receive(self, timeout: float) -> int:
        arrived = 0
        for fd, mask in self.epoll.poll(timeout):
            receiver = self.by_fd.get(fd)
            if receiver is not None:
                arrived += receiver.take(self.buffer)
                if receiver.closed:
                    raise ConnectionError("the broker closed a subscriber's connection")
            elif mask & select.EPOLLHUP:
                raise ConnectionError("the broker closed a publisher's connection")
            else:
                self._writable(fd)
        return arrived

    def _writable(self, fd: int) -> None:
        for publisher in self.publishers:
            if publisher.sock.fileno() == fd:
                publisher.writable = True

    def _publish(self, room: int) -> int:
        """Shares `room` messages among the writable publishers, another one first each time."""
        sent = 0
        count = len(self.publishers)
        self.first = (self.first + 1) % count
        for step in range(count):
            publisher = self.publishers[(self.first + step) % count]
            if not publisher.writable:
                continue
            budget = room * publisher.size - sent
            if budget <= 0:
                break
            sent += publisher.push(min(budget, len(publisher.burst)))
        return sent

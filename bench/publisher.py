"""Publishes at full speed: one burst, sent over and over. Compiled; runs plain as well."""

import socket
import ssl
from bisect import bisect_left
from typing import final

from bench.layout import CYCLE


@final
class Publisher:
    """Sends one burst of encoded frames over and over; a send call may take any part of it."""

    __slots__ = (
        "burst",
        "columns",
        "cycle_at",
        "ends",
        "offset",
        "round",
        "sent_bytes",
        "size",
        "sock",
        "tried",
        "view",
        "writable",
    )

    def __init__(self, sock: socket.socket, burst: bytearray, size: int, cycle_at: int) -> None:
        """`burst` is whole frames of `size` bytes. With `cycle_at` ≥ 0 the cycle byte at that place
        of each frame is stepped before the burst is sent again; with -1 the burst already holds
        whole cycles.
        """
        self.sock = sock
        self.burst = burst
        self.view = memoryview(burst)
        self.size = size
        self.cycle_at = cycle_at
        self.columns: list[bytearray] = []
        self.ends: list[int] = []
        if cycle_at >= 0:
            frames = len(burst) // size
            self.columns = [bytearray([cycle]) * frames for cycle in range(CYCLE)]
        self.offset = 0
        self.round = 0
        self.sent_bytes = 0
        self.writable = True
        # TLS wants the bytes again that it could not send.
        self.tried = 0

    def push(self, budget: int) -> int:
        """Sends up to `budget` bytes; returns how many the kernel took."""
        taken = 0
        length = len(self.burst)
        while taken < budget:
            upto = max(min(length, self.offset + budget - taken), self.tried)
            try:
                count = self.sock.send(self.view[self.offset : upto])
            except BlockingIOError:
                self.writable = False
                break
            except ssl.SSLWantWriteError:
                self.tried = upto
                self.writable = False
                break
            self.tried = 0
            taken += count
            self.offset += count
            if self.offset == length:
                self.offset = 0
                self._next_round()
        self.sent_bytes += taken
        return taken

    def varied(self, ends: list[int]) -> None:
        """Make the burst one of frames of several sizes: `ends` says where each ends, `size` is their mean."""
        self.ends = ends

    def published(self) -> int:
        """Messages of which at least one byte was handed to the kernel."""
        if not self.ends:
            return -(-self.sent_bytes // self.size)
        begun = bisect_left(self.ends, self.offset) + 1 if self.offset else 0
        return self.round * len(self.ends) + begun

    def missing(self) -> int:
        """Bytes that complete the frame which is on the wire in part."""
        if not self.ends:
            return -self.sent_bytes % self.size
        if not self.offset:
            return 0
        return self.ends[bisect_left(self.ends, self.offset)] - self.offset

    def _next_round(self) -> None:
        self.round += 1
        if self.cycle_at >= 0:
            self.burst[self.cycle_at :: self.size] = self.columns[self.round % CYCLE]

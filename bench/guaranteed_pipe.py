"""Buffers a client's connection, so that neither sending nor receiving waits."""

from __future__ import annotations

import socket
from typing import Final

CHUNK_BYTES: Final = 1 << 18


class Pipe:
    """A non-blocking socket and what it has not yet taken."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._rest = memoryview(b"")

    @property
    def blocked(self) -> bool:
        """Whether something waits to be sent."""
        return len(self._rest) > 0

    def write(self, data: bytes) -> None:
        """Sends what the kernel takes; the rest goes with `flush`."""
        self._rest = memoryview(bytes(self._rest) + data) if self._rest else memoryview(data)
        self.flush()

    def flush(self) -> None:
        """Sends more of what waits."""
        while self._rest:
            try:
                taken = self.sock.send(self._rest)
            except BlockingIOError:
                return
            self._rest = self._rest[taken:]

    def read(self) -> bytes:
        """What has arrived, empty when nothing has. Raises ConnectionError at the end."""
        try:
            data = self.sock.recv(CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionError("the broker closed a connection")
        return data

    def close(self) -> None:
        """Ends the connection without a farewell."""
        self.sock.close()

"""Defines publishers and consumers of guaranteed messages for any protocol."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from bench.guaranteed_body import Keys
from bench.guaranteed_pipe import Pipe

BURST: Final = 1000
"""Most messages that are built and sent at once."""


class Outgoing(Protocol):
    """A publisher's side of a protocol."""

    def frames(self, first: int, count: int) -> bytes:
        """Messages `first`, `first + 1`, … as they go on the wire; `count` is `BURST` at most."""

    def confirmed(self, data: bytes) -> tuple[int, bytes]:
        """How many messages the received bytes acknowledge, and what to answer. Raises ValueError
        for anything that is no acknowledgement.
        """


class Incoming(Protocol):
    """A consumer's side of a protocol."""

    def deliveries(self, data: bytes) -> tuple[Keys, bytes]:
        """The keys of the messages in the received bytes, and the acknowledgements to send. Raises
        ValueError for anything that is no delivery.
        """


class Producer:
    """Publishes as far as its window allows; a message leaves the window when acknowledged."""

    def __init__(self, pipe: Pipe, speech: Outgoing, number: int, window: int) -> None:
        self.pipe = pipe
        self.number = number
        self.window = window
        self.sent = 0
        self.acked = 0
        self._speech = speech
        self._least = max(1, window // 4)

    def push(self, room: int) -> None:
        """Sends new messages, `room` at most. A window that is hardly open is left to open further:
        nobody sends a message at a time at full speed.
        """
        count = min(self.window - (self.sent - self.acked), room, BURST)
        if count < max(1, min(self._least, room)) or self.pipe.blocked:
            return
        self.pipe.write(self._speech.frames(self.sent, count))
        self.sent += count

    def take(self) -> int:
        """Receives acknowledgements; returns the number of bytes."""
        data = self.pipe.read()
        if data:
            count, answer = self._speech.confirmed(data)
            self.acked += count
            if answer:
                self.pipe.write(answer)
        return len(data)


class Consumer:
    """Consumes and acknowledges everything it gets."""

    def __init__(self, pipe: Pipe, speech: Incoming) -> None:
        self.pipe = pipe
        self.consumed = 0
        self._speech = speech
        self._got: list[Keys] = []

    def take(self) -> int:
        """Receives messages and acknowledges them; returns the number of bytes."""
        data = self.pipe.read()
        if data:
            got, answer = self._speech.deliveries(data)
            self.consumed += len(got)
            self._got.append(got)
            if answer:
                self.pipe.write(answer)
        return len(data)

    def taken(self) -> Keys:
        """The keys of all that was consumed, in its order."""
        return np.concatenate(self._got) if self._got else np.empty(0, dtype=np.uint64)

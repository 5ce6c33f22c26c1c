"""Drives the publishers and consumers of one process together."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence

from bench.guaranteed_body import faults
from bench.guaranteed_ends import BURST, Consumer, Producer

AHEAD = 20_000
"""Messages that publishing may be ahead of consuming, so that consumers keep up with any broker."""
LITTLE_BYTES = 1 << 14
PAUSE_SECONDS = 0.0005
"""After so few bytes the generator waits for more: it would spend its core on the answers of brokers
that send each one alone. Windows are wide enough that no broker ever waits for that.
"""
QUIET_SECONDS = 10.0
"""Nothing acknowledged or consumed for so long means that the rest is lost."""


class Flow:
    """Producers and consumers of one queue. Leave with `close`."""

    def __init__(
        self, producers: Sequence[Producer], consumers: Sequence[Consumer], ahead: int = AHEAD
    ) -> None:
        self._ahead = ahead
        self.producers = list(producers)
        self.consumers = list(consumers)
        self._ends: dict[int, Producer | Consumer] = {}
        self._waits: set[int] = set()
        self._poll = select.epoll()
        ends: list[Producer | Consumer] = [*self.producers, *self.consumers]
        for end in ends:
            descriptor = end.pipe.sock.fileno()
            self._ends[descriptor] = end
            self._poll.register(descriptor, select.EPOLLIN)

    @property
    def sent(self) -> int:
        """Messages published by all."""
        return sum(producer.sent for producer in self.producers)

    @property
    def acked(self) -> int:
        """Messages acknowledged to all publishers."""
        return sum(producer.acked for producer in self.producers)

    @property
    def consumed(self) -> int:
        """Messages consumed by all."""
        return sum(consumer.consumed for consumer in self.consumers)

    def publish(self, done: Callable[[], bool], limit: int | None = None) -> None:
        """Publishes and consumes until `done`; with a limit, so many messages and no more."""
        while not done():
            room = self._ahead - (self.sent - self.consumed) if self.consumers else self._ahead
            if room < min(BURST, self._ahead // 4):
                room = 0
            if limit is not None:
                room = min(room, limit - self.sent)
            for producer in self.producers:
                before = producer.sent
                producer.push(room)
                room -= producer.sent - before
            # Nobody is always the first to be let in.
            self.producers.append(self.producers.pop(0))
            self._turn()

    def load(self, count: int) -> None:
        """Publishes so many messages and waits until all are acknowledged. Raises TimeoutError."""
        quiet = _Quiet(lambda: self.acked)
        self.publish(lambda: self.acked >= count or quiet.over(), count)
        if self.acked < count:
            raise TimeoutError(f"{self.acked} of {count} messages acknowledged")

    def settle(self) -> list[str]:
        """Publishes no more and waits for what is on its way; says what is wrong then."""
        quiet = _Quiet(lambda: self.acked + self.consumed)
        while (self.acked < self.sent or self.consumed < self.sent) and not quiet.over():
            self._turn()
        # What is there in excess would come now.
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            self._turn()
        found = []
        if lacking := self.sent - self.acked:
            found.append(f"{lacking} messages never acknowledged")
        sent = {producer.number: producer.sent for producer in self.producers}
        return found + faults(sent, [consumer.taken() for consumer in self.consumers])

    def drain(self, count: int) -> None:
        """Consumes until so many have come. Raises TimeoutError when they do not."""
        quiet = _Quiet(lambda: self.consumed)
        while self.consumed < count:
            self._turn()
            if quiet.over():
                raise TimeoutError(f"{self.consumed} of {count} messages consumed")

    def close(self) -> None:
        """Ends all connections."""
        self._poll.close()
        for end in self._ends.values():
            end.pipe.close()

    def _turn(self) -> None:
        got = 0
        for descriptor, event in self._poll.poll(0.05):
            end = self._ends[descriptor]
            if event & select.EPOLLOUT:
                end.pipe.flush()
            if event & ~select.EPOLLOUT:
                got += end.take()
        if 0 < got < LITTLE_BYTES:
            time.sleep(PAUSE_SECONDS)
        for descriptor, end in self._ends.items():
            if end.pipe.blocked != (descriptor in self._waits):
                self._watch(descriptor, sending=end.pipe.blocked)

    def _watch(self, descriptor: int, *, sending: bool) -> None:
        if sending:
            self._waits.add(descriptor)
            self._poll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
        else:
            self._waits.discard(descriptor)
            self._poll.modify(descriptor, select.EPOLLIN)


class _Quiet:
    """Whether a count has stood still for too long."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._last = -1
        self._since = time.monotonic()

    def over(self) -> bool:
        """Whether it has not changed for `QUIET_SECONDS`."""
        now = time.monotonic()
        if (count := self._count()) != self._last:
            self._last = count
            self._since = now
        return now - self._since > QUIET_SECONDS

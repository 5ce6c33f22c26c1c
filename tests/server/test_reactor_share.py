"""How the reactor shares its time between Direct traffic and work for the spool; clocks turned by hand."""

from __future__ import annotations

import select
import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.connection import Connection
from vpnrouter.core.router import Router
from vpnrouter.core.turn import CommitPort
from vpnrouter.server.net.reactor import (
    DIRECT_SHARE,
    HEAVY_BYTES,
    SPOOL_SHARE,
    Reactor,
)
from vpnrouter.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not hasattr(select, "epoll"), reason=f"{sys.platform} has no epoll; loop.py serves there"
)

MILLISECOND_NS = 1_000_000


class Clock:
    """Nanoseconds that pass only when somebody works."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MILLISECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return self.now_ns


class Busy(Connection):
    """Takes what comes, and `cost_ns` for each chunk."""

    def __init__(self, stage: Stage, cost_ns: int, guaranteed: bool) -> None:
        super().__init__(stage.router.context, "here", 1 << 20)
        self.guaranteed = guaranteed
        self.stage = stage
        self.cost_ns = cost_ns
        self.spent_ns = 0

    def consume(self, data: bytes) -> int:
        self.stage.clock.now_ns += self.cost_ns
        self.spent_ns += self.cost_ns
        return len(data)

    def lost(self, reason: str) -> None:
        self.closing = True


class Idle(CommitPort):
    """A spool that has nothing to commit."""

    def step(self) -> None:
        pass


class Stage:
    """A reactor with one connection of each kind, whose peers have always something to say."""

    def __init__(self, clock: Clock, direct_bytes: int) -> None:
        self.clock = clock
        self.flood = direct_bytes >= HEAVY_BYTES
        self.router = Router("here", 1, Recorder())
        self.router.context.committing = Idle()
        self.reactor = Reactor(self.router)
        self.reactor.set_clocks()
        self.direct = Busy(self, MILLISECOND_NS, guaranteed=False)
        self.spooled = Busy(self, 5 * MILLISECOND_NS, guaranteed=True)
        self._far: list[tuple[socket.socket, bytes]] = []
        for connection, size in ((self.direct, direct_bytes), (self.spooled, 1_000)):
            near, far = socket.socketpair()
            for sock in (near, far):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            far.setblocking(False)
            self.reactor.add(near, connection)
            self._far.append((far, bytes(size)))

    def rounds(self, count: int) -> None:
        for _ in range(count):
            for far, data in self._far:
                try:
                    far.send(data)
                except BlockingIOError:
                    continue
            self.reactor.round()

    def close(self) -> None:
        self.reactor.close_all()
        for far, _ in self._far:
            far.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The reactor's clock."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic_ns", made.monotonic_ns)
    monkeypatch.setattr(time, "time_ns", made.time_ns)
    return made


@pytest.fixture(params=[100, HEAVY_BYTES])
def stage(clock: Clock, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """With a trickle of Direct traffic, and with a flood of it."""
    made = Stage(clock, request.param)
    yield made
    made.close()


def test_who_gets_the_time(stage: Stage) -> None:
    """Beside a flood the spool has its part and no more; beside a trickle all that it wants."""
    stage.rounds(400)
    part = stage.spooled.spent_ns / (stage.spooled.spent_ns + stage.direct.spent_ns)
    if stage.flood:
        assert part == pytest.approx(SPOOL_SHARE / (SPOOL_SHARE + DIRECT_SHARE), abs=0.05)
    else:
        assert part == pytest.approx(5 / 6, abs=0.02)

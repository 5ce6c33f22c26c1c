"""vpnrouter.server.net.reactor: every dirty outbox once, until nobody is dirty."""

from __future__ import annotations

import time

from vpnrouter.core.context import RouterContext
from vpnrouter.core.outbox import Channel, Outbox
from vpnrouter.server.net.reactor import LARGE_BYTES, LARGE_NS, flush_ready
from vpnrouter.trace.recorder import Recorder


class Noting(Channel):
    """Notes its flushes and makes another outbox dirty when told to."""

    def __init__(self, then: Outbox | None = None) -> None:
        self.flushes = 0
        self.then = then

    def flush(self) -> None:
        self.flushes += 1
        if self.then is not None:
            self.then.control(b"x")
            self.then = None


def test_each_dirty_outbox_is_flushed_once() -> None:
    """Two frames in one round are one flush; a flush that makes somebody dirty has that one flushed too."""
    context = RouterContext("here", 1, Recorder(), 0.0)
    last = Outbox(context.ready, 100)
    first = Outbox(context.ready, 100)
    last.channel = at_last = Noting()
    first.channel = at_first = Noting(then=last)
    first.control(b"a")
    first.control(b"b")
    flush_ready(context)
    assert (at_first.flushes, at_last.flushes) == (1, 1)
    assert not first.dirty
    assert not last.dirty
    flush_ready(context)
    assert (at_first.flushes, at_last.flushes) == (1, 1)


def test_those_with_little_to_send_come_first() -> None:
    """An outbox with much in it is flushed behind all others; what takes too long waits for the next round."""
    context = RouterContext("here", 1, Recorder(), 0.0)
    order: list[str] = []

    class Slow(Channel):
        def __init__(self, name: str, outbox: Outbox) -> None:
            self.name = name
            self.outbox = outbox

        def flush(self) -> None:
            order.append(self.name)
            self.outbox.take(1 << 30)
            until = time.monotonic_ns() + (LARGE_NS if self.name == "large" else 0)
            while time.monotonic_ns() < until:
                pass

    large = [Outbox(context.ready, 1 << 30) for _ in range(3)]
    small = [Outbox(context.ready, 1 << 30) for _ in range(3)]
    for outbox in large:
        outbox.channel = Slow("large", outbox)
        outbox.control(bytes(LARGE_BYTES + 1))
    for outbox in small:
        outbox.channel = Slow("small", outbox)
        outbox.control(b"x")
    flush_ready(context)
    assert order[:4] == ["small", "small", "small", "large"]
    assert context.large
    before = len(order)
    small[0].control(b"x")
    flush_ready(context)
    assert order[before] == "small"
    for _ in range(3):
        flush_ready(context)
    assert order.count("large") == 3
    assert not context.large
    assert not any(outbox.dirty for outbox in large + small)

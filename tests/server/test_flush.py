"""vpnrouter.server.flush: every dirty outbox once, until nobody is dirty."""

from __future__ import annotations

from vpnrouter.core.outbox import Channel, Outbox
from vpnrouter.core.plane import Plane
from vpnrouter.server.flush import flush_ready
from vpnrouter.trace.recorder import Recorder


class Noting(Channel):
    """Notes its flushes and makes another outbox dirty when told to."""

    def __init__(self, then: Outbox | None = None) -> None:
        self.flushes = 0
        self.then = then

    def flush(self) -> None:
        """See Channel.flush."""
        self.flushes += 1
        if self.then is not None:
            self.then.control(b"x")
            self.then = None


def test_each_dirty_outbox_is_flushed_once() -> None:
    """Two frames in one round are one flush; a flush that makes somebody dirty has that one flushed too."""
    plane = Plane("here", 1, Recorder(), 0.0)
    last = Outbox(plane.ready, 100)
    first = Outbox(plane.ready, 100)
    last.channel = at_last = Noting()
    first.channel = at_first = Noting(then=last)
    first.control(b"a")
    first.control(b"b")
    flush_ready(plane)
    assert (at_first.flushes, at_last.flushes) == (1, 1)
    assert not first.dirty
    assert not last.dirty
    flush_ready(plane)
    assert (at_first.flushes, at_last.flushes) == (1, 1)

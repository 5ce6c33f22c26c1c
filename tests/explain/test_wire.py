"""Bytes between two connections in memory."""

from vpnrouter.core.connection import Connection
from vpnrouter.core.context import RouterContext
from vpnrouter.explain.network import ConnectionPair, take_all
from vpnrouter.trace.recorder import Recorder


class End(Connection):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__(RouterContext("r", 1, Recorder(), 0.0), "", 1 << 20)
        self.heard = b""
        self.gone: list[str] = []

    def consume(self, data: bytes) -> int:
        """Keep the bytes."""
        self.heard += data
        return len(data)

    def lost(self, reason: str) -> None:
        """Keep the reason."""
        self.gone.append(reason)


def test_both_ways_and_the_end() -> None:
    """What is said arrives, and an end is told once on both sides."""
    one, two = End(), End()
    wire = ConnectionPair(one, two)
    assert not wire.pump()
    one.outbox.control(b"hello")
    two.outbox.control(b"you")
    assert wire.pump()
    assert (one.heard, two.heard) == (b"you", b"hello")
    one.outbox.control(b"bye")
    one.closing = True
    assert wire.pump()
    assert (two.heard, one.gone, two.gone) == (b"hellobye", ["closed"], ["closed by peer"])
    assert wire.over
    assert not wire.pump()
    assert take_all(one) == b""

"""One way from a bridge to a router, and everything that can go wrong on it."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final, final

from vpnrouter.testing.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
BACKLOG: Final = 128


@final
class FaultyLink:
    """A listening port whose connections are relayed to `target`.

    Directions are TO_TARGET and FROM_TARGET. `accepted` counts connections since the beginning, `passed`
    bytes handed on, by direction. Faults that take time hold for connections to come as well, until `heal`.
    """

    def __init__(
        self, do: Callable[[Callable[[], None]], None], target: tuple[str, int] | None
    ) -> None:
        self.target = target
        self.accepted = 0
        self.passed = [0, 0]
        self.stalled = [False, False]
        self.delay_s = 0.0
        self.bytes_per_s = 0.0
        self.budget = [-1, -1]
        self._do = do
        self._frozen = False
        self._relays: list[Relay] = []
        # Holds the port while nobody listens on it; a bound socket that does not listen refuses.
        self._holder = _bound(0)
        self.port = int(self._holder.getsockname()[1])
        self._listener: socket.socket | None = None
        self._listen()

    @property
    def address(self) -> str:
        """What a bridge dials: HOST:PORT."""
        return f"{HOST}:{self.port}"

    @property
    def connections(self) -> int:
        """Connections open at this moment."""
        return len(self._relays)

    # -- faults ----------------------------------------------------------------------------------

    def cut(self) -> None:
        """Reset all connections, both ends (RST)."""
        self._do(self._cut)

    def close(self) -> None:
        """End all connections in order, both ends (FIN); bytes on the way are lost."""
        self._do(self._close)

    def orphan(self) -> None:
        """Reset the dialling ends and tell the other ends nothing: they stay open and silent."""
        self._do(self._orphan)

    def unreachable(self) -> None:
        """Refuse connections to come, and reset those that are open."""
        self._do(self._unreachable)

    def freeze(self) -> None:
        """Keep all connections open, accept new ones, and swallow whatever comes (half-open)."""
        self._do(self._freeze)

    def stall(self, direction: int) -> None:
        """Hand on nothing in one direction; what is sent waits, in the sender's buffers in the end."""
        self._do(lambda: self.stalled.__setitem__(direction, True))

    def delay(self, seconds: float) -> None:
        """Hand on bytes this much later, in both directions."""
        self._do(lambda: setattr(self, "delay_s", seconds))

    def throttle(self, bytes_per_s: float) -> None:
        """Hand on no more than this in each direction of each connection."""
        self._do(lambda: setattr(self, "bytes_per_s", bytes_per_s))

    def cut_after(self, count: int, direction: int) -> None:
        """Hand on `count` bytes more in a direction, then reset the connection, as `cut` does."""
        self._do(lambda: self.budget.__setitem__(direction, count))

    def heal(self) -> None:
        """No faults from now on. Connections that lost bytes to `freeze` or `orphan` stay dead."""
        self._do(self._heal)

    def _cut(self) -> None:
        for relay in self._relays:
            relay.reset()
        self._relays.clear()

    def _close(self) -> None:
        for relay in self._relays:
            relay.close()
        self._relays.clear()

    def _orphan(self) -> None:
        for relay in self._relays:
            relay.orphan()

    def _unreachable(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._cut()

    def _freeze(self) -> None:
        self._frozen = True
        for relay in self._relays:
            relay.freeze()

    def _heal(self) -> None:
        self._frozen = False
        self.stalled = [False, False]
        self.budget = [-1, -1]
        self.delay_s = 0.0
        self.bytes_per_s = 0.0
        if self._listener is None:
            self._listen()

    def end(self) -> None:
        """Close everything; for the network's thread."""
        self._unreachable()
        self._holder.close()

    # -- the network's thread --------------------------------------------------------------------

    def _listen(self) -> None:
        self._listener = _bound(self.port)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)

    def watch(
        self, poll: select.poll, owners: dict[int, Callable[[int], None]], now_s: float
    ) -> float:
        """Register what is waited for; returns the time of the next thing to do by itself."""
        if self._listener is not None:
            poll.register(self._listener, select.POLLIN)
            owners[self._listener.fileno()] = self._accept
        self._relays = [relay for relay in self._relays if not relay.over]
        return min(
            (relay.watch(poll, owners, now_s) for relay in self._relays), default=float("inf")
        )

    def _accept(self, _events: int) -> None:
        if self._listener is None:
            return
        try:
            dialer, _ = self._listener.accept()
        except BlockingIOError:
            return
        self.accepted += 1
        relay = Relay(self, dialer, None if self._frozen else self.target)
        if self._frozen:
            relay.freeze()
        self._relays.append(relay)

    def may_pass(self, direction: int, count: int) -> int:
        """How many of `count` bytes may be handed on before the connection is to be cut."""
        budget = self.budget[direction]
        return count if budget < 0 else min(count, budget)

    def pass_on(self, direction: int, count: int) -> bool:
        """`count` bytes were handed on; returns whether the connection is to be cut behind them."""
        self.passed[direction] += count
        if self.budget[direction] >= 0:
            self.budget[direction] -= count
            if self.budget[direction] == 0:
                self.budget[direction] = -1
                return True
        return False


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made

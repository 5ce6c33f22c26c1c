"""A network that can be broken: TCP relays between bridges and the routers that they dial, and what goes wrong there.

    with FaultyNetwork() as network:
        link = network.link()
        # A bridge dials link.address; link.target is where the other router listens.
        link.target = ("127.0.0.1", 55555)
        link.cut()

One thread serves all links. Faults are set from any thread and hold when the call returns.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, Self, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


TO_TARGET: Final = 0
"""From who dialled to who is dialled."""

FROM_TARGET: Final = 1
"""From who is dialled to who dialled."""

CHUNK_BYTES: Final = 65_536
MOST_WAITING_BYTES: Final = 262_144
"""Bytes on the way in one direction; beyond, the sender has to wait."""

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER that makes close() send RST."""

_BROKEN: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL


class LinkConditions(Protocol):
    """What a relay must know of the link that it is part of; see FaultyLink."""

    stalled: list[bool]
    delay_s: float
    bytes_per_s: float

    def may_pass(self, direction: int, count: int) -> int:
        """Return how many of `count` bytes may be handed on before the connection is to be cut."""

    def pass_on(self, direction: int, count: int) -> bool:
        """Count `count` bytes as handed on. Returns whether the connection is to be cut behind them."""


@final
class Relay:
    """Belongs to the thread of its network. `over` when both sockets are closed."""

    def __init__(
        self, weather: LinkConditions, dialer: socket.socket, target: tuple[str, int] | None
    ) -> None:
        self.over = False
        self._weather = weather
        self._ends: list[socket.socket | None] = [dialer, None]
        self._connecting = False
        self._swallows = False
        self._ways = [_Direction(), _Direction()]
        self._now_s = 0.0
        dialer.setblocking(False)
        if target is not None:
            self._connect(target)

    def _connect(self, target: tuple[str, int]) -> None:
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ends[1] = made
        self._connecting = True
        with contextlib.suppress(BlockingIOError):
            made.connect(target)

    def _connected(self, end: socket.socket) -> None:
        failed = end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, "not connected")
        self._connecting = False

    # -- ends ------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Send RST to both ends."""
        for side in (0, 1):
            self._reset_one(side)
        self.over = True

    def close(self) -> None:
        """Send FIN to both ends."""
        for end in self._ends:
            if end is not None:
                end.close()
        self.over = True

    def freeze(self) -> None:
        """Swallow from now on, for good."""
        self._swallows = True
        for way in self._ways:
            way.waiting.clear()
            way.size = 0

    def orphan(self) -> None:
        """Send RST to the dialling end; leave the other one open and swallow what it sends."""
        self.freeze()
        self._reset_one(0)

    def _reset_one(self, side: int) -> None:
        end = self._ends[side]
        if end is not None:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.close()
            self._ends[side] = None

    # -- rounds ----------------------------------------------------------------------------------

    def watch(
        self, poll: select.poll, owners: dict[int, Callable[[int], None]], now_s: float
    ) -> float:
        """Register what is waited for; returns the time of the next thing to do by itself."""
        if self._ends[1] is None and not self._swallows:
            # There is nothing behind this port.
            self.reset()
            return float("inf")
        self._now_s = now_s
        wake_s = float("inf")
        masks = [0, 0]
        for direction, way in enumerate(self._ways):
            if self._wants_in(direction, way):
                masks[direction] |= select.POLLIN
            due_s = self._due_s(direction, way)
            if due_s <= now_s:
                masks[1 - direction] |= select.POLLOUT
            else:
                wake_s = min(wake_s, due_s)
        if self._connecting:
            masks[1] = select.POLLOUT
        for side, (end, mask) in enumerate(zip(self._ends, masks, strict=True)):
            if end is not None and mask:
                poll.register(end, mask)
                owners[end.fileno()] = self._from_dialer if side == 0 else self._from_target
        return wake_s

    def _wants_in(self, direction: int, way: _Direction) -> bool:
        if self._ends[direction] is None or way.ended:
            return False
        stalled = self._weather.stalled[direction]
        return self._swallows or (way.size < MOST_WAITING_BYTES and not stalled)

    def _due_s(self, direction: int, way: _Direction) -> float:
        """When the first bytes of a way may go on."""
        if not way.waiting or self._weather.stalled[direction] or self._connecting:
            return float("inf")
        return max(way.waiting[0][0], way.free_s)

    def _from_dialer(self, events: int) -> None:
        self._happened(0, events)

    def _from_target(self, events: int) -> None:
        self._happened(1, events)

    def _happened(self, side: int, events: int) -> None:
        end = self._ends[side]
        if end is None or self.over:
            return
        try:
            if side == 1 and self._connecting:
                self._connected(end)
                return
            if events & (select.POLLIN | _BROKEN) and self._wants_in(side, self._ways[side]):
                self._read(side, end)
            if events & (select.POLLOUT | _BROKEN):
                self._write(1 - side, end)
        except BlockingIOError:
            return
        except OSError:
            # What one end suffers the other one learns, unless nobody knows of it any more.
            if self._swallows:
                self._reset_one(side)
                self.over = self._ends == [None, None]
            else:
                self.reset()

    def _read(self, direction: int, end: socket.socket) -> None:
        data = end.recv(CHUNK_BYTES)
        way = self._ways[direction]
        if not data:
            way.ended = True
        if self._swallows:
            return
        # An empty piece is the end, which keeps its place behind what came before.
        way.waiting.append((self._now_s + self._weather.delay_s, data))
        way.size += len(data)

    def _write(self, direction: int, sink: socket.socket) -> None:
        way = self._ways[direction]
        weather = self._weather
        while self._due_s(direction, way) <= self._now_s:
            _, data = way.waiting[0]
            if not data:
                way.waiting.popleft()
                way.finished = True
                sink.shutdown(socket.SHUT_WR)
                if all(each.finished for each in self._ways):
                    self.close()
                return
            most = weather.may_pass(direction, len(data))
            if weather.bytes_per_s:
                # Pieces of a hundredth of a second, so that the rate is even.
                most = min(most, max(1, int(weather.bytes_per_s / 100)))
            sent = sink.send(data[:most])
            way.take(sent)
            if weather.bytes_per_s:
                way.free_s = self._now_s + sent / weather.bytes_per_s
            if weather.pass_on(direction, sent):
                self.reset()
                return


@final
class _Direction:
    """Bytes of one direction, each piece with the time from which on it may be handed on."""

    __slots__ = ("ended", "finished", "free_s", "size", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.size = 0
        self.ended = False
        self.finished = False
        self.free_s = 0.0

    def take(self, count: int) -> None:
        """Remove the first `count` bytes, which are gone."""
        due_s, data = self.waiting.popleft()
        if count < len(data):
            self.waiting.appendleft((due_s, data[count:]))
        self.size -= count


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
        """Reset the dialling ends only: the other ends stay open and silent."""
        self._do(self._orphan)

    def unreachable(self) -> None:
        """Refuse new connections, and reset those that are open."""
        self._do(self._unreachable)

    def freeze(self) -> None:
        """Keep all connections open, accept new ones, and swallow every byte (half-open)."""
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
        """Return how many of `count` bytes may be handed on before the connection is to be cut."""
        budget = self.budget[direction]
        return count if budget < 0 else min(count, budget)

    def pass_on(self, direction: int, count: int) -> bool:
        """Count `count` bytes as handed on. Returns whether the connection is to be cut behind them."""
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


LONGEST_WAIT_S: Final = 1.0
"""Seconds that the thread sleeps at most when nothing happens."""


@final
class FaultyNetwork:
    """A thread and its links. Leaving the `with` block ends every connection."""

    def __init__(self) -> None:
        self._links: list[FaultyLink] = []
        self._asked: list[tuple[Callable[[], None], threading.Event]] = []
        self._lock = threading.Lock()
        self._ours, self._its = socket.socketpair()
        self._its.setblocking(False)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="faulty network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.do(self._end)
        self._thread.join()
        self._ours.close()
        self._its.close()

    def link(self, target: tuple[str, int] | None = None) -> FaultyLink:
        """A new link on a port of its own; without a target it resets whoever connects."""
        link = FaultyLink(self.do, target)
        self.do(lambda: self._links.append(link))
        return link

    def do(self, what: Callable[[], None]) -> None:
        """Call `what` in the network's thread, between two of its rounds, and wait for it."""
        done = threading.Event()
        with self._lock:
            self._asked.append((what, done))
        self._ours.send(b"!")
        done.wait()

    def _end(self) -> None:
        self._ended = True
        for link in self._links:
            link.end()

    def _run(self) -> None:
        while not self._ended:
            self._round()
            with self._lock:
                asked, self._asked = self._asked, []
            for what, done in asked:
                what()
                done.set()

    def _round(self) -> None:
        now_s = time.monotonic()
        wake_s = now_s + LONGEST_WAIT_S
        poll = select.poll()
        poll.register(self._its, select.POLLIN)
        owners: dict[int, Callable[[int], None]] = {}
        for link in self._links:
            wake_s = min(wake_s, link.watch(poll, owners, now_s))
        # Rounded up: a wait that ends too soon would only be a further round.
        for number, events in poll.poll(max(0.0, wake_s - now_s) * 1000 + 1):
            owner = owners.get(number)
            if owner is not None:
                owner(events)
            else:
                with contextlib.suppress(BlockingIOError):
                    self._its.recv(4096)

"""One relayed connection: two sockets, and the bytes on their way between them."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Weather(Protocol):
    """What a relay must know of the link that it is part of; see FaultyLink."""

    stalled: list[bool]
    delay_s: float
    bytes_per_s: float

    def may_pass(self, direction: int, count: int) -> int:
        """See FaultyLink.may_pass."""

    def pass_on(self, direction: int, count: int) -> bool:
        """See FaultyLink.pass_on."""


@final
class Relay:
    """Belongs to the thread of its network. `over` when both sockets are closed."""

    def __init__(
        self, weather: Weather, dialer: socket.socket, target: tuple[str, int] | None
    ) -> None:
        self.over = False
        self._weather = weather
        self._ends: list[socket.socket | None] = [dialer, None]
        self._connecting = False
        self._swallows = False
        self._ways = [_Way(), _Way()]
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
        """RST to both ends."""
        for side in (0, 1):
            self._reset_one(side)
        self.over = True

    def close(self) -> None:
        """FIN to both ends."""
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
        """RST to the dialling end; the other one is left open, and what it sends is swallowed."""
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

    def _wants_in(self, direction: int, way: _Way) -> bool:
        if self._ends[direction] is None or way.ended:
            return False
        stalled = self._weather.stalled[direction]
        return self._swallows or (way.size < MOST_WAITING_BYTES and not stalled)

    def _due_s(self, direction: int, way: _Way) -> float:
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
class _Way:
    """Bytes of one direction, each piece with the time from which on it may be handed on."""

    __slots__ = ("ended", "finished", "free_s", "size", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.size = 0
        self.ended = False
        self.finished = False
        self.free_s = 0.0

    def take(self, count: int) -> None:
        """The first `count` bytes are gone."""
        due_s, data = self.waiting.popleft()
        if count < len(data):
            self.waiting.appendleft((due_s, data[count:]))
        self.size -= count

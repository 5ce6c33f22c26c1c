"""A network that can be broken: TCP relays between bridges and the routers that they dial.

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
import threading
import time
from typing import TYPE_CHECKING, Final, Self, final

from vpnrouter.testing.faulty_link import FaultyLink

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

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

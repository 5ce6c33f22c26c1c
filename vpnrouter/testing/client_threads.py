"""A thread that keeps one client connected, whatever happens to the router, and what is common to its connections.

The thread connects, hands over what comes, and connects again after 10 ms when the connection is lost.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from vpnrouter.errors import ProtocolError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from types import TracebackType

    from vpnrouter.testing.history import History

TICK_S: Final = 0.01
"""Seconds between two questions to the session for what is due, and between attempts to connect."""
ANSWER_S: Final = 5.0
"""Seconds that a router has to answer a login."""
CHUNK_BYTES: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class Named(Protocol):
    """What outlives the connections of one client."""

    name: str

    def closed(self) -> None:
        """The connection is gone, whether or not it was opened."""


class ConnectionEnded(Exception):
    """The connection is unusable; the text says why."""


class ClientThread:
    """One thread for one session. `port()` is where the router listens at the moment, None while nowhere.

    `cut_chance` is the probability that the client resets its connection, at each tick and each time that
    bytes came. What went wrong and is not a mere loss of the connection stands in `told`; leaving the `with`
    block ends the thread and raises what it died of. A subclass says what is talked.
    """

    def __init__(
        self,
        session: Named,
        port: Callable[[], int | None],
        history: History,
        draws: random.Random,
        cut_chance: float = 0.0,
    ) -> None:
        self.told: list[str] = []
        self._session = session
        self._port = port
        self._history = history
        self._draws = draws
        self._cut_chance = cut_chance
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=session.name, daemon=True)

    def conversation(self, link: socket.socket) -> Conversation:
        """Return what is talked on a new connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                port = self._port()
                if port is not None:
                    self._connection(port)
                self._ended.wait(TICK_S)
        except BaseException as failure:  # noqa: BLE001 (raised again where the client is used)
            self._failure = failure

    def _connection(self, port: int) -> None:
        try:
            with socket.create_connection(("127.0.0.1", port), ANSWER_S) as link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.conversation(link).hold()
        except OSError:
            pass  # a router that is killed resets its connections
        except (ConnectionEnded, ProtocolError) as why:
            self.told.append(f"{self._session.name}: {why}")
            self._history.noted(self.told[-1])
        finally:
            self._session.closed()

    def lasts(self, link: socket.socket) -> bool:
        """Whether a connection goes on."""
        if self._cut_chance and self._draws.random() < self._cut_chance:
            with contextlib.suppress(OSError):
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._history.noted(f"{self._session.name} resets its connection")
            return False
        return not self._ended.is_set()


class Conversation:
    """One connection from its login to its end. A subclass reads and writes the protocol's packets."""

    def __init__(self, link: socket.socket, lasts: Callable[[socket.socket], bool]) -> None:
        self._link = link
        self._lasts = lasts
        self.came = b""
        self.leaves = b""

    def first(self) -> bytes:
        """Return what is said first."""
        raise NotImplementedError

    def packets(self) -> list[Any]:
        """Return the packets in `came`, and take them out."""
        raise NotImplementedError

    def opens(self, packet: Any) -> bool:  # noqa: ANN401 - a packet of any protocol
        """Handle an answer to the login; return whether the connection is open now. Raises ConnectionEnded."""
        raise NotImplementedError

    def hears(self, packet: Any) -> None:  # noqa: ANN401 - the same
        """Handle a packet. Raises ConnectionEnded."""
        raise NotImplementedError

    def due(self) -> None:
        """Say what is due."""
        raise NotImplementedError

    def hold(self) -> None:
        """Talk until the end. Raises OSError when the connection is lost, ConnectionEnded when refused."""
        self._link.sendall(self.first())
        self._link.setblocking(False)
        opened = False
        tick_s = time.monotonic()
        while self._lasts(self._link):
            now_s = time.monotonic()
            if opened and now_s >= tick_s:
                tick_s = now_s + TICK_S
                self.due()
                self._write()
            wait_s = max(0.0, tick_s - now_s) if opened else ANSWER_S
            ready, _, _ = select.select([self._link], [], [], wait_s)
            if ready and not self._read():
                return
            if not ready and not opened:
                raise ConnectionEnded("the login was not answered")
            for packet in self.packets():
                if opened:
                    self.hears(packet)
                else:
                    opened = self.opens(packet)
            self._write()

    def _read(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            chunk = self._link.recv(CHUNK_BYTES)
            self.came += chunk
            return bool(chunk)
        return True

    def _write(self) -> None:
        if self.leaves:
            with contextlib.suppress(BlockingIOError):
                self.leaves = self.leaves[self._link.send(self.leaves) :]

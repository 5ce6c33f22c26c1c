"""A thread that keeps one MQTT 5 session connected, whatever happens to the router.

What is said on the connection is the session's: Producer and Consumer do no I/O. The thread connects, hands
packets over, and connects again after 10 ms when the connection is lost.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol, Self, final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Connack, Connect, Disconnect, Packet
from vpnrouter.wire.mqtt.reason import reason_text

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from types import TracebackType

    from vpnrouter.testing.history import History

LEVEL: Final = 5
TICK_S: Final = 0.01
"""Seconds between two questions to the session for what is due, and between attempts to connect."""
ANSWER_S: Final = 5.0
"""Seconds that a router has to answer CONNECT."""
MOST_PACKET_BYTES: Final = 4_194_304
CHUNK_BYTES: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class Session(Protocol):
    """What is said on a connection; it outlives all its connections."""

    name: str

    def connect(self) -> Connect:
        """The first packet of each connection."""

    def opened(self, answer: Connack) -> list[Packet]:
        """The router took the connection; returns what to say first."""

    def received(self, packet: Packet) -> list[Packet]:
        """A packet came; returns what to answer at once."""

    def due(self) -> list[Packet]:
        """Asked once in TICK_S; returns what to say unprompted."""

    def closed(self) -> None:
        """The connection is gone, whether or not it was opened."""


class ConnectionEnded(Exception):
    """The connection is of no more use; the text says why."""


@final
class MqttClient:
    """One thread for one session. `port()` is where the router listens at the moment, None while nowhere.

    `cut_chance` is the probability that the client resets its connection, at each tick and each time that
    bytes came. What went wrong and is not a mere loss of the connection stands in `told`; leaving the `with`
    block ends the thread and raises what it died of.
    """

    def __init__(
        self,
        session: Session,
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
                _Conversation(self._session, link, self._lasts).hold()
        except OSError:
            pass  # a router that is killed resets its connections
        except (ConnectionEnded, ProtocolError) as why:
            self.told.append(f"{self._session.name}: {why}")
            self._history.noted(self.told[-1])
        finally:
            self._session.closed()

    def _lasts(self, link: socket.socket) -> bool:
        """Whether a connection goes on."""
        if self._cut_chance and self._draws.random() < self._cut_chance:
            with contextlib.suppress(OSError):
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._history.noted(f"{self._session.name} resets its connection")
            return False
        return not self._ended.is_set()


@final
class _Conversation:
    """One connection from CONNECT to its end."""

    def __init__(
        self, session: Session, link: socket.socket, lasts: Callable[[socket.socket], bool]
    ) -> None:
        self._session = session
        self._link = link
        self._lasts = lasts
        self._came = b""
        self._leaves = b""

    def hold(self) -> None:
        """Talk until the end. Raises OSError when the connection is lost, ConnectionEnded when refused."""
        self._link.sendall(encode(self._session.connect(), LEVEL))
        self._link.setblocking(False)
        opened = False
        tick_s = time.monotonic()
        while self._lasts(self._link):
            now_s = time.monotonic()
            if opened and now_s >= tick_s:
                tick_s = now_s + TICK_S
                self._say(self._session.due())
                self._write()
            wait_s = max(0.0, tick_s - now_s) if opened else ANSWER_S
            ready, _, _ = select.select([self._link], [], [], wait_s)
            if ready and not self._read():
                return
            if not ready and not opened:
                raise ConnectionEnded("CONNECT was not answered")
            for packet in self._packets():
                if opened:
                    self._say(self._hear(packet))
                else:
                    self._say(self._open(packet))
                    opened = True
            self._write()

    def _read(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            chunk = self._link.recv(CHUNK_BYTES)
            self._came += chunk
            return bool(chunk)
        return True

    def _packets(self) -> list[Packet]:
        found: list[Packet] = []
        start, end = 0, len(self._came)
        while length := frame_at(self._came, start, end, MOST_PACKET_BYTES):
            found.append(decode(self._came, start, length, LEVEL))
            start += length
        self._came = self._came[start:]
        return found

    def _open(self, packet: Packet) -> list[Packet]:
        if not isinstance(packet, Connack):
            raise ConnectionEnded(f"CONNECT was answered with {packet!r}")
        if packet.reason_code:
            raise ConnectionEnded(f"refused: {reason_text(packet.reason_code)}")
        return self._session.opened(packet)

    def _hear(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Disconnect):
            raise ConnectionEnded(f"DISCONNECT {reason_text(packet.reason_code)}")
        return self._session.received(packet)

    def _say(self, packets: list[Packet]) -> None:
        self._leaves += b"".join([encode(packet, LEVEL) for packet in packets])

    def _write(self) -> None:
        if self._leaves:
            with contextlib.suppress(BlockingIOError):
                self._leaves = self._leaves[self._link.send(self._leaves) :]

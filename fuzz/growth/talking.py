"""A connection of the generator that looks for growth: it counts what it sends, and reads or does not."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from fuzz.growth.plans import Value

PATIENCE_S: Final = 0.7
"""Seconds that a client waits for a router that takes no more bytes, before it goes on to its next step."""

ANSWER_S: Final = 3.0
"""Seconds that a client waits for an answer that it needs."""

PIECE: Final = 1 << 18
"""Bytes that are given to the system at a time."""


class Enough(Exception):
    """The plan has sent, grown or taken enough."""


def socket_ready(sock: socket.socket, events: int, milliseconds: int) -> None:
    """Wait until a socket is ready for one of these events of poll, at most for so long."""
    waiting = select.poll()
    waiting.register(sock, events)
    waiting.poll(milliseconds)


class Talk:
    """One client's socket. `watch` is called between pieces, and raises Enough."""

    def __init__(self, port: int, username: str, name: str, watch: Callable[[int], None]) -> None:
        self.port = port
        self.username = username
        self.name = name
        self.sent = 0
        self.reads = True
        self.sock: socket.socket | None = None
        self.came = b""
        self._leaves = memoryview(b"")
        self._mute = False
        self._watch = watch

    def do(self, act: str, values: dict[str, Value]) -> None:
        """Do one step."""
        getattr(self, act)(**values)

    def dial(self) -> None:
        """Connect anew; nothing is said yet."""
        self.close()
        self.sock = socket.create_connection(("127.0.0.1", self.port), ANSWER_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)

    def close(self) -> None:
        """Hang up."""
        if self.sock is not None:
            self.sock.close()
        self.sock = None
        self.came = b""
        self._leaves = memoryview(b"")
        self._mute = False

    def say(self, data: bytes) -> None:
        """Send all of this, after what was left of earlier; what the router does not take in time is dropped.

        Only whole packets are dropped, so that what is sent stays right.
        """
        if self._mute or (self._leaves and not self._push(self._leaves)):
            return
        self._push(memoryview(data))

    def say_half(self, data: bytes) -> None:
        """Send the beginning of something; this connection says nothing more."""
        self.say(data)
        self._mute = True

    def _push(self, data: memoryview) -> bool:
        ends = time.monotonic() + PATIENCE_S
        while data and self.sock is not None:
            self._watch(self.sent)
            try:
                count = self.sock.send(data[:PIECE])
                data = data[count:]
                self.sent += count
                ends = time.monotonic() + PATIENCE_S
            except BlockingIOError:
                if time.monotonic() > ends:
                    break
                socket_ready(self.sock, select.POLLOUT | (select.POLLIN if self.reads else 0), 50)
            except OSError:
                self.close()
            if self.reads:
                self.hear()
        self._leaves = data
        return not data

    def hear(self) -> None:
        """Read what has come, where this client reads."""
        while self.reads and self.sock is not None:
            try:
                chunk = self.sock.recv(PIECE)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                return
            self.heard(chunk)

    def heard(self, chunk: bytes) -> None:
        """Handle what has come; a subclass that needs answers looks at it."""

    def wait(self, seconds: float, ready: Callable[[], bool] | None = None) -> None:
        """Read until `ready`, at most for so long."""
        ends = time.monotonic() + seconds
        while self.sock is not None and time.monotonic() < ends and not (ready and ready()):
            self._watch(self.sent)
            if self.reads:
                socket_ready(self.sock, select.POLLIN, 20)
                self.hear()
            else:
                time.sleep(0.02)

    def pause(self, tenths: int) -> None:
        """Do nothing but read."""
        self.wait(tenths / 10)

    def reading(self, on: bool) -> None:
        """Read from now on, or do not."""
        self.reads = on

    def hang_up(self, again: bool) -> None:
        """Close the connection without a word."""
        self.close()


def draw_size(draw: random.Random) -> int:
    """The size of a payload: extremes are likely."""
    return draw.choice((0, 1, 200, 5_000, 60_000, 1_000_000, 9_000_000))


def draw_count(draw: random.Random) -> int:
    """How often: extremes are likely."""
    return draw.choice((1, 2, 10, 100, 1_000, 4_000, 20_000))


SHAPES: Final = ("short", "long", "deep", "wide", "same")

LEVELS: Final = 13
"""Levels of the topics of shape `same`, each of which matches 8,192 filters of that shape."""


def text_of(shape: str, number: int) -> str:
    """A topic without wildcards: `long` and `deep` have as many bytes and levels as is allowed."""
    match shape:
        case "same":
            return f"{number}" + "/a" * LEVELS
        case "long":
            return f"t/{number}/" + "x" * 60_000
        case "cached":
            return f"t/{number}/" + "x" * 1_000
        case "deep":
            return f"{number}" + "/a" * 126
        case "wide":
            return "/".join(f"{number}{level}" for level in range(120))
        case _:
            return f"t/{number}"


def filter_of(shape: str, number: int) -> str:
    """A filter that matches the topic of this shape and number; those of `same` match all topics of it."""
    if shape == "same":
        return "+/" + "/".join("a+"[number >> level & 1] for level in range(LEVELS))
    return text_of(shape, number)


SELECTORS: Final = ("", "", "", "", "text", "terms")


def selector_of(kind: str, number: int) -> str:
    """A selector that is as long as is allowed: one long text, or many short terms. "" where `kind` is."""
    match kind:
        case "":
            return ""
        case "text":
            return f"a = '{number}{'s' * 8_000}'"
        case _:
            return f"a={number}" + " OR a=1" * 1_150

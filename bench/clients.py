"""Connects the generator's clients, and checks that a path forwards before anything is measured."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator, Sequence

from bench.dialects import Dialect
from bench.layout import EVERYBODY, NUMBER_AT, PROBE, payload

HANDSHAKE_SECONDS = 20.0
"""Longest wait for one answer of a broker."""
PATH_SECONDS = 30.0
"""Longest wait until every subscription gets what is published; bridges need some seconds to come
up.
"""
_FENCE = 1 << 31


def connect(
    dialect: Dialect,
    address: tuple[str, int],
    client: str,
    source: str = "",
    tls: ssl.SSLContext | None = None,
) -> socket.socket:
    """A logged-in client, its socket still blocking. `source` is the local address to use; with `tls` over TLS."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(HANDSHAKE_SECONDS)
        if source:
            sock.bind((source, 0))
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock = dialect.greet(sock, client, tls)
    except BaseException:
        sock.close()
        raise
    return sock


@contextlib.contextmanager
def clients(
    dialect: Dialect,
    address: tuple[str, int],
    count: int,
    name: str,
    tls: ssl.SSLContext | None = None,
) -> Iterator[list[socket.socket]]:
    """`count` logged-in clients, closed on leaving."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                contextlib.closing(connect(dialect, address, f"{name}-{number}", tls=tls))
            )
            for number in range(count)
        ]


def prove_path(
    dialect: Dialect,
    publisher: socket.socket,
    subscribers: Sequence[socket.socket],
    topics: Sequence[Sequence[str]],
) -> None:
    """Publishes probes until each subscriber got one on each of its topics, then a last one (the
    fence).

    When the fence has come through everywhere, the path forwards, and no probe is left on its way:
    what a publisher sends to a topic stays in order. Sockets are non-blocking afterwards. Raises
    TimeoutError naming the first path that stays silent.
    """
    waiting = {
        sock.fileno(): _Listener(dialect, sock, set(names))
        for sock, names in zip(subscribers, topics, strict=True)
    }
    every = sorted({name for names in topics for name in names})
    deadline = time.monotonic() + PATH_SECONDS
    with select.epoll() as poll:
        for listener in waiting.values():
            listener.sock.setblocking(False)
            poll.register(listener.sock.fileno(), select.EPOLLIN)
        number = 0
        while any(listener.unseen for listener in waiting.values()):
            number += 1
            _publish_all(dialect, publisher, every, number)
            _listen(poll, waiting, time.monotonic() + 0.1, deadline)
        for listener, names in zip(waiting.values(), topics, strict=True):
            listener.unseen = set(names)
            listener.from_number = _FENCE
        _publish_all(dialect, publisher, every, _FENCE)
        while any(listener.unseen for listener in waiting.values()):
            _listen(poll, waiting, deadline, deadline)
    publisher.setblocking(False)
    for listener in waiting.values():
        if listener.rest:
            raise ValueError(f"more than the fence has arrived: {listener.rest[:64]!r}")


class _Listener:
    """One subscriber and the topics on which it has not yet seen what it waits for."""

    def __init__(self, dialect: Dialect, sock: socket.socket, topics: set[str]) -> None:
        self.dialect = dialect
        self.sock = sock
        self.topics = frozenset(topics)
        self.unseen = topics
        self.from_number = 1
        self.rest = b""

    def take(self) -> None:
        try:
            chunk = self.sock.recv(1 << 16)
        except ssl.SSLWantReadError:
            return
        if not chunk:
            raise ConnectionError("the broker closed a subscriber's connection")
        messages, used = self.dialect.split(self.rest + chunk)
        self.rest = (self.rest + chunk)[used:]
        for topic, body in messages:
            if topic not in self.topics:
                raise ValueError(f"delivered without a subscription: {topic}")
            if int.from_bytes(body[NUMBER_AT : NUMBER_AT + 4], "big") >= self.from_number:
                self.unseen.discard(topic)


def _publish_all(
    dialect: Dialect, publisher: socket.socket, topics: Sequence[str], number: int
) -> None:
    publisher.settimeout(HANDSHAKE_SECONDS)
    body = payload(PROBE, EVERYBODY, 0, number, 0)
    publisher.sendall(b"".join(dialect.publish(topic, body) for topic in topics))


def _listen(
    poll: select.epoll, waiting: dict[int, _Listener], until: float, deadline: float
) -> None:
    """Receives until nobody waits or the moment `until` has come; past `deadline` is an error."""
    while any(listener.unseen for listener in waiting.values()):
        now = time.monotonic()
        if now >= deadline:
            silent = next(listener for listener in waiting.values() if listener.unseen)
            raise TimeoutError(f"nothing is forwarded on {min(silent.unseen)}")
        if now >= until:
            return
        for fd, _ in poll.poll(max(0.0, min(until, deadline) - now)):
            waiting[fd].take()

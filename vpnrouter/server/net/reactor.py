"""The nested epoll: the sockets of all clients and links behind one descriptor, and the end of a round.

A round polls without waiting, receives once from each ready socket, feeds the connections, and then
flushes each dirty outbox once. No task and no await per connection or message: one await
costs more than one match. After a bounded number of rounds trio gets its turn.
TLS and WebSocket stand as layers between a socket and its connection (layers.py).
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, final

from mypy_extensions import mypyc_attr

from vpnrouter.bridges.link import Link
from vpnrouter.core.fault_barrier import LISTENER, SPOOL, TASK
from vpnrouter.core.outbox import Channel
from vpnrouter.durations import TURN_BOUNDS_S, Durations
from vpnrouter.limits import TURN_WORK
from vpnrouter.server.net.descriptors import SpareDescriptor, is_shortage
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.router import Router
    from vpnrouter.core.turn import CommitPort, TurnContext
    from vpnrouter.server.net.layers import Layer


class Host(Protocol):
    """Reactor where there is epoll, TaskHost elsewhere. `ticks`: whoever drives it calls `tick` as well."""

    ticks: bool

    def listen(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        """Accept from a bound, listening, non-blocking socket, `most` connections at a time."""

    def add(
        self, sock: socket.socket, connection: Connection, layer: Layer | None = None
    ) -> object:
        """Serve a connected socket, through a layer where there is one."""

    def set_clocks(self) -> None:
        """Set the times of the router's context."""

    def tick(self) -> None:
        """Fire timers and flush; about ten times a second."""

    def close_all(self) -> None:
        """Send what can be sent and close everything."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Acceptor:
    """Makes the connection for a socket that a listener accepted; subclassed per protocol."""

    def accepted(self, peer: str) -> Connection:
        """Return the connection to feed with the bytes of `peer` (an address as text)."""
        raise AssertionError(peer)

    def layer(self) -> Layer | None:
        """Return what stands between the next socket and its connection, None for a plain one."""
        return None

    def handshake_failed(self, peer: str, why: str) -> None:
        """Note that the handshake of a layer with `peer` (address and port) failed."""
        raise AssertionError(peer, why)


def shown_address(address: object) -> str:
    """HOST:PORT of a socket address, IPv6 in brackets, "" where it is none."""
    if not isinstance(address, tuple) or len(address) < 2:
        return ""
    host, port = str(address[0]), int(address[1])
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def peer_text(address: object) -> str:
    """The address part of a socket address: "192.0.2.1", "2001:db8::1", or "" for a local socket."""
    if isinstance(address, tuple) and address:
        return str(address[0])
    return ""


LARGE_BYTES: Final = 262_144
"""Outboxes with so many bytes are flushed after those with fewer."""

LARGE_NS: Final = 3_000_000
"""Nanoseconds of one round that are spent on outboxes with more."""


def flush_ready(context: TurnContext) -> None:
    """Hand each outbox that got something in this round to its channel; large ones come last.

    Copying a long message for many receivers takes long: outboxes beyond this round's time wait in `context.large`.

    A flush can find a peer gone, whose will then makes others dirty: so until nobody is. That ends,
    because each connection is lost once.
    """
    committing = context.committing
    if committing is not None:
        try:
            committing.step()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            context.barrier.caught(error, SPOOL, "", "", "goes on with the next round")
    ready = context.ready
    large = context.large
    until_ns = 0
    while ready or large or _resume_some(context):
        batch = ready[:]
        ready.clear()
        for outbox in batch:
            if outbox.size > LARGE_BYTES:
                large.append(outbox)
            else:
                _flush(outbox)
        if large and not ready:
            now_ns = time.monotonic_ns()
            if not until_ns:
                until_ns = now_ns + LARGE_NS
            elif now_ns > until_ns:
                return
            _flush(large.popleft())


def _resume_some(context: TurnContext) -> bool:
    """Let connections go on that waited for slow receivers; returns whether any outbox may have got something."""
    try:
        return context.backpressure.step(context.now_ns)
    except Exception as error:  # noqa: BLE001 - given to the barrier
        context.barrier.caught(error, TASK, "backpressure", "", "goes on with the next round")
        return False


def _flush(outbox: Outbox) -> None:
    outbox.dirty = False
    channel = outbox.channel
    if channel is not None:
        channel.flush()


RECEIVE_BYTES: Final = 131_072
"""Most bytes taken from one socket in one round, so that a loud one does not starve the others."""

RECEIVE_LEAST: Final = 16_384
"""Bytes taken from each of many ready sockets: enough to make the call worth its while."""

LABORIOUS_BYTES: Final = 4_096
"""Bytes taken at a time from a socket whose layer had much work with those before, such as thousands of pings."""

ROUND_BYTES: Final = 1_048_576
"""Bytes received in one round: what waits to be flushed should still be in the processor's cache."""

SEND_BYTES: Final = 262_144
"""Bytes joined for one write; what the kernel does not take is copied back, so not much more."""

SOCKETS: Final = "sockets"
"""The work of rounds, as metrics name it."""

ROUND_EVENTS: Final = 512
"""Sockets handled in one round."""

ROUND_WORK: Final = 8_000
TURN_LEAST: Final = 200
"""What all connections of one round may do together in parts of about a microsecond, and each of many at least
(RouterContext.work): what is left of it waits for rounds of its own."""

ACCEPTS: Final = 64
"""Connections taken from one listener in one round."""

DIRECT_SHARE: Final = 2
SPOOL_SHARE: Final = 1
"""Parts of the thread's time that Direct messages and guaranteed ones have where both want all of it."""

HEAVY_BYTES: Final = 131_072
WINDOW_NS: Final = 10_000_000
"""Direct traffic is heavy from so many bytes in so many nanoseconds: some 200,000 small messages a second."""

OWED_NS: Final = 100_000_000
"""The most time in nanoseconds that the spool owes to Direct traffic, and stands back for."""

GOODBYE_NS: Final = 5_000_000_000
"""Nanoseconds that a peer has to read its last bytes before its socket is closed, so that one that reads no more does
not keep a descriptor and an outbox for ever.
"""

LAYERED_BYTES: Final = 65_536
"""Bytes that a layer gets to send at a time. What it makes of them waits outside of the outbox's bound."""

OWN_BYTES: Final = 65_536
"""Bytes that a layer may have to say by itself while the peer does not read; then the connection is closed."""

HANDSHAKES_NS: Final = 2_000_000
"""Nanoseconds of one round that handshakes of layers may take: thousands at once must not hold the others up."""

LINGER_NS: Final = 1_000_000_000
"""Nanoseconds that a peer has to read why its handshake failed. A TLS 1.3 client may have sent its first bytes behind
the handshake already. Closed with these unread, the system would reset the connection, and the reason would be lost.
"""

_READ: Final = select.EPOLLIN | select.EPOLLRDHUP
_BOTH: Final = _READ | select.EPOLLOUT


def _nothing() -> None:
    """What is called before there is something to call."""


@final
class SocketChannel(Channel):
    """One TCP socket in the nested epoll. `layer` stands between it and its connection, None where it is plain."""

    __slots__ = (
        "_own",
        "_taken",
        "_unsent",
        "connection",
        "fd",
        "layer",
        "lingering",
        "listening",
        "reactor",
        "sock",
        "writing",
    )

    def __init__(
        self,
        reactor: Reactor,
        sock: socket.socket,
        connection: Connection,
        layer: Layer | None = None,
    ) -> None:
        self.listening: Listening | None = None
        self.reactor = reactor
        self.sock = sock
        self.fd = sock.fileno()
        self.connection = connection
        self.writing = False
        self.layer = layer
        # Its handshake failed, and the peer has time to read why.
        self.lingering = False
        # What the layer made of bytes that left the outbox, how many those were, and how many bytes are its own.
        self._unsent = b""
        self._taken = 0
        self._own = 0

    def flush(self) -> None:
        """Write what waits, as far as the kernel takes it; one that is full says itself when it takes more."""
        try:
            outbox = self.connection.outbox
            if self.writing and outbox.size:
                self.connection.stuck_with(outbox.size)
                if self.connection.closing and self.fd >= 0:
                    self.reactor.leave(self)
                return
            self._write()
        except Exception as error:  # noqa: BLE001 - the barrier's
            self.reactor.context.barrier.end(self.connection, error)

    def drain(self) -> None:
        """Write what waits: the kernel takes more."""
        try:
            self._write()
        except Exception as error:  # noqa: BLE001 - the barrier's
            self.reactor.context.barrier.end(self.connection, error)

    def _write(self) -> None:
        outbox = self.connection.outbox
        while outbox.size or self._unsent:
            try:
                sent = self._send(outbox)
            except OSError as error:
                self.reactor.lose(self, error.strerror or str(error))
                return
            if sent >= 0:
                connection = self.connection
                connection.stuck_with(outbox.size + len(self._unsent))
                if sent and connection.choked:
                    connection.eased()
                if self.fd < 0:
                    return
                if connection.closing:
                    self.reactor.leave(self)
                if not self.writing:
                    self.writing = True
                    self.reactor.epoll.modify(self.fd, self._interest())
                return
        connection = self.connection
        if connection.stuck:
            connection.stuck_with(0)
        if connection.closing and not self.lingering:
            self.reactor.close(self)
            return
        if self.writing:
            self.writing = False
            self.reactor.epoll.modify(self.fd, self._interest())
        if connection.choked:
            connection.eased()

    def _send(self, outbox: Outbox) -> int:
        """Write once from the front of `outbox`. Returns -1 when all of that left, else how many bytes did."""
        layer = self.layer
        if layer is not None:
            return self._send_through(layer, outbox)
        coarse = outbox.is_coarse()
        chunks = outbox.take_chunks(SEND_BYTES) if coarse else [outbox.take(SEND_BYTES)]
        total = 0
        for chunk in chunks:
            total += len(chunk)
        try:
            sent = self.sock.sendmsg(chunks) if coarse else self.sock.send(chunks[0])
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent < total:
            if coarse:
                outbox.put_back_chunks(chunks, sent)
            else:
                outbox.put_back(chunks[0], sent)
        outbox.has_left(sent)
        return -1 if sent == total else sent

    def _send_through(self, layer: Layer, outbox: Outbox) -> int:
        """Write once what the layer makes of the front of `outbox`, or what is left of that. Returns as `_send`."""
        if not self._unsent:
            data = outbox.take(LAYERED_BYTES)
            self._taken = len(data)
            self._unsent = layer.send(data)
        total = len(self._unsent)
        try:
            sent = self.sock.send(self._unsent) if total else 0
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent < total:
            self._unsent = self._unsent[sent:]
            return sent
        self._unsent = b""
        self._own = 0
        outbox.has_left(self._taken)
        self._taken = 0
        return -1

    def unwrap(self, layer: Layer, data: bytes) -> bytes:
        """Take received bytes through the layer; returns those for the connection. `answer` sends what it says."""
        found = layer.unwrap(self.connection, data)
        own = layer.take_own()
        if own:
            self._own += len(own)
            self._unsent += own
        return found

    def answer(self) -> None:
        """Write what the layer has to say by itself, if anything."""
        if self._own:
            self._write()
            if self._own > OWN_BYTES and self.fd >= 0:
                self.reactor.lose(self, "does not read the answers to its frames")

    def last_words(self) -> None:
        """Send with what the layer's protocol closes, if the kernel takes it now."""
        layer = self.layer
        if layer is not None and not self.writing:
            with suppress(OSError):
                self.sock.send(self._unsent + layer.close())

    def address(self) -> str:
        """HOST:PORT of the peer, "" where it is gone."""
        try:
            return shown_address(self.sock.getpeername())
        except OSError:
            return ""

    def _interest(self) -> int:
        if self.connection.paused:
            return select.EPOLLOUT if self.writing else 0
        return _BOTH if self.writing else _READ

    def pause(self) -> None:
        """Stop reading until `wake`."""
        self.reactor.epoll.modify(self.fd, self._interest())

    def wake(self) -> None:
        """Read from the socket again."""
        if self.fd >= 0:
            self.reactor.epoll.modify(self.fd, self._interest())
            layer = self.layer
            if layer is not None and layer.ended and not self.connection.paused:
                self.reactor.ended.append(self)

    def cut(self, why: str) -> bool:
        """Close the connection at once, for the reason `why`. Returns True."""
        self.reactor.lose(self, why)
        return True


@final
class Listening:
    """A bound, listening socket and what to do with those it accepts; at most `most` at a time."""

    def __init__(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        self.sock = sock
        self.acceptor = acceptor
        self.most = most
        self.open = 0


@final
class Reactor:
    """The sockets of one router. `accept_errors` counts accepts that the system refused (descriptors),
    `accepts_refused` connections beyond a listener's bound. `ended` are channels whose layer has ended: they are closed
    with the next tick. `turns` has how long the event loop's work took, by its kind.
    """

    def __init__(self, router: Router) -> None:
        self.router = router
        self.context = router.context
        self.pre_login_limits = router.pre_login_limits
        self.spare = SpareDescriptor()
        self.context.backpressure.active = True
        self.epoll = select.epoll()
        self.accept_errors = 0
        self.accepts_refused = 0
        self.wanted = False
        self.ticks = False
        self._rounds = Durations(TURN_BOUNDS_S)
        self.turns = {SOCKETS: self._rounds}
        self.ended: list[SocketChannel] = []
        self._shaken_ns = 0
        # What the spool owes of the thread's time to Direct traffic, and whether that is heavy now.
        self._owed_ns = 0
        self._direct_bytes = 0
        self._window_ns = 0
        self._sent_ns = 0
        self._heavy = False
        self._watched = -1
        self._called = -1
        self._call: Callable[[], None] = _nothing
        self._receive_bytes = RECEIVE_BYTES
        self._channels: dict[int, SocketChannel] = {}
        self._listeners: dict[int, Listening] = {}
        self._resting: list[Listening] = []
        self._leaving: dict[SocketChannel, int] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def fileno(self) -> int:
        """The descriptor that is readable whenever a socket wants something."""
        return self.epoll.fileno()

    def watch(self, fd: int) -> None:
        """End a round's wait also when `fd` is readable; `wanted` says after a round whether it was."""
        self._watched = fd
        self.epoll.register(fd, select.EPOLLIN)

    def unwatch(self) -> None:
        """Stop watching a descriptor."""
        if not self.epoll.closed:
            self.epoll.unregister(self._watched)
        self._watched = -1

    def call(self, fd: int, call: Callable[[], None]) -> None:
        """Have `call` called in a round whenever `fd` is readable, which it is to change."""
        self._called = fd
        self._call = call
        self.epoll.register(fd, select.EPOLLIN)

    def listen(self, sock: socket.socket, acceptor: Acceptor, most: int) -> None:
        """Accept from `sock` (bound, listening, non-blocking), `most` connections open at a time."""
        self._listeners[sock.fileno()] = Listening(sock, acceptor, most)
        self.epoll.register(sock.fileno(), select.EPOLLIN)

    def accepts(self) -> tuple[int, int]:
        """How many connections were refused for a bound of their listener, and how many accepts failed."""
        return self.accepts_refused, self.accept_errors

    def open_on(self, sock: socket.socket) -> int:
        """Number of open connections of this listener."""
        listening = self._listeners.get(sock.fileno())
        return 0 if listening is None else listening.open

    def bound(self, sock: socket.socket, most: int) -> None:
        """From now on accept from `sock` while fewer than `most` connections are open."""
        self._listeners[sock.fileno()].most = most

    def unlisten(self, sock: socket.socket) -> None:
        """Stop accepting from `sock` and close it."""
        if self._listeners.pop(sock.fileno(), None) is not None:
            self.epoll.unregister(sock.fileno())
        self._resting = [listening for listening in self._resting if listening.sock is not sock]
        sock.close()

    def add(
        self, sock: socket.socket, connection: Connection, layer: Layer | None = None
    ) -> SocketChannel:
        """Serve `sock` (connected): TCP_NODELAY, non-blocking, fed to `connection` through the layer if any."""
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel = SocketChannel(self, sock, connection, layer)
        connection.outbox.channel = channel
        self._channels[channel.fd] = channel
        self.pre_login_limits.open += 1
        self.epoll.register(channel.fd, _READ)
        return channel

    def set_clocks(self) -> None:
        """Set the times of this round: monotonic for timers, UTC for traces."""
        self.context.now_ns = time.monotonic_ns()
        self.context.wall_ns = time.time_ns()

    def round(self, wait_s: float = 0.0) -> bool:
        """One poll, one receive per ready socket, one flush; False when nothing was ready.

        The poll waits up to `wait_s` seconds, which holds up every other task: see loop.py.
        """
        self.wanted = False
        context = self.context
        held_ns = context.backpressure.next_ns()
        if context.large:
            wait_s = 0.0
        elif held_ns:
            wait_s = min(wait_s, max(0.0, (held_ns - time.monotonic_ns()) / SECOND_NS))
        events = self.epoll.poll(wait_s, ROUND_EVENTS)
        if not events:
            if not context.large and not held_ns:
                return False
            self.set_clocks()
            flush_ready(context)
            return True
        self.set_clocks()
        began_ns = context.now_ns
        recorder = context.recorder
        recorder.begin_round()
        recorded = recorder.recorded
        share = ROUND_BYTES // len(events)
        self._receive_bytes = min(RECEIVE_BYTES, max(RECEIVE_LEAST, share))
        self._shaken_ns = 0
        context.allowance = min(TURN_WORK, max(TURN_LEAST, ROUND_WORK // len(events)))
        committing = context.committing
        spent_ns = 0 if committing is None else committing.spent_ns
        spooled: list[SocketChannel] = []
        for fd, mask in events:
            channel = self._channels.get(fd)
            if channel is None:
                if fd == self._watched:
                    self.wanted = True
                else:
                    self._others(fd)
                continue
            if mask & select.EPOLLOUT:
                channel.drain()
                if channel.fd < 0:
                    continue
            if mask & ~select.EPOLLOUT:
                if channel.connection.guaranteed:
                    spooled.append(channel)
                else:
                    self._direct_bytes += self._receive(channel)
        if committing is None:
            self._flush(recorded)
        else:
            self._share(committing, spooled, spent_ns, recorded)
        if recorder.recorded != recorded:
            recorder.end_round(self._sent_ns or time.time_ns())
        self._rounds.add(time.monotonic_ns() - began_ns)
        return True

    def _others(self, fd: int) -> None:
        """Serve a descriptor that is no connection: accept from a listener, or call its callback."""
        listening = self._listeners.get(fd)
        try:
            if listening is not None:
                self._accept(listening)
            elif fd == self._called:
                self._call()
        except Exception as error:  # noqa: BLE001 - the barrier's
            kind = SPOOL if listening is None else LISTENER
            self.context.barrier.caught(error, kind, "", "", "goes on")

    def _flush(self, recorded: int) -> None:
        """Send what the round has to send, and note when that began if it has `recorded` more events."""
        # Before the first byte leaves: a peer on this machine may have it a moment later.
        self._sent_ns = time.time_ns() if self.context.recorder.recorded != recorded else 0
        flush_ready(self.context)

    def _share(
        self, committing: CommitPort, spooled: list[SocketChannel], before_ns: int, recorded: int
    ) -> None:
        """End a round: receive from those who bring work for the spool, if it has not had more than its share.

        A message costs the spool some hundred times what it costs to pass a Direct one on. While Direct
        traffic is heavy, guaranteed messages wait in their sockets for their part of the thread's time.
        `before_ns` is what the spool had of it when the round began, `recorded` how many trace events there were.
        """
        context = self.context
        if context.now_ns - self._window_ns > WINDOW_NS:
            self._window_ns = context.now_ns
            self._heavy = self._direct_bytes >= HEAVY_BYTES
            self._direct_bytes = 0
        heavy = self._heavy or self._direct_bytes >= HEAVY_BYTES
        if not heavy:
            self._owed_ns = 0
        if spooled and self._owed_ns <= 0:
            began_ns = time.monotonic_ns()
            if heavy:
                self._receive_bytes = RECEIVE_LEAST
            for channel in spooled:
                if channel.fd >= 0:
                    self._receive(channel)
            committing.spent_ns += time.monotonic_ns() - began_ns
        self._flush(recorded)
        if heavy:
            spent_ns = committing.spent_ns - before_ns
            rest_ns = time.monotonic_ns() - context.now_ns - spent_ns
            owed_ns = self._owed_ns + spent_ns * DIRECT_SHARE - rest_ns * SPOOL_SHARE
            self._owed_ns = min(max(owed_ns, 0), OWED_NS)

    def _receive(self, channel: SocketChannel) -> int:
        """Receive once and feed; how many bytes that were."""
        connection = channel.connection
        layer = channel.layer
        if layer is not None and not layer.ready and self._shaken_ns > HANDSHAKES_NS:
            # The socket stays readable: it has its turn in the next round.
            return 0
        try:
            most = self._receive_bytes
            if layer is not None and layer.laborious:
                most = LABORIOUS_BYTES
            data = channel.sock.recv(most)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._gone(channel, error.strerror or str(error))
            return 0
        if not data:
            self._gone(channel, "closed by peer")
            return 0
        if connection.closing:
            # A peer that goes on sending after we said goodbye gets no more memory.
            return 0
        try:
            if self.context.tracing and isinstance(connection, Link):
                # The round began before this came: its time would be one at which the message was not here.
                self.context.wall_ns = time.time_ns()
            if layer is not None:
                self._feed_through(channel, layer, data)
                return len(data)
            connection.feed(data)
            if connection.paused:
                channel.pause()
        except Exception as error:  # noqa: BLE001 - the barrier's
            self.context.barrier.end(connection, error)
        return len(data)

    def _feed_through(self, channel: SocketChannel, layer: Layer, data: bytes) -> None:
        """Feed what the layer makes of received bytes, and then close the channel if the layer has ended."""
        connection = channel.connection
        if layer.ready:
            found = channel.unwrap(layer, data)
        else:
            began_ns = time.monotonic_ns()
            found = channel.unwrap(layer, data)
            self._shaken_ns += time.monotonic_ns() - began_ns
        if found:
            connection.feed(found)
        channel.answer()
        if channel.fd < 0:
            return
        if connection.paused:
            # What has been fed is handled first, also where the layer has ended: see `SocketChannel.wake`.
            channel.pause()
        elif layer.ended:
            self._layer_ended(channel, layer)

    def _layer_ended(self, channel: SocketChannel, layer: Layer) -> None:
        """Close a channel whose layer has ended; the peer of a failed handshake has time to read why."""
        if layer.ready:
            self.lose(channel, layer.failure or "closed by peer")
            return
        self._note_failure(channel, layer.failure)
        channel.connection.closing = True
        channel.lingering = True
        self._leaving[channel] = self.context.now_ns + LINGER_NS
        with suppress(OSError):
            channel.sock.shutdown(socket.SHUT_WR)

    def _note_failure(self, channel: SocketChannel, why: str) -> None:
        self.router.protocol_errors += 1
        listening = channel.listening
        if listening is not None:
            listening.acceptor.handshake_failed(channel.address(), why)

    def _gone(self, channel: SocketChannel, why: str) -> None:
        """Drop a connection whose peer has closed or reset it."""
        layer = channel.layer
        if layer is not None and not layer.ended:
            layer.finish()
            if layer.begun and not layer.ready:
                self._note_failure(channel, layer.failure)
        self.lose(channel, why)

    def _accept(self, listening: Listening) -> None:
        for _ in range(ACCEPTS):
            try:
                sock, address = listening.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                # Out of descriptors or buffers: rest until the next tick instead of spinning.
                self.accept_errors += 1
                self._resting.append(listening)
                if self.pre_login_limits.out_of_descriptors(is_shortage(error)):
                    self.spare.refuse(listening.sock)
                self.epoll.modify(listening.sock.fileno(), 0)
                return
            if listening.open >= listening.most:
                sock.close()
                self.accepts_refused += 1
                continue
            peer = peer_text(address)
            acceptor = listening.acceptor
            try:
                layer = acceptor.layer()
                limits = self.pre_login_limits
                strangers = limits.plain if layer is None else limits.shaken
                if not limits.has_place(strangers, peer):
                    sock.close()
                    continue
                connection = acceptor.accepted(peer)
                channel = self.add(sock, connection, layer)
            except Exception as error:  # noqa: BLE001 - the barrier's
                self.context.barrier.caught(error, LISTENER, "", "", "one connection is closed")
                sock.close()
                continue
            listening.open += 1
            channel.listening = listening
            strangers.enter(connection.origin, channel)
            connection.placed(strangers, channel)

    def tick(self) -> None:
        """Timers, resting listeners; call about ten times a second."""
        self.set_clocks()
        if self._resting:
            for listening in self._resting:
                self.epoll.modify(listening.sock.fileno(), select.EPOLLIN)
            self._resting.clear()
        if self.ended:
            # Taken out first: one that raises is not met again.
            ended, self.ended = self.ended, []
            for channel in ended:
                layer = channel.layer
                if channel.fd >= 0 and layer is not None and not channel.connection.paused:
                    self._layer_ended(channel, layer)
        self.context.timers.run(self.context.now_ns)
        if self._leaving:
            for channel, deadline_ns in list(self._leaving.items()):
                if deadline_ns <= self.context.now_ns:
                    self.lose(channel, "did not take our last bytes")
        flush_ready(self.context)

    def leave(self, channel: SocketChannel) -> None:
        """Give a closed peer GOODBYE_NS to read what waits for it."""
        if channel not in self._leaving:
            self._leaving[channel] = self.context.now_ns + GOODBYE_NS

    def lose(self, channel: SocketChannel, why: str) -> None:
        """Drop a connection whose peer is gone."""
        if channel.fd < 0:
            return
        self._forget(channel)
        self.context.barrier.lose(channel.connection, why)
        channel.connection.outbox.channel = None

    def close(self, channel: SocketChannel) -> None:
        """We are done with the peer; everything has been sent."""
        if channel.fd < 0:
            return
        self._forget(channel)
        self.context.barrier.lose(channel.connection, "closed")
        # Nothing refers to itself: what a connection held is free at once, and not with the next collection.
        channel.connection.outbox.channel = None

    def _forget(self, channel: SocketChannel) -> None:
        del self._channels[channel.fd]
        if channel.connection.stuck:
            channel.connection.stuck_with(0)
        self.pre_login_limits.open -= 1
        self._leaving.pop(channel, None)
        self.epoll.unregister(channel.fd)
        channel.fd = -1
        channel.last_words()
        channel.sock.close()
        if channel.listening is not None:
            channel.listening.open -= 1

    def close_all(self) -> None:
        """Close every socket and listener at once."""
        for channel in list(self._channels.values()):
            self.close(channel)
        for listening in list(self._listeners.values()):
            self.unlisten(listening.sock)
        self.epoll.close()
        self.spare.close()

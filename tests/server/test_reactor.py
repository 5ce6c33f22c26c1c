"""The nested epoll, driven by hand over real sockets."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile
from vpnrouter.core.connection import Connection
from vpnrouter.core.context import RouterContext
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.outbox import Channel, Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.turn import CommitPort
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.server.net import reactor as reactor_module
from vpnrouter.server.net.listeners import MqttAcceptor, bind
from vpnrouter.server.net.reactor import (
    DIRECT_SHARE,
    HEAVY_BYTES,
    LARGE_BYTES,
    LARGE_NS,
    SPOOL_SHARE,
    Reactor,
    flush_ready,
)
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Connect,
    Disconnect,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Will,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(
    not hasattr(select, "epoll"), reason=f"{sys.platform} has no epoll; loop.py serves there"
)


class Peer:
    """The far end of a socket that the reactor serves."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._have = b""

    def send(self, *packets: Packet) -> None:
        """Send packets in one go; what they hold fits the kernel's buffers."""
        self.sock.sendall(b"".join([encode(packet, 5) for packet in packets]))

    def packets(self) -> list[Packet]:
        """What has arrived."""
        while True:
            try:
                data = self.sock.recv(1 << 20)
            except BlockingIOError:
                break
            if not data:
                break
            self._have += data
        found, pos = [], 0
        while length := frame_at(self._have, pos, len(self._have), 1 << 28):
            found.append(decode(self._have, pos, length, 5))
            pos += length
        self._have = self._have[pos:]
        return found

    @property
    def closed(self) -> bool:
        """Whether the reactor closed the connection; takes what is still there."""
        try:
            return not self.sock.recv(1 << 20)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


class Stage:
    """A router with one open VPN, its reactor, and peers."""

    def __init__(self) -> None:
        self.router = Router("here", 1, Recorder())
        self.vpn = MessageVpn(
            "blue",
            self.router.context,
            Credentials(basic_enabled=False),
            {"default": ClientProfile("default")},
            {"default": AclProfile("default")},
        )
        self.router.add(self.vpn)
        self.reactor = Reactor(self.router)
        self.reactor.set_clocks()
        self._peers: list[socket.socket] = []

    def run(self) -> None:
        """Rounds until nothing is ready."""
        while self.reactor.round():
            pass

    def peer(self, buffer_bytes: int = 0) -> tuple[Peer, MqttConnection]:
        """A connected pair of local sockets, one end served as MQTT."""
        ours, theirs = socket.socketpair()
        if buffer_bytes:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        connection = MqttConnection(self.router, "192.0.2.1", "blue")
        self.reactor.add(ours, connection)
        self._peers.append(theirs)
        return Peer(theirs), connection

    def client(self, name: str, *filters: str, buffer_bytes: int = 0) -> Peer:
        """A peer that is logged in and has subscribed."""
        peer, _ = self.peer(buffer_bytes)
        peer.send(Connect(name))
        if filters:
            peer.send(Subscribe(1, [SubscriptionRequest(text) for text in filters]))
        self.run()
        peer.packets()
        return peer

    def dial(self, sock: socket.socket) -> Peer:
        """A client of a listening socket."""
        made = socket.create_connection(sock.getsockname())
        self._peers.append(made)
        return Peer(made)

    def close(self) -> None:
        """Close everything."""
        if not self.reactor.epoll.closed:
            self.reactor.close_all()
        for sock in self._peers:
            sock.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A fresh stage, closed when the test ends."""
    made = Stage()
    yield made
    made.close()


def test_a_round_may_wait(stage: Stage) -> None:
    """Told to wait, it comes back with what arrives meanwhile, and else empty-handed in time."""
    begin = time.monotonic()
    assert not stage.reactor.round(0.02)
    assert 0.015 < time.monotonic() - begin < 10.0


def test_many_messages_are_one_round(stage: Stage) -> None:
    """What arrived together is fed together and leaves in the same round."""
    subscriber = stage.client("s", "#")
    publisher = stage.client("p")
    publisher.send(*[Publish(b"a", bytes((number,))) for number in range(100)])
    assert stage.reactor.round() is True
    arrived = [one.payload for one in subscriber.packets() if isinstance(one, Publish)]
    assert arrived == [bytes((number,)) for number in range(100)]


def test_partial_writes(stage: Stage) -> None:
    """A peer that reads slowly through a tiny buffer gets every byte, in order."""
    subscriber = stage.client("s", "#", buffer_bytes=1)
    publisher = stage.client("p")
    payloads = [bytes((number,)) * 3_000 for number in range(40)]
    arrived: list[bytes] = []
    for payload in payloads:
        publisher.send(Publish(b"a", payload))
        stage.run()
    waiting = stage.vpn.clients["s"].outbox.size
    assert waiting > 0
    for _ in range(10_000):
        arrived += [one.payload for one in subscriber.packets() if isinstance(one, Publish)]
        if len(arrived) == len(payloads):
            break
        stage.run()
    assert arrived == payloads
    stage.run()
    assert stage.vpn.clients["s"].outbox.size == 0
    # Nothing waits: the reactor is not woken for writing any more.
    assert stage.reactor.round() is False


def test_a_slow_consumer_loses_its_own_messages(stage: Stage) -> None:
    """Beyond the outbox's bound messages for the slow one are dropped; another gets them all."""
    slow = stage.client("slow", "#", buffer_bytes=1)
    stage.vpn.clients["slow"].outbox.set_limit(50_000)
    quick = stage.client("quick", "#")
    publisher = stage.client("p")
    for _ in range(100):
        publisher.send(Publish(b"a", bytes(1_000)))
        stage.run()
        assert len(quick.packets()) == 1
    outbox: Outbox = stage.vpn.clients["slow"].outbox
    assert outbox.size <= 50_000
    assert outbox.discarded > 0
    got = 0
    for _ in range(1_000):
        got += len(slow.packets())
        stage.run()
    assert got + outbox.discarded == 100


def test_a_publisher_waits_for_a_receiver_that_reads(stage: Stage) -> None:
    """A receiver that takes less in a round than a publisher sends loses nothing: the publisher is left unread."""
    subscriber = stage.client("s", "#", buffer_bytes=50_000)
    outbox = stage.vpn.clients["s"].outbox
    outbox.set_limit(2_000_000)
    publisher = stage.client("p")
    frame = encode(Publish(b"a/b", bytes(16_384)), 5)
    stream = memoryview(frame * 500)
    sent = got = 0
    while got < len(stream):
        with contextlib.suppress(BlockingIOError):
            sent += publisher.sock.send(stream[sent:])
        stage.reactor.round()
        with contextlib.suppress(BlockingIOError):
            got += len(subscriber.sock.recv(40_000))
        assert outbox.discarded == 0
    assert got == len(stream)
    assert stage.router.context.backpressure.holds > 10


def test_a_receiver_that_does_not_read_holds_a_publisher_up_once(stage: Stage) -> None:
    """Its publisher is read again after PUBLISHER_HELD_NS; after that its messages are discarded, and nobody waits."""
    stage.client("slow", "#", buffer_bytes=1)
    outbox = stage.vpn.clients["slow"].outbox
    outbox.set_limit(400_000)
    publisher = stage.client("p")
    frame = encode(Publish(b"a/b", bytes(16_384)), 5)
    sent = 0
    backpressure = stage.router.context.backpressure
    while sent < 100 * len(frame):
        with contextlib.suppress(BlockingIOError):
            sent += publisher.sock.send(frame[sent % len(frame) :])
        stage.reactor.round(1.0)
    stage.run()
    assert backpressure.holds == 1
    assert backpressure.held_ns >= limits.PUBLISHER_HELD_NS
    assert outbox.discarded > 50
    assert outbox.discarded + outbox.messages == 100


def test_a_peer_that_vanishes(stage: Stage) -> None:
    """A socket closed by its peer is forgotten, its session ends, and its will is published."""
    subscriber = stage.client("s", "#")
    peer, connection = stage.peer()
    peer.send(Connect("c", will=Will(b"wills/c", b"gone")))
    stage.run()
    peer.sock.close()
    stage.run()
    assert connection.closing
    assert len(stage.reactor) == 1
    assert "c" not in stage.vpn.clients
    assert [one.payload for one in subscriber.packets() if isinstance(one, Publish)] == [b"gone"]


def test_a_reset_while_writing(stage: Stage) -> None:
    """A peer that resets while bytes wait for it is lost in the flush; everybody else is served."""
    sock = bind("127.0.0.1", 0)
    stage.reactor.listen(sock, MqttAcceptor(stage.router, "blue"), 10)
    dying = stage.dial(sock)
    dying.send(Connect("d"), Subscribe(1, [SubscriptionRequest("#")]))
    settle(stage, lambda: "d" in stage.vpn.clients and bool(stage.vpn.clients["d"].subscriptions))
    dying.packets()
    other = stage.client("o", "#")
    publisher = stage.client("p")
    dying.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    dying.sock.close()
    publisher.send(Publish(b"a", bytes(50_000)))
    settle(stage, lambda: "d" not in stage.vpn.clients)
    assert len(other.packets()) == 1


def settle(stage: Stage, true: Callable[[], bool]) -> None:
    """Run rounds, waiting for the kernel in between, until something is true."""
    for _ in range(1_000):
        stage.run()
        if true():
            return
        select.select([stage.reactor.fileno()], [], [], 0.01)
    pytest.fail("never")


def test_accepting(stage: Stage) -> None:
    """A listener's clients are served under their own address, up to its bound; a place comes free."""
    sock = bind("127.0.0.1", 0)
    stage.reactor.listen(sock, MqttAcceptor(stage.router, "blue"), 2)
    peers = [stage.dial(sock) for _ in range(3)]
    settle(stage, lambda: stage.reactor.accepts_refused == 1)
    assert len(stage.reactor) == 2
    assert peers[2].closed
    peers[0].sock.close()
    settle(stage, lambda: len(stage.reactor) == 1)
    peers.append(stage.dial(sock))
    settle(stage, lambda: len(stage.reactor) == 2)
    assert stage.reactor.accepts_refused == 1


class Refusing(socket.socket):
    """A listening socket whose system has run out of descriptors."""

    refuse = True

    def accept(self) -> tuple[socket.socket, Any]:
        """Fail as the kernel does then."""
        if self.refuse:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_out_of_descriptors(stage: Stage) -> None:
    """A listener that cannot accept rests until the next tick, does not spin, and then goes on."""
    bound = bind("127.0.0.1", 0)
    sock = Refusing(fileno=bound.detach())
    sock.setblocking(False)
    stage.reactor.listen(sock, MqttAcceptor(stage.router, "blue"), 10)
    stage.dial(sock)
    settle(stage, lambda: stage.reactor.accept_errors == 1)
    assert stage.reactor.round() is False
    assert stage.reactor.accept_errors == 1
    sock.refuse = False
    stage.reactor.tick()
    settle(stage, lambda: len(stage.reactor) == 1)


def test_a_loud_peer_does_not_starve_the_others(stage: Stage) -> None:
    """Of one socket no more than a bounded piece is taken in a round; the others get their turn."""
    loud, connection = stage.peer()
    loud.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    loud.send(Connect("loud"))
    quiet = stage.client("quiet", "hello")
    loud.packets()
    flood = encode(Publish(b"noise", bytes(1_000)), 5) * 2_000
    sent = loud.sock.send(flood)
    assert sent > 2 * reactor_module.RECEIVE_BYTES // 2
    quiet.send(Publish(b"hello", b"x"))
    stage.reactor.round()
    assert [one.payload for one in quiet.packets() if isinstance(one, Publish)] == [b"x"]
    publisher = connection.publisher
    assert publisher is not None
    assert 0 < publisher.bytes_ <= reactor_module.RECEIVE_BYTES


def test_a_paused_connection_is_not_read(stage: Stage) -> None:
    """While a password is verified what the peer sends stays in the kernel; then it is handled."""
    peer, connection = stage.peer()
    subscriber = stage.client("s", "#")
    peer.send(Connect("c"))
    stage.run()
    connection.paused = True
    channel = connection.outbox.channel
    assert isinstance(channel, reactor_module.SocketChannel)
    channel.pause()
    peer.send(Publish(b"a", b"x"))
    assert stage.reactor.round() is False
    connection.resume()
    stage.run()
    assert [one.payload for one in subscriber.packets() if isinstance(one, Publish)] == [b"x"]


def test_a_goodbye_leaves_before_the_close(stage: Stage) -> None:
    """Whoever is disconnected hears the reason and then the end of the stream."""
    peer = stage.client("c")
    peer.sock.sendall(b"\x00\x00")
    stage.run()
    (packet,) = peer.packets()
    assert isinstance(packet, Disconnect)
    assert packet.reason_code == 0x82
    assert peer.closed
    assert len(stage.reactor) == 0


def test_a_peer_that_does_not_take_its_goodbye(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that reads no more is closed some seconds after it was told to go."""
    stage.client("stuck", "#", buffer_bytes=1)
    publisher = stage.client("p")
    for _ in range(20):
        publisher.send(Publish(b"a", bytes(5_000)))
        stage.run()
    session: Any = stage.vpn.clients["stuck"]
    session.connection.fail(0x98, "told to go")
    stage.run()
    stage.reactor.tick()
    assert len(stage.reactor) == 2
    ahead_ns = stage.router.context.now_ns + reactor_module.GOODBYE_NS + 1
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic_ns", lambda: ahead_ns)
        stage.reactor.tick()
    assert len(stage.reactor) == 1


def test_close_all(stage: Stage) -> None:
    """Everything is closed: peers see the end, the listener refuses, the descriptor is gone."""
    sock = bind("127.0.0.1", 0)
    address = sock.getsockname()
    stage.reactor.listen(sock, MqttAcceptor(stage.router, "blue"), 10)
    peer = stage.client("c")
    stage.reactor.close_all()
    assert peer.closed
    assert stage.reactor.epoll.closed
    assert stage.vpn.clients == {}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


# -- reactor share ---------------------------------------------------------------------------------


MILLISECOND_NS = 1_000_000


class Clock:
    """Nanoseconds that pass only when somebody works."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MILLISECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return self.now_ns


class Busy(Connection):
    """Takes what comes, and `cost_ns` for each chunk."""

    def __init__(self, shared_stage: SharedStage, cost_ns: int, guaranteed: bool) -> None:
        super().__init__(shared_stage.router.context, "here", 1 << 20)
        self.guaranteed = guaranteed
        self.stage = shared_stage
        self.cost_ns = cost_ns
        self.spent_ns = 0

    def consume(self, data: bytes, pos: int) -> int:
        self.stage.clock.now_ns += self.cost_ns
        self.spent_ns += self.cost_ns
        return len(data)

    def lost(self, reason: str) -> None:
        self.closing = True


class Idle(CommitPort):
    """A spool that has nothing to commit."""

    def step(self) -> None:
        pass


class SharedStage:
    """A reactor with one connection of each kind, whose peers have always something to say."""

    def __init__(self, clock: Clock, direct_bytes: int) -> None:
        self.clock = clock
        self.flood = direct_bytes >= HEAVY_BYTES
        self.router = Router("here", 1, Recorder())
        self.router.context.committing = Idle()
        self.reactor = Reactor(self.router)
        self.reactor.set_clocks()
        self.direct = Busy(self, MILLISECOND_NS, guaranteed=False)
        self.spooled = Busy(self, 5 * MILLISECOND_NS, guaranteed=True)
        self._far: list[tuple[socket.socket, bytes]] = []
        for connection, size in ((self.direct, direct_bytes), (self.spooled, 1_000)):
            near, far = socket.socketpair()
            for sock in (near, far):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            far.setblocking(False)
            self.reactor.add(near, connection)
            self._far.append((far, bytes(size)))

    def rounds(self, count: int) -> None:
        for _ in range(count):
            for far, data in self._far:
                try:
                    far.send(data)
                except BlockingIOError:
                    continue
            self.reactor.round()

    def close(self) -> None:
        self.reactor.close_all()
        for far, _ in self._far:
            far.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The reactor's clock."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic_ns", made.monotonic_ns)
    monkeypatch.setattr(time, "time_ns", made.time_ns)
    return made


@pytest.fixture(params=[100, HEAVY_BYTES])
def shared_stage(clock: Clock, request: pytest.FixtureRequest) -> Iterator[SharedStage]:
    """With a trickle of Direct traffic, and with a flood of it."""
    made = SharedStage(clock, request.param)
    yield made
    made.close()


def test_who_gets_the_time(shared_stage: SharedStage) -> None:
    """Beside a flood the spool has its part and no more; beside a trickle all that it wants."""
    shared_stage.rounds(400)
    part = shared_stage.spooled.spent_ns / (
        shared_stage.spooled.spent_ns + shared_stage.direct.spent_ns
    )
    if shared_stage.flood:
        assert part == pytest.approx(SPOOL_SHARE / (SPOOL_SHARE + DIRECT_SHARE), abs=0.05)
    else:
        assert part == pytest.approx(5 / 6, abs=0.02)


# -- flush -----------------------------------------------------------------------------------------


class Noting(Channel):
    """Notes its flushes and makes another outbox dirty when told to."""

    def __init__(self, then: Outbox | None = None) -> None:
        self.flushes = 0
        self.then = then

    def flush(self) -> None:
        self.flushes += 1
        if self.then is not None:
            self.then.control(b"x")
            self.then = None


def test_each_dirty_outbox_is_flushed_once() -> None:
    """Two frames in one round are one flush; a flush that makes somebody dirty has that one flushed too."""
    context = RouterContext("here", 1, Recorder(), 0.0)
    last = Outbox(context.ready, 100)
    first = Outbox(context.ready, 100)
    last.channel = at_last = Noting()
    first.channel = at_first = Noting(then=last)
    first.control(b"a")
    first.control(b"b")
    flush_ready(context)
    assert (at_first.flushes, at_last.flushes) == (1, 1)
    assert not first.dirty
    assert not last.dirty
    flush_ready(context)
    assert (at_first.flushes, at_last.flushes) == (1, 1)


def test_those_with_little_to_send_come_first() -> None:
    """An outbox with much in it is flushed behind all others; what takes too long waits for the next round."""
    context = RouterContext("here", 1, Recorder(), 0.0)
    order: list[str] = []

    class Slow(Channel):
        def __init__(self, name: str, outbox: Outbox) -> None:
            self.name = name
            self.outbox = outbox

        def flush(self) -> None:
            order.append(self.name)
            self.outbox.take(1 << 30)
            until = time.monotonic_ns() + (LARGE_NS if self.name == "large" else 0)
            while time.monotonic_ns() < until:
                pass

    large = [Outbox(context.ready, 1 << 30) for _ in range(3)]
    small = [Outbox(context.ready, 1 << 30) for _ in range(3)]
    for outbox in large:
        outbox.channel = Slow("large", outbox)
        outbox.control(bytes(LARGE_BYTES + 1))
    for outbox in small:
        outbox.channel = Slow("small", outbox)
        outbox.control(b"x")
    flush_ready(context)
    assert order[:4] == ["small", "small", "small", "large"]
    assert context.large
    before = len(order)
    small[0].control(b"x")
    flush_ready(context)
    assert order[before] == "small"
    for _ in range(3):
        flush_ready(context)
    assert order.count("large") == 3
    assert not context.large
    assert not any(outbox.dirty for outbox in large + small)

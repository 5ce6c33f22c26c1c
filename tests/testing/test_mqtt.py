"""Clients that keep a history."""

import queue
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.testing.history import History, HistoryEventKind, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer, message_of
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

PATIENCE_S = 10.0


class Recorder:
    """A session that writes down what it is told, and says `says` once it is open."""

    name = "r"

    def __init__(self) -> None:
        self.events: queue.Queue[object] = queue.Queue()
        self.says: list[Packet] = []

    def connect(self) -> Connect:
        """Nothing special."""
        return Connect("r")

    def opened(self, answer: Connack) -> list[Packet]:
        """Tells that it is open."""
        self.events.put("opened")
        return self.says

    def received(self, packet: Packet) -> list[Packet]:
        """Repeats what it hears."""
        self.events.put(packet)
        if packet == Ack(PUBACK, 666):
            raise KeyError(666)
        return [packet]

    def due(self) -> list[Packet]:
        """Nothing."""
        return []

    def closed(self) -> None:
        """Tells that it is closed."""
        self.events.put("closed")

    def next(self) -> object:
        """The next event."""
        return self.events.get(timeout=PATIENCE_S)


class Server:
    """Accepts one connection at a time and takes its CONNECT."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        self.port = int(self.listener.getsockname()[1])

    def accept(self, answer: bytes = encode(Connack(), 5)) -> socket.socket:
        """The next connection, answered."""
        link, _ = self.listener.accept()
        link.settimeout(PATIENCE_S)
        assert link.recv(1000) == encode(Connect("r"), 5)
        link.sendall(answer)
        return link


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends with the test."""
    made = Server()
    yield made
    made.listener.close()


def client(session: Recorder, server: Server, cut_chance: float = 0.0) -> MqttClient:
    """A client of the server."""
    return MqttClient(session, lambda: server.port, History(), random.Random(1), cut_chance)


def test_packets_go_through_and_connections_come_again(server: Server) -> None:
    """Packets go both ways, cut anywhere; after a loss the client comes again."""
    session = Recorder()
    session.says = [Ack(PUBACK, 1)]
    frame = encode(Ack(PUBACK, 2), 5)
    with client(session, server):
        with server.accept() as link:
            assert session.next() == "opened"
            assert link.recv(1000) == encode(Ack(PUBACK, 1), 5)
            link.sendall(frame[:2])
            link.sendall(frame[2:])
            assert session.next() == Ack(PUBACK, 2)
            assert link.recv(1000) == frame
        assert session.next() == "closed"
        with server.accept():
            assert session.next() == "opened"


def test_packet_beside_connack(server: Server) -> None:
    """What comes in one chunk with CONNACK is heard after it."""
    session = Recorder()
    both = encode(Connack(), 5) + encode(Ack(PUBACK, 2), 5)
    with client(session, server), server.accept(both):
        assert session.next() == "opened"
        assert session.next() == Ack(PUBACK, 2)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (encode(Connack(reason_code=0x88), 5), "r: refused: 0x88 Server unavailable"),
        (encode(Ack(PUBACK, 1), 5), "r: CONNECT was answered with Ack"),
        (
            encode(Connack(), 5) + encode(Disconnect(0x8E), 5),
            "r: DISCONNECT 0x8e Session taken over",
        ),
        (b"\xf0\xff\xff\xff\xff\xff", "r: MQTT"),
    ],
)
def test_refusal_is_told(server: Server, answer: bytes, told: str) -> None:
    """What is more than a lost connection stands in `told`."""
    session = Recorder()
    with client(session, server) as made:
        with server.accept(answer):
            while session.next() != "closed":
                pass
        assert made.told[0].startswith(told)


def test_no_router_no_attempt(server: Server) -> None:
    """While the router is nowhere nothing is tried, and a refused connection is no error."""
    ports: list[int | None] = [None, 1, None, server.port]
    asked = threading.Event()

    def port() -> int | None:
        if len(ports) == 1:
            asked.set()
            return ports[0]
        return ports.pop(0)

    session = Recorder()
    with MqttClient(session, port, History(), random.Random(1)) as made, server.accept():
        assert asked.wait(PATIENCE_S)
        assert [session.next(), session.next()] == ["closed", "opened"]
        assert made.told == []


class Later(random.Random):
    """Draws what cuts a connection only when told to."""

    now = False

    def random(self) -> float:
        """0 or almost 1."""
        return 0.0 if self.now else 0.99


def test_client_cuts_at_random(server: Server) -> None:
    """With a chance to be cut the connection is reset from the client's side."""
    session = Recorder()
    draws = Later()
    history = History()
    with MqttClient(session, lambda: server.port, history, draws, 0.5), server.accept() as link:
        assert session.next() == "opened"
        draws.now = True
        with pytest.raises(ConnectionResetError):
            link.recv(1000)
        assert session.next() == "closed"
        draws.now = False
        server.accept().close()
    assert history.events[0].note == "r resets its connection"


def test_death_of_the_thread_is_raised(server: Server) -> None:
    """An error inside a session fails the test that uses it."""
    session = Recorder()

    def hold() -> None:
        with client(session, server), server.accept() as link:
            link.sendall(encode(Ack(PUBACK, 666), 5))
            while session.next() != "closed":
                pass

    with pytest.raises(KeyError, match="666"):
        hold()


class Eager(random.Random):
    """Always draws the most."""

    def randint(self, a: int, b: int) -> int:
        """The upper end."""
        return b


def made(history: History, **options: Any) -> Consumer:
    """A consumer of endpoint q, connected and subscribed."""
    consumer = Consumer("c", history, Eager(), endpoint="q", topic_filter="orders/#", **options)
    (packet,) = consumer.opened(Connack())
    assert isinstance(packet, Subscribe)
    assert not consumer.ready
    consumer.received(Suback(packet.packet_id, [1]))
    assert consumer.ready
    return consumer


def message(number: int, packet_id: int, qos: int = 1, dup: bool = False) -> Publish:
    """A delivery."""
    return Publish(b"orders/1", f"a-{number} ..".encode(), qos, packet_id=packet_id, dup=dup)


def told(history: History) -> list[tuple[HistoryEventKind, str, bool]]:
    """Kinds, messages and flags of the events."""
    return [(event.kind, event.message, event.redelivered) for event in history.events]


def test_barrier_settles() -> None:
    """Acknowledgements are known to be stored when the router answers the barrier behind them."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    consumer.received(message(2, 6))
    first, second, barrier = consumer.due()
    assert [first, second] == [Ack(PUBACK, 5), Ack(PUBACK, 6)]
    assert isinstance(barrier, Publish)
    assert (barrier.topic, barrier.qos) == (b"barrier/c", 1)
    assert not consumer.idle
    consumer.received(Ack(PUBACK, barrier.packet_id))
    assert consumer.idle
    assert told(history) == [
        (HistoryEventKind.DELIVERED, "a-1", False),
        (HistoryEventKind.DELIVERED, "a-2", False),
        (HistoryEventKind.CONSUMED, "a-1", False),
        (HistoryEventKind.CONSUMED, "a-2", False),
        (HistoryEventKind.SETTLED, "a-1", False),
        (HistoryEventKind.SETTLED, "a-2", False),
    ]


def test_lost_connection_settles_nothing() -> None:
    """What was acknowledged behind the last answered barrier is not known to be stored."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    *_, barrier = consumer.due()
    consumer.received(message(2, 6))
    consumer.closed()
    assert consumer.idle
    assert consumer.opened(Connack(session_present=True)) == []
    consumer.received(Ack(PUBACK, barrier.packet_id))
    consumer.received(message(1, 5, dup=True))
    assert (HistoryEventKind.SETTLED, "a-1", False) not in told(history)
    assert told(history)[-1] == (HistoryEventKind.DELIVERED, "a-1", True)
    assert Ack(PUBACK, 5) in consumer.due()


def test_refused_barrier_settles_nothing() -> None:
    """A barrier that the router did not take says nothing."""
    history = History()
    consumer = made(history, barrier="barrier/c")
    consumer.received(message(1, 5))
    *_, barrier = consumer.due()
    consumer.received(Ack(PUBACK, barrier.packet_id, 0x97))
    assert told(history)[-1] == (HistoryEventKind.CONSUMED, "a-1", False)


def test_exactly_once() -> None:
    """At QoS 2 a packet that comes again is answered and not delivered; PUBREL settles."""
    history = History()
    consumer = made(history, qos=2)
    consumer.received(message(1, 5, qos=2))
    assert consumer.due() == [Ack(PUBREC, 5)]
    consumer.closed()
    consumer.opened(Connack(session_present=True))
    consumer.received(message(1, 5, qos=2, dup=True))
    assert consumer.due() == [Ack(PUBREC, 5)]
    assert not consumer.idle
    assert consumer.received(Ack(PUBREL, 5)) == [Ack(PUBCOMP, 5)]
    assert consumer.received(Ack(PUBREL, 5)) == [Ack(PUBCOMP, 5, 0x92)]
    assert consumer.idle
    consumer.received(message(2, 5, qos=2))
    assert [each for each in told(history) if each[0] is not HistoryEventKind.CONSUMED] == [
        (HistoryEventKind.DELIVERED, "a-1", False),
        (HistoryEventKind.SETTLED, "a-1", False),
        (HistoryEventKind.DELIVERED, "a-2", False),
    ]


def test_forgotten_session_is_told() -> None:
    """A durable consumer whose session is gone says so, subscribes anew and forgets the identifiers."""
    history = History()
    consumer = made(history, qos=2)
    consumer.received(message(1, 5, qos=2))
    consumer.closed()
    assert len(consumer.opened(Connack())) == 1
    assert consumer.sessions_lost == 1
    consumer.received(message(1, 5, qos=2))
    assert consumer.deliveries == 2


def test_queue_consumer_subscribes_each_time() -> None:
    """A consumer without a durable session subscribes on every connection, and loses nothing by that."""
    consumer = made(History(), durable=False)
    assert consumer.connect().clean_start
    consumer.closed()
    assert not consumer.ready
    assert len(consumer.opened(Connack())) == 1
    assert consumer.sessions_lost == 0


def test_queue_consumer_knows_what_comes_again() -> None:
    """Without a session there is no DUP over connections: a user property says that it comes again."""
    history = History()
    consumer = made(history, durable=False)
    consumer.received(message(1, 5))
    consumer.closed()
    consumer.opened(Connack())
    again = message(1, 1)
    again.properties.user_properties = [("JMSRedelivered", "true")]
    consumer.received(again)
    consumer.received(message(1, 2))
    assert told(history) == [
        (HistoryEventKind.DELIVERED, "a-1", False),
        (HistoryEventKind.DELIVERED, "a-1", True),
        (HistoryEventKind.DELIVERED, "a-1", False),
    ]


def test_refused_subscription_is_told() -> None:
    """A subscription that the router refuses is noted."""
    history = History()
    consumer = made(history)
    consumer.received(Suback(1, [0x97]))
    assert not consumer.ready
    assert history.events[-1].note == "c: SUBACK 0x97"


def test_paused_consumer_acknowledges_nothing() -> None:
    """A paused consumer receives and holds everything."""
    consumer = made(History())
    consumer.received(message(1, 5))
    consumer.paused = True
    assert consumer.due() == []
    assert consumer.delivered == {"a-1"}
    consumer.paused = False
    assert consumer.due() == [Ack(PUBACK, 5)]


def made_producer(history: History, **options: Any) -> Producer:
    """A producer of messages for queue q, connected."""
    producer = Producer("a", history, random.Random(1), {"orders/1": ("q",)}, **options)
    assert producer.opened(Connack()) == []
    return producer


def ids(packets: list[Any]) -> list[int]:
    """Packet identifiers."""
    return [packet.packet_id for packet in packets]


def told_of(history: History) -> list[tuple[HistoryEventKind, str]]:
    """Kinds and messages of the events."""
    return [(event.kind, event.message) for event in history.events]


def test_window_and_burst_and_limit() -> None:
    """New messages leave as far as window, burst and limit allow; the router's receive maximum counts too."""
    producer = Producer("a", History(), random.Random(1), {"t": ()}, window=9, burst=2, limit=4)
    assert producer.due() == []
    producer.opened(Connack(properties=Properties(receive_maximum=3)))
    first, second = producer.due()
    assert [message_of(each.payload) for each in (first, second)] == ["a-1", "a-2"]
    (third,) = producer.due()
    assert producer.due() == []
    assert len({*ids([first, second, third])}) == 3
    for packet in (first, second, third):
        producer.received(Ack(PUBACK, packet.packet_id))
    (fourth,) = producer.due()
    assert not producer.done
    producer.received(Ack(PUBACK, fourth.packet_id, 0x97))
    assert producer.done
    assert producer.reasons == {"a-1": 0, "a-2": 0, "a-3": 0, "a-4": 0x97}


def test_at_least_once() -> None:
    """At QoS 1 what has no answer is sent again with DUP, under its identifier, and may make a copy."""
    history = History()
    producer = made_producer(history, burst=2)
    first, second = producer.due()
    producer.received(Ack(PUBACK, first.packet_id))
    producer.closed()
    assert producer.due() == []
    (again,) = producer.opened(Connack(session_present=True))
    assert isinstance(again, Publish)
    assert (again.packet_id, again.payload, again.dup) == (second.packet_id, second.payload, True)
    producer.received(Ack(PUBACK, second.packet_id, 0x87))
    assert told_of(history) == [
        (HistoryEventKind.PUBLISHED, "a-1"),
        (HistoryEventKind.PUBLISHED, "a-2"),
        (HistoryEventKind.ACKNOWLEDGED, "a-1"),
        (HistoryEventKind.RESENT, "a-2"),
        (HistoryEventKind.REJECTED, "a-2"),
    ]


def test_publishing_exactly_once() -> None:
    """At QoS 2 PUBREC is the answer; each step is repeated until the next one is known, and makes no copy."""
    history = History()
    producer = made_producer(history, qos=2, burst=3)
    first, second, third = producer.due()
    assert producer.received(Ack(PUBREC, first.packet_id)) == [Ack(PUBREL, first.packet_id)]
    assert producer.received(Ack(PUBREC, third.packet_id, 0x97)) == []
    again = producer.opened(Connack(session_present=True))
    assert again[0] == Ack(PUBREL, first.packet_id)
    assert ids(again) == ids([first, second])
    producer.received(Ack(PUBCOMP, second.packet_id))
    producer.received(Ack(PUBCOMP, first.packet_id, 0x92))
    assert producer.received(Ack(PUBREC, second.packet_id)) == [Ack(PUBREL, second.packet_id)]
    assert producer.received(Ack(PUBREC, second.packet_id)) == [Ack(PUBREL, second.packet_id)]
    producer.stopping = True
    assert not producer.done
    producer.received(Ack(PUBCOMP, second.packet_id))
    assert producer.done
    assert told_of(history)[3:] == [
        (HistoryEventKind.ACKNOWLEDGED, "a-1"),
        (HistoryEventKind.REJECTED, "a-3"),
        (HistoryEventKind.REPEATED, "a-2"),
        (HistoryEventKind.ACKNOWLEDGED, "a-2"),
    ]
    assert producer.received(Ack(PUBREC, 77)) == [Ack(PUBREL, 77, 0x92)]


def test_forgotten_session_of_a_producer_is_told() -> None:
    """A router that answered once and then does not know the session has lost it."""
    producer = made_producer(History(), burst=1)
    producer.opened(Connack())
    assert producer.sessions_lost == 0
    (packet,) = producer.due()
    producer.received(Ack(PUBACK, packet.packet_id))
    producer.opened(Connack())
    assert producer.sessions_lost == 1


def test_identifiers_wrap() -> None:
    """After 65,535 comes 1, and identifiers in flight are left out."""
    producer = made_producer(History(), burst=2)
    producer._next_id = 65_535
    last, _ = producer.due()
    producer._next_id = 65_535
    assert ids(producer.due()) == [2, 3]
    assert last.packet_id == 65_535


ELSEWHERE_S = 20.0


COUNT = 300


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + ELSEWHERE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answers(port: int) -> bool:
    """Whether someone listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[int]:
    """The port of a mosquitto broker without bounds."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    written = tmp_path / "mosquitto.conf"
    written.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n",
        encoding="utf-8",
    )
    broker = subprocess.Popen([program, "-c", str(written)], stderr=subprocess.DEVNULL)
    until(lambda: answers(port))
    yield port
    broker.kill()
    broker.wait()


@pytest.mark.peers
def test_sessions_over_lost_connections(mosquitto: int) -> None:
    """Sessions of QoS 1 and 2 go on over connections that are reset all the time, and nothing is found."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    history = History()
    consumers = [
        Consumer(
            f"c{qos}",
            history,
            random.Random(draws.getrandbits(32)),
            endpoint=f"c{qos}",
            topic_filter="t/#",
            qos=qos,
            barrier="barrier",
        )
        for qos in (1, 2)
    ]
    producers = [
        Producer(f"p{qos}", history, draws, {"t/x": ("c1", "c2")}, qos=qos, limit=COUNT)
        for qos in (1, 2)
    ]
    with ExitStack() as stack:
        for sessions in (consumers, producers):
            clients = [
                MqttClient(session, lambda: mosquitto, history, random.Random(session.name), 0.05)
                for session in sessions
            ]
            for client in clients:
                stack.enter_context(client)
            until(lambda: all(each.ready for each in consumers))
        until(lambda: all(each.done for each in producers))
        until(lambda: all(len(each.delivered) == 2 * COUNT for each in consumers))
        until(lambda: all(each.idle for each in consumers))
    found = check(history)
    assert not found, describe(found, history)
    assert any(event.kind is HistoryEventKind.NOTED for event in history.events)

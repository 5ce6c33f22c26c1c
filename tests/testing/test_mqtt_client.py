"""The thread between a session and a router that comes and goes."""

import queue
import random
import socket
import threading
from collections.abc import Iterator

import pytest

from vpnrouter.testing.history import History
from vpnrouter.testing.mqtt_clients import MqttClient
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Disconnect, Packet
from vpnrouter.wire.mqtt.reason import PUBACK

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

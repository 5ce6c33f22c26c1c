"""The clients of the test kit against a broker of other makers: what they say is MQTT, and a sound broker passes."""

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from vpnrouter.testing.history import History, Kind, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer

PATIENCE_S = 20.0
COUNT = 300


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE_S
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
    assert any(event.kind is Kind.NOTED for event in history.events)

"""Pings without pause, and reports how long the longest answer took: the other half of bench.stalls.

`python -m bench.stalls_pinger HOST:PORT` echoes through the router (a QoS 0 message to itself, then PINGREQ) and
through a process of its own that does nothing but echo, in turn. Each line on stdin ends an interval: a line of JSON
on stdout says what it was like. The end of stdin ends it.
"""

from __future__ import annotations

import json
import multiprocessing
import select
import socket
import sys
import time
from multiprocessing.connection import Connection as Pipe
from typing import Final

from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Connect,
    Pingreq,
    Publish,
    Subscribe,
    SubscriptionRequest,
)

PAUSE_S: Final = 0.001
"""Between two rounds: about 300 of them a second."""

PATIENCE_S: Final = 15.0
"""After so long without an answer the router counts as gone."""

TOPIC: Final = b"stalls/ping"


def echo(ready: Pipe) -> None:
    """Give back whatever comes to the one connection that is made."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ready.send(listener.getsockname())
        peer, _ = listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with peer:
            while data := peer.recv(65_536):
                peer.sendall(data)


def asked(sock: socket.socket, question: bytes, size: int) -> float:
    """Milliseconds until `size` bytes of answer are there. Raises OSError when they never are."""
    began = time.perf_counter()
    sock.sendall(question)
    while size > 0:
        data = sock.recv(size)
        if not data:
            raise ConnectionError("closed")
        size -= len(data)
    return (time.perf_counter() - began) * 1_000


def main() -> None:
    """Ping until stdin ends, and print what was measured."""
    host, _, port = sys.argv[1].rpartition(":")
    ours, theirs = multiprocessing.Pipe()
    echoing = multiprocessing.Process(target=echo, args=(theirs,), daemon=True)
    echoing.start()
    beside = socket.create_connection(ours.recv())
    beside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    asked(client, encode(Connect("stalls-pinger", protocol_level=4), 4), 4)
    asked(client, encode(Subscribe(1, [SubscriptionRequest(TOPIC.decode())]), 4), 5)
    message = encode(Publish(TOPIC, bytes(32)), 4)
    ping = encode(Pingreq(), 4)
    worst, worst_echo, count, dead = 0.0, 0.0, 0, ""
    print("ready", flush=True)
    while True:
        try:
            if not dead:
                worst = max(worst, asked(client, message, len(message)), asked(client, ping, 2))
                count += 1
        except OSError as error:
            dead = f"{type(error).__name__}: {error}"
        worst_echo = max(worst_echo, asked(beside, message, len(message)))
        if not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            continue
        if not sys.stdin.readline():
            return
        said = {"worst_ms": worst, "echo_ms": worst_echo, "rounds": count, "dead": dead}
        print(json.dumps(said), flush=True)
        worst, worst_echo, count = 0.0, 0.0, 0


if __name__ == "__main__":
    main()

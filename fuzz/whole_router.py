"""Runs a router in its own process for the fuzzers that attack whole routers, and checks what it must withstand.

A finding is: the process ended by itself, an exception had to be contained, an honest client of another message
VPN was not served, a counter of what is unaccounted for is not 0, or the router did not start again.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, final

import vpnrouter
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Packet,
    Publish,
    Suback,
    Subscribe,
)
from vpnrouter.wire.mqtt.packets import SubscriptionRequest as Request

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S: Final = 30.0
"""Seconds that a router has to start, to stop, and to serve an honest client on a busy machine."""

REMEMBERED: Final = 80
"""Steps that a finding shows."""

SHOWN_CHARS: Final = 200
"""Characters of each step that a finding shows."""

IN_FLIGHT: Final = 50
"""Persistent messages that an honest client publishes before it waits for their acknowledgements."""

RESTART_S: Final = 12.0
"""Seconds between two restarts of the router."""

_ROUTER: Final = "from vpnrouter.cli.app import main; main()"
_FAULTS: Final = ("SYSTEM_SYSTEM_FAULT", "Traceback")
_IMBALANCE: Final = re.compile(
    r"^(vpnrouter_\w*imbalance_messages\{[^\n]*\}) (-?\d+)", re.MULTILINE
)


class Finding(Exception):
    """The router did what no peer may make it do."""


@final
class WholeRouter:
    """`vpnrouter run` with the configuration `text` in `folder`; leaving the `with` block ends it.

    `program` is what runs in its place: Python code that is given the path of the configuration last.
    """

    def __init__(self, folder: Path, text: str, program: str = _ROUTER) -> None:
        self._program = program
        self._path = folder / "router.yaml"
        self._path.write_text(text, encoding="utf-8")
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._said: list[str] = []
        self.ports: dict[str, list[int]] = {}
        self.steps: collections.deque[str] = collections.deque(maxlen=REMEMBERED)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            if self._listener is not None:
                self._listener.join()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def start(self) -> None:
        """Start the router and wait until it is ready."""
        source = str(Path(vpnrouter.__file__).parents[1])
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                self._program,
                "run",
                str(self._path),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=os.environ | {"PYTHONPATH": source, "PYTHONSAFEPATH": "1"},
            cwd=self._path.parent,
        )
        self._process = process
        self._said = []
        self._listener = threading.Thread(target=self._collect, args=(process,), daemon=True)
        self._listener.start()
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("ready "):
            process.wait(PATIENCE_S)
            raise Finding("the router does not start:\n" + "".join(self._said))
        self.ports = {}
        for word in line.split()[1:]:
            key, _, value = word.partition("=")
            if ":" in value:
                self.ports.setdefault(key, []).append(int(value.rpartition(":")[2]))

    @property
    def pid(self) -> int:
        """The id of its process."""
        if self._process is None:
            raise AssertionError("not started")
        return self._process.pid

    def _collect(self, process: subprocess.Popen[str]) -> None:
        said = self._said
        for line in process.stderr or ():
            said.append(line)
            if len(said) > 20_000:
                del said[:10_000]

    def restart(self, *, kill: bool) -> None:
        """End the router, by force or politely, and start it again. Raises Finding where that fails."""
        process = self._process
        if process is None:
            raise AssertionError("not started")
        self.examine()
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            code = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise Finding("the router does not stop") from error
        if not kill and code:
            raise Finding(f"a clean stop ended with {code}:\n" + "".join(self._said[-60:]))
        self.start()

    def figure(self, name: str, msg_vpn: str) -> int:
        """A figure of a message VPN, as the metrics tell it. Raises OSError where they are not answered."""
        _, text = self.ask("GET", "/metrics")
        found = re.search(rf'^{name}{{[^\n]*msg_vpn="{msg_vpn}"[^\n]*}} (\d+)', text, re.MULTILINE)
        return int(found[1]) if found else 0

    def examine(self) -> None:
        """Raise Finding where the router has ended or had to contain an exception."""
        process = self._process
        if process is None or process.poll() is not None:
            time.sleep(0.2)  # the last lines of stderr
            code = None if process is None else process.returncode
            raise Finding(f"the router ended with {code}:\n" + "".join(self._said[-80:]))
        for index, line in enumerate(self._said):
            if any(word in line for word in _FAULTS):
                raise Finding("contained:\n" + "".join(self._said[max(0, index - 2) : index + 60]))

    def note(self, step: str) -> None:
        """Remember what was done, for a finding."""
        self.steps.append(step if len(step) <= SHOWN_CHARS else step[:SHOWN_CHARS] + "…")

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Ask the management API; returns status and text. Raises OSError where it does not answer."""
        link = http.client.HTTPConnection("127.0.0.1", self.ports["http"][0], timeout=PATIENCE_S)
        try:
            content = None if body is None else json.dumps(body)
            link.request(method, path, content, {"Content-Type": "application/json"})
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(repr(error)) from error
        finally:
            link.close()

    def balances(self) -> None:
        """Raise Finding where metrics tell of messages that are unaccounted for."""
        _, text = self.ask("GET", "/metrics")
        wrong = [match.group(0) for match in _IMBALANCE.finditer(text) if int(match.group(2))]
        if wrong:
            raise Finding("unaccounted for: " + ", ".join(wrong))


class AttackingSocket:
    """A connection of an attacker, which never waits; `sock` is None when it is closed."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        self.sock = sock
        if sock is not None:
            sock.setblocking(False)

    def close(self) -> None:
        """Hang up."""
        if self.sock is not None:
            self.sock.close()
        self.sock = None

    def say(self, data: bytes) -> None:
        """Send what the system takes at once."""
        if self.sock is None:
            return
        try:
            self.sock.send(data)
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def take(self) -> bytes:
        """The bytes that came; closes where the router has closed."""
        if self.sock is None:
            return b""
        try:
            chunk = self.sock.recv(262_144)
        except BlockingIOError:
            return b""
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
        return chunk


@final
class HonestClient:
    """A client at MQTT listener `listener`, whose message VPN nobody attacks.

    What it publishes, Direct and persistent, reaches it.
    """

    def __init__(
        self,
        router: WholeRouter,
        listener: int,
        name: str = "honest",
        topic: str = "mine/x",
        username: str | None = None,
    ) -> None:
        self._router = router
        self._username = username
        self._listener = listener
        self._topic = topic
        self._name = name
        self._sock: socket.socket | None = None
        self._came = b""
        self._number = 0

    def served(self) -> float:
        """Seconds that the slowest of two messages took; raises Finding where one did not come."""
        try:
            if self._sock is None:
                self._connect()
            return max(self._round_trip(0), self._round_trip(1))
        except OSError as error:
            self.lost()
            self._router.examine()
            raise Finding(f"an honest client was not served: {error!r}") from error

    def publishes(self, count: int = 1, payload: bytes = b"p" * 50) -> None:
        """Publish persistent messages and wait for their acknowledgements, which may say no."""
        try:
            if self._sock is None:
                self._connect(subscribes=False)
            for first in range(0, count, IN_FLIGHT):
                together = range(min(IN_FLIGHT, count - first))
                for number in together:
                    self._say(Publish(self._topic.encode(), payload, 1, packet_id=number + 1))
                for _ in together:
                    self._next(Ack)
        except OSError as error:
            self.lost()
            self._router.examine()
            raise Finding(f"an honest client was not served: {error!r}") from error

    def lost(self) -> None:
        """Forget the connection: the router was ended on purpose."""
        if self._sock is not None:
            self._sock.close()
        self._sock = None
        self._came = b""

    def _connect(self, *, subscribes: bool = True) -> None:
        address = ("127.0.0.1", self._router.ports["mqtt"][self._listener])
        self._sock = socket.create_connection(address, PATIENCE_S)
        name = self._username
        password = None if name is None else name.partition("@")[0].encode()
        self._say(Connect(self._name, clean_start=True, username=name, password=password))
        answer = self._next(Connack)
        if not isinstance(answer, Connack) or answer.reason_code:
            raise Finding(f"an honest client was refused: {answer!r}")
        if not subscribes:
            return
        self._say(Subscribe(1, [Request(self._topic, qos=1)]))
        self._next(Suback)

    def _round_trip(self, qos: int) -> float:
        self._number += 1
        began = time.monotonic()
        payload = str(self._number).encode()
        self._say(Publish(self._topic.encode(), payload, qos, packet_id=7 if qos else 0))
        while True:
            packet = self._next(Publish)
            if isinstance(packet, Publish):
                if packet.qos:
                    self._say(Ack(4, packet.packet_id))
                if packet.payload == payload:
                    return time.monotonic() - began

    def _say(self, packet: Packet) -> None:
        if self._sock is not None:
            self._sock.sendall(encode(packet, 5))

    def _next(self, kind: type[Packet]) -> Packet:
        while True:
            size = frame_at(self._came, 0, len(self._came), 1 << 24) if self._came else 0
            if size:
                packet = decode(self._came, 0, size, 5)
                self._came = self._came[size:]
                if isinstance(packet, kind):
                    return packet
                continue
            chunk = b"" if self._sock is None else self._sock.recv(65_536)
            if not chunk:
                raise ConnectionError("closed by the router")
            self._came += chunk


def attack(
    router: WholeRouter,
    draw: random.Random,
    seconds: float,
    steps: Callable[[], None],
    hang_up: Callable[[], None],
) -> None:
    """Attack the router for so long: `steps` takes some steps, `hang_up` closes all connections of the attackers.

    In between the router is examined, and stopped or killed and started again. Raises Finding.
    """
    honest = HonestClient(router, 1)
    now = time.monotonic()
    ends, restarts = now + seconds, now + RESTART_S
    try:
        while time.monotonic() < ends:
            steps()
            router.examine()
            honest.served()
            if time.monotonic() > restarts:
                kill = draw.randrange(2) == 0
                router.note("kill" if kill else "stop")
                hang_up()
                honest.lost()
                router.restart(kill=kill)
                restarts = time.monotonic() + RESTART_S
        router.examine()
        router.balances()
    except Finding:
        print("the last steps:", *router.steps, sep="\n    ", file=sys.stderr)
        raise


def drive(description: str, fuzz: Callable[[random.Random, float, Path], str]) -> int:
    """Run `fuzz` for the time that the command line asks for; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = fuzz(random.Random(seed), options.seconds, Path(folder))
        except Finding as finding:
            print(f"finding with seed {seed}: {finding}", file=sys.stderr)
            return 1
    print(f"{done}, no finding")
    return 0

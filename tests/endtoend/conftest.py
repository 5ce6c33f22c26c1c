"""Routers as processes of their own, started as a person starts them, and clients of other makers."""

import os
import queue
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

import vpnrouter
from vpnrouter.management.client import ManagementClient
from vpnrouter.testing.network import FaultyNetwork
from vpnrouter.testing.prefork import Prefork

PATIENCE_S = 180.0
"""How long a test waits for what it expects; only a failing one waits that long."""


OWN_BRIDGE_UP = re.compile(r" VPN \S+ bridge \S+ from .*: up$")
"""A line of stderr: a bridge of the router itself is up, and not the bridge of a peer that logged in there."""


def command() -> list[str]:
    """How to call `vpnrouter` from this interpreter: the installed script, or its entry point."""
    script = Path(sys.executable).parent / "vpnrouter"
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from vpnrouter.cli.app import main; main()"]


@pytest.fixture(scope="session")
def vpnrouter_command() -> list[str]:
    """How to call `vpnrouter` from this interpreter."""
    return command()


@pytest.fixture(scope="session")
def tool() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """`tool("check", "edge.yaml", cwd=…)` runs a command to its end, which exits with `code`, None for any."""

    def run(
        *words: str, code: int | None = 0, timeout: float = 60.0, **options: Any
    ) -> "subprocess.CompletedProcess[str]":
        env = environment() | options.pop("env", {})
        done = subprocess.run(
            [*command(), *words],
            capture_output=True,
            check=False,
            text=True,
            timeout=timeout,
            env=env,
            **options,
        )
        assert code in {None, done.returncode}, done.stdout + done.stderr
        return done

    return run


def environment() -> dict[str, str]:
    """The environment of a router process: the very build that these tests import."""
    found = dict(os.environ)
    found["PYTHONPATH"] = str(Path(vpnrouter.__file__).parents[1])
    found["PYTHONUNBUFFERED"] = "1"
    return found


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is true; the test fails when it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.01)


@pytest.fixture
def patiently() -> Callable[[Callable[[], bool], str], None]:
    """`patiently(true, what)` waits until something is true."""
    return until


class Forks:
    """Where routers come from: one process that has loaded everything, begun when the first is wanted."""

    _prefork: Prefork | None = None

    @classmethod
    def get(cls) -> Prefork:
        """The process of this run."""
        if cls._prefork is None:
            cls._prefork = Prefork(environment())
        return cls._prefork

    @classmethod
    def end(cls) -> None:
        """End it, if there is one."""
        if cls._prefork is not None:
            cls._prefork.close()
            cls._prefork = None


@pytest.fixture(scope="session", autouse=True)
def forks() -> Iterator[None]:
    """The process that routers are forked from ends with the run."""
    yield
    Forks.end()


class RouterProcess:
    """One `vpnrouter run`, forked from a process that has loaded everything, in a tenth of the time.

    `ready` holds the ready line's values by key, in order. `more` is added to the environment, and `prefork` is
    another process to fork from. `before` stands before the command, for example to set limits: then, and with
    `own`, the router is an interpreter of its own.
    """

    def __init__(
        self,
        path: Path,
        wait: bool = True,
        before: Sequence[str] = (),
        *,
        own: bool = False,
        more: Mapping[str, str] | None = None,
        prefork: Prefork | None = None,
    ) -> None:
        self.began = time.monotonic()
        env = {**environment(), **(more or {})}
        self.process: Any
        if own or before:
            self.process = subprocess.Popen(
                [*before, *command(), "run", str(path)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
                cwd=path.parent,
            )
        else:
            origin = prefork or Forks.get()
            self.process = origin.popen(["run", str(path)], env=env, cwd=path.parent)
        self._management: ManagementClient | None = None
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=self._collect, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()
        if wait:
            self.await_ready()
        self.ready_after_s = time.monotonic() - self.began

    def await_ready(self) -> None:
        """Wait for the ready line."""
        until(lambda: bool(self.out) or self.process.poll() is not None, "the ready line")
        assert self.out, "".join(self.err)

    @staticmethod
    def _collect(stream: IO[str], into: list[str]) -> None:
        into.extend(stream)
        stream.close()

    @property
    def ready(self) -> dict[str, list[str]]:
        """Addresses of the ready line by protocol."""
        found: dict[str, list[str]] = {}
        for word in self.out[0].split()[1:]:
            key, _, value = word.partition("=")
            found.setdefault(key, []).append(value)
        return found

    def port(self, protocol: str, index: int = 0) -> int:
        """The port of a listener."""
        return int(self.ready[protocol][index].rpartition(":")[2])

    def says(self, text: str) -> None:
        """Wait until stderr holds `text`."""
        until(lambda: any(text in line for line in list(self.err)), f"{text!r} in {self.err}")

    def told(self, *texts: str) -> list[str]:
        """Lines of stderr that hold all `texts`."""
        return [line for line in list(self.err) if all(text in line for text in texts)]

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * resource.getpagesize()

    def api(self) -> ManagementClient:
        """A client of the management API, which ends with the router; needs an http listener."""
        if self._management is None:
            self._management = ManagementClient(f"http://127.0.0.1:{self.port('http')}")
        return self._management

    def bridges(self) -> list[dict[str, Any]]:
        """The bridges of all VPNs as the management API shows them."""
        return self.api().bridges()

    def bridge(self, name: str, **attributes: Any) -> dict[str, Any]:
        """The bridge of this name, once its attributes are these."""
        found: list[dict[str, Any]] = []

        def is_so() -> bool:
            found[:] = [row for row in self.bridges() if row["bridgeName"] == name]
            return all(found[0][key] == value for key, value in attributes.items())

        until(is_so, f"{name} with {attributes} in {found}")
        return found[0]

    def queue(self, msg_vpn: str, name: str) -> dict[str, Any]:
        """A queue as the management API shows it; needs an http listener."""
        return self.api().queue(msg_vpn, name)

    def holds(self, msg_vpn: str, name: str, count: int) -> dict[str, Any]:
        """The queue, once so many messages wait in it."""
        found: dict[str, Any] = {}

        def is_so() -> bool:
            found.update(self.queue(msg_vpn, name))
            return bool(found["msgCount"] == count)

        until(is_so, f"{count} messages in {name}")
        return found

    def bridges_up(self, count: int = 1) -> None:
        """Wait until stderr told `count` times that a bridge of this router is up.

        What the peer's bridge attracts from here is known once the peer's router says that it is up.
        """

        def up() -> bool:
            told = [line for line in list(self.err) if OWN_BRIDGE_UP.search(line.rstrip())]
            return len(told) >= count

        until(up, f"{count} bridges up in {self.err}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._join()
        return code

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(PATIENCE_S)
        self._join()
        return code

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._join()

    def _join(self) -> None:
        if self._management is not None:
            self._management.close()
            self._management = None
        for thread in self._threads:
            thread.join(PATIENCE_S)


@pytest.fixture(scope="session")
def router_process() -> type[RouterProcess]:
    """For routers that several tests share; who starts one kills it."""
    return RouterProcess


@pytest.fixture
def network() -> Iterator[FaultyNetwork]:
    """A network that can be broken; it ends with the test."""
    with FaultyNetwork() as made:
        yield made


Start = Callable[..., RouterProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(text, name)` runs a router; all of them are killed when the test ends."""
    started: list[RouterProcess] = []

    def run(
        text: str, name: str = "edge", wait: bool = True, before: Sequence[str] = ()
    ) -> RouterProcess:
        path = tmp_path / f"{name}.yaml"
        head = f"router: {{name: {name}, data_dir: data-{name}}}"
        path.write_text(f"{head}\n{text}", encoding="utf-8")
        process = RouterProcess(path, wait, before)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()


@pytest.fixture
def free_port() -> Iterator[Callable[[], int]]:
    """`free_port()`: a port for a listener, kept from everybody else until the test ends.

    A bound socket that does not listen: others may listen there, but the system gives the port to nobody
    who asks for any, nor to a connection that goes out.
    """
    kept: list[socket.socket] = []

    def find() -> int:
        sock = socket.socket()
        kept.append(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])

    yield find
    for sock in kept:
        sock.close()


class PahoClient:
    """A paho-mqtt client, connected; `arrived` holds (topic, payload) in order.

    `inflight` is how many messages may be published and not answered, 0 for paho's own bound, 20.
    """

    def __init__(self, port: int, name: str = "", **options: Any) -> None:
        self.arrived: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._subscribed = threading.Event()
        self.answer: queue.Queue[int] = queue.Queue()
        self.disconnected: queue.Queue[int] = queue.Queue()
        level = options.pop("level", 5)
        tls = options.pop("tls", None)
        login = options.pop("login", None)
        will = options.pop("will", None)
        inflight = options.pop("inflight", 0)
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=name,
            reconnect_on_failure=False,
            protocol={3: mqtt.MQTTv31, 4: mqtt.MQTTv311, 5: mqtt.MQTTv5}[level],
            **options,
        )
        if inflight:
            self.client.max_inflight_messages_set(inflight)
        if tls is not None:
            self.client.tls_set_context(tls)
        if login is not None:
            self.client.username_pw_set(*login)
        if will is not None:
            self.client.will_set(*will)
        self.client.on_message = lambda _c, _u, message: self.arrived.put(
            (message.topic, bytes(message.payload))
        )
        self.client.on_connect = lambda _c, _u, _f, reason, _p: self.answer.put(reason.value)
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.disconnected.put(
            reason.value
        )
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.connect("localhost" if tls else "127.0.0.1", port)
        self.client.loop_start()
        self.code = self.answer.get(timeout=PATIENCE_S)

    def numbers(self) -> list[int]:
        """The payloads that arrived so far, in order, which are numbers."""
        return [int(payload) for _, payload in list(self.arrived.queue)]

    def until_number(self, number: int) -> None:
        """Wait until this number, or a later one, has arrived."""

        def here() -> bool:
            arrived = list(self.arrived.queue)
            return bool(arrived) and int(arrived[-1][1]) >= number

        until(here, f"{number} arrived")

    def subscribe(self, topic: str, qos: int = 0) -> None:
        """Subscribe and wait for the answer."""
        self._subscribed.clear()
        self.client.subscribe(topic, qos)
        assert self._subscribed.wait(PATIENCE_S)

    def publish(self, topic: str, payload: bytes = b"") -> None:
        """Publish a Direct message and wait until it left."""
        self.client.publish(topic, payload).wait_for_publish(PATIENCE_S)

    def next(self) -> tuple[str, bytes]:
        """The next message."""
        return self.arrived.get(timeout=PATIENCE_S)

    def stop(self) -> None:
        """Disconnect and end the thread."""
        self.client.disconnect()
        self.client.loop_stop()
        # A client that nothing holds in a cycle closes its sockets when it goes, and not some time later.
        self.client.on_message = self.client.on_connect = None
        self.client.on_disconnect = self.client.on_subscribe = self.client.on_publish = None


@pytest.fixture
def paho() -> Iterator[Callable[..., PahoClient]]:
    """`paho(port, …)`: a connected client; all of them are stopped when the test ends."""
    made: list[PahoClient] = []

    def connect(port: int, name: str = "", **options: Any) -> PahoClient:
        client = PahoClient(port, name, **options)
        made.append(client)
        return client

    yield connect
    for client in made:
        client.stop()


class Numbered:
    """Publishes numbers to `topic` from a thread, `rate` a second, until `stop`.

    Number n is the payload of the n-th message; `sent` is how many there are.
    """

    def __init__(self, client: Any, topic: str, rate: float, size: int) -> None:
        self.sent = 0
        self._client = client.client
        self._topic = topic
        self._pause_s = 1 / rate
        self._size = size
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._pause_s):
            self._client.publish(self._topic, str(self.sent).rjust(self._size))
            self.sent += 1

    def passes(self, more: int) -> int:
        """Wait until `more` messages were published from now on; returns how many there are then."""
        wanted = self.sent + more
        deadline = time.monotonic() + PATIENCE_S
        while self.sent < wanted:
            assert time.monotonic() < deadline, f"not published: {wanted} messages"
            time.sleep(0.01)
        return self.sent

    def stop(self) -> int:
        """Publish no more; returns how many there were."""
        self._ended.set()
        self._thread.join(PATIENCE_S)
        return self.sent


@pytest.fixture
def publishing() -> Iterator[Callable[..., Numbered]]:
    """`publishing(client, topic, rate=…, size=…)`: numbers on their way, until the test ends."""
    made: list[Numbered] = []

    def begin(client: Any, topic: str, rate: float = 500, size: int = 1) -> Numbered:
        made.append(Numbered(client, topic, rate, size))
        return made[-1]

    yield begin
    for each in made:
        each.stop()


@pytest.fixture
def mosquitto() -> Callable[[str], str]:
    """The path of a mosquitto client program; the test is skipped where it is not installed."""

    def find(program: str) -> str:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not installed: apt-get install mosquitto-clients")
        return found

    return find

"""Real brokers as providers of connectors, each at a port that it is given."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.guaranteed_rabbit import RabbitMq

if TYPE_CHECKING:
    from collections.abc import Iterator

PEERS = Path(__file__).resolve().parents[3] / ".peers"

MOSQUITTO = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
user root
"""

NATS = """
server_name: provider
listen: "127.0.0.1:-1"
jetstream {{store_dir: "{folder}"}}
mqtt {{listen: "127.0.0.1:{port}"}}
"""


class ProgramProvider:
    """A broker that is one program with a configuration file; it stops, and comes again with what it had kept."""

    def __init__(self, command: list[str], config: Path, text: str) -> None:
        config.parent.mkdir(exist_ok=True)
        config.write_text(text, encoding="utf-8")
        self._command = [*command, str(config)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin a life."""
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdout=null, stderr=null)

    def stop(self) -> None:
        """End it, so that it keeps what it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let it hang."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
            process.wait(30)


class ArtemisProvider(ProgramProvider):
    """Artemis with its journal in a folder; it is killed, and comes again with what it had kept."""

    def __init__(self, folder: Path, port: int) -> None:
        classes = f"{PEERS}/artemis:{PEERS}/artemis/lib/*"
        self._command = [
            "java",
            # A long run leaves more in its queues.
            "-Xmx2g" if os.environ.get("VPNROUTER_LONG") else "-Xmx256m",
            "-cp",
            classes,
            "ArtemisPeer",
            str(port),
            str(folder),
            "keep",
        ]
        self._process = None

    def start(self) -> None:
        """Begin a life, and wait until it is there."""
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=null)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip().isdigit()

    def kill(self) -> None:
        """End it at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=30)

    stop = kill


class RabbitProvider:
    """RabbitMQ with its plugin for MQTT, or for AMQP 1.0 with a queue `bench`; it stops, and comes again with what it
    had kept.
    """

    def __init__(self, folder: Path, port: int, more: str, *, amqp: bool = False) -> None:
        self._folder = folder
        self._port = port
        self._more = more
        self._amqp = amqp
        if amqp:
            (folder / "port").write_text(str(port), encoding="utf-8")
        self._life = contextlib.ExitStack()
        self._pid = 0

    def start(self) -> None:
        """Begin a life."""
        broker = RabbitMq("classic")
        if self._amqp:
            life = broker.with_amqp_1_0(self._folder, None)
            _, self._pid = self._life.enter_context(life)
            broker.prepare(("127.0.0.1", self._port), 1)
        else:
            life = broker.with_mqtt(self._folder, self._port, self._more)
            self._pid = self._life.enter_context(life)

    def stop(self) -> None:
        """End it, so that it keeps what it has."""
        self._life.close()

    def freeze(self) -> None:
        """Let it hang."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self._pid, signal.SIGCONT)


def missing(name: str) -> str:
    """Why a provider cannot be used on this machine; "" where it can."""
    if name == "rabbitmq":
        return RabbitMq("classic").missing()
    if name == "artemis":
        there = (PEERS / "artemis" / "ArtemisPeer.class").exists()
        return "" if there else "Artemis is not installed: run .ci/peers"
    program = {"mosquitto": "mosquitto", "nats": "nats-server"}.get(name)
    if program is None or program_of(program):
        return ""
    return f"{program} is not installed: apt-get install {program}"


def program_of(name: str) -> str:
    """The path of a program that may be out of a user's PATH, "" where it is not installed."""
    found = shutil.which(name) or f"/usr/sbin/{name}"
    return found if Path(found).exists() else ""


@contextlib.contextmanager
def providing(name: str, port: int, folder: Path, more: str = "") -> Iterator[Any]:
    """Run a broker; `more` is appended to its configuration."""
    place = folder / name
    broker: ProgramProvider | RabbitProvider | ArtemisProvider
    if name == "artemis":
        broker = ArtemisProvider(place, port)
    elif name == "rabbitmq-amqp":
        place.mkdir(exist_ok=True)
        broker = RabbitProvider(place, port, more, amqp=True)
    elif name == "rabbitmq":
        place.mkdir(exist_ok=True)
        broker = RabbitProvider(place, port, more)
    elif name == "mosquitto":
        text = MOSQUITTO.format(port=port, folder=place) + more
        broker = ProgramProvider([program_of("mosquitto"), "-c"], place / "conf", text)
    else:
        text = NATS.format(port=port, folder=place) + more
        broker = ProgramProvider([program_of("nats-server"), "-c"], place / "conf", text)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def settled(look: Any, still_s: float = 1.0, within_s: float = 30.0) -> Any:
    """What `look` returns when it has not changed for `still_s`: nothing more comes."""
    deadline = time.monotonic() + within_s
    seen, since = look(), time.monotonic()
    while time.monotonic() < deadline:
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() - since > still_s:
            return seen
        time.sleep(0.05)
    return seen


def balances(row: dict[str, Any]) -> bool:
    """Whether each message of a link is accounted for, as the API shows it, and none is on its way."""
    outcomes = ("delivered", "duplicate", "returned", "deadLetter", "discarded")
    known = sum(row[f"{name}MsgCount"] for name in outcomes)
    return bool(row["msgCount"] == known and row["inFlightMsgCount"] == 0)

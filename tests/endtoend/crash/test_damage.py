"""Damage in one file of the spool costs the messages that are there, says how many, and nobody else notices.

Queue `orders` of message VPN blue holds messages of 20 KB when one file is damaged; queue `witness` of green belongs to
somebody else. Each case is a kind of file, a kind of damage, and a time: while the router is stopped or killed, or
while it runs.
"""

import json
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import paho.mqtt.client as mqtt
import pytest
import yaml
from paho.mqtt.enums import CallbackAPIVersion

from vpnrouter.cli import app
from vpnrouter.spool.read_only_store import findings

PATIENCE_S: Final = 60.0
MESSAGES: Final = 200
SIZE: Final = 20_000
WITNESSES: Final = 50
UNIT_MESSAGES: Final = 6
"""Messages of this size in one unit of the spool, which is what one damaged place costs."""

OPEN: Final = {"authentication": {"basic": {"enabled": False}}}


def flip(part: float, offset: int = 0) -> Callable[[Path], None]:
    """Turn a bit over, at a part of the file."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[min(int(len(data) * part) + offset, len(data) - 1)] ^= 4
        path.write_bytes(data)

    return damage


DAMAGE: Final[dict[str, Callable[[Path], None]]] = {
    "a bit of its head": flip(0.0, 5),
    "a bit of its middle": flip(0.5),
    "a bit of its end": flip(1.0, -6),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "gone": Path.unlink,
    "grown": lambda path: path.write_bytes(path.read_bytes() + b"x" * 100),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,
}

FILES: Final = {
    "table": "*.sst",
    "values": "*.blob",
    "log": "*.log",
    "MANIFEST": "MANIFEST-*",
    "CURRENT": "CURRENT",
    "SYNCED": "SYNCED",
    "IDENTITY": "IDENTITY",
    "OPTIONS": "OPTIONS-*",
    "settings": "rocksdict-config.json",
}

QUICK: Final = {
    ("values", "gone"),
    ("table", "a bit of its middle"),
    ("SYNCED", "a bit of its head"),
}
"""Cases of the short run."""

CASES: Final = [
    pytest.param(kind, damage, marks=() if (kind, damage) in QUICK else pytest.mark.slow)
    for kind in FILES
    for damage in DAMAGE
]


class Client:
    """An MQTT client with a thread of its own."""

    def __init__(self, port: int, name: str) -> None:
        self.payloads: list[bytes] = []
        self.refused: list[int] = []
        self._more = threading.Condition()
        self._answered = 0
        self._subscribed = False
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5, reconnect_on_failure=False
        )
        self._client.max_inflight_messages_set(200)
        self._client.on_message = self._on_message
        self._client.on_publish = self._on_publish
        self._client.on_subscribe = self._on_subscribe
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def _on_message(self, _: object, __: object, message: Any) -> None:
        with self._more:
            self.payloads.append(message.payload)
            self._more.notify_all()

    def _on_publish(self, _: object, __: object, ___: object, reason: Any, ____: object) -> None:
        with self._more:
            self._answered += 1
            if reason.is_failure:
                self.refused.append(reason.value)
            self._more.notify_all()

    def _on_subscribe(self, *_: object) -> None:
        with self._more:
            self._subscribed = True
            self._more.notify_all()

    def publish(self, topic: str, first: int, count: int, size: int) -> None:
        """Publish numbered messages with QoS 1, and wait for all answers."""
        draws = random.Random(first)
        with self._more:
            due = self._answered + count
        for number in range(first, first + count):
            self._client.publish(topic, number.to_bytes(4, "big") + draws.randbytes(size), 1)
        with self._more:
            assert self._more.wait_for(lambda: self._answered >= due, PATIENCE_S)

    def consume(self, queue: str, count: int) -> list[int]:
        """Take at least so many messages of a queue; return the numbers of those that came."""
        self._client.subscribe(f"$queue/{queue}", 1)
        with self._more:
            assert self._more.wait_for(lambda: self._subscribed, PATIENCE_S)
            assert self._more.wait_for(lambda: len(self.payloads) >= count, PATIENCE_S), len(
                self.payloads
            )
            return [int.from_bytes(each[:4], "big") for each in self.payloads]

    def end(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


class Scene:
    """A router with queue orders in VPN blue and queue witness in VPN green; `config` is its file."""

    def __init__(self, process: Any, folder: Path) -> None:
        self._process = process
        self.spool = folder / "data" / "spool"
        self.config = folder / "router.yaml"
        document = {
            "router": {"name": "r", "data_dir": str(folder / "data")},
            "listeners": [
                {"protocol": "http", "bind": "127.0.0.1:0"},
                {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
                {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "green"},
            ],
            "msg_vpns": {
                "blue": {**OPEN, "queues": {"orders": {"subscriptions": ["orders/>"]}}},
                "green": {**OPEN, "queues": {"witness": {"subscriptions": ["witness/>"]}}},
            },
        }
        self.config.write_text(yaml.safe_dump(document), encoding="utf-8")
        self.router: Any = None
        self._clients: list[Client] = []

    def start(self) -> bool:
        """Start the router; return whether it serves, and did not refuse to start."""
        self.router = self._process(self.config, False)
        while not self.router.out and self.router.process.poll() is None:
            threading.Event().wait(0.01)
        if self.router.out:
            return True
        assert self.router.wait() == 1
        assert not self.router.told("Traceback"), "".join(self.router.err)
        return False

    def client(self, vpn: str, name: str) -> Client:
        """A client of a message VPN."""
        made = Client(self.router.port("mqtt", ("blue", "green").index(vpn)), name)
        self._clients.append(made)
        return made

    def fill(self) -> None:
        """Put messages into both queues."""
        self.client("blue", "filler").publish("orders/1", 0, MESSAGES, SIZE)
        self.client("green", "witness-filler").publish("witness/1", 0, WITNESSES, 50)
        self.leave()

    def leave(self) -> None:
        """Let all clients go."""
        while self._clients:
            self._clients.pop().end()

    def file(self, kind: str) -> Path:
        """The largest file of a kind."""
        return max(self.spool.glob(FILES[kind]), key=lambda path: path.stat().st_size)

    def stop(self) -> None:
        """Stop the router."""
        self.leave()
        assert self.router.stop() == 0
        assert not self.router.told("Traceback"), "".join(self.router.err)

    def judge(self, lost: int) -> None:
        """What is not lost arrives, losses are counted; lists and purge work; the witness has everything.

        Its publishers and consumers meet no refusal.
        """
        client = self.client("green", "witness-publisher")
        client.publish("witness/2", WITNESSES, WITNESSES, SIZE)
        assert client.refused == []
        # The list reads no message.
        assert self.row("blue", "orders")["msgCount"] in {MESSAGES, MESSAGES - lost}
        reader = self.client("blue", "reader")
        arrived = reader.consume("orders", MESSAGES - lost)
        assert len(set(arrived)) == len(arrived) == MESSAGES - lost
        assert arrived == sorted(arrived)
        witness = self.client("green", "witness-reader").consume("witness", 2 * WITNESSES)
        assert sorted(witness) == list(range(2 * WITNESSES))
        publisher = self.client("blue", "publisher")
        publisher.publish("orders/2", MESSAGES, 10, SIZE)
        assert publisher.refused == []
        row = self.row("blue", "orders")
        assert row["imbalance"] == 0, row
        assert self.row("green", "witness")["imbalance"] == 0

    def row(self, vpn: str, queue: str) -> dict[str, Any]:
        """What management shows of a queue."""
        found: dict[str, Any] = self.router.queue(vpn, queue)
        return found


@pytest.fixture
def scene(router_process: Any, tmp_path: Path) -> Iterator[Scene]:
    """A router, not started; it ends with the test."""
    made = Scene(router_process, tmp_path)
    yield made
    made.leave()
    if made.router is not None:
        made.router.kill()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where the files of a filled spool are kept, by whether the router was killed; empty at first."""
    return {"": tmp_path_factory.mktemp("filled")}


def begin(scene: Scene, filled: dict[str, Path]) -> None:
    """Let the stopped router have a filled spool, with messages in files of all kinds, as SIGKILL leaves it."""
    kept = filled[""] / "spool"
    if not kept.exists():
        assert scene.start()
        client = scene.client("blue", "filler")
        client.publish("orders/1", 0, MESSAGES - 20, SIZE)
        scene.client("green", "witness-filler").publish("witness/1", 0, WITNESSES, 50)
        scene.stop()
        # A start writes out what is in the log; what comes now is in a log.
        assert scene.start()
        scene.client("blue", "filler").publish("orders/1", MESSAGES - 20, 20, SIZE)
        scene.leave()
        scene.router.kill()
        shutil.copytree(scene.spool, kept)
        return
    shutil.copytree(kept, scene.spool)


@pytest.mark.parametrize(("kind", "damage"), CASES)
def test_found_at_the_start(
    scene: Scene, filled: dict[str, Path], capsys: Any, kind: str, damage: str
) -> None:
    """The start is refused and goes on after a repair that tells what is lost; or that is told when it is met."""
    begin(scene, filled)
    DAMAGE[damage](scene.file(kind))
    told = findings(scene.spool)
    lost = 0
    if scene.start():
        if told:
            lost = drained(scene)
            assert (
                len(scene.router.told("are damaged and lost"))
                + len(scene.router.told("cannot be read"))
                >= 1
            )
            scene.stop()
            repair(scene, capsys)
        else:
            scene.judge(0)
            return
    else:
        assert told, "verify finds what run finds"
        assert scene.router.told("its files are damaged")
        assert scene.router.told("vpnrouter spool repair")
        before = {path.name: path.read_bytes() for path in scene.spool.iterdir()}
        dry = repair(scene, capsys, "--dry-run")
        assert {path.name: path.read_bytes() for path in scene.spool.iterdir()} == before
        done = repair(scene, capsys)
        assert done["lost"] == dry["lost"]
        aside = Path(done["aside"])
        assert {path.name: path.read_bytes() for path in aside.iterdir()} == before
        assert done["problems"]
        lost = sum(row["messages"] for row in done["lost"] if row["endpoint"] == "orders")
    assert findings(scene.spool) == []
    assert scene.start()
    assert scene.row("green", "witness")["msgCount"] <= WITNESSES
    _after(scene, lost)


def repair(scene: Scene, capsys: Any, *options: str) -> dict[str, Any]:
    """What a repair tells."""
    capsys.readouterr()
    assert app.run(["spool", "repair", str(scene.config), "--json", *options]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def _after(scene: Scene, lost: int) -> None:
    """Whatever is left is delivered, and new messages of both message VPNs are taken."""
    left = scene.row("blue", "orders")["msgCount"]
    assert left <= MESSAGES - lost
    assert len(scene.client("blue", "reader").consume("orders", left)) == left
    for vpn, topic in (("blue", "orders/2"), ("green", "witness/2")):
        client = scene.client(vpn, f"{vpn}-publisher")
        client.publish(topic, MESSAGES, 10, SIZE)
        assert client.refused == []


def drained(scene: Scene) -> int:
    """Take everything from queue orders; return how many messages did not come."""
    reader = scene.client("blue", "drain")
    reader.consume("orders", 0)
    for _ in range(600):
        row = scene.row("blue", "orders")
        unread = len(scene.router.told("cannot be read"))
        if row["msgCount"] == 0 or (unread and row["txUnackedMsgCount"] == 0):
            break
        threading.Event().wait(0.05)
    return MESSAGES - len(reader.payloads)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(each, marks=() if each == "a bit of its middle" else pytest.mark.slow)
        for each in DAMAGE
    ],
)
@pytest.mark.parametrize("kind", ["values", "table"])
def test_under_load(scene: Scene, filled: dict[str, Path], kind: str, damage: str) -> None:
    """While the router runs: nobody else is refused or loses anything, lists and purge work, also after a restart."""
    begin(scene, filled)
    assert scene.start()
    DAMAGE[damage](scene.file(kind))
    witness = scene.client("green", "witness-publisher")
    # So much goes through that RocksDB merges its files, and meets the damage.
    for turn in range(12):
        witness.publish("witness/2", 1_000 * turn, 200, SIZE)
        assert witness.refused == []
        row = scene.row("blue", "orders")
        assert row["imbalance"] == 0, row
    # What a file of bodies loses may be of any message VPN: a unit with enough small messages has its body there.
    spared = 0 if kind == "values" and damage in {"gone", "zeros", "cut"} else WITNESSES
    sent = 12 * 200
    found = len(scene.client("green", "witness-reader").consume("witness", sent + spared))
    assert sent + spared <= found <= sent + WITNESSES
    scene.leave()
    lost = drained(scene)
    if kind == "values" and damage == "a bit of its middle":
        assert 0 < lost <= UNIT_MESSAGES
        row = scene.row("blue", "orders")
        assert (row["discarded"], row["msgCount"], row["imbalance"]) == ({"damaged": lost}, 0, 0)
        assert scene.router.told(
            f"{lost} messages of orders in message VPN blue are damaged and lost"
        )
    scene.leave()
    publisher = scene.client("blue", "publisher")
    publisher.publish("orders/2", MESSAGES, 10, SIZE)
    assert publisher.refused == []
    assert not scene.router.told("the message spool cannot be written")
